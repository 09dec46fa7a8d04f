"""Lowering of groups that come in segments: their key is a sorted column of the table that is scanned, so a thread aggregates a
group's rows in registers, and the group goes on as one row of the same pipeline. See `planner.segments`.

This is for many groups, whose table would be large. What depends on the key alone (its filters, probes of tables with one row
a key) is done once a segment, and what such a probe gives belongs to the group as the key does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from gquery import tuning
from gquery.expression.expr import AggregateCall, Column, Expr
from gquery.expression.types import Register
from gquery.functions import gives_one_value
from gquery.functions.certain import never_fails
from gquery.kernels.render import describe
from gquery.kernels.targets.capabilities import capabilities
from gquery.planner.aggregates import needs_ranks, plan_aggregates
from gquery.planner.logical.nodes import Aggregate, JoinKind
from gquery.planner.logical.tree import used_columns
from gquery.planner.lower_stream import Stream
from gquery.planner.lowering import Lowering
from gquery.planner.physical import (
    AggregateSegment,
    Compute,
    FilterRows,
    Probe,
    ReadTable,
    SegmentHeads,
    SegmentRows,
    Step,
    Stored,
)
from gquery.planner.step_columns import columns_read, exprs_read
from gquery.runtime.records import dataclass, replace

Keys = tuple[tuple[Column, Expr], ...]
Calls = tuple[tuple[Column, AggregateCall], ...]


def aggregate_segments(
    lowering: Lowering, plan: Aggregate, stream: Stream, keys: Keys, aggregates: Calls
) -> Stream | None:
    """The stream of the groups, made of the segments of a sorted key; None where that is not possible, or no gain."""
    limits = tuning.group_layouts
    on_device = capabilities(lowering.target).has_own_memory
    if not keys or lowering.estimator.rows(plan) < (limits.least_segments if on_device else limits.least_segments_cpu):
        return None
    for key, longest in _sorted_columns(stream):
        split = _split(stream.steps, key.column)
        if split is not None and split.makes(e for _, e in keys):
            return _aggregated(lowering, plan, stream, _Segments(key, longest, split, keys, aggregates))
    return None


def _sorted_columns(stream: Stream) -> Iterable[tuple[Stored, int]]:
    """The columns of the source that are proved to be sorted with short segments, and a number of rows that none exceeds."""
    source = stream.source
    if not isinstance(source, ReadTable):
        return
    for number, stored in zip(source.fields, source.columns, strict=True):
        known = source.source.statistics(number)
        if known.is_sorted and known.longest_run is not None and stored.properties.register is Register.I64:
            yield stored, known.longest_run


@dataclass
class _Split:
    """Steps before groups: those that are the same for all rows of a segment (``heads``), and those that are made for each row.
    ``determined``: the columns that are the same, ``equal``: those that equal the key. ``is_certain``: no step for each row can
    fail, so that those which follow may be made first."""

    determined: set[int]
    equal: set[int]
    heads: list[Step] = field(default_factory=list)
    inner: list[Step] = field(default_factory=list)
    is_certain: bool = True

    def makes(self, keys: Iterable[Expr]) -> bool:
        """Whether groups of these keys are the segments."""
        keys = tuple(keys)
        is_told = any(isinstance(e, Column) and e.id in self.equal for e in keys)
        return is_told and all(used_columns(e) <= self.determined for e in keys)

    def add(self, step: Step, never_fails: bool, reads: frozenset[int]) -> bool:
        """Take a step that reads some columns; whether it is made once a segment."""
        once = self.is_certain and never_fails and reads <= self.determined
        (self.heads if once else self.inner).append(step)
        self.is_certain = self.is_certain and (once or never_fails)
        return once

    def compute(self, exprs: tuple[tuple[Column, Expr], ...]) -> None:
        """Take columns that are computed, each for itself."""
        for column, e in exprs:
            if self.add(Compute(((column, e),)), never_fails(e), used_columns(e)):
                self.determined.add(column.id)

    def probe(self, step: Probe) -> None:
        """Take a probe that finds one row at most."""
        own = {s.column.id for s in step.table.columns} | {c.id for c in step.payload}
        if not self.add(step, all(never_fails(e) for e in exprs_read((step,))), columns_read((step,)) - own):
            return
        self.determined |= own if step.mark is None else own | {step.mark.id}
        if step.kind is JoinKind.INNER and not any(step.table.null_safe):
            for probed, built in zip(step.keys, step.table.keys, strict=True):
                if isinstance(probed, Column) and probed.id in self.equal and probed.dtype == built.dtype:
                    self.equal.add(built.id)


def _split(steps: Iterable[Step], key: Column) -> _Split | None:
    """The steps of a pipeline by whether they are the same for all rows of a segment; None where there is one that makes several
    rows of one, or aggregates segments."""
    made = _Split({key.id}, {key.id})
    for step in steps:
        match step:
            case FilterRows(predicate):
                made.add(step, never_fails(predicate), used_columns(predicate))
            case Compute(exprs):
                made.compute(exprs)
            case Probe():
                if step.records_matches or step.null_key or _fans_out(step):
                    return None
                made.probe(step)
            case SegmentHeads() | SegmentRows() | AggregateSegment():
                return None
    return made


def _fans_out(probe: Probe) -> bool:
    finds_one = probe.table.unique or probe.table.layout == "one"
    return probe.kind not in (JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK) and not finds_one


@dataclass(frozen=True)
class _Segments:
    """Groups that are the segments of ``key``, none of which has more than ``longest`` rows."""

    key: Stored
    longest: int
    split: _Split
    keys: Keys
    aggregates: Calls

    @property
    def given(self) -> Keys:
        """The results that the first row of a segment has: keys, and what they determine."""
        known = [(c, a.args[0]) for c, a in self.aggregates if self._is_determined(a)]
        renamed = [(c, e) for c, e in self.keys if not (isinstance(e, Column) and e.id == c.id)]
        return (*renamed, *known)

    @property
    def accumulated(self) -> Calls:
        """The aggregates that every row of a segment may change."""
        return tuple((c, a) for c, a in self.aggregates if not self._is_determined(a))

    def _is_determined(self, call: AggregateCall) -> bool:
        return gives_one_value(call) and used_columns(call.args[0]) <= self.split.determined


def _aggregated(lowering: Lowering, plan: Aggregate, stream: Stream, segments: _Segments) -> Stream | None:
    """The stream of the groups; None where an aggregate has no registers."""
    calls = [a for _, a in segments.accumulated]
    known = [describe(a.args[0], stream.columns) if a.args else None for a in calls]
    if any(needs_ranks(a, w) for a, w in zip(calls, known, strict=True)):
        return None
    accumulators, plans = plan_aggregates(calls, known, segments.longest, True)
    if any(p.is_text for p in plans) or len(accumulators) > tuning.group_layouts.segment_words:
        return None
    rows, source_rows = max(lowering.estimator.rows(plan), 1.0), max(stream.source_rows, 1)
    named = tuple((c, p) for (c, _), p in zip(segments.accumulated, plans, strict=True))
    heads = SegmentHeads(segments.key, min(1.0, _segments(stream, segments.key) / source_rows))
    inner, selectivity = tuple(segments.split.inner), min(heads.selectivity, rows / source_rows)
    steps: tuple[Step, ...] = (heads, *segments.split.heads)
    if inner or named:
        steps += (SegmentRows(segments.key), *inner, AggregateSegment(accumulators, named, selectivity))
    columns = {i: w for i, w in stream.columns.items() if i in segments.split.determined}
    columns |= {c.id: p.result for c, p in named} | {c.id: describe(e, stream.columns) for c, e in segments.given}
    if segments.given:
        steps += (Compute(segments.given),)
    made = replace(stream, steps=steps, columns=columns, rows=rows)
    made.work += stream.rows * (1.0 + len(accumulators))
    made.by_id.update({c.id: c for c, *_ in (*named, *segments.given)})
    return made


def _segments(stream: Stream, key: Stored) -> float:
    """How many segments a sorted column has."""
    source = stream.source
    assert isinstance(source, ReadTable)
    field = source.fields[source.columns.index(key)]
    distinct = source.source.statistics(field).distinct
    return float(stream.source_rows if distinct is None else distinct)
