"""A table in memory as a source of a Scan."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from gquery.columns.numbered import NumberedRows, NumberedTable
from gquery.columns.table import ColumnData, ColumnStatistics, Table
from gquery.device.array import Array
from gquery.errors import InterfaceError
from gquery.expression.types import Schema

_versions = itertools.count(1)


def new_version() -> int:
    """A number that no table in memory has had."""
    return next(_versions)


class TableStore:
    """Columns that are made already: CREATE TABLE AS, a relation that has run, constant rows. See `TableSource`."""

    def __init__(self, name: str, table: Table) -> None:
        self.name = name
        self.table = table
        self.schema = table.schema
        self._version = new_version()
        self._numbered = NumberedTable()
        check_names(self.schema, name)

    @property
    def rows(self) -> int:
        """How many rows the table has."""
        return self.table.rows

    @property
    def version(self) -> int:
        """The number that this source was given; its data never change."""
        return self._version

    def statistics(self, field: int) -> ColumnStatistics:
        """What is known of the field at a position."""
        return self.table.columns[field].statistics

    def has_nulls(self, field: int) -> bool:
        """Whether the field may hold NULLs."""
        return self.statistics(field).null_count != 0

    def is_unique(self, field: int) -> bool:
        """Whether no value comes twice and none is NULL, for certain."""
        return self.statistics(field).is_unique

    def load(self, fields: Sequence[int]) -> Table:
        """The fields at these positions, in this order, where they lie."""
        columns = tuple(self.table.columns[f] for f in fields)
        return Table(Schema(tuple(self.schema.fields[f] for f in fields)), columns, self.table.rows)

    def fetchable(self, fields: Sequence[int], loaded: bool) -> list[int]:
        """Those of the fields of which rows can be fetched: all are loaded. See `planner.late_fetch`."""
        return list(fields) if loaded else []

    def numbered(self) -> NumberedRows:
        """The same table with the number of each row in its last field."""
        return self._numbered.of(self)

    def fetch(self, fields: Sequence[int], rows: Array) -> dict[int, ColumnData]:
        """Nothing: what is loaded is taken out of its columns."""
        return {}


def check_names(schema: Schema, table: str) -> None:
    """InterfaceError where two columns have one name, letter case ignored: SQL could not tell them apart."""
    seen: dict[str, str] = {}
    for field in schema:
        other = seen.setdefault(field.name.lower(), field.name)
        if other is not field.name:
            raise InterfaceError(f'{table} has the columns "{other}" and "{field.name}", which SQL cannot tell apart')
