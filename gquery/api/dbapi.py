"""DB-API 2.0 (PEP 249): the cursor, and the names that the module has to have for types and their constructors.

Each thread takes a cursor of its own; they share the tables and loaded columns of their connection. Results are in memory
once `execute` returns, so an unread one blocks nobody.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gquery import errors
from gquery.api.transactions import executing
from gquery.errors import InterfaceError, ProgrammingError
from gquery.runtime.arguments import checked
from gquery.runtime.boundary import boundary

if TYPE_CHECKING:
    from gquery.api.connection import Connection
    from gquery.api.plan_cache import Parameters
    from gquery.api.relation import Relation

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802  (PEP 249 fixes the names)
    """The local date of seconds since 1970."""
    return datetime.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802  (PEP 249)
    """The local time of day of seconds since 1970."""
    return datetime.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802  (PEP 249)
    """The local date and time of seconds since 1970."""
    return datetime.datetime(*time.localtime(ticks)[:6])


class TypeObject:
    """What the type code of a column in `Cursor.description`, the SQL name of its type, compares equal to.

    >>> NUMBER == "DECIMAL(15,2)", NUMBER == "VARCHAR", STRING == "VARCHAR"
    (True, False, True)
    """

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, str) and other.split("(")[0].upper() in self.names)

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return f"TypeObject({', '.join(sorted(self.names))})"


STRING = TypeObject("VARCHAR")
BINARY = TypeObject("BLOB")
NUMBER = TypeObject(
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "FLOAT", "REAL", "DOUBLE", "DECIMAL",
)  # fmt: skip
DATETIME = TypeObject("DATE", "TIME", "TIMESTAMP", "INTERVAL")
ROWID = TypeObject("ROWID")


class Exceptions:
    """The error classes as attributes of a connection: what is written for any database finds them there."""

    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError


class Cursor:
    """The tables of its connection, and one result at a time."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.rownumber: int | None = None
        self._result: Relation | None = None
        self._affected = -1
        self._closed = False

    def execute(self, operation: str, parameters: Parameters = None) -> Cursor:
        """Run a statement; its rows are fetched from the cursor."""
        self._check_open()
        self._result, self._affected, self.rownumber = None, -1, None
        with executing(self):
            made = self.connection.sql(operation, parameters)
            made.table()
        if not made.is_message:
            self._result, self.rownumber = made, 0
        elif made.columns == ["Count"]:
            self._affected = int(next(iter(made))[0])
        return self

    @checked
    def executemany(self, operation: str, seq_of_parameters: Sequence[Any]) -> Cursor:
        """Run a statement once for each of the parameters; the rows of the last can be fetched."""
        self._check_open()
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
        return self

    def begin(self) -> Cursor:
        """`Connection.begin`, of a transaction of this cursor's own."""
        self._check_open()
        with executing(self):
            self.connection.begin()
        return self

    def commit(self) -> Cursor:
        """`Connection.commit`, of this cursor's transaction."""
        self._check_open()
        with executing(self):
            self.connection.commit()
        return self

    def rollback(self) -> Cursor:
        """`Connection.rollback`, of this cursor's transaction."""
        self._check_open()
        with executing(self):
            self.connection.rollback()
        return self

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Name, type and five None for each column; None where the last statement gives no rows."""
        return None if self._result is None else self._result.description

    @property
    def rowcount(self) -> int:
        """Rows of the result, or rows that CREATE TABLE AS stored; -1 where there is no such number."""
        return self._affected if self._result is None else len(self._result)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last."""
        row = self._rows().fetchone()
        self._advance(0 if row is None else 1)
        return row

    @checked
    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next ``size`` rows (``arraysize`` where None), fewer at the end."""
        rows = self._rows().fetchmany(self.arraysize if size is None else size)
        self._advance(len(rows))
        return rows

    @boundary
    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that were not fetched yet."""
        rows = list(self._rows().unfetched())
        self._advance(len(rows))
        return rows

    def df(self) -> Any:
        """The whole result as a pandas DataFrame; see `Relation.df`."""
        return self._rows().df()

    def fetch_arrow_table(self) -> Any:
        """The whole result as a PyArrow table."""
        return self._rows().to_arrow_table()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def interrupt(self) -> None:
        """`Connection.interrupt`: stops what runs on the connection and all its cursors."""
        self.connection.interrupt()

    def setinputsizes(self, sizes: Any) -> None:
        """Nothing: values carry their sizes (PEP 249 asks for the method)."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing (PEP 249 asks for the method)."""

    def close(self) -> None:
        """Let go of the result, and roll back what was not committed; twice does no harm."""
        self._closed = True
        self._result = None
        self.connection._forget_transaction(self)

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("The cursor is closed")

    def _rows(self) -> Relation:
        self._check_open()
        if self._result is None:
            raise ProgrammingError("There are no rows: nothing was executed, or the last statement was no query")
        return self._result

    def _advance(self, rows: int) -> None:
        self.rownumber = (self.rownumber or 0) + rows
