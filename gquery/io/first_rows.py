"""The first rows of a table in memory, for a LIMIT over columns that are not encoded yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery.columns.table import ColumnData, ColumnStatistics, Table, TableSource
from gquery.expression.types import Schema

ReadFirst = Callable[[Sequence[int], int], dict[int, ColumnData]]  # fields and a number of rows: columns by field


class FirstRows:
    """The first rows of a table: a table of its own, so that its columns are not taken for the whole ones. ``read`` makes
    columns of them."""

    def __init__(self, whole: TableSource, rows: int, read: ReadFirst) -> None:
        self.name, self.schema, self.version, self.rows = whole.name, whole.schema, whole.version, rows
        self._read = read
        self._columns: dict[int, ColumnData] = {}

    def statistics(self, field: int) -> ColumnStatistics:
        """Exact for columns that have been loaded, the NULL count before."""
        column = self._columns.get(field)
        if column is not None:
            return column.statistics
        return ColumnStatistics(null_count=None if self.schema.fields[field].nullable else 0)

    def has_nulls(self, field: int) -> bool:
        """Whether the field may hold NULLs."""
        return self.statistics(field).null_count != 0

    def is_unique(self, field: int) -> bool:
        """Whether no value comes twice and none is NULL, for certain."""
        return self.statistics(field).is_unique

    def load(self, fields: Sequence[int]) -> Table:
        """The columns in the order that is asked for."""
        missing = sorted({f for f in fields if f not in self._columns})
        if missing:
            self._columns |= self._read(missing, self.rows)
        columns = tuple(self._columns[f] for f in fields)
        return Table(Schema(tuple(self.schema.fields[f] for f in fields)), columns, self.rows)
