"""Pipeline breakers whose rows of equal keys are computed together, and those of other keys apart: windows with PARTITION BY,
groups in an order. Ranks and a memory limit divide their rows by these keys."""

from __future__ import annotations

from gquery.expression.expr import Column, Expr
from gquery.planner.physical import OrderedGroups, Pipeline, PipelineBreaker, WindowRows
from gquery.planner.stage_columns import makes_lists


def partition_keys(work: Pipeline | PipelineBreaker) -> tuple[Column, ...]:
    """The columns of its frame whose equal values lie together; none where all rows do, or that cannot be hashed, or where lists
    are made, whose numbers are of one whole."""
    match work:
        case WindowRows() | OrderedGroups() if makes_lists(work):
            return ()
        case WindowRows(partition=keys):
            found = keys
        case OrderedGroups(keys=pairs):
            found = tuple([source for _, source in pairs])
        case _:
            return ()
    return () if any(c.dtype.is_opaque for c in found) else found


def frame_columns(work: WindowRows | OrderedGroups) -> frozenset[int]:
    """The ids of the columns of its frame that it reads or passes on."""
    exprs: list[Expr]
    match work:
        case WindowRows(partition=partition, order=order, calls=calls, sort=sort):
            exprs = [
                *partition,
                *(k.expr for k in (*order, *sort)),
                *(e for _, call in calls for e in call.expressions),
            ]
            exprs += [s.column for s in work.columns]
        case OrderedGroups(keys=keys, calls=aggregates):
            exprs = [source for _, source in keys]
            for _, call in aggregates:
                exprs += [*call.args, *(k.expr for k in call.order), *(() if call.kept is None else (call.kept,))]
    return frozenset(e.id for e in exprs if isinstance(e, Column))
