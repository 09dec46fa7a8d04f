"""Columns and tables in memory, and the protocol of what a query can scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gquery.dtypes import Bounds, Carrier, DType, Schema


@dataclass(frozen=True)
class ColumnStatistics:
    """What is known of a column's values, exact unless said otherwise. ``None`` is "not known"."""

    bounds: Bounds | None = None  # of physical integers (dictionary codes for dictionary strings); None for floats, other strings
    null_count: int | None = None
    distinct: int | None = None  # an estimate
    is_sorted: bool = False  # non-decreasing, no NULLs
    is_unique: bool = False  # proved: no value twice, no NULLs


class TableSource(Protocol):
    """What a Scan reads: a registered Arrow table, Parquet files, a stored result."""

    name: str
    schema: Schema

    @property
    def rows(self) -> int: ...
    @property
    def version(self) -> int: ...
    def statistics(self, field: int) -> ColumnStatistics: ...
    def load(self, fields: Sequence[int]) -> Table: ...


class Table(Protocol):
    pass
