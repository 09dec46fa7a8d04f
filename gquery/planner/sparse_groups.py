"""Sparse groups: arrays that are addressed by the key, read as they lie, without being packed together first."""

from __future__ import annotations

from gquery import tuning
from gquery.expression.expr import Literal, new_column
from gquery.expression.types import BIGINT, BOOLEAN, PhysicalType
from gquery.functions import call
from gquery.kernels.values import value_properties
from gquery.planner.aggregates import AggregatePlan, SumOfDoubles, has_plain_count, is_plain
from gquery.planner.logical.nodes import Aggregate
from gquery.planner.lower_stream import Stream
from gquery.planner.lowering import Lowering
from gquery.planner.physical import TOUCHED, Group, ReadStage
from gquery.planner.stored import Stored
from gquery.runtime.records import replace


def sparse_columns(sink: Group) -> tuple[tuple[Stored, int], ...]:
    """The columns of direct-address groups that are read as they lie, without being packed together first: none where
    that is not possible, or no gain: few slots, slots that most groups do not use, results that are more than a word of
    state."""
    key_encoding = sink.key_encoding
    assert key_encoding is not None
    limits = tuning.group_layouts
    is_sparse = sink.groups * limits.sparse_slots_a_group < key_encoding.size
    if key_encoding.size < limits.sparse_slots or is_sparse or len(key_encoding.parts) != 1:
        return ()
    if key_encoding.parts[0].nullable or any(a.result.nullable or not is_plain(a) for _, a in sink.aggregates):
        return ()
    made = [(Stored(c, a.result, _word_physical_type(a)), a.accumulators[0]) for c, a in sink.aggregates]
    plain = has_plain_count(sink.accumulators)
    if plain is None:
        there = Stored(new_column("there", BOOLEAN, False), value_properties(BOOLEAN, None, False), PhysicalType.BOOL)
        return (*made, (there, TOUCHED))
    if all(accumulator != plain for _, accumulator in made):
        count = Stored(new_column("count", BIGINT, False), value_properties(BIGINT, None, False), PhysicalType.I64)
        made.append((count, plain))
    return tuple(made)


def _word_physical_type(plan: AggregatePlan) -> PhysicalType:
    return PhysicalType.F64 if isinstance(plan.states[0], SumOfDoubles) else PhysicalType.I64


def read_sparse(lowering: Lowering, plan: Aggregate, number: int, sink: Group, source: Stream) -> Stream:
    """The stream of sparse groups: a row a slot, those without a group skipped; the key is the slot's number."""
    assert sink.key_encoding is not None
    (key, _, known), part = sink.keys[0], sink.key_encoding.parts[0]
    rows = max(lowering.estimator.rows(plan), 1.0)
    stream = lowering.read(number, tuple(s.column for s, _ in sink.sparse), sink.key_encoding.size, source.limit)
    assert isinstance(stream.source, ReadStage)
    stored = Stored(key, known, known.physical_type)
    stream = replace(
        stream,
        source=replace(stream.source, numbered=stored, base=part.base),
        columns={**stream.columns, key.id: known},
        by_id={**stream.by_id, key.id: key},
        rows=float(sink.key_encoding.size),
    )
    plain = has_plain_count(sink.accumulators)
    flag = next(s.column for s, accumulator in sink.sparse if accumulator == (TOUCHED if plain is None else plain))
    predicate = flag if plain is None else call("gt", flag, Literal(0, BIGINT))
    return lowering.filter(stream, predicate, rows)
