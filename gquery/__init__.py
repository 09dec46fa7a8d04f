"""gquery: SQL over columns, fused into kernels for a GPU, and for machines that have none.

    import gquery
    gquery.sql("SELECT kind, sum(price) FROM 'sales.parquet' GROUP BY kind").show()

The life of a query in ten steps:

 1. `api.connection`: `Connection.sql` takes the text; a text that was planned before skips to step 7.
 2. `sql.parse`: a tree of sqlglot's nodes is made of it, or a ParseError points at the place.
 3. `sql.bind`: names become columns with ids, every expression gets its type; the result is a logical plan.
 4. `planner.optimizer`: rules rewrite that: subqueries become joins, filters sink, joins are ordered.
 5. `io`, `columns.encode`: the columns that it reads are loaded, each in the narrowest physical type that holds it.
 6. `planner.lower`: the plan becomes a program, stages that are fused pipelines or whole-table operations.
 7. `operators.codegen`, `kernels`: the operators of a pipeline write one loop over rows, the kernel's text.
 8. `kernels.targets`: LLVM compiles that for the CPU, libNVVM for the GPU, once (a cache on disk keeps it), or, for little
    work, Python runs it as it stands.
 9. `execution`: stages run over morsels, on several devices by ranks (`distributed`); sinks' states are combined and finalized.
10. `api.relation`, `result`: the `Relation` hands the rows out: Arrow, pandas, Polars, Python tuples, a box of text.

Importing the package loads no part of the engine; the first of its names that needs one does, such as `connect`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gquery.api import names
from gquery.errors import (
    BindError,
    CardinalityError,
    CatalogError,
    ConversionError,
    DatabaseError,
    DataError,
    DeviceError,
    Error,
    FileError,
    GQueryError,
    IntegrityError,
    InterfaceError,
    InternalError,
    InterruptError,
    NotSupportedError,
    OperationalError,
    OutOfMemoryError,
    OutOfRangeError,
    ParseError,
    ProgrammingError,
    Warning,  # noqa: A004  (PEP 249 asks for this name)
)

if TYPE_CHECKING:
    from gquery.api.connection import Connection, connect
    from gquery.api.dataframe.expression import Expression, col, fn, lit, when
    from gquery.api.dataframe.rows import concat
    from gquery.api.dbapi import (
        BINARY,
        DATETIME,
        NUMBER,
        ROWID,
        STRING,
        Binary,
        Cursor,
        Date,
        DateFromTicks,
        Time,
        TimeFromTicks,
        Timestamp,
        TimestampFromTicks,
        apilevel,
        paramstyle,
        threadsafety,
    )
    from gquery.api.relation import Relation
    from gquery.functions.user import udf

__version__ = "0.1.0"

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "BindError",
    "CardinalityError",
    "CatalogError",
    "Connection",
    "ConversionError",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "DeviceError",
    "Error",
    "Expression",
    "FileError",
    "GQueryError",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "InterruptError",
    "NotSupportedError",
    "OperationalError",
    "OutOfMemoryError",
    "OutOfRangeError",
    "ParseError",
    "ProgrammingError",
    "Relation",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "__version__",
    "apilevel",
    "col",
    "concat",
    "connect",
    "default_connection",
    "execute",
    "explain",
    "fn",
    "lit",
    "paramstyle",
    "read_csv",
    "read_ipc",
    "read_json",
    "read_parquet",
    "register",
    "sql",
    "table",
    "threadsafety",
    "udf",
    "unregister",
    "when",
]

_default: Connection | None = None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *names.COLUMN_FUNCTIONS})


def __getattr__(name: str) -> Any:
    """Names whose modules are imported when somebody asks for them."""
    if name not in __all__ and name not in names.COLUMN_FUNCTIONS:
        raise AttributeError(f"module 'gquery' has no attribute {name!r}")
    found = globals()[name] = names.value(name)
    return found


def default_connection() -> Connection:
    """The connection that the functions of this module use, on the best device; made at the first call."""
    global _default
    if _default is None:
        _default = __getattr__("connect")()
    return _default


def sql(query: str, params: Any = None) -> Relation:
    """`Connection.sql` on the default connection."""
    return default_connection().sql(query, params)


def execute(query: str, params: Any = None) -> Relation:
    """`Connection.execute` on the default connection."""
    return default_connection().execute(query, params)


def register(name: str, data: Any) -> Connection:
    """`Connection.register` on the default connection."""
    return default_connection().register(name, data)


def unregister(name: str) -> Connection:
    """`Connection.unregister` on the default connection."""
    return default_connection().unregister(name)


def table(name: str) -> Relation:
    """`Connection.table` on the default connection."""
    return default_connection().table(name)


def read_parquet(paths: Any, **options: Any) -> Relation:
    """`Connection.read_parquet` on the default connection."""
    return default_connection().read_parquet(paths, **options)


def read_csv(paths: Any, **options: Any) -> Relation:
    """`Connection.read_csv` on the default connection."""
    return default_connection().read_csv(paths, **options)


def read_json(paths: Any, **options: Any) -> Relation:
    """`Connection.read_json` on the default connection."""
    return default_connection().read_json(paths, **options)


def read_ipc(paths: Any, **options: Any) -> Relation:
    """`Connection.read_ipc` on the default connection."""
    return default_connection().read_ipc(paths, **options)


def explain(query: str, level: str = "optimized", format: str = "text") -> str:  # noqa: A002  (a public keyword)
    """`Connection.explain` on the default connection."""
    return default_connection().explain(query, level, format=format)


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext gquery`` in a notebook: see `gquery.shell.notebook`."""
    from gquery.shell.notebook import load

    load(shell, default_connection)


class _Package(ModuleType):
    """Keeps ``gquery.sql`` the function above: Python would bind the name to the package `sql` when that is imported.
    ``from gquery.sql.bind import bind`` finds it all the same."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name == "sql" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
