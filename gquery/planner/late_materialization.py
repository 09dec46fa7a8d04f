"""Late materialization: groups fetch what their keys determine through a join; their rows do not carry it along.

    group by order: sum(x), dependent_value(day)     =>     group by order: sum(x)
      probe orders by (order)                               then probe orders by (order) for day

The join's table is there already, and a key that got into a group has its match in it. So each group probes it once in
place of an atomic a row, and text needs no state at all. A sort that keeps few rows probes for those alone
(`deferred_probes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from gquery.expression.expr import AggregateCall, Column, Expr, new_column
from gquery.functions import gives_one_value
from gquery.kernels.values import ValueProperties
from gquery.planner.layouts import key_encoding_of
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.logical.tree import used_columns
from gquery.planner.lower_stream import Stream
from gquery.planner.physical import AggregateSegment, Compute, FilterRows, Probe, SegmentHeads, SegmentRows, Step
from gquery.planner.step_columns import columns_read
from gquery.runtime.records import dataclass, replace

Named = tuple[tuple[Column, AggregateCall], ...]
Keys = tuple[tuple[Column, Expr], ...]


@dataclass(frozen=True)
class LateColumns:
    """Probes that follow the groups, and the results that they give."""

    probes: tuple[Probe, ...]
    values: tuple[tuple[Column, Expr], ...]


def late_columns(stream: Stream, keys: Keys, aggregates: Named) -> tuple[Named, LateColumns | None]:
    """The aggregates that still have to be accumulated, and the probes that give the others behind the groups."""
    found = list(_possible(stream.steps, {e: c for c, e in keys}))
    fetched = frozenset(c.id for p in found for c in p.payload)
    values = tuple((c, a.args[0]) for c, a in aggregates if gives_one_value(a) and used_columns(a.args[0]) <= fetched)
    if not values:
        return aggregates, None
    given = {c.id for c, _ in values}
    probes = _needed(found, frozenset(i for _, e in values for i in used_columns(e)))
    return tuple((c, a) for c, a in aggregates if c.id not in given), LateColumns(probes, values)


def _possible(steps: Iterable[Step], named: Mapping[Expr, Column]) -> Iterable[Probe]:
    """The probes whose keys are keys of the groups, or columns that such a probe gives, keyed by those."""
    fetched: set[int] = set()
    for step in steps:
        if not isinstance(step, Probe) or not _finds_one_row(step):
            continue
        made: list[Expr] = []
        for probed, built in zip(step.keys, step.table.keys, strict=True):
            key = named.get(probed) or named.get(built)
            if key is None and isinstance(probed, Column) and probed.id in fetched:
                key = probed
            if key is None or key.dtype != probed.dtype:
                break
            made.append(key)
        else:
            fetched.update(c.id for c in step.payload)
            yield replace(step, keys=tuple(made), always=True)


def _finds_one_row(step: Probe) -> bool:
    """Whether a row goes on with the one row that has its key, and only if there is one."""
    table = step.table
    found = (
        step.kind is JoinKind.INNER and table.unique and not table.exists and table.layout in ("direct-address", "hash")
    )
    return found and step.residual is None and not any(table.null_safe)


@dataclass(frozen=True)
class BuildRowKeys:
    """How groups by columns of build rows are made in two steps: by ``first``, the keys of the joins, which are numbers, then,
    behind ``probes``, by ``keys`` (the columns that are asked for, each with its expression)."""

    first: Keys
    probes: tuple[Probe, ...]
    keys: Keys


def build_row_keys(stream: Stream, keys: Keys) -> BuildRowKeys | None:
    """The two steps for these keys; None where a key that does not encode is not of build rows, or nothing is gained."""
    loose = [e for _, e in keys if key_encoding_of([stream.describe(e)], [True]) is None]
    wanted = frozenset(i for e in loose for i in used_columns(e))
    probes = [s for s in stream.steps if isinstance(s, Probe) and _finds_one_row(s) and wanted & _fetched(s)]
    determined = frozenset(i for p in probes for i in _fetched(p))
    if not loose or not wanted <= determined or not all(used_columns(e) for e in loose):
        return None
    first: dict[Expr, Column] = {}
    again: list[Probe] = []
    known: frozenset[int] = frozenset()  # what the probes before this one give
    for probe in probes:
        if not all(isinstance(e, Column) and e.id in known for e in probe.keys):
            probe = replace(probe, keys=tuple(first.setdefault(e, new_column("key", e.dtype)) for e in probe.keys))
        again.append(replace(probe, always=True))
        known |= _fetched(probe)
    rest = [e for _, e in keys if not used_columns(e) <= determined]
    first |= {e: new_column("key", e.dtype) for e in rest if e not in first}
    described = [stream.describe(e) for e in first]
    if key_encoding_of(described, [w.nullable for w in described]) is None:
        return None
    later = tuple((c, first[e] if e in rest else e) for c, e in keys)
    return BuildRowKeys(tuple((c, e) for e, c in first.items()), tuple(again), later)


def _fetched(probe: Probe) -> frozenset[int]:
    return frozenset(c.id for c in probe.payload)


def limits_groups(step: Step, keys: Sequence[tuple[Column, Expr, ValueProperties]]) -> bool:
    """Whether each group belongs to a row of a join's build side, so that there are no more groups than such rows."""
    if not isinstance(step, Probe) or step.kind is not JoinKind.INNER or step.table.exists:
        return False
    own = {s.column for s in step.table.columns}
    return all(e in own or e in step.keys for _, e, _ in keys)


def _needed(probes: Sequence[Probe], wanted: frozenset[int]) -> tuple[Probe, ...]:
    """Those of the probes that give wanted columns, or keys of such, in their order."""
    kept: list[Probe] = []
    for probe in reversed(probes):
        if wanted & {c.id for c in probe.payload}:
            kept.append(probe)
            wanted |= frozenset(i for e in probe.keys for i in used_columns(e))
    return tuple(reversed(kept))


def resumed(stream: Stream, steps: Sequence[Step], known: Stream) -> Stream:
    """The stream with late probes behind it; ``known`` is one that had them, and knows their columns."""
    given = [c for s in steps for c in _columns_given(s)]
    columns = {**stream.columns, **{c.id: known.columns[c.id] for c in given}}
    by_id = {**stream.by_id, **{c.id: c for c in given}}
    work = stream.work + 2.0 * stream.rows * len(steps)
    return replace(stream, steps=(*stream.steps, *steps), columns=columns, by_id=by_id, work=work)


def deferred_probes(stream: Stream, first: frozenset[int]) -> tuple[Stream, tuple[Step, ...]]:
    """The stream without those of the probes at its end that the columns ``first`` do not need, and these steps: a sort that
    keeps few rows would throw away most of what they find."""
    tail = len(stream.steps)
    while tail and _only_adds(stream.steps[tail - 1]):
        tail -= 1
    kept: list[Step] = []
    later: list[Step] = []
    for step in reversed(stream.steps[tail:]):
        if any(c.id in first for c in _columns_given(step)):
            kept.insert(0, step)
            first |= _taken(step)
        else:
            later.insert(0, step)
    if not any(isinstance(s, Probe) for s in later):
        return stream, ()
    return replace(stream, steps=(*stream.steps[:tail], *kept)), tuple(later)


def before(steps: Sequence[Step], wanted: frozenset[int]) -> frozenset[int]:
    """The columns that must be at hand before these steps for ``wanted`` to be there behind them."""
    given = frozenset(c.id for s in steps for c in _columns_given(s))
    return (wanted | frozenset(i for s in steps for i in _taken(s))) - given


def _only_adds(step: Step) -> bool:
    """Whether a step gives each row further columns and does nothing else."""
    return isinstance(step, Compute) or (isinstance(step, Probe) and step.always)


def _columns_given(step: Step) -> tuple[Column, ...]:
    match step:
        case Probe(payload=payload):
            return payload
        case Compute(exprs):
            return tuple(c for c, _ in exprs)
        case AggregateSegment(aggregates=aggregates):
            return tuple(c for c, _ in aggregates)
        case FilterRows() | SegmentHeads() | SegmentRows():
            return ()
        case _:
            assert_never(step)


def _taken(step: Step) -> frozenset[int]:
    if isinstance(step, Probe):  # as late ones do, it gives what it tests
        return frozenset(i for e in step.keys for i in used_columns(e))
    return columns_read((step,))
