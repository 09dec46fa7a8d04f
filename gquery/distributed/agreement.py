"""What the first rank makes alone, and what ranks have to agree on: frames of which each makes all rows for itself.

A hash table of a GPU has its groups in the order in which threads came, its atomics add doubles in any order, and a user's
function gives what it likes. Each is right for itself. But ranks that take the rows of such a frame by their numbers, keep the
first ten of them, or compare sums with those of another rank would lose rows, or take them twice. So all take what the first
rank made, where rows of several ranks meet later. Where they do not meet any more, only the first rank, which has the result,
goes on: others hand over what that gathers, and read no table for it.
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
    """The placement with the stages marked that the first rank runs alone, and those whose frames ranks agree on."""
    needed: set[int] = set()  # stages that every rank reads
    made: list[StagePlacement] = []
    for stage, placed in zip(reversed(program.stages), reversed(placement), strict=True):
        if stage.number not in needed and _is_of_all_rows(stage.work, placed):
            made.append(replace(placed, alone=True))
            continue
        agrees = stage.number in needed and _may_differ(stage.work, placed)
        made.append(replace(placed, agrees=True) if agrees else placed)
        needed.update(stage_inputs(stage.work))
    return tuple(reversed(made))


def _is_of_all_rows(work: Pipeline | PipelineBreaker, placed: StagePlacement) -> bool:
    """Whether a rank makes all rows, with no other's help but the rows that it gathers first. Lists that a stage makes are known
    by name to stages that do not read them."""
    is_divided = placed.merges or placed.hashed is not None or (isinstance(work, Pipeline) and placed.reads == "part")
    has_lists = isinstance(work, HostRows | OrderedGroups | WindowRows) and makes_lists(work)
    return placed.makes == "whole" and not is_divided and not has_lists


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
