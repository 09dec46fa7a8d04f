"""The state of groups: arrays by slot, or slots ``key, word of accumulator 0, word of accumulator 1, ...`` of a hash table; and
the lines that accumulate a row's words there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gquery.errors import OperationalError
from gquery.expression.facts import BYTE_SHIFT, INT64_BYTES
from gquery.kernels import ir
from gquery.kernels.bindings import StatePart
from gquery.kernels.code import Code
from gquery.kernels.stored import SECTOR_BYTES
from gquery.operators.base import words_part
from gquery.operators.register_aggregation import accumulate_words
from gquery.planner.aggregates import Accumulator, has_plain_count

if TYPE_CHECKING:
    from gquery.planner.physical import Group


def is_flagged(sink: Group) -> bool:
    """Whether flags tell which groups of a directly addressed state have rows."""
    return sink.layout == "direct-address" and has_plain_count(sink.accumulators) is None


def slot_words(sink: Group) -> int:
    """Words of a slot of a hash table: the key and the accumulators; up to a sector of memory a power of two, so that
    none lies in two."""
    words = 1 + len(sink.accumulators)
    return 1 << (words - 1).bit_length() if words * INT64_BYTES <= SECTOR_BYTES else words


def state_array(n: int, accumulator: Accumulator, code: Code) -> ir.Name:
    """The pointer to the array of accumulator ``n``, int64 or float64, a word a slot; the sink's state owns it."""
    return code.pointer(accumulator.word, StatePart("accumulators", n), "s")


def flags_array(code: Code) -> ir.Name:
    """The pointer to the flags (uint8, one a slot) that say which groups have rows."""
    return code.pointer("u8", StatePart("touched"), "s")


def accumulate_array(
    sink: Group, n: int, accumulator: Accumulator, slot: ir.Expression, word: ir.Expression, code: Code
) -> ir.Call:
    """The call that accumulates a word into accumulator ``n`` of an array's slot."""
    return code.call(
        f"{_verb(sink)}_{accumulator.op}_{accumulator.word}", state_array(n, accumulator, code), slot, word
    )


def _verb(sink: Group) -> str:
    """How a word gets into the state: ``atomic`` where several threads have one, ``accumulate`` where it is a thread's own."""
    return "atomic" if sink.concurrent else "accumulate"


def slot_of_key(sink: Group, key: ir.Expression, code: Code) -> ir.Name:
    """A variable with the index of the first accumulated word in a key's slot; negative where the table is full."""
    slots, mask = code.pointer("i64", StatePart("words_i64"), "s"), code.scalar(StatePart("mask"))
    stride = code.integer(slot_words(sink))
    site = code.site(OperationalError, "a hash table is full", retry=True)
    return code.let(code.call("slot_insert", slots, mask, stride, key, code.status(), site))


def accumulate_slot(
    sink: Group, n: int, accumulator: Accumulator, slot: ir.Expression, word: ir.Expression, code: Code
) -> ir.Call:
    """The call that accumulates a word into accumulator ``n`` of a hash table's slot."""
    slots = code.pointer(accumulator.word, words_part(accumulator.word), "s")
    index = code.call("add_i64", slot, code.integer(n)) if n else slot
    return code.call(f"{_verb(sink)}_{accumulator.op}_{accumulator.word}", slots, index, word)


def prefetch_state(sink: Group, key: ir.Expression, code: Code) -> None:
    """Have the state of a group come near, for when the cache evicts it."""
    if sink.layout == "hash":
        slots, mask = code.pointer("i64", StatePart("words_i64"), "s"), code.scalar(StatePart("mask"))
        code.do(code.call("slot_prefetch", slots, mask, code.integer(slot_words(sink)), key))
        return
    if is_flagged(sink):  # a store that waits for memory would hold up the atomics behind it
        code.do(code.call("prefetch", flags_array(code), code.call("shr_i64", key, code.integer(BYTE_SHIFT))))
    for n, accumulator in enumerate(sink.accumulators):
        code.do(code.call("prefetch", state_array(n, accumulator, code), key))


def out_slot(sink: Group, key: ir.Expression, words: Sequence[ir.Expression], code: Code) -> None:
    """Accumulate words into the slot of a key in the state's hash table; none where that is full."""
    slot = slot_of_key(sink, key, code)
    with code.when(code.call("ge_i64", slot, code.integer(0))):
        accumulate_words(
            sink.accumulators,
            words,
            code,
            lambda n, accumulator: accumulate_slot(sink, n, accumulator, slot, words[n], code),
        )
