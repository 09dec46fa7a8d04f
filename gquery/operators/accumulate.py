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
from typing import TYPE_CHECKING, Literal

from gquery import tuning
from gquery.kernels import ir
from gquery.kernels.bindings import StatePart
from gquery.kernels.code import Code
from gquery.kernels.targets.capabilities import capabilities
from gquery.operators import aggregation_cache, partitioned_groups
from gquery.operators.accumulate_shared import (
    accumulate_block,
    accumulate_private,
    begin_block,
    begin_private,
    copies_of,
    end_block,
    end_block_hash,
    end_private,
    out_block,
    out_block_hash,
    shared_slots,
    slot_width,
)
from gquery.operators.accumulate_state import (
    accumulate_array,
    accumulate_slot,
    flags_array,
    is_flagged,
    out_slot,
    prefetch_state,
    slot_of_key,
)
from gquery.operators.aggregates import emit_accumulate
from gquery.operators.register_aggregation import accumulate_words, preaggregate, row_contributions
from gquery.planner.aggregates import Accumulator
from gquery.runtime.records import replace

if TYPE_CHECKING:
    from gquery.planner.physical import Group

StateLocation = Literal["private", "block", "clustered", "cached", "partitioned", "global"]


def has_bits(sink: Group, target: str) -> bool:
    """Whether flags are bits while a kernel runs: where they are all the state there is, an eighth of it more often lies in
    a GPU's cache."""
    return (
        capabilities(target).has_atomic_bits
        and is_flagged(sink)
        and not sink.accumulators
        and state_location(sink, target) == "global"
    )


def state_location(sink: Group, target: str) -> StateLocation:
    """Where the accumulators are while a kernel runs."""
    if sink.partitioned:
        return "partitioned"
    if not capabilities(target).has_shared_memory:
        return "global" if not sink.concurrent else "cached" if sink.clustered_key is None else "clustered"
    if sink.layout == "row-id hash":
        return "global"
    words = shared_slots(sink) * slot_width(sink)
    if sink.layout == "direct-address" and words <= tuning.accumulators.private_words:
        return "private"
    return "block" if words <= tuning.accumulators.block_words else "global"


def shared_words(sink: Group, target: str) -> int:
    """64-bit words of shared memory, of a thread (private) or of a block, for the launch."""
    match state_location(sink, target):
        case "private":
            return shared_slots(sink) * slot_width(sink)
        case "block":
            return shared_slots(sink) * slot_width(sink) * copies_of(sink)
        case "clustered" | "cached" | "partitioned" | "global":
            return 0


# ---- text -----------------------------------------------------------------------------------------------------------


def begin(sink: Group, code: Code) -> None:
    """Identities in shared memory, before the first row."""
    match state_location(sink, code.target):
        case "private":
            begin_private(sink, code)
        case "block":
            begin_block(sink, code)
        case "clustered" | "cached" | "partitioned" | "global":
            pass


def emit(sink: Group, key: ir.Expression, code: Code) -> None:
    """The lines that accumulate the current row into the group of ``key``: a slot of arrays, or the key in a hash
    table."""
    location, has_shared = state_location(sink, code.target), capabilities(code.target).has_shared_memory
    if location == "private":
        accumulate_private(sink, key, code)
    elif location == "block" and sink.layout == "direct-address" and not _adds_doubles(sink.accumulators):
        accumulate_block(sink, key, code)
    elif location == "block" or (has_shared and len(sink.accumulators) <= tuning.accumulators.loaded_words):
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
            sink, key, code, lambda key, words: _out(sink, key, words, code), lambda: prefetch_state(sink, key, code)
        )
    elif location == "partitioned":
        partitioned_groups.emit(sink, key, code)
    elif sink.layout == "hash":
        slot = slot_of_key(sink, key, code)
        with code.when(code.call("ge_i64", slot, code.integer(0))):
            emit_accumulate(
                sink.accumulators,
                code,
                lambda n, accumulator, word: code.do(accumulate_slot(sink, n, accumulator, slot, word, code)),
            )
    else:
        if is_flagged(sink):
            code.do(code.call("store_u8", flags_array(code), key, code.integer(1)))
        emit_accumulate(
            sink.accumulators,
            code,
            lambda n, accumulator, word: code.do(accumulate_array(sink, n, accumulator, key, word, code)),
        )


def end(sink: Group, code: Code) -> None:
    """What is in shared memory goes into the state, after the last row."""
    match state_location(sink, code.target):
        case "private":
            end_private(sink, code)
        case "block" if sink.layout == "hash":
            end_block_hash(sink, code)
        case "block":
            end_block(sink, code)
        case "cached":
            aggregation_cache.end(sink, code, lambda key, words: _out(sink, key, words, code))
        case "clustered" | "partitioned" | "global":
            pass


def _adds_doubles(accumulators: Sequence[Accumulator]) -> bool:
    """Whether shared atomics are loops that many rows of one group would hold up: doubles are added so."""
    return any(f.op == "add" and f.word == "f64" for f in accumulators)


def _out(sink: Group, key: ir.Expression, words: Sequence[ir.Expression], code: Code) -> None:
    """Accumulate words into the group of a key, in the shared memory of the block or in the state."""
    if state_location(sink, code.target) == "block":
        if sink.layout == "hash":
            out_block_hash(sink, key, words, code)
        else:
            out_block(sink, key, words, code)
    elif sink.layout == "hash":
        out_slot(sink, key, words, code)
    else:
        if has_bits(sink, code.target):
            code.do(code.call("bit_set", code.pointer("u32", StatePart("bits"), "s"), key))
        elif is_flagged(sink):
            code.do(code.call("store_u8", flags_array(code), key, code.integer(1)))
        accumulate_words(
            sink.accumulators,
            words,
            code,
            lambda n, accumulator: accumulate_array(sink, n, accumulator, key, words[n], code),
        )
