"""A rank's own program: arrays over keys of which each rank has values of its own have room for these alone.

A build side of two tables that are cut at the same keys takes a half of the memory on each of two ranks, and is cleared in half
of the time. Nothing else of a program depends on the rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gquery.distributed.placement import CutKeys, Placement
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
    for stage, placed in zip(program.stages, placement, strict=True):
        encoding = _encoding_of(stage)
        if placed.own_keys and encoding is not None:
            encodings[stage.number] = _own(encoding, placed.own_keys, rank)
    if not encodings:
        return program
    return replace(program, stages=tuple([_localized(stage, encodings) for stage in program.stages]))


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


def _localized(stage: Stage, encodings: Mapping[int, KeyEncoding]) -> Stage:
    def of_table(table: JoinTable) -> JoinTable:
        found = encodings.get(table.stage)
        return table if found is None else replace(table, key_encoding=found)

    def of_step(step: Step) -> Step:
        return replace(step, table=of_table(step.table)) if isinstance(step, Probe) else step

    def of_source(source: Source) -> Source:
        if not isinstance(source, ReadStage) or source.numbered is None or source.stage not in encodings:
            return source
        (part,) = encodings[source.stage].parts
        return replace(source, base=part.base)

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
