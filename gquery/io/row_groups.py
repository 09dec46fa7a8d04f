"""Which row groups of Parquet files scans need: by the footers' statistics, by the keys of hive folders, by LIMIT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gquery.columns.domain import Domain, ScanUse
from gquery.io.parquet_files import ParquetFiles, RowGroup


def needed(files: ParquetFiles, uses: Sequence[ScanUse]) -> tuple[tuple[RowGroup, ...], bool]:
    """The row groups that some scan needs, in order, cut short where no scan needs their last rows; and whether a scan was
    given fewer than may hold rows of its own."""
    taken: dict[int, RowGroup] = {}
    is_cut = False
    for use in uses:
        groups = _holding(files, use.domains())
        if use.rows is not None:
            groups = _first(groups, use.rows)
        elif use.parts is not None and use.parts < len(groups):
            groups, is_cut = groups[: use.parts], True
        for group in groups:
            other = taken.get(group.position)
            if other is None or other.rows < group.rows:
                taken[group.position] = group
    return tuple(taken[position] for position in sorted(taken)), is_cut


def _holding(files: ParquetFiles, domains: Mapping[int, Domain]) -> list[RowGroup]:
    """The row groups that may hold a row with values of all these domains."""
    left = [group for group in files.groups if group.rows]
    for field, domain in domains.items():
        dtype = files.schema.fields[field].dtype
        extents = files.extents(field, left)
        left = [group for group, extent in zip(left, extents, strict=True) if extent.may_hold(domain, dtype)]
    return left


def _first(groups: Sequence[RowGroup], rows: int) -> list[RowGroup]:
    """The row groups with the first so many rows."""
    out: list[RowGroup] = []
    for group in groups:
        if rows <= 0:
            break
        out.append(group if group.rows <= rows else group._replace(rows=rows, whole=False))
        rows -= group.rows
    return out
