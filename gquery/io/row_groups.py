"""Which row groups of Parquet files scans need: by the footers' statistics, by the keys of hive folders, by LIMIT; and by which
column few of their rows may be kept."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from gquery import tuning
from gquery.columns.domain import ANY, Domain, Interval, ScanUse
from gquery.columns.narrowing import words_of
from gquery.io.parquet_files import ParquetFiles, RowGroup
from gquery.io.selected_rows import is_testable


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
        may_hold = files.extents(field, left).may_hold(domain, dtype)
        left = list(itertools.compress(left, may_hold.tolist()))
    return left


def narrowest(files: ParquetFiles, groups: Sequence[RowGroup], uses: Sequence[ScanUse]) -> tuple[int, Domain] | None:
    """The field by which the fewest rows may be kept by all scans together, as far as footers tell, and its values; None where
    many may be. Values of its type can be looked for while pages are read."""
    every = [use.domains() for use in uses if use.rows is None and use.parts is None]
    best, found = tuning.reading.selected_share, None
    for field in sorted(set.intersection(*map(set, every))) if len(every) == len(uses) else ():
        domain = every[0][field]
        for other in every[1:]:
            domain = domain.union(other[field])
        share = _share(files, groups, field, domain)
        if share < best:
            best, found = share, (field, domain)
    return found


def _share(files: ParquetFiles, groups: Sequence[RowGroup], field: int, domain: Domain) -> float:
    """About how many of the rows may have values of a domain; infinitely many where nobody can tell, or look."""
    dtype = files.schema.fields[field].dtype
    is_text = dtype.is_string
    if field in files.path_columns or domain == ANY or not is_testable(domain, is_text):
        return math.inf
    if is_text:
        is_few = all(i.low is not None and i.low == i.high for i in domain.intervals)
        return tuning.reading.text_share * len(domain.intervals) if is_few else math.inf
    if not dtype.is_exact or words_of(files.arrow_schema.field(field).type) is None:
        return math.inf
    rows = kept = 0.0
    for extent in files.extents(field, groups):
        low, high = extent.low, extent.high
        rows += extent.rows
        if extent.nulls != 0 or not isinstance(low, int) or not isinstance(high, int):
            return math.inf
        inside = domain.intersection(Domain.of([Interval(low, high)])).intervals
        kept += extent.rows * sum(int(i.high or 0) - int(i.low or 0) + 1 for i in inside) / (high - low + 1)
    return kept / max(rows, 1)


def _first(groups: Sequence[RowGroup], rows: int) -> list[RowGroup]:
    """The row groups with the first so many rows."""
    out: list[RowGroup] = []
    for group in groups:
        if rows <= 0:
            break
        out.append(group if group.rows <= rows else group._replace(rows=rows, whole=False))
        rows -= group.rows
    return out
