"""Accumulators of few groups in a GPU's shared memory, and the lines that accumulate into them.

*private*: word ``slot * width + n`` of the thread is accumulator n of a slot. *block*: accumulator n has the words from
``n * size`` on, where ``size`` is that of all groups and copies; flags or keys stand behind the accumulators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from gquery import tuning
from gquery.expression.types import INT64
from gquery.kernels import ir
from gquery.kernels.code import Code
from gquery.operators.accumulate_state import (
    flags_array,
    is_flagged,
    out_slot,
    state_array,
)
from gquery.operators.aggregates import emit_accumulate
from gquery.operators.base import words_part
from gquery.operators.reduce import identity
from gquery.operators.register_aggregation import accumulate_words
from gquery.planner.aggregates import Accumulator

if TYPE_CHECKING:
    from gquery.planner.physical import Group


_GROUP, _SIZE, _COPIES, _SLOT = ir.Name("g"), ir.Name("size"), ir.Name("copies"), ir.Name("slot")
_NUMBER = ir.Name("number")  # of an accumulator, in a run of them


def shared_slots(sink: Group) -> int:
    """Groups that have a slot in shared memory; of a hash table, twice as many as there are expected."""
    if sink.layout == "hash":
        return 1 << max(2 * sink.groups - 1, 1).bit_length()
    assert sink.key_encoding is not None
    return sink.key_encoding.size


def slot_width(sink: Group) -> int:
    """Words of shared state a group: accumulators, and a flag or the key."""
    return len(sink.accumulators) + (is_flagged(sink) or sink.layout == "hash")


def copies_of(sink: Group) -> int:
    """How often a block has the accumulators of a group: a power of two."""
    if sink.layout != "direct-address":
        return 1
    limits, copies = tuning.accumulators, 1
    while copies < limits.most_copies and 2 * copies * shared_slots(sink) * slot_width(sink) <= limits.copied_words:
        copies *= 2
    return copies


def _identity(accumulator: Accumulator, code: Code) -> ir.Expression:
    """The identity's 64 bits."""
    return code.integer(0) if accumulator.word == "f64" else identity(accumulator, code)  # 0.0 has no bit set


def _private_word(sink: Group, slot: ir.Expression, n: int, code: Code) -> ir.Expression:
    index = code.call("mul_i64", code.call("i64", slot), code.integer(slot_width(sink)))
    return code.call("add_i64", index, code.integer(n))


def begin_private(sink: Group, code: Code) -> None:
    """Set the words of every thread to their identities, before the first row."""
    code.uses_private = True
    slots = code.constant(shared_slots(sink))
    calls = []
    for n, accumulator in enumerate(sink.accumulators):
        word = _private_word(sink, _GROUP, n, code)
        calls.append(code.call("private_init", word, _identity(accumulator, code)))
    if is_flagged(sink):
        word = _private_word(sink, _GROUP, len(sink.accumulators), code)
        calls.append(code.call("private_init", word, code.integer(0)))
    code.prologue.append(ir.For(_GROUP, None, slots, tuple(ir.Store(call) for call in calls)))


def accumulate_private(sink: Group, slot: ir.Expression, code: Code) -> None:
    """Accumulate the current row into the thread's own words of a slot."""
    if is_flagged(sink):
        word = _private_word(sink, slot, len(sink.accumulators), code)
        code.do(code.call("private_init", word, code.integer(1)))

    def into(n: int, accumulator: Accumulator, word: ir.Expression) -> None:
        code.do(code.call(f"private_{accumulator.op}_{accumulator.word}", _private_word(sink, slot, n, code), word))

    emit_accumulate(sink.accumulators, code, into)


def end_private(sink: Group, code: Code) -> None:
    """Add the words of every thread to the state, after the last row."""
    group, slots = code.call("i64", _GROUP), code.constant(shared_slots(sink))
    calls = []
    for n, accumulator in enumerate(sink.accumulators):
        word, state = _private_word(sink, _GROUP, n, code), state_array(n, accumulator, code)
        calls.append(code.call(f"private_flush_{accumulator.op}_{accumulator.word}", word, state, group))
    if is_flagged(sink):
        word = _private_word(sink, _GROUP, len(sink.accumulators), code)
        calls.append(code.call("private_flush_touch", word, flags_array(code), group))
    code.epilogue.append(ir.For(_GROUP, None, slots, tuple(ir.Store(call) for call in calls)))


def begin_block(sink: Group, code: Code) -> None:
    """Fill the block's accumulators with their identities, and its table of keys with empty slots, before the first row."""
    code.uses_block = True
    copies = copies_of(sink)
    code.prologue.append(ir.Let(_SIZE, code.call("i64", code.constant(shared_slots(sink) * copies))))
    if sink.layout == "direct-address":
        code.prologue.append(ir.Let(_COPIES, code.call("i64", code.constant(copies))))
    for start, alike in _alike(sink):
        words = code.call("mul_i64", _SIZE, code.integer(len(alike))) if len(alike) > 1 else _SIZE
        fill = code.call("shared_fill", _first(start, code), words, _identity(alike[0], code))
        code.prologue.append(ir.Store(fill))
    if slot_width(sink) > len(sink.accumulators):
        empty = code.constant(INT64.low) if sink.layout == "hash" else code.integer(0)
        fill = code.call("shared_fill", _first(len(sink.accumulators), code), _SIZE, empty)
        code.prologue.append(ir.Store(fill))
    code.prologue.append(ir.Store(code.call("shared_begin")))


def _alike(sink: Group) -> Iterator[tuple[int, list[Accumulator]]]:
    """Accumulators that follow each other and are treated alike, with the number of the first: one loop takes all of them, so
    that a kernel's text does not grow with them. Written out, 160 of them took an assembler most of 20 seconds."""
    start = 0
    for _, run in groupby(sink.accumulators, lambda a: (a.op, a.word, a.identity)):
        alike = list(run)
        yield start, alike
        start += len(alike)


def _first(n: int, code: Code) -> ir.Expression:
    number = code.integer(n)
    return code.call("mul_i64", _SIZE, number) if n else number


def _touch_block(sink: Group, slot: ir.Expression, code: Code) -> ir.Name:
    """The slot of the calling thread's accumulators; notes that the group has a row."""
    if is_flagged(sink):
        code.do(code.call("shared_touch", _first(len(sink.accumulators), code), slot))
    return code.let(code.call("shared_slot", slot, _COPIES))


def _accumulate_shared(
    n: int, accumulator: Accumulator, index: ir.Expression, word: ir.Expression, code: Code
) -> ir.Call:
    return code.call(f"shared_{accumulator.op}_{accumulator.word}", _first(n, code), _SIZE, index, word)


def accumulate_block(sink: Group, slot: ir.Expression, code: Code) -> None:
    """Accumulate the current row into the block's words of a slot, by shared atomics."""
    index = _touch_block(sink, slot, code)
    emit_accumulate(
        sink.accumulators,
        code,
        lambda n, accumulator, word: code.do(_accumulate_shared(n, accumulator, index, word, code)),
    )


def out_block(sink: Group, slot: ir.Expression, words: Sequence[ir.Expression], code: Code) -> None:
    """Accumulate words that are at hand into the block's words of a slot."""
    index = _touch_block(sink, slot, code)
    accumulate_words(
        sink.accumulators, words, code, lambda n, accumulator: _accumulate_shared(n, accumulator, index, words[n], code)
    )


def end_block(sink: Group, code: Code) -> None:
    """Add the block's accumulators, all copies of them, to the state, after the last row. The arrays of a state follow each
    other in one piece of memory."""
    code.epilogue.append(ir.Store(code.call("shared_end")))
    groups = code.call("i64", code.constant(shared_slots(sink)))
    for start, alike in _alike(sink):
        flush = f"shared_flush_{alike[0].op}_{alike[0].word}"
        state = code.pointer(alike[0].word, words_part(alike[0].word), "s")
        number = code.call("add_i64", code.call("i64", _NUMBER), code.integer(start))
        first, base = code.call("mul_i64", _SIZE, number), code.call("mul_i64", groups, number)
        call = code.call(flush, first, _SIZE, _COPIES, base, state)
        code.epilogue.append(ir.For(_NUMBER, None, code.constant(len(alike)), (ir.Store(call),)))
    if is_flagged(sink):
        flags = _first(len(sink.accumulators), code)
        code.epilogue.append(ir.Store(code.call("shared_flush_touch", flags, groups, flags_array(code))))


def out_block_hash(sink: Group, key: ir.Expression, words: Sequence[ir.Expression], code: Code) -> None:
    """Keys that find no slot in the block's table go on to the state's."""
    index = code.let(code.call("shared_find", _first(len(sink.accumulators), code), _SIZE, key))
    with code.when(code.call("ge_i64", index, code.integer(0))):
        accumulate_words(
            sink.accumulators,
            words,
            code,
            lambda n, accumulator: _accumulate_shared(n, accumulator, index, words[n], code),
        )
    with code.otherwise():
        out_slot(sink, key, words, code)


def end_block_hash(sink: Group, code: Code) -> None:
    """Enter each group of the block's table into the state's, after the last row."""

    def flush() -> None:
        code.do(code.call("shared_end"))
        code.set(_SLOT, code.call("block_thread"))
        with code.loop(code.call("lt_i64", _SLOT, _SIZE)):
            at = code.call("add_i64", _first(len(sink.accumulators), code), _SLOT)
            key = code.let(code.call("shared_load_i64", at))
            with code.when(code.call("ne_i64", key, code.constant(INT64.low))):
                words = [
                    code.let(
                        code.call(f"shared_get_{accumulator.op}_{accumulator.word}", _first(n, code), _SIZE, _SLOT)
                    )
                    for n, accumulator in enumerate(sink.accumulators)
                ]
                out_slot(sink, key, words, code)
            code.set(_SLOT, code.call("add_i64", _SLOT, code.call("block_threads")))

    code.after_rows(flush)
