"""Rows that INSERT has put behind those of a table, until somebody reads the table.

An INSERT costs what its own rows cost: they wait here, in pieces, and the table stays as it is. Who reads it next has them all
put behind its rows at once (`sql.catalog`). Rows of constants wait as Python values, and become Arrow arrays many at a time.
Rows of queries are tables; of two neighbours that are about as long one is made, so that there are few, and no row is copied
more often than the logarithm of their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gquery import tuning
from gquery.columns.arrow import arrow_type
from gquery.columns.import_arrow import import_columns
from gquery.columns.store import TableStore
from gquery.columns.table import Table, TableSource
from gquery.expression.nested_types import known_type
from gquery.expression.types import Field, Schema

if TYPE_CHECKING:
    import pyarrow as pa

Unite = Callable[[Sequence[TableSource]], TableSource]


class Appended:
    """See above. ``unite`` makes one table of several. The caller sees to it that one thread at a time is here."""

    def __init__(self, schema: Schema, unite: Unite) -> None:
        self._names, self._types = schema.names, [known_type(f.dtype) for f in schema]
        self._unite = unite
        self._pieces: list[TableSource] = []
        self._values: list[Sequence[Any]] = []  # rows of Python values, behind the arrays
        self._arrays: list[list[pa.Array]] = []  # of each column, behind the pieces
        self._rows = 0  # of the arrays

    def add_values(self, rows: Sequence[Sequence[Any]]) -> None:
        """Appends rows of what `python_value` gives, of the columns' types."""
        self._values += rows
        if len(self._values) >= tuning.memory.appended_values:
            self._store_values()

    def add_table(self, table: TableSource) -> None:
        """Appends the rows of a table with these columns."""
        self._store_values()
        self._store_arrays()
        self._push(table)

    def pieces(self) -> list[TableSource]:
        """The rows as tables, in their order."""
        self._store_values()
        self._store_arrays()
        return self._pieces

    def _store_values(self) -> None:
        if not self._values:
            return
        import pyarrow as pa

        columns = zip(*self._values, strict=True)
        self._arrays.append([pa.array(c, arrow_type(t)) for c, t in zip(columns, self._types, strict=True)])
        self._rows += len(self._values)
        self._values = []
        if self._rows >= tuning.memory.appended_rows:
            self._store_arrays()

    def _store_arrays(self) -> None:
        if not self._arrays:
            return
        import pyarrow as pa

        columns = [pa.chunked_array(chunks) for chunks in zip(*self._arrays, strict=True)]
        named = zip(self._names, self._types, columns, strict=True)
        fields = [Field(name, dtype, array.null_count > 0) for name, dtype, array in named]
        made = Table(Schema(tuple(fields)), tuple(import_columns(columns, fields)), self._rows)
        self._arrays, self._rows = [], 0
        self._push(TableStore("rows", made))

    def _push(self, table: TableSource) -> None:
        self._pieces.append(table)
        while len(self._pieces) > 1 and self._pieces[-2].rows <= 2 * self._pieces[-1].rows:
            self._pieces[-2:] = [self._unite(self._pieces[-2:])]
