"""What ranks have to agree on: frames of which each makes all rows for itself, and that ranks may make differently.

A hash table of a GPU has its groups in the order in which threads came, its atomics add doubles in any order, and a user's
function gives what it likes. Each is right for itself. But ranks that take the rows of such a frame by their numbers, keep the
first ten of them, or compare sums with those of another rank would lose rows, or take them twice. So all take what the first
rank made, where rows of several ranks meet later. What the first rank alone needs for the result it may have its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gquery.distributed.stage_placement import Placement, StagePlacement
from gquery.operators.merge_groups import merges_slots
from gquery.planner.aggregates import Accumulator
from gquery.planner.physical import (
    Group,
    HostRows,
    OrderedGroups,
    Pipeline,
    PipelineBreaker,
    Program,
    Reduce,
    WindowRows,
)
from gquery.planner.stage_columns import makes_lists
from gquery.planner.stage_inputs import stage_inputs


def agreeing(program: Program, placement: Placement) -> Placement:
    """The placement with the stages marked whose frames ranks agree on."""
    needed: set[int] = set()  # stages on which depends what ranks make that meets later
    for stage, placed in zip(reversed(program.stages), reversed(placement), strict=True):
        if placed.reads == "part" or placed.merges or stage.number in needed:
            needed.update(stage_inputs(stage.work))
    return tuple(
        [
            replace(placed, agrees=True) if s.number in needed and _may_differ(s.work, placed) else placed
            for s, placed in zip(program.stages, placement, strict=True)
        ]
    )


def _may_differ(work: Pipeline | PipelineBreaker, placed: StagePlacement) -> bool:
    """Whether ranks that make the same frame may make it differently."""
    if placed.makes == "part":
        return False
    match work:
        case Pipeline(sink=Group() as sink) if placed.merges:
            return not merges_slots(sink) and _adds_doubles(sink.accumulators)
        case Pipeline(sink=Group(layout=layout, accumulators=accumulators)):
            return layout != "direct-address" or _adds_doubles(accumulators)
        case Pipeline(sink=Reduce(accumulators=accumulators)):
            return not placed.merges and _adds_doubles(accumulators)  # merged in rank order
        case HostRows():
            return True
        case OrderedGroups() | WindowRows():
            return makes_lists(work)
        case _:
            return False


def _adds_doubles(accumulators: Sequence[Accumulator]) -> bool:
    return any(a.op == "add" and a.word == "f64" for a in accumulators)
