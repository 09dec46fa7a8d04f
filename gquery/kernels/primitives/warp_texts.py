"""Loops of `primitives.held_texts` as a warp of a GPU runs them; see `primitives.warp_pages`."""

from __future__ import annotations

from gquery.kernels.primitives.held_chunks import store_integer
from gquery.kernels.primitives.held_texts import BASE, BEFORE, COUNT, ENDINGS, LENGTH_BITS, PLACE, WIDTH, WORDS
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    i64,
    lt_i64,
    max_i64,
    min_i64,
    mul_i64,
    shl_i64,
    shr_u64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import load_i64, load_u8, load_word, store_byte
from gquery.kernels.primitives.python.values import Pointer
from gquery.kernels.primitives.simulated import lane, shuffle_from_i64
from gquery.kernels.primitives.warp import last_lane, prefix_sum

_LANES = 32
_LENGTHS = (1 << LENGTH_BITS) - 1


def place_words(page: Pointer) -> int:
    """The texts that words tell of; no byte that the lane copies is higher than that which is returned. Each lane has a text's
    word, and all copy these texts one after another."""
    words, count, base, width = load_i64(page, WORDS), load_i64(page, COUNT), load_i64(page, BASE), load_i64(page, WIDTH)
    place, endings, byte, row = load_i64(page, PLACE), load_i64(page, ENDINGS), load_i64(page, BEFORE), i64(0)
    highest = i64(0)
    while lt_i64(row, count):
        mine, word, each = add_i64(row, lane()), i64(0), i64(0)
        if lt_i64(mine, count):
            word = load_word(add_i64(words, shl_i64(mine, 3)))
        through = prefix_sum(and_i64(word, _LENGTHS))
        if lt_i64(mine, count):
            store_integer(add_i64(endings, mul_i64(mine, width)), add_i64(byte, through), width)
        texts = min_i64(_LANES, sub_i64(count, row))
        while lt_i64(each, texts):
            text, end, k = shuffle_from_i64(word, each), shuffle_from_i64(through, each), lane()
            length, source = and_i64(text, _LENGTHS), add_i64(base, shr_u64(text, LENGTH_BITS))
            target = add_i64(place, sub_i64(end, length))
            while lt_i64(k, length):
                letter = load_u8(add_i64(source, k))
                highest = max_i64(highest, letter)
                store_byte(add_i64(target, k), letter)
                k = add_i64(k, _LANES)
            each = add_i64(each, 1)
        total = last_lane(through)
        byte, place, row = add_i64(byte, total), add_i64(place, total), add_i64(row, _LANES)
    return highest
