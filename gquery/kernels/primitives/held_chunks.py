"""Chunks of a column in a Parquet file whose bytes all lie in memory: integers as a GPU reads them."""

from __future__ import annotations

from gquery.kernels.primitives.pages import (
    DONE,
    FOUND_DICTIONARY,
    LEFT,
    MADE,
    MORE_ROOM,
    WORDS,
    read_pages,
    take_dictionary,
)
from gquery.kernels.primitives.python.atomics import (
    atomic_add_i64,
    atomic_max_i64,
    atomic_min_i64,
    lane,
    lanes,
    warp_barrier,
)
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    div_i64,
    eq_i64,
    from_bool,
    ge_i64,
    gt_i64,
    i64,
    le_i64,
    lt_i64,
    max_i64,
    min_i64,
    mul_i64,
    ne_i64,
    or_i64,
    shl_i64,
    shr_u64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import (
    load_i64,
    load_u8,
    load_word,
    store_byte,
    store_half,
    store_i64,
    store_quarter,
    store_word,
)
from gquery.kernels.primitives.python.values import Pointer

PLACE, FIRST, WORD_SIZE, BLOCK, LIMIT, CHUNK = range(6)
"""Words about a chunk that `read_held` reads: the address where its values go, which of the column's rows the first one is, how
many bytes a value has, how many rows a block, and beyond how many rows a run's length is not told. The last is the number of
words."""
OUTCOME, ROWS, FALLS, CHANGES, LONGEST, FOUND = range(6)
"""What `read_held` finds of a chunk: what it ended with, as `pages.read_pages` has it; how many values it read; how often a value
is less than the one before it, or another; where none is less, a power of two that no run of equal values exceeds. The last is
the number of words."""
_LEAST, _GREATEST = -(2**63), 2**63 - 1


def read_held(state: Pointer, chunk: Pointer, made: Pointer, low: Pointer, high: Pointer) -> None:
    """Read a chunk, whose bytes are all there, into integers of a column, none NULL. ``chunk`` says where (`PLACE` and the words
    behind it), ``made`` takes what is found (`OUTCOME` and the words behind it), ``low`` and ``high`` the extremes of each block
    of rows, of which other chunks may have rows too. The lanes of a warp read a chunk together."""
    place, row, size, block = load_i64(chunk, PLACE), load_i64(chunk, FIRST), load_i64(chunk, WORD_SIZE), load_i64(chunk, BLOCK)
    outcome, done, before, words = i64(DONE), i64(0), i64(0), load_i64(state, WORDS)
    least, most, mine, falls, changes, longest = i64(_GREATEST), i64(_LEAST), i64(-1), i64(0), i64(0), i64(1)
    while gt_i64(load_i64(state, LEFT), 0) and eq_i64(outcome, DONE):
        store_i64(state, MADE, 0)
        warp_barrier()
        outcome = read_pages(state)
        if eq_i64(outcome, FOUND_DICTIONARY):
            outcome = take_dictionary(state)
        count, k = load_i64(state, MADE), lane()
        if eq_i64(outcome, MORE_ROOM) and gt_i64(count, 0):  # there is, once these are narrowed
            outcome = i64(DONE)
        warp_barrier()
        while lt_i64(k, count):
            v, at = load_word(add_i64(words, shl_i64(k, 3))), add_i64(done, k)
            number = div_i64(add_i64(row, at), block)
            if ne_i64(number, mine):
                if le_i64(least, most):
                    atomic_min_i64(low, mine, least)
                    atomic_max_i64(high, mine, most)
                mine, least, most = i64(number), i64(_GREATEST), i64(_LEAST)
            least, most = min_i64(least, v), max_i64(most, v)
            if gt_i64(k, 0):
                before = load_word(add_i64(words, shl_i64(sub_i64(k, 1), 3)))
            if gt_i64(at, 0):
                falls = add_i64(falls, from_bool(lt_i64(v, before)))
                changes = add_i64(changes, from_bool(ne_i64(v, before)))
                if eq_i64(falls, 0) and eq_i64(v, before):
                    longest = _longer(v, at, k, words, chunk, longest)
            store_integer(add_i64(place, mul_i64(at, size)), v, size)
            k = add_i64(k, lanes())
        if gt_i64(count, 0):
            before = load_word(add_i64(words, shl_i64(sub_i64(count, 1), 3)))
        done = add_i64(done, count)
    if le_i64(least, most):
        atomic_min_i64(low, mine, least)
        atomic_max_i64(high, mine, most)
    atomic_add_i64(made, FALLS, falls)
    atomic_add_i64(made, CHANGES, changes)
    atomic_max_i64(made, LONGEST, longest)
    store_i64(made, OUTCOME, outcome)
    store_i64(made, ROWS, done)


def _longer(v: int, at: int, k: int, words: int, chunk: Pointer, length: int) -> int:
    """A power of two, ``length`` at least, that the run of equal values up to value ``at`` of a chunk does not exceed, or more
    than its `LIMIT`. Value ``k`` of the words is that one; those of pages before lie in their place."""
    place, size, limit = load_i64(chunk, PLACE), load_i64(chunk, WORD_SIZE), load_i64(chunk, LIMIT)
    mask = shr_u64(-1, sub_i64(64, shl_i64(size, 3)))
    going = i64(1)
    while eq_i64(going, 1):
        going = i64(0)
        if le_i64(length, limit) and ge_i64(at, length):
            if ge_i64(k, length):
                going = from_bool(eq_i64(load_word(add_i64(words, shl_i64(sub_i64(k, length), 3))), v))
            else:
                earlier = load_bytes(add_i64(place, mul_i64(sub_i64(at, length), size)), size)
                going = from_bool(eq_i64(earlier, and_i64(v, mask)))
        length = shl_i64(length, going)
    return length


def store_integer(address: int, v: int, size: int) -> None:
    """Store the low ``size`` bytes of an integer, 1, 2, 4 or 8, at an address that is a multiple of that."""
    if eq_i64(size, 8):
        store_word(address, v)
    if eq_i64(size, 4):
        store_half(address, v)
    if eq_i64(size, 2):
        store_quarter(address, v)
    if eq_i64(size, 1):
        store_byte(address, v)


def load_bytes(address: int, size: int) -> int:
    """An integer of up to eight bytes, the lowest first, without its sign."""
    value, k = i64(0), i64(0)
    while lt_i64(k, size):
        value = or_i64(value, shl_i64(load_u8(add_i64(address, k)), shl_i64(k, 3)))
        k = add_i64(k, 1)
    return value
