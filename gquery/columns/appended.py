"""Rows that INSERT has put behind those of a table, until somebody reads the table.

An INSERT costs what its own rows cost: they wait here, in pieces, and the table stays as it is. Who reads it next has them all
put behind its rows at once (`sql.catalog`). Rows of constants wait as Python values, and become Arrow arrays many at a time.
Rows of queries are tables; of two neighbours that are about as long one is made, so that there are few, and no row is copied
more often than the logarithm of their number.

What waits is counted in a memory limit: tables and arrays as they are made, values of Python by having few of them. A row that
does not fit any more is refused, and those before it stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gquery import tuning
from gquery.columns.arrow import arrow_type
from gquery.columns.store import TableStore
from gquery.columns.table import Table, TableSource
from gquery.errors import OutOfMemoryError
from gquery.expression.nested_types import known_type
from gquery.expression.types import Field, Schema
from gquery.runtime.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Storage:
    """How a connection keeps rows: makes one table of several, which gets a name, and counts what an array of Arrow or a table
    takes until it goes (OutOfMemoryError where it does not fit, what it is for in the error). ``values`` gives the Python
    values of columns of a table, by their places."""

    unite: Callable[[str, Sequence[TableSource]], TableSource]
    count: Callable[[pa.Array | Table, str], None]
    values: Callable[[TableSource, Sequence[int]], Mapping[int, Sequence[Any]]]


class Appended:
    """See above. Rows of the table ``name``. The caller sees to it that one thread at a time is here. What raises an error has
    changed nothing."""

    def __init__(self, name: str, schema: Schema, storage: Storage) -> None:
        self._name, self._storage, self._label = name, storage, f"rows of INSERT into {name}"
        self._names, self._types = schema.names, [known_type(f.dtype) for f in schema]
        self._pieces: list[TableSource] = []
        self._values: list[Sequence[Any]] = []  # rows of Python values, behind the arrays
        self._bytes = 0  # about what they take
        self._arrays: list[list[pa.Array]] = []  # of each column, behind the pieces
        self._rows = 0  # of the arrays

    def add(self, rows: TableSource | Sequence[Sequence[Any]]) -> None:
        """Appends the rows of a table with these columns, or rows of what `python_value` gives, of the columns' types."""
        if isinstance(rows, Sequence):
            self._add_values(rows)
        else:
            self._store_values()
            self._store_arrays()
            self._push(rows)

    def _add_values(self, rows: Sequence[Sequence[Any]]) -> None:
        size = _bytes_of(rows)
        limits = tuning.memory
        if len(self._values) >= limits.appended_values or self._bytes + size > limits.appended_bytes:
            self._store_values()
        self._values += rows
        self._bytes += size
        if size > limits.appended_bytes:  # these rows alone
            try:
                self._store_values()
            except BaseException:
                self._values, self._bytes = [], 0
                raise

    def pieces(self) -> list[TableSource]:
        """The rows as tables, in their order."""
        self._store_values()
        self._store_arrays()
        return self._pieces

    def count_again(self) -> None:
        """Count what waits under a new limit, as far as that has room: who needs memory next will be told."""
        with suppress(OutOfMemoryError):
            for array in [a for arrays in self._arrays for a in arrays]:
                self._storage.count(array, self._label)
            for piece in self._pieces:
                if type(piece) is TableStore:  # others are in the connection's cache
                    self._storage.count(piece.table, self._label)

    def _store_values(self) -> None:
        if not self._values:
            return
        from gquery.runtime.value_arrays import value_array  # few processes insert rows

        columns = zip(*self._values, strict=True)
        arrays = [value_array(c, arrow_type(t)) for c, t in zip(columns, self._types, strict=True)]
        for array in arrays:
            self._storage.count(array, self._label)
        self._arrays.append(arrays)
        self._rows += len(self._values)
        self._values, self._bytes = [], 0
        if self._rows >= tuning.memory.appended_rows:
            self._store_arrays()

    def _store_arrays(self) -> None:
        if not self._arrays:
            return
        import pyarrow as pa

        from gquery.columns.import_arrow import import_columns

        columns = [pa.chunked_array(chunks) for chunks in zip(*self._arrays, strict=True)]
        named = zip(self._names, self._types, columns, strict=True)
        fields = [Field(name, dtype, array.null_count > 0) for name, dtype, array in named]
        made = Table(Schema(tuple(fields)), tuple(import_columns(columns, fields)), self._rows)
        self._storage.count(made, self._label)
        self._push(TableStore("rows", made))
        self._arrays, self._rows = [], 0

    def _push(self, table: TableSource) -> None:
        pieces = [*self._pieces, table]
        while len(pieces) > 1 and pieces[-2].rows <= 2 * pieces[-1].rows:
            pieces[-2:] = [self._storage.unite(self._name, pieces[-2:])]
        self._pieces = pieces


def _bytes_of(rows: Sequence[Sequence[Any]]) -> int:
    """About what rows of Python values take: an object a value, and what texts and lists have in them."""
    inside = sum(len(v) for row in rows for v in row if isinstance(v, Sized))
    return inside + sum(map(len, rows)) * tuning.memory.python_value
