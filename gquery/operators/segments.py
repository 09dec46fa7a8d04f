"""Segments: groups whose rows lie together, aggregated by one thread, in registers.

A row heads a segment where the row before it has another key. A thread goes over the rows of a segment, whose memory the threads
beside it have brought into the first cache: that of the head, or, where heads are compacted (`operators.selection`), the one
that takes the head from the selection vector. There is no state, and nothing to clear, to combine or to look up. Segments may lie
across morsels, partitions and scanned ranges: a row belongs to its head.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gquery.expression.frozen import frozen_open
from gquery.expression.types import Kind, Register
from gquery.kernels import ir
from gquery.kernels.bindings import ColumnPart, StatePart
from gquery.kernels.code import Code
from gquery.kernels.stored import element_type
from gquery.kernels.unroll import PREVIOUS_ROW
from gquery.kernels.values import Value
from gquery.operators.aggregates import emit_accumulate
from gquery.operators.finalize import emit_result
from gquery.operators.read import read
from gquery.operators.reduce import identity
from gquery.operators.segment_rows import RowsOfSegment, emit_rows
from gquery.planner.aggregates import AggregatePlan
from gquery.planner.physical import AggregateSegment, SegmentHeads, SegmentRows, Source, Stored

Consumer = Callable[[], None]


def emit_heads(step: SegmentHeads, row: ir.Name, code: Code, consume: Consumer) -> None:
    """The lines that pass on a row whose key differs from that of the row before."""
    number, zero = code.let(code.call("i64", row)), code.integer(0)
    before: ir.Expression = PREVIOUS_ROW
    if row is not ir.ROW:
        before = code.let(code.call("max_i64", code.call("sub_i64", number, code.integer(1)), zero))
    last = code.let(_key(step.key, before, code))
    code.hoisted.add(last)
    key = code.column(step.key.column).var
    with code.when(ir.Or((code.call("ne_i64", key, last), code.call("eq_i64", number, zero)))):
        consume()


@frozen_open
class Segment:
    """A segment that is aggregated: the steps that open and close it, where its rows come from, and the name of its first one.
    ``all_rows``: nothing stands between the two, so every row of it takes part."""

    rows: SegmentRows
    aggregate: AggregateSegment
    source: Source
    head: ir.Name
    all_rows: bool


def emit_segment(segment: Segment, code: Code, each: Callable[[Consumer], None], consume: Consumer) -> None:
    """The lines that aggregate a segment and pass it on. ``each`` writes the steps of a row, and its argument where a row gets
    past them."""
    step = segment.aggregate
    words = [code.name("w", "row") for _ in step.accumulators]
    for word, accumulator in zip(words, step.accumulators, strict=True):
        code.set(word, identity(accumulator, code))
    found = None if segment.all_rows else code.let(ir.FALSE)

    def take() -> None:
        if found is not None:
            code.set(found, ir.TRUE)
        emit_accumulate(
            step.accumulators,
            code,
            lambda n, one, word: code.set(words[n], code.call(f"{one.op}_{one.word}", words[n], word)),
        )

    stops = None if step.accumulators else found
    if segment.head is ir.ROW:
        _each_row(segment, code, lambda: each(take), stops)
    else:
        kept = (*words, *(() if found is None else (found,)))
        emit_rows(RowsOfSegment(segment.rows, segment.source, segment.head, kept, stops), code, lambda: each(take))
    if found is None:
        _pass_on(step, words, code, consume)
        return
    with code.when(found):
        _pass_on(step, words, code, consume)


def _each_row(segment: Segment, code: Code, write: Consumer, stops: ir.Name | None) -> None:
    """The first row, whose columns an unrolled loop loads ahead, and a loop over the others of a segment; it may end as soon as
    ``stops`` is true."""
    stored, rows = segment.rows.key, code.scalar(StatePart("rows"))
    key = code.column(stored.column).var
    write()
    member = code.let(code.call("add_i64", code.call("i64", segment.head), code.integer(1)))
    going = code.let(ir.FALSE)

    def look() -> None:
        inside = code.call("lt_i64", member, rows)
        with code.when(inside if stops is None else ir.And((inside, ir.Not(stops)))):
            code.set(going, code.call("eq_i64", key, _key(stored, member, code)))

    look()
    with code.another_row(), code.loop(going):
        read(segment.source, code, member)
        write()
        code.set(member, code.call("add_i64", member, code.integer(1)))
        code.set(going, ir.FALSE)
        look()
    read(segment.source, code, segment.head)


def _key(key: Stored, row: ir.Expression, code: Code) -> ir.Expression:
    data = code.pointer(element_type(key.physical_type), ColumnPart(None, key.column.id, "data"), "c")
    return code.call("i64", ir.Load(data, row))


def _pass_on(step: AggregateSegment, words: list[ir.Name], code: Code, consume: Consumer) -> None:
    """The results, and what follows. All are computed: a sum that does not fit is an error, whoever asks for it."""
    for column, plan in step.aggregates:
        code.provide(column.id, plan.result, partial(_given, _result(plan, words, code)))
    consume()


def _given(value: Value) -> Value:
    return value


def _result(plan: AggregatePlan, words: list[ir.Name], code: Code) -> Value:
    """The result of an aggregate; a zero where it is NULL."""
    value = emit_result(plan, dict(enumerate(words)), code)
    what, var = plan.result, value.var
    if what.register is Register.BOOL:
        var = code.let(code.call("ne_i64", var, code.integer(0)))
    if what.dtype.kind is Kind.REAL:
        var = code.let(code.call("round_f32", var))
    if value.ok is None:
        return Value(var, None, what)
    shown = code.let(code.zero(what.register))
    with code.when(value.ok):
        code.set(shown, var)
    return Value(shown, value.ok, what)
