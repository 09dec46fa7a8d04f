"""Cuts: where the rows of a table are divided among the ranks.

A large table is cut into ranges of rows, one a rank, of about the same length. Where a column of it is sorted, it is cut between
two values of that column, so that rows of one value lie on one rank. Tables that are joined on sorted columns are cut at the same
values: the longest of them says which.

    visits, sorted by visit      clicks, sorted by visit
      rank 0: below 3000         rank 0: below 3000
      rank 1: from 3000 on       rank 1: from 3000 on
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gquery import tuning
from gquery.columns.table import TableSource
from gquery.device.array import Array
from gquery.device.device import cpu_device
from gquery.distributed.located import NOWHERE, Located
from gquery.expression.expr import Column
from gquery.expression.frozen import frozen_open
from gquery.expression.types import PhysicalType
from gquery.operators.cut_keys import CutKeys
from gquery.operators.scan_ranges import unwidened
from gquery.planner.physical import (
    Build,
    Compute,
    Group,
    HostRows,
    Materialize,
    Pipeline,
    Probe,
    Program,
    ReadStage,
    ReadTable,
    Source,
)


class Field(NamedTuple):
    """A field of a table: the id of its source, and its position."""

    source: int
    field: int


@frozen_open
class TableCut:
    """Rank r has the rows ``starts[r]`` to ``starts[r + 1]``. ``field``: they are cut between two values of this one; cuts whose
    ``keys`` are the same object are made at the same values."""

    starts: tuple[int, ...]
    field: int | None = None
    keys: CutKeys | None = None

    def rows(self, rank: int) -> tuple[int, int]:
        """The first row of a rank, and the one behind its last."""
        return self.starts[rank], self.starts[rank + 1]


Cuts = Mapping[int, TableCut]
"""By the id of a source the cut of that table; those that every rank has whole are not in it."""


def located_by(cuts: Cuts, read: ReadTable) -> Located | None:
    """The located columns of a table that is read; None where every rank has the whole table."""
    cut = cuts.get(id(read.source))
    if cut is None:
        return None
    if cut.field is None:
        return NOWHERE
    assert cut.keys is not None
    return {s.column.id: cut.keys for s, f in zip(read.columns, read.fields, strict=True) if f == cut.field}


def cut_tables(program: Program, ranks: int, least_bytes: int) -> Cuts:
    """How the tables of a program are cut of which it reads at least so many bytes; none where it reads little of all. Their
    columns are loaded."""
    fields: dict[int, set[int]] = {}
    for read in table_reads(program):
        fields.setdefault(id(read.source), set()).update(read.fields)
    every = {id(read.source): read.source for read in table_reads(program)}
    sizes = {n: s.load(sorted(fields[n])).nbytes for n, s in every.items() if s.rows}
    if sum(sizes.values()) < tuning.distribution.alone_bytes:
        return {}
    sources = {n: every[n] for n, size in sizes.items() if size >= least_bytes}
    sorted_fields = {Field(n, f) for n, source in sources.items() for f in fields[n] if _is_sorted(source, f)}
    joined = [(a, b) for a, b in _joined(program) if a in sorted_fields and b in sorted_fields and a.source != b.source]
    joined.sort(key=lambda pair: -min(sources[f.source].rows for f in pair))  # what saves most first
    groups: dict[int, list[Field]] = {}
    for pair in joined:
        _unite(groups, pair)
    cuts: dict[int, TableCut] = {}
    for group in {id(g): g for g in groups.values()}.values():
        cuts |= _cut_together(group, sources, ranks)
    for number, source in sources.items():
        if number not in cuts:
            own = [f for f in sorted_fields if f.source == number]
            alone = min(own, key=lambda f: f.field, default=None)
            cuts |= _cut_together([alone], sources, ranks) if alone else {number: TableCut(even(source.rows, ranks))}
    return cuts


def even(rows: int, ranks: int) -> tuple[int, ...]:
    """The rows at which each rank begins, and their number.

    >>> even(10, 3)
    (0, 3, 6, 10)
    """
    return tuple(rows * r // ranks for r in range(ranks + 1))


def _unite(groups: dict[int, list[Field]], pair: Sequence[Field]) -> None:
    """Have two fields cut together, unless their tables are cut by other fields already."""
    a, b = pair
    for field in pair:
        found = groups.get(field.source)
        if found is not None and field not in found:
            return
    merged = list(dict.fromkeys([*groups.get(a.source, [a]), *groups.get(b.source, [b])]))
    for field in merged:
        groups[field.source] = merged


def _cut_together(fields: Sequence[Field], sources: Mapping[int, TableSource], ranks: int) -> dict[int, TableCut]:
    """Cuts of tables at the same values of these fields, which divide the longest table evenly."""
    values = {f: _values(sources[f.source], f.field) for f in fields}
    longest = max(fields, key=lambda f: sources[f.source].rows)
    rows = sources[longest.source].rows
    bounds = [int(values[longest][at]) for at in even(rows, ranks)[1:-1]]
    keys, cuts = CutKeys(bounds), {}
    for field, column in values.items():
        inner = [int(np.searchsorted(column, np.array(b).astype(np.int64), "left")) for b in bounds]
        cuts[field.source] = TableCut((0, *inner, sources[field.source].rows), field.field, keys)
    return cuts


def _values(source: TableSource, field: int) -> Array:
    """The values of a sorted column, on the host."""
    (column,) = source.load([field]).columns
    return column.data.on(cpu_device())


def _is_sorted(source: TableSource, field: int) -> bool:
    """Whether a field is sorted, and of integers that mean the same in every table."""
    if not source.statistics(field).is_sorted:
        return False
    (column,) = source.load([field]).columns
    is_word = column.physical_type in _INTEGERS
    return is_word and column.dictionary is None and column.validity is None


_INTEGERS = frozenset({PhysicalType.I8, PhysicalType.I16, PhysicalType.I32, PhysicalType.I64, PhysicalType.U8,
                       PhysicalType.U16, PhysicalType.U32})  # fmt: skip


def table_reads(program: Program) -> Iterator[ReadTable]:
    """The tables that a program reads, as often as it does."""
    for stage in program.stages:
        if isinstance(stage.work, Pipeline | HostRows) and isinstance(stage.work.source, ReadTable):
            yield stage.work.source


# ---- which fields are joined --------------------------------------------------------------------------------------------

Origins = dict[int, Field]
"""By the id of a column the field of a table whose values it has."""


def _joined(program: Program) -> Iterator[tuple[Field, Field]]:
    """The fields of tables that are compared as keys of joins."""
    made: dict[int, Origins] = {}
    for stage in program.stages:
        work = stage.work
        if not isinstance(work, Pipeline):
            source = work.source if isinstance(work, HostRows) else None
            made[stage.number] = {} if source is None else _of_source(source, made)
            continue
        origins = _of_source(work.source, made)
        for step in work.steps:
            if isinstance(step, Compute):
                values = {c.id: unwidened(e) for c, e in step.exprs}
                origins |= {i: origins[e.id] for i, e in values.items() if isinstance(e, Column) and e.id in origins}
            elif isinstance(step, Probe):
                build = made[step.table.stage]
                for key, column in zip(map(unwidened, step.keys), step.table.keys, strict=True):
                    if isinstance(key, Column) and key.id in origins and column.id in build:
                        yield origins[key.id], build[column.id]
                origins = {**build, **origins}
        made[stage.number] = _of_sink(work, origins)


def _of_source(source: Source, made: Mapping[int, Origins]) -> Origins:
    match source:
        case ReadTable(table, fields, columns):
            return {s.column.id: Field(id(table), f) for s, f in zip(columns, fields, strict=True)}
        case ReadStage(stage, columns, origins):
            below = made[stage]
            return {s.column.id: below[o] for s, o in zip(columns, origins, strict=True) if o in below}
        case _:
            return {}


def _of_sink(work: Pipeline, origins: Origins) -> Origins:
    match work.sink:
        case Materialize() | Build():
            return origins
        case Group(keys=keys):
            return {c.id: origins[e.id] for c, e, _ in keys if isinstance(e, Column) and e.id in origins}
        case _:
            return {}
