"""Groups of which a rank's rows make about as many as there are rows: rows go to ranks by the hash of their keys, and are grouped
once.

    scan, probe, group, merge   =>   scan, probe -> rows        rows by the hash of their keys, group

Else each rank groups its rows, which leaves hardly fewer, and what it gets of the others it groups again. If what reads the
groups groups them by some of their keys, rows go by the hash of these, so that nothing is exchanged for that either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gquery import tuning
from gquery.distributed.cuts import Cuts
from gquery.distributed.division import Division
from gquery.distributed.ranks import Ranks
from gquery.distributed.row_bytes import rows_behind
from gquery.distributed.stage_placement import StagePlacement
from gquery.expression.expr import Column, new_column
from gquery.planner.common_builds import with_stages
from gquery.planner.cut_pipeline import cut
from gquery.planner.physical import (
    ByHash,
    Compute,
    Group,
    Pipeline,
    Program,
    ReadStage,
    SegmentHeads,
    SegmentRows,
    Stage,
    Step,
)
from gquery.planner.stage_columns import stage_columns
from gquery.planner.stage_inputs import stage_inputs


def groups_divided(program: Program, ranks: Ranks, cuts: Cuts) -> Program:
    """The program with such groups of ranks divided as make it cheaper; itself, if there are none. See `Division`."""
    if not any(_has_many(stage) for stage in program.stages):
        return program
    division, number = Division(program, ranks, cuts), 0
    while number < len(division.program.stages):
        if _is_merged(division.program.stages[number], division.placement[number]):
            number += division.takes(_divided(division.program.stages, number))  # behind the groups, which come next
        number += 1
    return division.program


def _has_many(stage: Stage) -> bool:
    """Whether a stage makes about as many groups in a hash table as it has rows, and no text is among what it needs of them."""
    work = stage.work
    if not isinstance(work, Pipeline) or not isinstance(work.sink, Group) or work.host is not None:
        return False
    if work.sink.layout != "hash" or any(p.is_text for _, p in work.sink.aggregates):
        return False
    if any(isinstance(s, SegmentHeads | SegmentRows) for s in work.steps):
        return False
    if isinstance(work.source, ReadStage) and work.source.by_hash is not None:
        return False
    if any(c.dtype.is_opaque for c, _, _ in work.sink.keys):
        return False
    return work.sink.groups >= tuning.distribution.grouped_fraction * rows_behind(work, len(work.steps))


def _is_merged(stage: Stage, placed: StagePlacement) -> bool:
    is_by_hash = placed.merges and placed.parts is not None and placed.parts.cut is None
    if not is_by_hash or not _has_many(stage):
        return False
    first, _ = _cut(stage.work, stage.number, ())
    return not any(s.physical_type.is_string for s in stage_columns(first))


def _divided(stages: Sequence[Stage], at: int) -> tuple[Stage, ...]:
    """The stages with the groups of one divided: in its place there are two, the rows and the groups."""

    def number(n: int) -> int:
        return n + (n >= at)

    stage = stages[at]
    first, rest = _cut(stage.work, at, _wanted(stages, at))
    behind = [replace(s, number=number(s.number), work=with_stages(s.work, number)) for s in stages[at + 1 :]]
    return (*stages[:at], Stage(at, first, stage.label), Stage(at + 1, rest, stage.label), *behind)


def _wanted(stages: Sequence[Stage], at: int) -> tuple[int, ...]:
    """The positions of the keys by whose hash rows go: of those by which the one stage that reads the groups has many groups,
    else of all (then there are none)."""
    work = stages[at].work
    assert isinstance(work, Pipeline) and isinstance(work.sink, Group)
    readers = [s.work for s in stages if at in stage_inputs(s.work)]
    reader = readers[0] if len(readers) == 1 else None
    if not isinstance(reader, Pipeline) or not isinstance(reader.sink, Group):
        return ()
    source = reader.source
    if (
        not isinstance(source, ReadStage)
        or source.stage != at
        or reader.sink.groups < tuning.distribution.spread_groups
    ):
        return ()
    origins = {s.column.id: o for s, o in zip(source.columns, source.origins, strict=True)}
    grouped = {origins.get(e.id) for _, e, _ in reader.sink.keys if isinstance(e, Column)}
    return tuple([n for n, (column, _, _) in enumerate(work.sink.keys) if column.id in grouped])


def _cut(work: object, stage: int, wanted: Sequence[int]) -> tuple[Pipeline, Pipeline]:
    """The rows that are grouped, with their keys as columns, and the groups of a rank's part of them."""
    assert isinstance(work, Pipeline) and isinstance(work.sink, Group)
    exprs = [e for _, e, _ in work.sink.keys]
    columns = [e if isinstance(e, Column) else new_column("key", e.dtype) for e in exprs]
    made = tuple([(c, e) for c, e in zip(columns, exprs, strict=True) if c is not e])
    computed: tuple[Step, ...] = (Compute(made),) if made else ()
    keys = tuple([(name, c, what) for (name, _, what), c in zip(work.sink.keys, columns, strict=True)])
    sink, rows = replace(work.sink, keys=keys, clustered_key=None), rows_behind(work, len(work.steps))
    whole = replace(work, steps=(*work.steps, *computed), sink=sink)
    first, rest = cut(whole, len(whole.steps), stage)
    assert isinstance(rest.source, ReadStage)
    by = ByHash(tuple([c.id for n, c in enumerate(columns) if not wanted or n in wanted]))
    return first, replace(rest, source=replace(rest.source, by_hash=by), rows=rows)
