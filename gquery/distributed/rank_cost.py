"""What a placement is expected to cost each rank: bytes that it reads, writes and gets from others, and rows that it enters.

Only what depends on where rows lie counts; arithmetic does not. Two programs for the same query are compared by it
(`distributed.divide_joins`), and EXPLAIN says the bytes that a rank exchanges.
"""

from __future__ import annotations

from typing import assert_never

from gquery.distributed.build_cost import entering_ps
from gquery.distributed.ranks import Ranks
from gquery.distributed.row_bytes import array_bytes, frame_bytes, rows_behind, rows_made, source_bytes
from gquery.distributed.slots_cost import slots_ps
from gquery.distributed.stage_placement import Placement, StagePlacement
from gquery.expression.facts import INT64_BYTES
from gquery.operators.merge_groups import merges_slots
from gquery.planner.physical import Build, Group, Materialize, Pipeline, Program, Reduce, Stage

PS_A_US = 1e6


def rank_cost(program: Program, placement: Placement, ranks: Ranks) -> float:
    """About how many picoseconds each of these ranks takes to move and write rows; see `tuning.distribution`."""
    return sum(_stage(program, stage, placed, ranks) for stage, placed in zip(program.stages, placement, strict=True))


def _stage(program: Program, stage: Stage, placed: StagePlacement, among: Ranks) -> float:
    limits, ranks = among.limits, among.count
    others = (ranks - 1) / ranks
    gathered = sum(frame_bytes(program.stages[n].work) for n in placed.gathers)
    cost = gathered * (limits.received_ps * others + limits.copied_ps)
    cost += PS_A_US * limits.exchanged_us * (len(placed.gathers) + placed.merges + placed.agrees)
    work = stage.work
    cost += frame_bytes(work) * (limits.received_ps * others + limits.copied_ps) if placed.agrees else 0.0
    if placed.hashed is not None:
        rows = placed.hashed.bytes / ranks
        cost += PS_A_US * limits.hashed_us + rows * (
            limits.partitioned_ps + limits.received_ps * others + limits.copied_ps
        )
    if not isinstance(work, Pipeline):
        return cost
    share = 1 / ranks if placed.reads == "part" else 1.0
    cost += source_bytes(work.source, work.rows) * share * limits.copied_ps / 2  # read and not written
    match work.sink:
        case Build(table):
            cost += table.rows * share * entering_ps(program.stages, work, table, limits)
            if table.layout != "direct-address":
                return cost
            arrays = array_bytes(table)  # of all keys, on each rank
            cost += arrays * limits.copied_ps / 2
            if placed.ranges is not None:
                return cost + arrays * others * limits.received_ps  # where they stay
            return cost + (arrays * (ranks - 1) * (limits.received_ps + limits.copied_ps) if placed.merges else 0.0)
        case Materialize():
            return cost + frame_bytes(work) * share * limits.copied_ps / 2
        case Group() as sink:
            return cost + _groups(work, sink, placed, among)
        case Reduce():
            return cost
        case _:
            assert_never(work.sink)


def _groups(work: Pipeline, sink: Group, placed: StagePlacement, among: Ranks) -> float:
    limits, ranks = among.limits, among.count
    share = 1 / ranks if placed.reads == "part" else 1.0
    rows = rows_behind(work, len(work.steps)) * share
    cost = rows * limits.entered_ps if sink.layout == "hash" else 0.0
    if not placed.merges:
        return cost + rows_made(work) * share * INT64_BYTES * limits.copied_ps / 2
    if merges_slots(sink):
        return cost + placed.state_bytes * limits.received_ps * (ranks - 1)
    if placed.parts is not None and placed.parts.by_slots:
        return cost + slots_ps(sink, among)
    own = min(sink.groups, rows)  # each rank merges as many, if it has a part of all; else those of all ranks
    received = placed.state_bytes * limits.received_ps * ((ranks - 1) / ranks if placed.parts else ranks - 1)
    return cost + received + own * limits.merged_ps * (1 if placed.parts else ranks)
