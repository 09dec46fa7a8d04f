"""Lowering of aggregates: which state a group has, and how a row finds it.

No keys: each thread accumulates into variables. Keys of a small encoded range address arrays; keys that encode as one
integer, and one integer of any range, are found in a hash table; any others (plain text, floats, 128 bits) in a
table of row numbers over a frame that holds them. Minima that no atomic can hold are taken over ranks. Many groups of a sorted
column need none of that (`lower_segments`).
"""

from __future__ import annotations

from collections.abc import Mapping

from gquery import tuning
from gquery.expression.expr import AggregateCall, Column, Expr, IsNull, Not, new_column
from gquery.expression.traverse import conjunction
from gquery.expression.types import BIGINT, Bounds, Register
from gquery.functions import declaration, is_ordered
from gquery.functions.aggregate_record import Extreme
from gquery.functions.certain import guarded
from gquery.kernels.bindings import NeedsHostError
from gquery.kernels.values import ValueProperties, value_properties
from gquery.planner.aggregates import (
    AggregatePlan,
    needs_ranks,
    picks_row,
    plan_aggregates,
)
from gquery.planner.late_materialization import build_row_keys, late_columns, limits_groups, resumed
from gquery.planner.layouts import in_bits, is_raw_key, key_encoding_of
from gquery.planner.logical.nodes import Aggregate
from gquery.planner.logical.tree import used_columns
from gquery.planner.lower_distinct import distinct
from gquery.planner.lower_segments import aggregate_segments
from gquery.planner.lower_stream import Stream
from gquery.planner.lowering import Lowering
from gquery.planner.physical import (
    Group,
    GroupLayout,
    Pipeline,
    RankDecode,
    RankOf,
    ReadStage,
    ReadTable,
    Reduce,
    Stored,
)
from gquery.planner.sparse_groups import read_sparse, sparse_columns
from gquery.planner.stage_columns import stage_columns
from gquery.runtime.records import replace
from gquery.runtime.tuples import NamedTuple

Keys = tuple[tuple[Column, Expr], ...]
Calls = tuple[tuple[Column, AggregateCall], ...]


def aggregate(lowering: Lowering, plan: Aggregate, wanted: frozenset[int]) -> Stream:
    """The stream of an aggregate's groups."""
    if (values := distinct(lowering, plan, wanted)) is not None:
        return values
    aggregates = tuple((c, a) for c, a in plan.aggregates if c.id in wanted)
    below = frozenset(i for e in _read_by(plan.keys, aggregates) for i in used_columns(e))
    stream = lowering.plan(plan.source, below)
    stream, keys, aggregates = _computable(lowering, stream, plan.keys, aggregates)
    if any(is_ordered(a) for _, a in aggregates):
        from gquery.planner.lower_ordered import ordered_groups

        return ordered_groups(lowering, stream, keys, aggregates, max(lowering.estimator.rows(plan), 1.0))
    if (segments := aggregate_segments(lowering, plan, stream, keys, aggregates)) is not None:
        return segments
    known = [_known(stream, a) for _, a in aggregates]
    if any(needs_ranks(a, w) for (_, a), w in zip(aggregates, known, strict=True)):
        return _over_ranks(lowering, plan, stream, keys, aggregates, wanted)
    aggregates, found = late_columns(stream, keys, aggregates)
    groups = _by_build_row(lowering, plan, stream, keys, aggregates) or _groups(
        lowering, plan, stream, keys, aggregates
    )
    if found is None:
        return groups
    return lowering.compute(resumed(groups, found.probes, stream), found.values)


def _by_build_row(
    lowering: Lowering,
    plan: Aggregate,
    stream: Stream,
    keys: Keys,
    aggregates: Calls,
) -> Stream | None:
    """Groups by text (or what else does not encode) of build sides, in two steps: first by the keys of the joins, which
    are numbers, then the few groups that this makes by what they are to be grouped by. None where that is not
    possible, or where hardly any rows share their keys."""
    merging = [declaration(a).merged_by for _, a in aggregates]
    two = build_row_keys(stream, keys)
    if two is None or not all(merging) or _tell_rows_apart(lowering, two.first, stream.rows):
        return None
    parts = tuple((new_column(c.name, a.dtype, c.nullable), a) for c, a in aggregates)
    groups = _groups(lowering, plan, stream, two.first, parts)
    merged = tuple(
        (c, AggregateCall(function, (part,), a.dtype))
        for (c, a), (part, _), function in zip(aggregates, parts, merging, strict=True)
        if function is not None
    )
    return _groups(lowering, plan, resumed(groups, two.probes, stream), two.keys, merged)


def _tell_rows_apart(lowering: Lowering, keys: Keys, rows: float) -> bool:
    """Whether some key has so many values that most rows probably have one of their own."""
    most = max(lowering.estimator.distinct(e, rows) for _, e in keys)
    return len(keys) > 1 and most * tuning.group_layouts.rows_a_build_row > rows


def _groups(
    lowering: Lowering,
    plan: Aggregate,
    stream: Stream,
    keys: Keys,
    aggregates: Calls,
) -> Stream:
    """The stream of the groups: their keys and accumulated results."""
    number = _grouped(lowering, plan, stream, keys, aggregates, sparse=True)
    work = lowering.stages[number].work
    if isinstance(work, Pipeline) and isinstance(work.sink, Group) and work.sink.sparse:
        return read_sparse(lowering, plan, number, work.sink, stream)
    columns = tuple(c for c, _ in keys) + tuple(c for c, _ in aggregates)
    rows = lowering.estimator.rows(plan) if keys else 1.0
    return lowering.read(number, columns, max(rows, 1.0), stream.limit if keys else 1)


def _known(stream: Stream, call: AggregateCall) -> ValueProperties | None:
    return stream.describe(call.args[0]) if call.args else None


def _computable(lowering: Lowering, stream: Stream, keys: Keys, aggregates: Calls) -> tuple[Stream, Keys, Calls]:
    """Keys and arguments without a kernel body are computed as columns first."""
    made: dict[Expr, Column] = {}
    for e in _read_by(keys, aggregates):
        try:
            stream.describe(e)
        except NeedsHostError:
            made.setdefault(e, new_column("argument", e.dtype))
    if not made:
        return stream, keys, aggregates
    stream = lowering.compute(stream, tuple((c, e) for e, c in made.items()))
    return stream, *_over(made, keys, aggregates)


def _read_by(keys: Keys, aggregates: Calls) -> list[Expr]:
    """What keys and aggregates read."""
    return [e for _, e in keys] + [e for _, a in aggregates for e in a.expressions]


def _over(columns: Mapping[Expr, Column], keys: Keys, aggregates: Calls) -> tuple[Keys, Calls]:
    """Keys and aggregates that read columns in place of what those hold."""

    def of(e: Expr) -> Expr:
        return columns.get(e, e)

    return tuple((c, of(e)) for c, e in keys), tuple((c, a.mapped(of)) for c, a in aggregates)


def _grouped(
    lowering: Lowering,
    plan: Aggregate,
    stream: Stream,
    keys: Keys,
    aggregates: Calls,
    sparse: bool = False,
) -> int:
    """The stage that makes the groups; ``sparse``: if possible, as arrays in which slots may be empty."""
    if not keys:
        known = [_known(stream, a) for _, a in aggregates]
        accumulators, plans = plan_aggregates([a for _, a in aggregates], known, stream.limit, False)
        sink = Reduce(accumulators, _named(aggregates, plans))
        return lowering.sink(stream, sink, "aggregate")
    described = [stream.describe(e) for _, e in keys]
    key_encoding = key_encoding_of(described, [w.nullable for w in described])
    limits = tuning.group_layouts
    most = max(limits.slots_a_row * stream.rows, limits.small_state)
    layout: GroupLayout
    if key_encoding is not None:
        layout = "direct-address" if key_encoding.size <= min(most, limits.largest_state) else "hash"
    elif len(described) == 1 and is_raw_key(described[0]):
        layout = "hash"
    else:
        layout = "row-id hash"
        if _has_keys(stream, keys, aggregates):
            stream = _own_ids(lowering, stream)
        else:
            stream, keys, aggregates = _materialised(lowering, stream, keys, aggregates)
        described = [stream.columns[e.id] for _, e in keys if isinstance(e, Column)]
    known = [_known(stream, a) for _, a in aggregates]
    accumulators, plans = plan_aggregates([a for _, a in aggregates], known, stream.limit, True)
    groups = lowering.estimator.rows(plan)
    if key_encoding is not None:
        groups = min(groups, key_encoding.size)
        key_encoding = in_bits(key_encoding) if layout == "hash" else key_encoding
    triples = tuple((c, e, w) for (c, e), w in zip(keys, described, strict=True))
    sink_ = Group(
        layout,
        triples,
        key_encoding,
        accumulators,
        _named(aggregates, plans),
        int(max(groups, 1)),
        clustered_key=_clustered_key(stream, keys),
    )
    if sparse and layout == "direct-address" and not any(limits_groups(s, triples) for s in stream.steps):
        sink_ = replace(sink_, sparse=sparse_columns(sink_))
    return lowering.sink(stream, sink_, f"group by {', '.join(c.name for c, _ in keys)}")


def _clustered_key(stream: Stream, keys: Keys) -> Stored | None:
    """A key that is sorted in the source: its groups' rows lie together."""
    source = stream.source
    if not isinstance(source, ReadTable):
        return None
    wanted = {e.id for _, e in keys if isinstance(e, Column)}
    for field, stored in zip(source.fields, source.columns, strict=True):
        if (
            stored.column.id in wanted
            and stored.properties.register is Register.I64
            and source.source.statistics(field).is_sorted
        ):
            return stored
    return None


def _named(aggregates: Calls, plans: tuple[AggregatePlan, ...]) -> tuple[tuple[Column, AggregatePlan], ...]:
    return tuple([(c, p) for (c, _), p in zip(aggregates, plans, strict=True)])


def _has_keys(stream: Stream, keys: Keys, aggregates: Calls) -> bool:
    """Whether a table of row numbers can compare the keys where they stand, in the frame that is read. Arguments are computed
    where they are accumulated then, but for texts, which have to lie somewhere."""
    if stream.steps or not isinstance(stream.source, ReadStage):
        return False
    texts = [e for _, a in aggregates for e in a.args if e.dtype.is_string]
    return all(isinstance(e, Column) and e.id in stream.columns for e in (*[e for _, e in keys], *texts))


def _materialised(lowering: Lowering, stream: Stream, keys: Keys, aggregates: Calls) -> tuple[Stream, Keys, Calls]:
    """Keys and arguments as columns of a frame, where a table of row numbers can compare them."""
    aggregates = tuple((c, guarded(a)) for c, a in aggregates)
    columns: dict[Expr, Column] = {}
    for e in _read_by(keys, aggregates):
        if e not in columns:
            columns[e] = e if isinstance(e, Column) else new_column("value", e.dtype)
    stream = lowering.compute(stream, tuple((c, e) for e, c in columns.items() if c is not e))
    stream = lowering.materialized(stream, tuple(columns.values()), "input of groups")
    return _own_ids(lowering, stream), *_over(columns, keys, aggregates)


def _own_ids(lowering: Lowering, stream: Stream) -> Stream:
    """The stream over a frame that names its columns as the stream does."""
    assert isinstance(stream.source, ReadStage)
    number = lowering.renamed_frame(stream)
    if number == stream.source.stage:
        return stream
    return lowering.read(number, tuple(s.column for s in stream.source.columns), stream.rows, stream.limit)


class _Coded(NamedTuple):
    """An aggregate over codes (ranks of its argument, or row numbers): a group's ``code`` is one of ``codes`` and becomes
    ``result``, one of ``values``."""

    code: Column
    codes: Column
    result: Column
    values: Stored


def _over_ranks(
    lowering: Lowering,
    plan: Aggregate,
    stream: Stream,
    keys: Keys,
    aggregates: Calls,
    wanted: frozenset[int],
) -> Stream:
    """Groups in which some aggregates are taken over codes and turned back into values behind it."""
    stream, keys, aggregates = _materialised(lowering, stream, keys, aggregates)
    coded = [a for _, a in aggregates if needs_ranks(a, _known(stream, a))]
    ranked, ranks = _ranked(lowering, stream, keys, coded, len(coded) == len(aggregates))
    made = stage_columns(lowering.stages[ranked].work)
    stream = lowering.read(ranked, tuple([s.column for s in made]), stream.rows, stream.limit)
    row = new_column("row", BIGINT, False)
    if any(picks_row(a) for a in coded):
        stream = _numbered(stream, row)
    inner, decoded = list[tuple[Column, AggregateCall]](), dict[int, _Coded]()
    for c, a in aggregates:
        if not needs_ranks(a, _known(stream, a)):
            inner.append((c, a))
            continue
        call, codes = _over_codes(a, row, ranks, stream)
        code = new_column(c.name, call.dtype)
        inner.append((code, call))
        decoded[code.id] = _Coded(code, codes, c, next(s for s in made if s.column == a.args[0]))
    stream = _reading(lowering, stream, keys, tuple(inner))
    grouped = _grouped(lowering, plan, stream, keys, tuple(inner))
    passing = {c.id for c, a in aggregates if not declaration(a).skips_null}  # NULL, where that is in the row
    stored = []
    for s in stage_columns(lowering.stages[grouped].work):
        of = decoded.get(s.column.id)
        if of is None:
            stored.append(s)
            continue
        nullable = s.properties.nullable or (of.result.id in passing and of.values.properties.nullable)
        stored.append(Stored(of.result, replace(of.values.properties, nullable=nullable), of.values.physical_type))
    pairs = tuple([(of.code, of.codes, of.result) for of in decoded.values()])
    number = lowering.stage(RankDecode(grouped, ranked, pairs, tuple(stored)), "ranks back to values")
    read_back = tuple([s.column for s in stored if s.column.id in wanted])
    return lowering.read(number, read_back, max(lowering.estimator.rows(plan), 1.0), stream.limit if keys else 1)


def _over_codes(
    a: AggregateCall, row: Column, ranks: Mapping[tuple[Column, RankOf], Column], stream: Stream
) -> tuple[AggregateCall, Column]:
    """The aggregate over codes that stands for one, and the column whose values its results number."""
    source = a.args[0]
    assert isinstance(source, Column)
    if (picked := picks_row(a)) is not None:
        only = _with_value(source, stream, a.filter) if declaration(a).skips_null else a.filter
        return replace(a, function=picked, args=(row,), filter=only, dtype=BIGINT), source
    _, how = asked = _rank_of(a)
    codes = ranks[asked]
    return replace(a, function="max" if how.greatest else "min", args=(codes,), dtype=codes.dtype), codes


def _ranked(
    lowering: Lowering, stream: Stream, keys: Keys, coded: list[AggregateCall], are_all: bool
) -> tuple[int, dict[tuple[Column, RankOf], Column]]:
    """The stage whose frame has codes for the extremes that aggregates ask for, and the columns of these."""
    number = lowering.renamed_frame(stream)
    wanted = list(dict.fromkeys(_rank_of(a) for a in coded if picks_row(a) is None))
    if not wanted:
        return number, {}
    alone = are_all and not any(picks_row(a) for a in coded)
    if keys:
        by = [e for _, e in keys if isinstance(e, Column)]
        number, codes = lowering.rank_within_groups(stream, number, by, wanted, alone)
        return number, dict(zip(wanted, codes, strict=True))
    extremes = all(a.filter is None for a in coded)
    columns = list(dict.fromkeys(c for c, _ in wanted))
    number, ranks = lowering.rank_encoded(stream, number, columns, extremes, extremes and alone)
    return number, {(c, how): ranks[c.id] for c, how in wanted}


def _rank_of(a: AggregateCall) -> tuple[Column, RankOf]:
    """The column of which an aggregate asks for an extreme, and which one."""
    source, only = a.args[0], a.filter
    assert isinstance(source, Column) and (only is None or isinstance(only, Column))  # see `_materialised`
    return source, RankOf(declaration(a).only != Extreme("min"), only)


def _reading(lowering: Lowering, stream: Stream, keys: Keys, aggregates: Calls) -> Stream:
    """The stream of a frame with those of its columns that keys and aggregates read: the others may lie in any way."""
    source = stream.source
    assert isinstance(source, ReadStage)
    used = {i for e in _read_by(keys, aggregates) for i in used_columns(e)}
    columns = tuple(s.column for s in source.columns if s.column.id in used)
    narrow = lowering.read(source.stage, columns, stream.rows, stream.limit)
    return narrow if source.numbered is None else _numbered(narrow, source.numbered.column)


def _numbered(stream: Stream, row: Column) -> Stream:
    """The stream of a frame's rows with the number of each, which is not stored."""
    assert isinstance(stream.source, ReadStage) and not stream.steps
    most = stream.limit if stream.limit is not None else tuning.group_layouts.unknown_rows
    known = value_properties(BIGINT, Bounds(0, max(most, 1)), False)
    return replace(
        stream,
        source=replace(stream.source, numbered=Stored(row, known, known.physical_type)),
        columns={**stream.columns, row.id: known},
        by_id={**stream.by_id, row.id: row},
    )


def _with_value(source: Column, stream: Stream, only: Expr | None) -> Expr | None:
    """The condition that a row passes ``only`` and has a value; None where each does."""
    if not stream.columns[source.id].nullable:
        return only
    there = Not(IsNull(source))
    return there if only is None else conjunction((only, there))
