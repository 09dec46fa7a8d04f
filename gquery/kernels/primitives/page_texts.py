"""Texts of Parquet's pages, one behind the other as they are wanted, and the bytes of each as a word.

What a file holds is not ours; see `primitives.packed`.
"""

from __future__ import annotations

from gquery.kernels.primitives.packed import copy_text, repeat_bytes
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    gt_i64,
    i64,
    lt_i64,
    shl_i64,
    shr_i64,
    shr_u64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import (
    load_i64,
    load_word_unaligned,
    store_byte,
    store_i64,
    store_word_unaligned,
)
from gquery.kernels.primitives.python.values import Pointer

DONE, FAILED, MORE_TEXT = 0, 5, 6
NEED, OFFSETS, CHARACTERS = 62, 73, 74
"""As in `primitives.pages`: outcomes; words of the state. A dictionary's texts have offsets and characters."""
TEXT, TEXT_ROOM, TEXT_USED, TEXT_END = 82, 83, 84, 86
"""Where texts go, up to which of its bytes there is room, and how many are used; up to which bytes may be written at all."""


def _place_text(source: int, target: int, length: int, last: int) -> None:
    """Copy a text, and what lies behind it where that is nobody's: up to ``last`` bytes may be written."""
    if lt_i64(sub_i64(last, target), add_i64(length, 15)):
        repeat_bytes(source, target, length)
    else:
        copy_text(source, target, length)


def plain_texts(at: int, end: int, count: int, words: int, state: Pointer) -> int:
    """Copy so many texts that have their lengths in front, and write the lengths to an address: `MORE_TEXT` where there is no
    room, `FAILED` where they are not there."""
    text, need, k = load_i64(state, TEXT), sub_i64(sub_i64(end, at), shl_i64(count, 2)), i64(0)
    used, last = load_i64(state, TEXT_USED), add_i64(text, load_i64(state, TEXT_END))
    if lt_i64(need, 0):
        return i64(FAILED)
    if gt_i64(need, sub_i64(load_i64(state, TEXT_ROOM), used)):
        store_i64(state, NEED, need)
        return i64(MORE_TEXT)
    while lt_i64(k, count):
        length = and_i64(load_word_unaligned(at), 0xFFFFFFFF)
        at = add_i64(at, 4)
        if gt_i64(length, sub_i64(end, at)):
            return i64(FAILED)
        if gt_i64(length, 0):
            _place_text(at, add_i64(text, used), length, last)
        store_word_unaligned(add_i64(words, shl_i64(k, 3)), length)
        at, used, k = add_i64(at, length), add_i64(used, length), add_i64(k, 1)
    store_i64(state, TEXT_USED, used)
    return i64(DONE)


def coded_texts(count: int, words: int, state: Pointer) -> int:
    """Copy the texts of the dictionary that so many words at an address are codes of, and make the words their lengths:
    `MORE_TEXT` where there is no room."""
    offsets, characters = load_i64(state, OFFSETS), load_i64(state, CHARACTERS)
    text, used, need, k = load_i64(state, TEXT), load_i64(state, TEXT_USED), i64(0), i64(0)
    while lt_i64(k, count):
        ends = load_word_unaligned(add_i64(offsets, shl_i64(load_word_unaligned(add_i64(words, shl_i64(k, 3))), 2)))
        need = add_i64(need, sub_i64(shr_u64(ends, 32), and_i64(ends, 0xFFFFFFFF)))
        k = add_i64(k, 1)
    if gt_i64(need, sub_i64(load_i64(state, TEXT_ROOM), used)):
        store_i64(state, NEED, need)
        return i64(MORE_TEXT)
    k, last = i64(0), add_i64(text, load_i64(state, TEXT_END))
    while lt_i64(k, count):
        word = add_i64(words, shl_i64(k, 3))
        ends = load_word_unaligned(add_i64(offsets, shl_i64(load_word_unaligned(word), 2)))
        start = and_i64(ends, 0xFFFFFFFF)
        length = sub_i64(shr_u64(ends, 32), start)
        if gt_i64(length, 0):
            _place_text(add_i64(characters, start), add_i64(text, used), length, last)
        store_word_unaligned(word, length)
        used, k = add_i64(used, length), add_i64(k, 1)
    store_i64(state, TEXT_USED, used)
    return i64(DONE)


def text_entries(source: int, size: int, count: int, offsets: int, characters: int, used: int) -> bool:
    """Take apart texts that have their lengths in front, as a dictionary has them: their offsets (32 bits each, the first of
    which is there) and their bytes without a gap, behind those of ``characters`` that are used; whether so many are there and no
    more."""
    at, end, k, byte = i64(source), add_i64(source, size), i64(0), i64(used)
    while lt_i64(k, count):
        length = and_i64(load_word_unaligned(at), 0xFFFFFFFF)
        at = add_i64(at, 4)
        if gt_i64(length, sub_i64(end, at)):
            return False
        if gt_i64(length, 0):
            copy_text(at, add_i64(characters, byte), length)
        at, byte, k = add_i64(at, length), add_i64(byte, length), add_i64(k, 1)
        ending = add_i64(offsets, shl_i64(k, 2))
        store_byte(ending, byte)
        store_byte(add_i64(ending, 1), shr_i64(byte, 8))
        store_byte(add_i64(ending, 2), shr_i64(byte, 16))
        store_byte(add_i64(ending, 3), shr_i64(byte, 24))
    return eq_i64(at, end)
