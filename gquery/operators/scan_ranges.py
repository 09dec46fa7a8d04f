"""Which rows of a table a pipeline has to scan: blocks in which no row can get past its first steps are left out.

    inventory, sorted by date            blocks by the extremes of their dates (`columns.zones`)
      probe dates of two months     =>     scan the blocks that hold one of the build side's dates
      select quantity > 100

Filters tell a range of a column's values, the keys of a join's build side, once it is built, which values there are. What is
left are ranges of rows, which every target can run; a join table without rows leaves none. Only steps that cannot fail are
looked through: a row that is an error stays one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

import numpy as np

from gquery import tuning
from gquery.columns.zones import Blocks, Zones
from gquery.expression.expr import And, Call, Cast, Column, Expr, In, Literal, Or
from gquery.expression.slots import shown
from gquery.expression.traverse import conjuncts
from gquery.expression.types import INT64, type_bounds
from gquery.functions.certain import never_fails
from gquery.kernels.targets.capabilities import Capabilities
from gquery.operators.base import Frame, JoinIndex
from gquery.operators.key_sets import key_set
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.physical import (
    AggregateSegment,
    Compute,
    FilterRows,
    Pipeline,
    Probe,
    ReadTable,
    SegmentHeads,
    SegmentRows,
)
from gquery.planner.segments import finds_heads
from gquery.planner.step_columns import exprs_read
from gquery.runtime.records import dataclass

Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ScanRanges:
    """The rows to scan: ``ranges`` (from, to) ascending and apart, each beginning with a block; ``skipped`` of ``blocks``
    blocks hold none of them."""

    ranges: Ranges
    skipped: int = 0
    blocks: int = 0

    @property
    def rows(self) -> int:
        """How many rows are scanned."""
        return sum([hi - lo for lo, hi in self.ranges])

    def within(self, lo: int, hi: int) -> Ranges:
        """The parts of the ranges from row ``lo`` to row ``hi``."""
        return tuple((max(a, lo), min(b, hi)) for a, b in self.ranges if a < hi and b > lo)


def whole_scan(frame: Frame) -> ScanRanges:
    """All rows."""
    return ScanRanges(((0, frame.rows),))


def scan_ranges(pipeline: Pipeline, frame: Frame, joins: Mapping[int, JoinIndex], able: Capabilities) -> ScanRanges:
    """The rows of a pipeline's source that have to be scanned: all of them where nothing is known."""
    everything = whole_scan(frame)
    if not isinstance(pipeline.source, ReadTable) or not able.scans_ranges:
        return everything
    if _lets_nothing_past(pipeline, joins):
        blocks = -(-frame.rows // tuning.encoding.zone_rows)
        return ScanRanges(((0, 0),), blocks, blocks)
    zones = {i: z for i, c in frame.columns.items() if (z := c.statistics.zones) is not None}
    kept = None
    for found in _possible(pipeline, zones, joins) if zones else ():
        kept = found if kept is None else kept & found
    if kept is None or kept.all():
        return everything
    if finds_heads(pipeline.steps):  # the segment of a row may begin in a block before
        for _ in range(-(-tuning.encoding.longest_run // tuning.encoding.zone_rows)):
            kept = kept | np.append(kept[1:], False)
    block = tuning.encoding.zone_rows
    edges = np.flatnonzero(np.diff(np.concatenate(([False], kept, [False])).astype(np.int8)))
    ranges = tuple((int(a) * block, min(int(b) * block, frame.rows)) for a, b in edges.reshape(-1, 2))
    return ScanRanges(ranges or ((0, 0),), int((~kept).sum()), len(kept))


def _lets_nothing_past(pipeline: Pipeline, joins: Mapping[int, JoinIndex]) -> bool:
    """Whether one of the first steps, which cannot fail, probes a join table without rows."""
    for step in pipeline.steps:
        match step:
            case FilterRows(predicate) if never_fails(predicate):
                pass
            case Probe(kind=JoinKind.INNER | JoinKind.SEMI | JoinKind.ANTI) if _cannot_fail(step):
                if step.kind is not JoinKind.ANTI and joins[step.table.stage].rows == 0:
                    return True
            case _:
                return False
    return False


def _cannot_fail(step: Probe) -> bool:
    return all(never_fails(unwidened(e)) for e in exprs_read((step,)))


def _possible(pipeline: Pipeline, zones: Mapping[int, Zones], joins: Mapping[int, JoinIndex]) -> Iterator[Blocks]:
    """For each step that says something, in which blocks rows may get past it."""
    for step in pipeline.steps:
        match step:
            case FilterRows(predicate):
                if not never_fails(predicate):
                    return
                for term in conjuncts(predicate):
                    if (found := _of_term(term, zones)) is not None:
                        yield found
            case Probe(kind=JoinKind.INNER | JoinKind.SEMI | JoinKind.ANTI):
                if not _cannot_fail(step):
                    return
                if step.kind is not JoinKind.ANTI and (found := _of_keys(step, zones, joins)) is not None:
                    yield found
            case SegmentHeads() | SegmentRows():
                pass
            case Compute() | Probe() | AggregateSegment():
                return
            case _:
                assert_never(step)


def _of_keys(step: Probe, zones: Mapping[int, Zones], joins: Mapping[int, JoinIndex]) -> Blocks | None:
    """The blocks that may hold a key of the build side."""
    found: list[Blocks] = []
    for number, key in enumerate(map(unwidened, step.keys)):
        if isinstance(key, Column) and key.id in zones:
            keys = key_set(joins[step.table.stage], number)
            if keys is not None:
                found.append(zones[key.id].any_of(keys))
    return np.logical_and.reduce(found) if found else None


def unwidened(e: Expr) -> Expr:
    """An expression without casts to wider integers around it, which keep every value."""
    while isinstance(e, Cast) and e.dtype.is_integer and e.arg.dtype.is_integer:
        wide, narrow = type_bounds(e.dtype), type_bounds(e.arg.dtype)
        if wide is None or narrow is None or not narrow.within(wide):
            break
        e = e.arg
    return e


def _of_term(term: Expr, zones: Mapping[int, Zones]) -> Blocks | None:
    """The blocks in which a condition may be TRUE; None where it says nothing."""
    found: list[Blocks]
    match term:
        case And(args=args):
            found = [f for a in args if (f := _of_term(a, zones)) is not None]
            return np.logical_and.reduce(found) if found else None
        case Or(args=args):
            branches = [f for a in args if (f := _of_term(a, zones)) is not None]
            return np.logical_or.reduce(branches) if len(branches) == len(args) else None
        case In(arg=arg, values=values):
            if not isinstance(arg, Column) or arg.id not in zones or any(type(v) is not int for v in values):
                return None
            inside = sorted({v for v in values if INT64.low <= v <= INT64.high})
            return zones[arg.id].any_of(np.array(inside, np.int64))
        case Call(function=function, args=(a, b)) if function in _FLIPPED:
            if isinstance(a, Literal):
                a, b, function = b, a, _FLIPPED[function]
            if not isinstance(a, Column) or a.id not in zones or (value := _constant(b, a)) is None:
                return None
            low = value + 1 if function == "gt" else value if function in ("ge", "eq") else INT64.low
            high = value - 1 if function == "lt" else value if function in ("le", "eq") else INT64.high
            return zones[a.id].between(low, high)
        case _:
            return None


_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


def _constant(e: Expr, column: Column) -> int | None:
    """The value of a constant as the column holds values; None where it is none, or of a type that is held otherwise. This is
    asked in each run, of the run's own constants."""
    if not isinstance(e, Literal) or type(value := shown(e)) is not int:
        return None
    a, b = e.dtype, column.dtype
    alike = a == b or (a.is_integer and b.is_integer) or (a.is_decimal and b.is_decimal and a.scale == b.scale)
    return value if alike else None
