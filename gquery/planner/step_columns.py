"""The columns that steps read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from gquery.expression.expr import Expr
from gquery.planner.aggregates import Accumulator
from gquery.planner.logical.tree import used_columns
from gquery.planner.physical import AggregateSegment, Compute, FilterRows, Probe, SegmentHeads, SegmentRows, Step


def columns_read(steps: Iterable[Step]) -> frozenset[int]:
    """The ids of the columns that steps read."""
    return frozenset(i for e in exprs_read(steps) for i in used_columns(e))


def exprs_read(steps: Iterable[Step]) -> Iterator[Expr]:
    """The expressions that steps compute."""
    for step in steps:
        match step:
            case FilterRows(predicate):
                yield predicate
            case Compute(exprs):
                yield from (e for _, e in exprs)
            case Probe(keys=probed, residual=residual):
                yield from probed
                yield from () if residual is None else (residual,)
                yield from (b.expr for b in step.bounds)
            case SegmentHeads(key) | SegmentRows(key):
                yield key.column
            case AggregateSegment(accumulators):
                yield from accumulated(accumulators)
            case _:
                assert_never(step)


def accumulated(accumulators: Iterable[Accumulator]) -> Iterator[Expr]:
    """The expressions of accumulators, and those that say which rows they take."""
    yield from (e for f in accumulators for e in (f.arg, f.filter) if e is not None)
