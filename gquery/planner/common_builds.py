"""Equal join tables of a program are built once.

    SELECT ... FROM sales JOIN date_dim sold ON ... JOIN date_dim shipped ON ...

Rows that a query needs in several places are common subplans, found over the logical plan (`rules.common_subplans`). Two
joins that build the same table over the same rows are not: a table that is only filtered is no subplan worth writing down,
and which layout, keys and payload a join table has is known when it was lowered. So it is here that a stage whose table
equals an earlier one's is left out, and its probes read the earlier table.

Two tables are equal if their pipelines read the same rows, do the same to them and build the same layout. The names of
columns do not count, nor which columns they pass on: the earlier table then passes on those of both. A column is known by
where its value comes from ("field 3 of the table", "column 2 of the table probed first"). Stages are compared in order, so
equality spreads from a table to those whose pipelines probe it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import assert_never

from gquery.expression.expr import Column, Expr, In, Literal, same_objects
from gquery.expression.types import DType
from gquery.kernels.values import ValueProperties
from gquery.planner.layouts import KeyEncoding
from gquery.planner.physical import (
    AggregateSegment,
    Build,
    Compute,
    ConcatRows,
    DistinctRows,
    FilterRows,
    HostRows,
    JoinTable,
    OrderedGroups,
    Pipeline,
    PipelineBreaker,
    Probe,
    RankDecode,
    RankEncode,
    ReadOne,
    ReadRange,
    ReadStage,
    ReadTable,
    RecursiveRows,
    RoundRows,
    SegmentHeads,
    SegmentRows,
    SliceRows,
    SortRows,
    Source,
    Stage,
    Step,
    UnmatchedRows,
    UnnestRows,
    WindowRows,
)
from gquery.runtime.records import dataclass, replace

_PLAIN = frozenset((bool, int, float, str, type(None)))  # most fields of records

Values = dict[int, Hashable]  # column id: where its value comes from


def common_builds(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages of a program without those that build an earlier table again."""
    heads = {s.number: head for s in stages if (head := _head(s.work)) is not None}
    counts = Counter(heads.values())
    alike = frozenset([number for number, head in heads.items() if counts[head] > 1])
    return _Sharing(stages, alike).run() if alike else tuple(stages)


def _head(work: Pipeline | PipelineBreaker) -> Hashable:
    """What equal builds surely have in common, cheap to compute; None for other stages."""
    if not isinstance(work, Pipeline) or not isinstance(work.sink, Build):
        return None
    table = work.sink.table
    layout = table.layout, table.exists, table.unique, table.null_safe, table.inline_keys
    match work.source:
        case ReadTable(source):
            return id(source), layout
        case ReadStage(stage):
            return stage, layout
        case ReadRange() | ReadOne():
            return None
        case _:
            assert_never(work.source)


@dataclass(frozen=True)
class _Described:
    """What a build does, whatever its columns are called, and where the values of its columns come from."""

    key: Hashable
    values: Values


class _Sharing:
    """One program on its way to having no table twice. Numbers are the old ones until the end. ``alike`` are the builds that
    may equal another one."""

    def __init__(self, stages: Sequence[Stage], alike: frozenset[int]) -> None:
        self.stages, self.alike = stages, alike
        self.kept: dict[int, Stage] = {}
        self.stands: dict[int, int] = {}  # stages that are left out: the one that stands for each
        self.described: dict[int, _Described] = {}
        self.first: dict[Hashable, int] = {}
        probes = [s for stage in stages if isinstance(stage.work, Pipeline) for s in stage.work.steps]
        self.recording = {s.table.stage for s in probes if isinstance(s, Probe) and s.records_matches}

    def run(self) -> tuple[Stage, ...]:
        for stage in self.stages:
            work = stage.work
            if stage.number in self.alike and isinstance(work, Pipeline) and isinstance(work.sink, Build):
                what = self._describe(work, work.sink)
                first = None if stage.number in self.recording else self.first.get(what.key)
                if first is not None and self._merge(first, stage.number, work, what):
                    continue
                self.described[stage.number] = what
                if not _is_recording(work):
                    self.first.setdefault(what.key, stage.number)
            self.kept[stage.number] = stage
        if not self.stands:
            return tuple(self.stages)
        numbers = {old: new for new, old in enumerate(self.kept)}
        numbers |= {old: numbers[first] for old, first in self.stands.items()}
        return tuple([self._numbered(old, s, numbers) for old, s in self.kept.items()])

    def _numbered(self, old: int, stage: Stage, numbers: dict[int, int]) -> Stage:
        """A stage under its new number, over those of others."""
        number, work = numbers[old], with_stages(stage.work, numbers.__getitem__)
        return stage if number == stage.number and work is stage.work else replace(stage, number=number, work=work)

    def _values(self, number: int) -> Values:
        """Where the values of a table's columns come from. Of one that no other is like it is asked where a build probes it."""
        if number not in self.described:
            work = self.kept[number].work
            assert isinstance(work, Pipeline) and isinstance(work.sink, Build)
            self.described[number] = self._describe(work, work.sink)
        return self.described[number].values

    def _describe(self, work: Pipeline, sink: Build) -> _Described:
        values: Values = {}
        key: list[Hashable] = [_source(work.source, values), work.host]
        probes = 0
        for step in work.steps:
            match step:
                case FilterRows(predicate):
                    key.append(_canonical(predicate, values))
                case Compute(exprs):  # computed where it is used
                    values.update({c.id: _canonical(e, values) for c, e in exprs})
                case Probe(table):
                    ends = (len(step.low), len(step.high))
                    bounds = [(b.inclusive, _canonical(b.expr, values)) for b in step.bounds]
                    probing = (
                        step.kind,
                        step.null_key,
                        step.records_matches,
                        _canonical(step.keys, values),
                        ends,
                        *bounds,
                    )
                    stage = self.stands.get(table.stage, table.stage)
                    built = self._values(stage)
                    values.update({s.column.id: (probes, _value(s.column, built)) for s in table.columns})
                    key.append((stage, *probing, _canonical(step.residual, values)))
                    if step.mark is not None:
                        values[step.mark.id] = (probes, "mark")
                    probes += 1
                case SegmentHeads(segment) | SegmentRows(segment):
                    key.append((type(step).__name__, _value(segment.column, values)))
                case AggregateSegment(accumulators, aggregates):
                    made = _canonical(accumulators, values)
                    values.update({c.id: ("segment", made, n) for n, (c, _) in enumerate(aggregates)})
                    key.append((made, _canonical(tuple(a for _, a in aggregates), values)))
                case _:
                    assert_never(step)
        key.append(_canonical(replace(sink.table, stage=0, columns=(), rows=0, probe_rows=0), values))
        return _Described(tuple(key), values)

    def _merge(self, first: int, number: int, work: Pipeline, what: _Described) -> bool:
        """Let ``first`` stand for a stage, reading its columns too; False where one id means two things."""
        earlier = self.kept[first].work
        assert isinstance(earlier, Pipeline)
        known = self.described[first].values
        if any(known.get(i, value) != value for i, value in what.values.items()):
            return False
        source, sink = _united(earlier.source, work.source), earlier.sink
        if isinstance(sink, Build) and isinstance(source, ReadTable | ReadStage):
            probe_rows = sink.table.probe_rows
            if isinstance(work.sink, Build):
                probe_rows = max(probe_rows, work.sink.table.probe_rows)
            sink = Build(replace(sink.table, columns=source.columns, probe_rows=probe_rows))
        self.kept[first] = replace(self.kept[first], work=replace(earlier, source=source, sink=sink))
        known.update(what.values)
        self.stands[number] = first
        return True


def _is_recording(work: Pipeline) -> bool:
    return any(isinstance(s, Probe) and s.records_matches for s in work.steps)


def _source(source: Source, values: Values) -> Hashable:
    """The rows that a pipeline reads, as a key; its columns are entered into ``values``."""
    match source:
        case ReadTable(table, numbers, columns):
            values.update({s.column.id: ("field", n) for s, n in zip(columns, numbers, strict=True)})
            return id(table)
        case ReadStage(stage, columns, origins, numbered):
            values.update({s.column.id: ("column", o) for s, o in zip(columns, origins, strict=True)})
            return ("stage", stage, None if numbered is None else numbered.column.id)
        case ReadRange(column):
            values[column.id] = ("range",)
            return (source.start, source.step, source.rows)
        case ReadOne():
            return ()
        case _:
            assert_never(source)


def _united(earlier: Source, later: Source) -> Source:
    """The source with the columns of both under the names of each."""
    match earlier, later:
        case ReadTable(), ReadTable():
            have = {s.column.id for s in earlier.columns}
            new = [(n, s) for n, s in zip(later.fields, later.columns, strict=True) if s.column.id not in have]
            return replace(
                earlier,
                fields=earlier.fields + tuple(n for n, _ in new),
                columns=earlier.columns + tuple(s for _, s in new),
            )
        case ReadStage(), ReadStage():
            have = {s.column.id for s in earlier.columns}
            more = [(o, s) for o, s in zip(later.origins, later.columns, strict=True) if s.column.id not in have]
            return replace(
                earlier,
                origins=earlier.origins + tuple(o for o, _ in more),
                columns=earlier.columns + tuple(s for _, s in more),
            )
        case _:
            return earlier


_WHOLE = (Literal, DType, KeyEncoding)  # parts that hold no columns


def _canonical(what: Hashable, values: Values, seen: dict[int, int] | None = None) -> Hashable:
    """A hashable key of a part of a plan, in which columns stand as where their values come from. An expression that comes
    again in it stands as its number: written out, nested ones would double in size at each level."""
    seen = {} if seen is None else seen
    if isinstance(what, tuple):
        return tuple([_canonical(x, values, seen) for x in what])
    names = _names_of(type(what))
    if names is None or isinstance(what, _WHOLE):  # most are
        return what
    if isinstance(what, Expr) and what.children:
        if (number := seen.get(id(what))) is not None:
            return ("again", number)
        seen[id(what)] = len(seen)
    match what:
        case Column():
            return _value(what, values)
        case In(arg=arg, items=items):
            return ("in", _canonical(arg, values, seen), items)
        case ValueProperties():
            return _properties(what)
        case _:
            return (
                type(what).__name__,
                *[
                    x if (x := getattr(what, name)).__class__ in _PLAIN else _canonical(x, values, seen)
                    for name in names
                ],
            )


@cache
def _names_of(kind: type) -> tuple[str, ...] | None:
    """The fields of a class of records; None for other classes."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else None


def _value(column: Column, values: Values) -> Hashable:
    return values.get(column.id, ("unknown", column.id))


def _properties(what: ValueProperties) -> Hashable:
    return (what.dtype, what.bounds, what.nullable, id(what.dictionary))


def with_stages(work: Pipeline | PipelineBreaker, number: Callable[[int], int]) -> Pipeline | PipelineBreaker:
    """The work with every number of a stage replaced; a pipeline whose numbers stay is the same object."""

    def table(t: JoinTable) -> JoinTable:
        n = number(t.stage)
        return t if n == t.stage else replace(t, stage=n)

    def step(s: Step) -> Step:
        if not isinstance(s, Probe) or (t := table(s.table)) is s.table:
            return s
        return replace(s, table=t)

    match work:
        case Pipeline(source, steps, sink):
            if isinstance(source, ReadStage) and (n := number(source.stage)) != source.stage:
                source = replace(source, stage=n)
            if isinstance(source, ReadStage) and source.by_hash is not None and source.by_hash.probed is not None:
                source = replace(source, by_hash=replace(source.by_hash, probed=number(source.by_hash.probed)))
            steps = tuple([step(s) for s in steps])
            if isinstance(sink, Build) and (t := table(sink.table)) is not sink.table:
                sink = Build(t)
            if source is work.source and sink is work.sink and same_objects(steps, work.steps):
                return work
            return replace(work, source=source, steps=steps, sink=sink)
        case HostRows(source):
            if isinstance(source, ReadStage):
                source = replace(source, stage=number(source.stage))
            return replace(work, source=source)
        case RoundRows():
            return work
        case (
            SortRows()
            | SliceRows()
            | RankEncode()
            | WindowRows()
            | UnnestRows()
            | DistinctRows()
            | OrderedGroups()
            | RecursiveRows()
        ):
            return replace(work, stage=number(work.stage))
        case ConcatRows():
            return replace(work, stages=tuple([number(n) for n in work.stages]))
        case RankDecode():
            return replace(work, stage=number(work.stage), ranked=number(work.ranked))
        case UnmatchedRows():
            return replace(work, table=table(work.table), probe_stage=number(work.probe_stage))
        case _:
            assert_never(work)
