"""Where a group's accumulators are while a kernel runs, and the lines that accumulate into them.

Group finds a row's key: a number that addresses arrays (*direct-address*, and the slot of a *row-id hash* table), or
the key of a *hash* table. This module accumulates the row's words there. On a GPU the rows of few groups would wait
for each other at the same addresses of global memory, so few groups are accumulated in shared memory and flushed once:
*private* columns of accumulators, one a thread, need no atomics; *block* accumulators, one or several copies a block,
are accumulated by shared atomics, which are many times as fast as global ones. Everything else is *global*, behind a
group that each thread holds (`operators.register_aggregation`). On a CPU each thread accumulates into a state of its own, or,
where that would be large, all into one behind a thread-local cache (`operators.aggregation_cache`).

Which groups of arrays have rows is told by an accumulator that counts all rows. Where no aggregate has one, a flag a
group stands beside the accumulators: it costs a store, a count would cost an atomic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from gquery import tuning
from gquery.errors import OperationalError
from gquery.expression.facts import BYTE_SHIFT, INT64_BYTES
from gquery.expression.types import INT64
from gquery.kernels import ir
from gquery.kernels.bindings import StatePart
from gquery.kernels.code import Code
from gquery.kernels.stored import SECTOR_BYTES
from gquery.kernels.targets.capabilities import capabilities
from gquery.operators import aggregation_cache
from gquery.operators.aggregates import emit_accumulate
from gquery.operators.reduce import identity
from gquery.operators.register_aggregation import accumulate_words, preaggregate, row_contributions
from gquery.planner.aggregates import Accumulator, has_plain_count

if TYPE_CHECKING:
    from gquery.planner.physical import Group

StateLocation = Literal["private", "block", "clustered", "cached", "global"]

_GROUP, _SIZE, _COPIES, _SLOT = ir.Name("g"), ir.Name("size"), ir.Name("copies"), ir.Name("slot")


def is_flagged(sink: Group) -> bool:
    """Whether flags tell which groups of a directly addressed state have rows."""
    return sink.layout == "direct-address" and has_plain_count(sink.accumulators) is None


def has_bits(sink: Group, target: str) -> bool:
    """Whether flags are bits while a kernel runs: where they are all the state there is, an eighth of it more often lies in
    a GPU's cache."""
    return (
        capabilities(target).has_atomic_bits
        and is_flagged(sink)
        and not sink.accumulators
        and state_location(sink, target) == "global"
    )


def slot_words(sink: Group) -> int:
    """Words of a slot of a hash table: the key and the accumulators; up to a sector of memory a power of two, so that
    none lies in two."""
    words = 1 + len(sink.accumulators)
    return 1 << (words - 1).bit_length() if words * INT64_BYTES <= SECTOR_BYTES else words


def state_location(sink: Group, target: str) -> StateLocation:
    """Where the accumulators are while a kernel runs."""
    if not capabilities(target).has_shared_memory:
        return "global" if not sink.concurrent else "cached" if sink.clustered_key is None else "clustered"
    if sink.layout == "row-id hash":
        return "global"
    words = _slots(sink) * _width(sink)
    if sink.layout == "direct-address" and words <= tuning.accumulators.private_words:
        return "private"
    return "block" if words <= tuning.accumulators.block_words else "global"


def shared_words(sink: Group, target: str) -> int:
    """64-bit words of shared memory, of a thread (private) or of a block, for the launch."""
    match state_location(sink, target):
        case "private":
            return _slots(sink) * _width(sink)
        case "block":
            return _slots(sink) * _width(sink) * _copies(sink)
        case "clustered" | "cached" | "global":
            return 0


def _slots(sink: Group) -> int:
    """Groups that have a slot in shared memory; of a hash table, twice as many as there are expected."""
    if sink.layout == "hash":
        return 1 << max(2 * sink.groups - 1, 1).bit_length()
    assert sink.key_encoding is not None
    return sink.key_encoding.size


def _width(sink: Group) -> int:
    """Words of shared state a group: accumulators, and a flag or the key."""
    return len(sink.accumulators) + (is_flagged(sink) or sink.layout == "hash")


def _copies(sink: Group) -> int:
    """How often a block has the accumulators of a group: a power of two."""
    if sink.layout != "direct-address":
        return 1
    limits, copies = tuning.accumulators, 1
    while copies < limits.most_copies and 2 * copies * _slots(sink) * _width(sink) <= limits.copied_words:
        copies *= 2
    return copies


# ---- text -----------------------------------------------------------------------------------------------------------


def begin(sink: Group, code: Code) -> None:
    """Identities in shared memory, before the first row."""
    match state_location(sink, code.target):
        case "private":
            _begin_private(sink, code)
        case "block":
            _begin_block(sink, code)
        case "clustered" | "cached" | "global":
            pass


def emit(sink: Group, key: ir.Expression, code: Code) -> None:
    """The lines that accumulate the current row into the group of ``key``: a slot of arrays, or the key in a hash
    table."""
    location = state_location(sink, code.target)
    if location == "private":
        _accumulate_private(sink, key, code)
    elif location == "block" and sink.layout == "direct-address" and not _adds_doubles(sink.accumulators):
        _accumulate_block(sink, key, code)
    elif capabilities(code.target).has_shared_memory:
        words = row_contributions(sink.accumulators, code)
        is_held = location == "global" or _adds_doubles(sink.accumulators)
        if is_held and len(words) <= tuning.accumulators.register_words:
            preaggregate(sink.accumulators, key, words, code, lambda key, words: _out(sink, key, words, code))
        else:
            _out(sink, key, words, code)
    elif location == "clustered":
        words = row_contributions(sink.accumulators, code)
        with code.when(aggregation_cache.is_at_an_edge(sink, code)):
            _out(sink, key, words, code)
        with code.otherwise():
            _out(replace(sink, concurrent=False), key, words, code)
    elif location == "cached":
        aggregation_cache.emit(
            sink, key, code, lambda key, words: _out(sink, key, words, code), lambda: _prefetch(sink, key, code)
        )
    elif sink.layout == "hash":
        slot = _slot(sink, key, code)
        with code.when(code.call("ge_i64", slot, code.integer(0))):
            emit_accumulate(
                sink.accumulators,
                code,
                lambda n, accumulator, word: code.do(_accumulate_slot(sink, n, accumulator, slot, word, code)),
            )
    else:
        if is_flagged(sink):
            code.do(code.call("store_u8", _touched(code), key, code.integer(1)))
        emit_accumulate(
            sink.accumulators,
            code,
            lambda n, accumulator, word: code.do(_accumulate_array(sink, n, accumulator, key, word, code)),
        )


def end(sink: Group, code: Code) -> None:
    """What is in shared memory goes into the state, after the last row."""
    match state_location(sink, code.target):
        case "private":
            _end_private(sink, code)
        case "block" if sink.layout == "hash":
            _end_block_hash(sink, code)
        case "block":
            _end_block(sink, code)
        case "cached":
            aggregation_cache.end(sink, code, lambda key, words: _out(sink, key, words, code))
        case "clustered" | "global":
            pass


def _adds_doubles(accumulators: Sequence[Accumulator]) -> bool:
    """Whether shared atomics are loops that many rows of one group would hold up: doubles are added so."""
    return any(f.op == "add" and f.word == "f64" for f in accumulators)


def _out(sink: Group, key: ir.Expression, words: Sequence[ir.Expression], code: Code) -> None:
    """Accumulate words into the group of a key, in the shared memory of the block or in the state."""
    if state_location(sink, code.target) == "block":
        if sink.layout == "hash":
            _out_block_hash(sink, key, words, code)
        else:
            _out_block(sink, key, words, code)
    elif sink.layout == "hash":
        _out_slot(sink, key, words, code)
    else:
        if has_bits(sink, code.target):
            code.do(code.call("bit_set", code.pointer("u32", StatePart("bits"), "s"), key))
        elif is_flagged(sink):
            code.do(code.call("store_u8", _touched(code), key, code.integer(1)))
        accumulate_words(
            sink.accumulators,
            words,
            code,
            lambda n, accumulator: _accumulate_array(sink, n, accumulator, key, words[n], code),
        )


# ---- the state: arrays by slot, or slots ``key, word of accumulator 0, word of accumulator 1, ...`` ----


def _state(n: int, accumulator: Accumulator, code: Code) -> ir.Name:
    return code.pointer(accumulator.word, StatePart(f"accumulator{n}"), "s")


def _touched(code: Code) -> ir.Name:
    return code.pointer("u8", StatePart("touched"), "s")


def _accumulate_array(
    sink: Group, n: int, accumulator: Accumulator, slot: ir.Expression, word: ir.Expression, code: Code
) -> ir.Call:
    return code.call(f"{_verb(sink)}_{accumulator.op}_{accumulator.word}", _state(n, accumulator, code), slot, word)


def _verb(sink: Group) -> str:
    """What accumulates into the state: on a CPU ``accumulator`` is for one thread, on a GPU for all."""
    return "atomic" if sink.concurrent else "accumulate"


def _slot(sink: Group, key: ir.Expression, code: Code) -> ir.Name:
    """A variable with the index of the first accumulated word in a key's slot; negative where the table is full."""
    slots, mask = code.pointer("i64", StatePart("slots_i64"), "s"), code.scalar(StatePart("mask"))
    stride = code.integer(slot_words(sink))
    site = code.site(OperationalError, "a hash table is full", retry=True)
    return code.let(code.call("slot_insert", slots, mask, stride, key, code.status(), site))


def _accumulate_slot(
    sink: Group, n: int, accumulator: Accumulator, slot: ir.Expression, word: ir.Expression, code: Code
) -> ir.Call:
    slots = code.pointer(accumulator.word, StatePart(f"slots_{accumulator.word}"), "s")
    index = code.call("add_i64", slot, code.integer(n)) if n else slot
    return code.call(f"{_verb(sink)}_{accumulator.op}_{accumulator.word}", slots, index, word)


def _prefetch(sink: Group, key: ir.Expression, code: Code) -> None:
    """Have the state of a group come near, for when the cache evicts it."""
    if sink.layout == "hash":
        slots, mask = code.pointer("i64", StatePart("slots_i64"), "s"), code.scalar(StatePart("mask"))
        code.do(code.call("slot_prefetch", slots, mask, code.integer(slot_words(sink)), key))
        return
    if is_flagged(sink):  # a store that waits for memory would hold up the atomics behind it
        code.do(code.call("prefetch", _touched(code), code.call("shr_i64", key, code.integer(BYTE_SHIFT))))
    for n, accumulator in enumerate(sink.accumulators):
        code.do(code.call("prefetch", _state(n, accumulator, code), key))


def _out_slot(sink: Group, key: ir.Expression, words: Sequence[ir.Expression], code: Code) -> None:
    slot = _slot(sink, key, code)
    with code.when(code.call("ge_i64", slot, code.integer(0))):
        accumulate_words(
            sink.accumulators,
            words,
            code,
            lambda n, accumulator: _accumulate_slot(sink, n, accumulator, slot, words[n], code),
        )


# ---- private: word ``slot * width + n`` of the thread ----


def _identity(accumulator: Accumulator, code: Code) -> ir.Expression:
    """The identity's 64 bits."""
    return code.integer(0) if accumulator.word == "f64" else identity(accumulator, code)  # 0.0 has no bit set


def _private_word(sink: Group, slot: ir.Expression, n: int, code: Code) -> ir.Expression:
    index = code.call("mul_i64", code.call("i64", slot), code.integer(_width(sink)))
    return code.call("add_i64", index, code.integer(n))


def _begin_private(sink: Group, code: Code) -> None:
    code.uses_private = True
    slots = code.constant(_slots(sink))
    calls = []
    for n, accumulator in enumerate(sink.accumulators):
        word = _private_word(sink, _GROUP, n, code)
        calls.append(code.call("private_init", word, _identity(accumulator, code)))
    if is_flagged(sink):
        word = _private_word(sink, _GROUP, len(sink.accumulators), code)
        calls.append(code.call("private_init", word, code.integer(0)))
    code.prologue.append(ir.For(_GROUP, None, slots, tuple(ir.Store(call) for call in calls)))


def _accumulate_private(sink: Group, slot: ir.Expression, code: Code) -> None:
    if is_flagged(sink):
        word = _private_word(sink, slot, len(sink.accumulators), code)
        code.do(code.call("private_init", word, code.integer(1)))

    def into(n: int, accumulator: Accumulator, word: ir.Expression) -> None:
        code.do(code.call(f"private_{accumulator.op}_{accumulator.word}", _private_word(sink, slot, n, code), word))

    emit_accumulate(sink.accumulators, code, into)


def _end_private(sink: Group, code: Code) -> None:
    group, slots = code.call("i64", _GROUP), code.constant(_slots(sink))
    calls = []
    for n, accumulator in enumerate(sink.accumulators):
        word, state = _private_word(sink, _GROUP, n, code), _state(n, accumulator, code)
        calls.append(code.call(f"private_flush_{accumulator.op}_{accumulator.word}", word, state, group))
    if is_flagged(sink):
        word = _private_word(sink, _GROUP, len(sink.accumulators), code)
        calls.append(code.call("private_flush_touch", word, _touched(code), group))
    code.epilogue.append(ir.For(_GROUP, None, slots, tuple(ir.Store(call) for call in calls)))


# ---- block: accumulator n has the words from ``n * size`` on, ``size = groups * copies``; flags or keys behind them ----


def _begin_block(sink: Group, code: Code) -> None:
    code.uses_block = True
    copies = _copies(sink)
    code.prologue.append(ir.Let(_SIZE, code.call("i64", code.constant(_slots(sink) * copies))))
    if sink.layout == "direct-address":
        code.prologue.append(ir.Let(_COPIES, code.call("i64", code.constant(copies))))
    for n, accumulator in enumerate(sink.accumulators):
        fill = code.call("shared_fill", _first(n, code), _SIZE, _identity(accumulator, code))
        code.prologue.append(ir.Store(fill))
    if _width(sink) > len(sink.accumulators):
        empty = code.constant(INT64.low) if sink.layout == "hash" else code.integer(0)
        fill = code.call("shared_fill", _first(len(sink.accumulators), code), _SIZE, empty)
        code.prologue.append(ir.Store(fill))
    code.prologue.append(ir.Store(code.call("shared_begin")))


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


def _accumulate_block(sink: Group, slot: ir.Expression, code: Code) -> None:
    index = _touch_block(sink, slot, code)
    emit_accumulate(
        sink.accumulators,
        code,
        lambda n, accumulator, word: code.do(_accumulate_shared(n, accumulator, index, word, code)),
    )


def _out_block(sink: Group, slot: ir.Expression, words: Sequence[ir.Expression], code: Code) -> None:
    index = _touch_block(sink, slot, code)
    accumulate_words(
        sink.accumulators, words, code, lambda n, accumulator: _accumulate_shared(n, accumulator, index, words[n], code)
    )


def _end_block(sink: Group, code: Code) -> None:
    code.epilogue.append(ir.Store(code.call("shared_end")))
    for n, accumulator in enumerate(sink.accumulators):
        flush = f"shared_flush_{accumulator.op}_{accumulator.word}"
        call = code.call(flush, _first(n, code), _SIZE, _COPIES, _state(n, accumulator, code))
        code.epilogue.append(ir.Store(call))
    if is_flagged(sink):
        groups = code.call("i64", code.constant(_slots(sink)))
        first = _first(len(sink.accumulators), code)
        code.epilogue.append(ir.Store(code.call("shared_flush_touch", first, groups, _touched(code))))


def _out_block_hash(sink: Group, key: ir.Expression, words: Sequence[ir.Expression], code: Code) -> None:
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
        _out_slot(sink, key, words, code)


def _end_block_hash(sink: Group, code: Code) -> None:
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
                _out_slot(sink, key, words, code)
            code.set(_SLOT, code.call("add_i64", _SLOT, code.call("block_threads")))

    code.after_rows(flush)
