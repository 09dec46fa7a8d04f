"""Cuts: where the rows of a table are divided among the ranks.

A large table is cut into ranges of rows, one a rank, of about the same length. Where a column of it is sorted, it is cut between
two values of that column, so that rows of one value lie on one rank. Tables that are joined on sorted columns are cut at the same
values: the longest of them says which.

    visits, sorted by visit      clicks, sorted by visit
      rank 0: below 3000         rank 0: below 3000
      rank 1: from 3000 on       rank 1: from 3000 on
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from gquery import tuning
from gquery.columns.table import ColumnData, TableSource
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
from gquery.runtime.tuples import NamedTuple


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


class Places(Protocol):
    """What is asked of tables before they are cut for so many ``ranks``."""

    ranks: int

    def bytes_of(self, source: TableSource, fields: Sequence[int]) -> int | None:
        """About how many bytes columns take; None for a table that is never cut."""
        ...

    def is_sorted(self, source: TableSource, field: int) -> bool:
        """Whether a field is sorted, of integers that mean the same in every table, and can be looked up."""
        ...

    def starts(self, source: TableSource) -> tuple[int, ...]:
        """The rows at which each rank begins where none of the columns that a program reads is sorted, and their number."""
        ...

    def bounds(self, source: TableSource, field: int) -> Sequence[int]:
        """The values of a sorted field that divide the table about evenly: that at which each rank but the first one begins."""
        ...

    def rows_below(self, source: TableSource, field: int, bounds: Sequence[int]) -> Sequence[int]:
        """For each of these values how many rows of a sorted field are below it."""
        ...


class LoadedPlaces:
    """Those of tables whose columns this process has loaded."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks

    def bytes_of(self, source: TableSource, fields: Sequence[int]) -> int | None:
        """See `Places`."""
        return source.load(fields).nbytes

    def is_sorted(self, source: TableSource, field: int) -> bool:
        """See `Places`."""
        if not source.statistics(field).is_sorted:
            return False
        (column,) = source.load([field]).columns
        return has_values(column)

    def starts(self, source: TableSource) -> tuple[int, ...]:
        """See `Places`."""
        return even(source.rows, self.ranks)

    def bounds(self, source: TableSource, field: int) -> Sequence[int]:
        """See `Places`."""
        values = _values(source, field)
        return [int(values[at]) for at in even(source.rows, self.ranks)[1:-1]]

    def rows_below(self, source: TableSource, field: int, bounds: Sequence[int]) -> Sequence[int]:
        """See `Places`."""
        values = _values(source, field)
        return [bisect_left(values, b, key=int) for b in bounds]  # NumPy would convert the whole column to the bound's type


def cut_tables(
    program: Program,
    places: Places,
    least_bytes: int,
    alone_bytes: int,
    joined_bytes: int | None = None,
    by_groups: bool = False,
) -> Cuts:
    """How the tables of a program are cut of which it reads at least so many bytes; none where it reads fewer of all than
    ``alone_bytes``. ``joined_bytes``: those of which it reads as many are, too, if they are joined with one of these on sorted
    columns of both. ``by_groups``: or on a sorted column of their own alone, as groups of the other table by that key can be
    merged where it lies. Columns are loaded."""
    fields: dict[int, set[int]] = {}
    for read in table_reads(program):
        fields.setdefault(id(read.source), set()).update(read.fields)
    every = {id(read.source): read.source for read in table_reads(program)}
    asked = {n: places.bytes_of(s, sorted(fields[n])) for n, s in every.items() if s.rows}
    sizes = {n: size for n, size in asked.items() if size is not None}
    if sum(sizes.values()) < alone_bytes:
        return {}
    large = {n for n, size in sizes.items() if size >= least_bytes}
    least = least_bytes if joined_bytes is None or not large else min(joined_bytes, least_bytes)
    sources = {n: every[n] for n, size in sizes.items() if size >= least}
    sorted_fields = {Field(n, f) for n, source in sources.items() for f in fields[n] if places.is_sorted(source, f)}
    pairs = [(a, b) for a, b in _joined(program) if a.source != b.source and (a.source in large or b.source in large)]
    joined = [(a, b) for a, b in pairs if a in sorted_fields and b in sorted_fields]
    joined.sort(key=lambda pair: -min(sources[f.source].rows for f in pair))  # what saves most first
    cuts: dict[int, TableCut] = {}
    for group in _united(joined):
        cuts |= _cut_together(group, sources, places)
    if by_groups:
        for field in dict.fromkeys([f for pair in pairs for f in pair]):
            if field in sorted_fields and field.source not in cuts and field.source not in large:
                cuts |= _cut_together([field], sources, places)
    for number in sources:
        if number in large and number not in cuts:
            own = sorted([f for f in sorted_fields if f.source == number], key=lambda f: f.field)
            cuts[number] = _cut_alone(number, own, sources, places)
    return cuts


def even(rows: int, ranks: int) -> tuple[int, ...]:
    """The rows at which each rank begins, and their number.

    >>> even(10, 3)
    (0, 3, 6, 10)
    """
    return tuple(rows * r // ranks for r in range(ranks + 1))


def is_about_even(*tables: Sequence[int]) -> bool:
    """Whether no rank has many more rows than the mean, of tables that begin at these rows on each: see `tuning.distribution`.

    >>> is_about_even((0, 500_000, 1_000_000)), is_about_even((0, 900_000, 1_000_000))
    (True, False)
    """
    rows: list[int] = [sum(b - a for a, b in own) for own in zip(*map(pairwise, tables), strict=True)]
    limits = tuning.distribution
    most = limits.uneven * sum(rows) / len(rows) + limits.uneven_rows
    return max(rows) <= most


def _united(pairs: Iterable[tuple[Field, Field]]) -> list[list[Field]]:
    """Groups of fields that are cut together: one field of each table, the pairs that come first before others."""
    groups: dict[int, list[Field]] = {}
    for pair in pairs:
        _unite(groups, pair)
    return list({id(g): g for g in groups.values()}.values())


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


def _cut_together(fields: Sequence[Field], sources: Mapping[int, TableSource], places: Places) -> dict[int, TableCut]:
    """Cuts of tables at the same values of these fields, which divide the longest table evenly; none where a few values have so
    many rows that they do not."""
    longest = max(fields, key=lambda f: sources[f.source].rows)
    bounds = [int(b) for b in places.bounds(sources[longest.source], longest.field)]
    keys, cuts = CutKeys(bounds), {}
    for number, field in fields:
        inner = places.rows_below(sources[number], field, bounds)
        cuts[number] = TableCut((0, *inner, sources[number].rows), field, keys)
    return cuts if is_about_even(*[c.starts for c in cuts.values()]) else {}


def _cut_alone(number: int, fields: Iterable[Field], sources: Mapping[int, TableSource], places: Places) -> TableCut:
    """The cut of a table by the first of its sorted fields whose values divide it evenly; where none does, by rows."""
    for field in fields:
        if found := _cut_together([field], sources, places):
            return found[number]
    return TableCut(places.starts(sources[number]))


def _values(source: TableSource, field: int) -> Array:
    """The values of a sorted column, on the host."""
    (column,) = source.load([field]).columns
    return column.data.on(cpu_device())


def has_values(column: ColumnData) -> bool:
    """Whether a column is of integers that mean the same in every table, and has no NULL."""
    return column.physical_type in _INTEGERS and column.dictionary is None and column.validity is None


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
        case ReadStage(stage, columns, origins, numbered):
            below = made[stage]
            found = {s.column.id: below[o] for s, o in zip(columns, origins, strict=True) if o in below}
            if numbered is not None and len(below) == 1:  # sparse groups, whose one key is the number of a slot
                (found[numbered.column.id],) = below.values()
            return found
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
