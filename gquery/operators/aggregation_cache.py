"""A thread-local aggregation cache: groups on many threads of a CPU.

Where each thread has a state of its own, `operators.combine` makes one of them. Where that would cost more time and memory than
it saves (`operators.thread_states`), all threads share one state, which they change by atomics, and
each has a cache of a few slots before it, found by the key's hash, which lies in its core's first cache. A row is accumulated
there; a group of another key that was there is evicted to the state. So the rows of a frequent key are accumulated where nobody
waits. For others the state's memory is prefetched when a group enters the cache, and is there when it leaves.

Where a key is clustered in the source, a group's rows lie together: of those that a morsel accumulates only the first group and
the last may have rows in others. Rows of these are accumulated by atomics, and all others as if there were one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery import tuning
from gquery.kernels import ir
from gquery.kernels.bindings import ColumnPart, StatePart
from gquery.kernels.code import Code
from gquery.kernels.stored import element_type
from gquery.operators.aggregates import emit_accumulate
from gquery.operators.reduce import identity
from gquery.planner.aggregates import Accumulator
from gquery.planner.physical import Group

_SLOT, _FIRST, _LAST = ir.Name("slot"), ir.Name("first"), ir.Name("last")

Out = Callable[[ir.Expression, Sequence[ir.Expression]], None]
"""``out(key, words)`` writes the lines that accumulate words into the group of a key, in the state."""


def width(sink: Group) -> int:
    """Words of a slot: the key, whether it is there, the accumulators."""
    return 2 + len(sink.accumulators)


def words(sink: Group) -> int:
    """Words of a cache; all are 0 before the first row."""
    return tuning.accumulators.cache_slots * width(sink)


def emit(sink: Group, key: ir.Expression, code: Code, out: Out, prefetch: Callable[[], None]) -> None:
    """The lines that accumulate the current row into the group of ``key``."""
    stride, last = code.integer(width(sink)), code.integer(tuning.accumulators.cache_slots - 1)
    slots = _slots("i64", code)
    slot = code.let(code.call("cache_slot", key, last, stride))
    with code.when(ir.Not(code.call("cache_holds", slots, slot, key))):
        with code.when(_is_there(slot, code)):
            _evict(sink, slot, code, out)
        code.do(code.call("store_i64", slots, slot, key))
        code.do(code.call("store_i64", slots, _word(slot, 1, code), code.integer(1)))
        for n, one in enumerate(sink.accumulators):
            at = _word(slot, 2 + n, code)
            code.do(code.call(f"store_{one.word}", _slots(one.word, code), at, identity(one, code)))
        prefetch()

    def into(n: int, one: Accumulator, word: ir.Expression) -> None:
        at = _word(slot, 2 + n, code)
        code.do(code.call(f"accumulate_{one.op}_{one.word}", _slots(one.word, code), at, word))

    emit_accumulate(sink.accumulators, code, into)


def end(sink: Group, code: Code, out: Out) -> None:
    """What is in the cache goes on to the state, after the last row of a morsel."""

    def flush() -> None:
        code.set(_SLOT, code.integer(0))
        with code.loop(code.call("lt_i64", _SLOT, code.integer(words(sink)))):
            with code.when(_is_there(_SLOT, code)):
                _evict(sink, _SLOT, code, out)
                there = _word(_SLOT, 1, code)
                code.do(code.call("store_i64", _slots("i64", code), there, code.integer(0)))
            code.set(_SLOT, _word(_SLOT, width(sink), code))

    code.after_rows(flush)


def is_at_an_edge(sink: Group, code: Code) -> ir.Expression:
    """A test that the row's group may have rows in another morsel."""
    assert sink.clustered_key is not None
    key = code.column(sink.clustered_key.column).var
    column = ColumnPart(None, sink.clustered_key.column.id, "data")
    data = code.pointer(element_type(sink.clustered_key.physical_type), column, "c")
    first = ir.Let(_FIRST, code.call("i64", ir.Load(data, ir.LOW)))
    if first not in code.prologue:  # a probe may write what follows it more than once
        before = ir.Operation(ir.HIGH, "-", ir.Call("uint64", (ir.Constant(1),)))
        code.prologue += [first, ir.Let(_LAST, code.call("i64", ir.Load(data, before)))]
    return ir.Or((code.call("eq_i64", key, _FIRST), code.call("eq_i64", key, _LAST)))


def _slots(word: str, code: Code) -> ir.Name:
    return code.pointer(
        "f64" if word == "f64" else "i64", StatePart("cache_f64" if word == "f64" else "cache_i64"), "s"
    )


def _word(slot: ir.Expression, n: int, code: Code) -> ir.Expression:
    return code.call("add_i64", slot, code.integer(n))


def _is_there(slot: ir.Expression, code: Code) -> ir.Expression:
    there = code.call("load_i64", _slots("i64", code), _word(slot, 1, code))
    return code.call("ne_i64", there, code.integer(0))


def _evict(sink: Group, slot: ir.Expression, code: Code, out: Out) -> None:
    """Accumulate the slot's words into the state."""
    key = code.let(code.call("load_i64", _slots("i64", code), slot))
    held = [
        code.let(code.call(one.word, ir.Load(_slots(one.word, code), _word(slot, 2 + n, code))))
        for n, one in enumerate(sink.accumulators)
    ]
    out(key, held)
