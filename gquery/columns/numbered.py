"""A table in memory with one more field: the number of each row."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Protocol, TypeGuard

import numpy as np

from gquery.columns.domain import Restriction, ScanUse, is_divisible
from gquery.columns.table import ColumnData, ColumnStatistics, Table, TableSource
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.expression.types import BIGINT, Bounds, Field, Schema, physical_type_for
from gquery.runtime.records import replace

ROW_NUMBER = "row number"


class NumberedRows:
    """The table, and numbers from 0 on in its last field, ``number``. See `TableSource`."""

    def __init__(self, whole: TableSource) -> None:
        self._whole = whole
        self.name, self.version, self.rows = whole.name, whole.version, whole.rows
        self.schema = Schema((*whole.schema.fields, Field(ROW_NUMBER, BIGINT, False)))
        self.number = len(whole.schema.fields)
        bounds = Bounds(0, max(self.rows - 1, 0))
        self._statistics = ColumnStatistics(
            bounds, 0, self.rows, is_sorted=True, is_unique=True, values=bounds, longest_run=1
        )
        self._column: ColumnData | None = None

    def statistics(self, field: int) -> ColumnStatistics:
        """What is known of the field at a position."""
        return self._statistics if field == self.number else self._whole.statistics(field)

    def has_nulls(self, field: int) -> bool:
        """Whether the field may hold NULLs."""
        return field != self.number and self._whole.has_nulls(field)

    def is_unique(self, field: int) -> bool:
        """Whether no value comes twice and none is NULL, for certain."""
        return field == self.number or self._whole.is_unique(field)

    def restricted(self, uses: Sequence[ScanUse]) -> Restriction:
        """The first rows, where the table gives them: none are left out before. See `DivisibleSource`."""
        if not is_divisible(self._whole):
            return Restriction(self)
        own = [replace(use, fields=tuple([f for f in use.fields if f != self.number]), domains=dict) for use in uses]
        found = self._whole.restricted(own)
        is_whole = id(found.source) == id(self._whole)
        return Restriction(self if is_whole else NumberedRows(found.source), found.is_cut)

    def numbered(self) -> NumberedRows:
        """This table: it has the numbers."""
        return self

    def fetchable(self, fields: Sequence[int], loaded: bool) -> list[int]:
        """Those of the table, of which rows can be fetched. See `FetchingSource`."""
        own = [f for f in fields if f != self.number]
        return self._whole.fetchable(own, loaded) if can_be_numbered(self._whole) else []

    def fetch(self, fields: Sequence[int], rows: Array) -> dict[int, ColumnData]:
        """By field, its values in the rows of these numbers."""
        return self._whole.fetch(fields, rows) if can_be_numbered(self._whole) else {}

    def load(self, fields: Sequence[int]) -> Table:
        """The fields in the order that is asked for."""
        own = [f for f in fields if f != self.number]
        found = dict(zip(own, self._whole.load(own).columns, strict=True))
        if self.number in fields:
            found[self.number] = self._numbers()
        return Table(Schema(tuple(self.schema.fields[f] for f in fields)), tuple(found[f] for f in fields), self.rows)

    def _numbers(self) -> ColumnData:
        made = self._column
        if made is None:
            type_ = physical_type_for(Bounds(0, max(self.rows - 1, 0)))
            data = Buffer(np.arange(self.rows, dtype=type_.numpy))
            made = self._column = ColumnData(BIGINT, type_, self.rows, data, statistics=self._statistics)
        return made


class FetchingSource(TableSource, Protocol):
    """A table in memory: its rows have numbers, by which columns of few of them are had."""

    def numbered(self) -> NumberedRows:
        """The same table with the number of each row as one more field, the last one."""

    def fetchable(self, fields: Sequence[int], loaded: bool) -> list[int]:
        """Those of the fields of which rows can be fetched: among those that are loaded, or among the others."""

    def fetch(self, fields: Sequence[int], rows: Array) -> dict[int, ColumnData]:
        """By field, its values in the rows of these numbers (on the host), if it is not loaded."""


def can_be_numbered(source: TableSource) -> TypeGuard[FetchingSource]:
    """Whether a source is a `FetchingSource`."""
    return hasattr(source, "numbered")


class NumberedTable:
    """Gives the numbered rows of a table, the same ones as long as somebody has them: the table itself does not keep them, as
    they keep it."""

    def __init__(self) -> None:
        self._known: weakref.ref[NumberedRows] | None = None
        self._lock = threading.Lock()

    def of(self, table: TableSource) -> NumberedRows:
        """The numbered rows of the table, which is the same at each call."""
        with self._lock:
            made = None if self._known is None else self._known()
            if made is None:
                made = NumberedRows(table)
                self._known = weakref.ref(made)
            return made
