"""Which row groups of Parquet files scans need: by the footers' statistics, by the keys of hive folders, by LIMIT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gquery.columns.domain import Domain, ScanUse
from gquery.io.extents import Extent, extent_of, extent_of_value
from gquery.io.parquet_files import ParquetFiles, RowGroup


class Zones:
    """The extents of columns in all row groups, looked up in the footers once a column."""

    def __init__(self, files: ParquetFiles) -> None:
        self.files = files
        self._known: dict[int, tuple[Extent, ...]] = {}

    def of(self, field: int) -> tuple[Extent, ...]:
        known = self._known.get(field)
        if known is None:
            known = self._known[field] = tuple(self._extent(field, group) for group in self.files.groups)
        return known

    def _extent(self, field: int, group: RowGroup) -> Extent:
        dtype, by_path = self.files.schema.fields[field].dtype, self.files.path_columns.get(field)
        if by_path is not None:
            return extent_of_value(by_path.values[group.file], dtype, group.rows)
        chunks = list(self.files.chunks(field, group))
        if len(chunks) != 1 or dtype.is_opaque:  # the statistics of a nested column are those of its leaves
            return Extent(group.rows)
        return extent_of(chunks[0], dtype, group.rows)


def needed(zones: Zones, uses: Sequence[ScanUse]) -> tuple[tuple[RowGroup, ...], bool]:
    """The row groups that some scan needs, in order, cut short where no scan needs their last rows; and whether a scan was
    given fewer than may hold rows of its own."""
    taken: dict[int, RowGroup] = {}
    is_cut = False
    for use in uses:
        groups = _holding(zones, use.domains)
        if use.parts is not None and use.parts < len(groups):
            groups, is_cut = groups[: use.parts], True
        if use.rows is not None:
            groups = _first(groups, use.rows)
        for group in groups:
            other = taken.get(group.index)
            if other is None or other.rows < group.rows:
                taken[group.index] = group
    return tuple(taken[index] for index in sorted(taken)), is_cut


def _holding(zones: Zones, domains: Mapping[int, Domain]) -> list[RowGroup]:
    """The row groups that may hold a row with values of all these domains."""
    left = [group for group in zones.files.groups if group.rows]
    for field, domain in domains.items():
        extents, dtype = zones.of(field), zones.files.schema.fields[field].dtype
        left = [group for group in left if extents[group.index].may_hold(domain, dtype)]
    return left


def _first(groups: Sequence[RowGroup], rows: int) -> list[RowGroup]:
    """The row groups with the first so many rows."""
    out: list[RowGroup] = []
    for group in groups:
        if rows <= 0:
            break
        out.append(group if group.rows <= rows else replace(group, rows=rows, whole=False))
        rows -= group.rows
    return out
