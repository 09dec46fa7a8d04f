"""Lowering of aggregates: which state a group has, and how a row finds it.

No keys: each thread folds into variables. Keys of a small packed range address arrays; keys that pack into one integer
are looked up in a hash table of integers; any others (plain text, floats, 128 bits) in a table of row numbers over a
frame that holds them. Minima that no atomic can hold are taken over ranks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gquery.expr import AggregateCall, Column, Expr, new_column
from gquery.kernels.code import NeedsHostError, Phys
from gquery.kernels.render import describe
from gquery.operators.aggregates import AggregatePlan, needs_ranks, plan_aggregates
from gquery.operators.keys import packing_of
from gquery.planner.logical import Aggregate
from gquery.planner.physical import DecodeRows, Group, GroupLayout, ReadStage, Reduce, Stored, stage_columns
from gquery.planner.tree import used_columns

if TYPE_CHECKING:
    from gquery.planner.lower import Lowering
    from gquery.planner.lower_stream import Stream

SLOTS_A_ROW = 4  # arrays of state may have this many places a row of input ...
SMALL_STATE = 2**16  # ... or this many in any case
LARGEST_STATE = 2**31


def aggregate(lowering: Lowering, plan: Aggregate, wanted: frozenset[int]) -> Stream:
    """The stream of an aggregate's groups."""
    aggregates = tuple((c, a) for c, a in plan.aggregates if c.id in wanted)
    exprs = [e for _, e in plan.keys] + [
        x for _, a in aggregates for x in (*a.args, *((a.filter,) if a.filter else ()))
    ]
    below = frozenset(i for e in exprs for i in used_columns(e))
    stream = lowering.plan(plan.source, below)
    stream, keys, aggregates = _computable(lowering, stream, plan.keys, aggregates)
    known = [_known(stream, a) for _, a in aggregates]
    if any(needs_ranks(a, w) for (_, a), w in zip(aggregates, known, strict=True)):
        return _over_ranks(lowering, plan, stream, keys, aggregates, wanted)
    number = _grouped(lowering, plan, stream, keys, aggregates)
    columns = tuple(c for c, _ in keys if c.id in wanted) + tuple(c for c, _ in aggregates)
    rows = lowering.estimator.rows(plan) if keys else 1.0
    return lowering.read(number, columns, max(rows, 1.0), stream.limit if keys else 1)


def _known(stream: Stream, call: AggregateCall) -> Phys | None:
    return describe(call.args[0], stream.columns) if call.args else None


def _computable(
    lowering: Lowering,
    stream: Stream,
    keys: tuple[tuple[Column, Expr], ...],
    aggregates: tuple[tuple[Column, AggregateCall], ...],
) -> tuple[Stream, tuple[tuple[Column, Expr], ...], tuple[tuple[Column, AggregateCall], ...]]:
    """Keys and arguments without a kernel body are computed as columns first."""
    made: dict[Expr, Column] = {}
    for e in [e for _, e in keys] + [x for _, a in aggregates for x in (*a.args, *((a.filter,) if a.filter else ()))]:
        try:
            describe(e, stream.columns)
        except NeedsHostError:
            made.setdefault(e, new_column("argument", e.dtype))
    if not made:
        return stream, keys, aggregates
    stream = lowering.compute(stream, tuple((c, e) for e, c in made.items()))
    keys = tuple((c, made.get(e, e)) for c, e in keys)
    return (
        stream,
        keys,
        tuple(
            (
                c,
                replace(
                    a,
                    args=tuple(made.get(x, x) for x in a.args),
                    filter=made.get(a.filter, a.filter) if a.filter else None,
                ),
            )
            for c, a in aggregates
        ),
    )


def _grouped(
    lowering: Lowering,
    plan: Aggregate,
    stream: Stream,
    keys: tuple[tuple[Column, Expr], ...],
    aggregates: tuple[tuple[Column, AggregateCall], ...],
) -> int:
    """The stage that makes the groups."""
    if not keys:
        known = [_known(stream, a) for _, a in aggregates]
        folds, plans = plan_aggregates([a for _, a in aggregates], known, stream.limit, False)
        sink = Reduce(folds, _named(aggregates, plans))
        return lowering.sink(stream, sink, "aggregate")
    described = [describe(e, stream.columns) for _, e in keys]
    packing = packing_of(described, [w.nullable for w in described])
    most = max(SLOTS_A_ROW * stream.rows, SMALL_STATE)
    layout: GroupLayout = (
        "rows" if packing is None else "direct" if packing.size <= min(most, LARGEST_STATE) else "hash"
    )
    if layout == "rows":
        stream, keys, aggregates = _materialised(lowering, stream, keys, aggregates)
        described = [stream.columns[e.id] for _, e in keys if isinstance(e, Column)]
    known = [_known(stream, a) for _, a in aggregates]
    folds, plans = plan_aggregates([a for _, a in aggregates], known, stream.limit, True)
    groups = lowering.estimator.rows(plan)
    if packing is not None:
        groups = min(groups, packing.size)
    triples = tuple((c, e, w) for (c, e), w in zip(keys, described, strict=True))
    sink_ = Group(layout, triples, packing, folds, _named(aggregates, plans), int(max(groups, 1)))
    return lowering.sink(stream, sink_, f"group by {', '.join(c.name for c, _ in keys)}")


def _named(
    aggregates: tuple[tuple[Column, AggregateCall], ...], plans: tuple[AggregatePlan, ...]
) -> tuple[tuple[Column, AggregatePlan], ...]:
    return tuple((c, p) for (c, _), p in zip(aggregates, plans, strict=True))


def _materialised(
    lowering: Lowering,
    stream: Stream,
    keys: tuple[tuple[Column, Expr], ...],
    aggregates: tuple[tuple[Column, AggregateCall], ...],
) -> tuple[Stream, tuple[tuple[Column, Expr], ...], tuple[tuple[Column, AggregateCall], ...]]:
    """Keys and arguments as columns of a frame, where a table of row numbers can compare them."""
    columns: dict[Expr, Column] = {}
    for e in [e for _, e in keys] + [x for _, a in aggregates for x in (*a.args, *((a.filter,) if a.filter else ()))]:
        if e not in columns:
            columns[e] = e if isinstance(e, Column) else new_column("value", e.dtype)
    stream = lowering.compute(stream, tuple((c, e) for e, c in columns.items() if c is not e))
    stream = lowering.collected(stream, tuple(columns.values()), "input of groups")
    stream = _own_ids(lowering, stream)
    return (
        stream,
        tuple((c, columns[e]) for c, e in keys),
        tuple(
            (c, replace(a, args=tuple(columns[x] for x in a.args), filter=columns[a.filter] if a.filter else None))
            for c, a in aggregates
        ),
    )


def _own_ids(lowering: Lowering, stream: Stream) -> Stream:
    """The stream over a frame that names its columns as the stream does."""
    assert isinstance(stream.source, ReadStage)
    number = lowering.renamed_frame(stream)
    if number == stream.source.stage:
        return stream
    return lowering.read(number, tuple(s.column for s in stream.source.columns), stream.rows, stream.limit)


def _over_ranks(
    lowering: Lowering,
    plan: Aggregate,
    stream: Stream,
    keys: tuple[tuple[Column, Expr], ...],
    aggregates: tuple[tuple[Column, AggregateCall], ...],
    wanted: frozenset[int],
) -> Stream:
    """Groups in which some aggregates are taken over ranks of their argument, and turned back into values behind it."""
    stream, keys, aggregates = _materialised(lowering, stream, keys, aggregates)
    ranked = {a.args[0] for _, a in aggregates if needs_ranks(a, _known(stream, a))}
    texts = [e for e in ranked if isinstance(e, Column)]
    frame = lowering.renamed_frame(stream)
    number, codes = lowering.encoded(stream, frame, texts)
    made = stage_columns(lowering.stages[number].work)
    stream = lowering.read(number, tuple(s.column for s in made), stream.rows, stream.limit)
    inner, back = [], []
    for c, a in aggregates:
        if not needs_ranks(a, _known(stream, a)):
            inner.append((c, a))
            continue
        source = a.args[0]
        assert isinstance(source, Column)
        code = new_column(c.name, codes[source.id].dtype)
        function = "max" if a.function in ("any_value", "same_value") else a.function
        inner.append((code, replace(a, function=function, args=(codes[source.id],), dtype=code.dtype)))
        back.append((code, codes[source.id], c, next(x for x in made if x.column == source)))
    grouped = _grouped(lowering, plan, stream, keys, tuple(inner))
    frame_columns = {s.column.id: s for s in stage_columns(lowering.stages[grouped].work)}
    decoded = {code.id: (c, source) for code, _, c, source in back}
    stored = []
    for i, s in frame_columns.items():
        if i in decoded:
            c, source_ = decoded[i]
            stored.append(Stored(c, replace(source_.phys, nullable=s.phys.nullable), source_.carrier))
        else:
            stored.append(s)
    pairs = tuple((code, source, c) for code, source, c, _ in back)
    number = lowering.stage(DecodeRows(grouped, number, pairs, tuple(stored)), "ranks back to values")
    columns = tuple(s.column for s in stored if s.column.id in wanted)
    return lowering.read(number, columns, max(lowering.estimator.rows(plan), 1.0), stream.limit if keys else 1)
