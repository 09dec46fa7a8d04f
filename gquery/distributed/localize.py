"""A rank's own program: arrays over keys of which each rank has values of its own have room for these alone.

A build side of two tables that are cut at the same keys takes a half of the memory on each of two ranks, and is cleared in half
of the time. Nothing else of a program depends on the rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gquery.distributed.stage_placement import Placement
from gquery.expression.types import Bounds
from gquery.operators.cut_keys import CutKeys
from gquery.planner.layouts import KeyEncoding
from gquery.planner.physical import (
    Build,
    Group,
    JoinTable,
    Pipeline,
    PipelineBreaker,
    Probe,
    Program,
    ReadStage,
    Source,
    Stage,
    Step,
    UnmatchedRows,
)


def localized(program: Program, placement: Placement, rank: int) -> Program:
    """The program as one rank runs it; the program itself where all run the same."""
    encodings: dict[int, KeyEncoding] = {}
    bases: dict[int, int] = {}  # by stage, the first key of the arrays that later stages read as they lie
    for stage, placed in zip(program.stages, placement, strict=True):
        encoding = _encoding_of(stage)
        if encoding is None:
            continue
        if placed.own_keys:
            encodings[stage.number] = _own(encoding, placed.own_keys, rank)
            bases[stage.number] = encodings[stage.number].parts[0].base
        elif placed.parts is not None and placed.parts.cut is not None:  # arrays of all keys, of which the rank keeps its own
            at = placed.parts.position
            bases[stage.number] = _own(encoding, ((at, placed.parts.cut),), rank).parts[at].base
    if not bases:
        return program
    stages = zip(program.stages, placement, strict=True)
    return replace(program, stages=tuple([_localized(s, placed.met_keys, encodings, bases) for s, placed in stages]))


def _encoding_of(stage: Stage) -> KeyEncoding | None:
    match stage.work:
        case Pipeline(sink=Build(table)):
            return table.key_encoding
        case Pipeline(sink=Group(key_encoding=encoding)):
            return encoding
        case _:
            return None


def _own(encoding: KeyEncoding, own_keys: tuple[tuple[int, CutKeys], ...], rank: int) -> KeyEncoding:
    parts = list(encoding.parts)
    for position, keys in own_keys:
        part = parts[position]
        base, width = keys.own(rank, part.base, part.width - part.nullable)
        parts[position] = replace(part, base=base, width=width + part.nullable, is_own=True)
    return KeyEncoding(tuple(parts))


def _localized(
    stage: Stage, met: Sequence[tuple[int, int]], encodings: Mapping[int, KeyEncoding], bases: Mapping[int, int]
) -> Stage:
    def of_table(table: JoinTable) -> JoinTable:
        found = encodings.get(table.stage)
        return table if found is None else replace(table, key_encoding=found)

    def of_step(step: Step) -> Step:
        if not isinstance(step, Probe) or step.table.stage not in encodings:
            return step
        own = of_table(step.table)
        assert own.key_encoding is not None and step.table.key_encoding is not None
        parts = list(own.key_encoding.parts)
        for position in [n for table, n in met if table == own.stage]:
            of_all = step.table.key_encoding.parts[position]
            values = Bounds(of_all.base, of_all.base + of_all.width - of_all.nullable - 1)
            parts[position] = replace(parts[position], whole=values)
        return replace(step, table=replace(own, key_encoding=KeyEncoding(tuple(parts))))

    def of_source(source: Source) -> Source:
        if not isinstance(source, ReadStage) or source.numbered is None or source.stage not in bases:
            return source
        return replace(source, base=bases[source.stage])

    work: Pipeline | PipelineBreaker
    match stage.work:
        case Pipeline(source, steps, sink) as work:
            if isinstance(sink, Build):
                sink = Build(of_table(sink.table))
            elif isinstance(sink, Group) and stage.number in encodings:
                sink = replace(sink, key_encoding=encodings[stage.number])
            work = replace(work, source=of_source(source), steps=tuple(map(of_step, steps)), sink=sink)
        case UnmatchedRows(table=table) as work:
            work = replace(work, table=of_table(table))
        case work:
            pass
    return replace(stage, work=work)
