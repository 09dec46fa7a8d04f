"""Joins whose table is large, and would lie on every rank: the rows of both sides go to ranks by the hash of their keys.

    scan, probe, group   =>   scan -> rows        rows by the hash of their keys, probe, group
    scan, build          =>   scan -> rows        rows by the hash of their keys, build

So each rank builds and probes a part. That is made of the program before it runs: the pipelines are cut, and what reads their
rows says by which columns ranks exchange them (`ReadStage.by_hash`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import assert_never

from gquery.distributed.cuts import Cuts
from gquery.distributed.division import Division
from gquery.distributed.located import hash_kind
from gquery.distributed.ranks import Ranks
from gquery.distributed.row_bytes import array_bytes, row_bytes, rows_behind, share_behind
from gquery.distributed.stage_placement import Placement
from gquery.expression.expr import Column, new_column
from gquery.planner.common_builds import with_stages
from gquery.planner.cut_pipeline import cut, is_in_order
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.physical import (
    AggregateSegment,
    Build,
    ByHash,
    Compute,
    FilterRows,
    Group,
    Materialize,
    Pipeline,
    Probe,
    Program,
    ReadStage,
    Reduce,
    SegmentHeads,
    SegmentRows,
    Stage,
    Step,
)
from gquery.planner.stage_inputs import stage_inputs
from gquery.runtime.tuples import NamedTuple

_DIVIDED = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)


class _Join(NamedTuple):
    """A probe: the stage that builds its table, that of the pipeline that it is in, and its place among the steps."""

    build: int
    probe: int
    step: int
    key: int  # the id of the table's first key, which stays when stages get other numbers


def divided(program: Program, ranks: Ranks, cuts: Cuts) -> Program:
    """The program with such joins of ranks divided as make it cheaper; itself, if there are none. See `Division`."""
    tried: set[int] = set()  # first keys of their tables
    least = ranks.limits.hashed_bytes
    if not any(_is_large(stage, least) for stage in program.stages):
        return program
    division = Division(program, ranks, cuts)
    while True:
        join = next((j for j in _joins(division.program, division.placement, least) if j.key not in tried), None)
        if join is None:
            return division.program
        division.takes(_divided(division.program.stages, join))
        tried.add(join.key)


def _is_large(stage: Stage, least: int) -> bool:
    """Whether a stage builds a table of so many bytes, which may be too large to lie on every rank."""
    work = stage.work
    if not isinstance(work, Pipeline) or not isinstance(work.sink, Build):
        return False
    table = work.sink.table
    size = array_bytes(table) if table.layout == "direct-address" else 0
    return max(size, table.rows * row_bytes(table.columns)) >= least


def _joins(program: Program, placement: Placement, least: int) -> Iterator[_Join]:
    stages = program.stages
    readers = [n for stage in stages for n in stage_inputs(stage.work)]
    for stage in stages:
        work = stage.work
        if not isinstance(work, Pipeline) or placement[stage.number].reads == "whole" or not _may_be_cut(work):
            continue
        if not _has_any_order(stages, work):
            continue
        for at, step in enumerate(work.steps):
            if not isinstance(step, Probe) or readers.count(step.table.stage) > 1 or not _is_divisible(step):
                continue
            build, placed = stages[step.table.stage], placement[step.table.stage]
            if placed.makes == "whole" and _is_large(build, least) and isinstance(build.work, Pipeline):
                if _may_be_cut(build.work) and not is_in_order(stages, build.work.source):
                    yield _Join(build.number, stage.number, at, step.table.keys[0].id)


def _may_be_cut(work: Pipeline) -> bool:
    """Whether a pipeline can be cut anywhere."""
    if work.host is not None:
        return False
    return not any(
        isinstance(s, SegmentHeads | SegmentRows) or (isinstance(s, Probe) and s.records_matches) for s in work.steps
    )


def _has_any_order(stages: Sequence[Stage], work: Pipeline) -> bool:
    """Whether nobody asks for the order of a pipeline's rows, nor for the frame that they stood in."""
    match work.sink:
        case Materialize(limit=limit):
            return limit is None and not is_in_order(stages, work.source)
        case Group(layout=layout):
            return layout != "row-id hash"
        case Reduce():
            return True
        case Build():
            return not is_in_order(stages, work.source)
        case _:
            assert_never(work.sink)


def _is_divisible(probe: Probe) -> bool:
    """Whether the matches of a row are those of the part that its key belongs to, and no more is asked."""
    table = probe.table
    pairs = list(zip(probe.keys, table.keys, strict=True))
    return (
        probe.kind in _DIVIDED
        and probe.mark is None
        and not probe.null_key
        and table.layout in ("direct-address", "hash")
        and bool(pairs)
        and not any(c.dtype.is_opaque or hash_kind(e.dtype) != hash_kind(c.dtype) for e, c in pairs)
    )


# ---- the program ---------------------------------------------------------------------------------------------------------


def _divided(stages: Sequence[Stage], join: _Join) -> tuple[Stage, ...]:
    """The stages with one join divided. In place of two there are four: the rows that are built of, and later, one after another,
    the rows that are probed, what builds and what probes. So it is known what is probed before anything is exchanged."""

    def number(n: int) -> int:
        return n + 2 * (n >= join.probe)

    made: list[Stage] = []
    built: Stage | None = None
    for stage in stages:
        work, at = with_stages(stage.work, number), stage.number
        if at == join.build:
            assert isinstance(work, Pipeline)
            first, rest = cut(work, len(work.steps), at)
            made.append(Stage(at, first, stage.label))
            built = Stage(join.probe + 1, rest, stage.label)
        elif at == join.probe:
            assert isinstance(work, Pipeline) and built is not None and isinstance(built.work, Pipeline)
            build, probe = _of_both(built.work, _probe(stages, join), at)
            first, rest = _cut_probe(work, join.step, at, probe)
            made += [
                Stage(at, first, stage.label),
                replace(built, work=build),
                Stage(at + 2, rest, stage.label),
            ]
        else:
            made.append(Stage(number(at), work, stage.label))
    return tuple(made)


def _of_both(build: Pipeline, probe: Probe, probed: int) -> tuple[Pipeline, Probe]:
    """What builds, and the probe with computed keys as columns of their own, where both sides' rows come by their hash."""
    assert isinstance(build.sink, Build) and isinstance(build.source, ReadStage)
    keys = tuple([e if isinstance(e, Column) else new_column("key", e.dtype) for e in probe.keys])
    held = {s.column.id: s for s in build.source.columns}
    columns = tuple([held[s.column.id] for s in build.sink.table.columns])
    table = replace(build.sink.table, stage=probed + 1, columns=columns, clustered=False)
    by = ByHash(tuple([k.id for k in table.keys]), probed, tuple([k.id for k in keys]))
    build = replace(build, source=replace(build.source, by_hash=by), sink=Build(table))
    return build, replace(probe, table=table, keys=keys)


def _probe(stages: Sequence[Stage], join: _Join) -> Probe:
    work = stages[join.probe].work
    assert isinstance(work, Pipeline)
    step = work.steps[join.step]
    assert isinstance(step, Probe)
    return step


def _cut_probe(work: Pipeline, at: int, stage: int, probe: Probe) -> tuple[Pipeline, Pipeline]:
    """The rows that are probed, with the ``probe``'s keys as columns, and the probe with what follows it."""
    before = work.steps[at]
    assert isinstance(before, Probe)
    keys = [k for k in probe.keys if isinstance(k, Column)]
    made = tuple([(c, e) for c, e in zip(keys, before.keys, strict=True) if c is not e])
    computed: tuple[Step, ...] = (Compute(made),) if made else ()
    share = max(share_behind(work, at), 1 / max(work.rows, 1))
    behind = [_of_fewer(s, share) for s in (probe, *work.steps[at + 1 :])]
    sink = work.sink
    if isinstance(sink, Group):  # what was sorted is not any more
        sink = replace(sink, clustered_key=None)
    elif isinstance(sink, Build):
        sink = Build(replace(sink.table, clustered=False))
    first, rest = cut(replace(work, steps=(*work.steps[:at], *computed, *behind), sink=sink), at + len(computed), stage)
    assert isinstance(rest.source, ReadStage)
    ids = tuple([k.id for k in keys])
    return first, replace(
        rest, source=replace(rest.source, by_hash=ByHash(ids, stage, ids)), rows=rows_behind(work, at)
    )


def _of_fewer(step: Step, share: float) -> Step:
    """A step whose source has that share of the rows that it had."""
    match step:
        case FilterRows() | Probe() | SegmentHeads() | AggregateSegment():
            return replace(step, selectivity=min(1.0, step.selectivity / share))
        case Compute() | SegmentRows():
            return step
        case _:
            assert_never(step)
