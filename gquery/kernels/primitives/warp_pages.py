"""Loops of `primitives.packed` as a warp of a GPU runs them: its lanes decode one page together.

All lanes of a warp run the same code on the same values, each with a state of its own, and part what is long: copies, codes and
plain values. What other lanes have written is read behind a barrier.
"""

from __future__ import annotations

from gquery.kernels.primitives.packed import swapped
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    ge_i64,
    gt_i64,
    i64,
    lt_i64,
    max_i64,
    min_i64,
    mod_i64,
    mul_i64,
    ne_i64,
    neg_i64,
    shl_i64,
    shr_i64,
    shr_u64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import load_u8, load_word_unaligned, store_byte, store_word
from gquery.kernels.primitives.simulated import lane, shuffle_down_i64, shuffle_from_i64, warp_barrier

_LANES = 32
_LONG = 512  # bytes from which on words are copied


def copy_words(source: int, target: int, length: int) -> None:
    """Copy bytes, for all lanes to read; of what lies before the target some may be those that are written, again and again."""
    distance, k = sub_i64(target, source), lane()
    if gt_i64(distance, 0) and lt_i64(distance, length):
        while lt_i64(k, length):
            store_byte(add_i64(target, k), load_u8(add_i64(source, mod_i64(k, distance))))
            k = add_i64(k, _LANES)
    if ge_i64(length, _LONG) and lt_i64(k, length):
        head = and_i64(neg_i64(target), 7)
        words = shr_i64(sub_i64(length, head), 3)
        while lt_i64(k, head):
            store_byte(add_i64(target, k), load_u8(add_i64(source, k)))
            k = add_i64(k, _LANES)
        k = lane()
        while lt_i64(k, words):
            at = add_i64(head, shl_i64(k, 3))
            store_word(add_i64(target, at), load_word_unaligned(add_i64(source, at)))
            k = add_i64(k, _LANES)
        k = add_i64(add_i64(head, shl_i64(words, 3)), lane())
    while lt_i64(k, length):
        store_byte(add_i64(target, k), load_u8(add_i64(source, k)))
        k = add_i64(k, _LANES)
    warp_barrier()


def repeat_bytes(source: int, target: int, length: int) -> None:
    """The same."""
    copy_words(source, target, length)


def copy_text(source: int, target: int, length: int) -> None:
    """The same."""
    copy_words(source, target, length)


def fill_bytes(target: int, count: int, bit: int) -> None:
    """Write so many bytes of 0 or 1."""
    k = lane()
    while lt_i64(k, count):
        store_byte(add_i64(target, k), bit)
        k = add_i64(k, _LANES)


def repeat_word(target: int, word: int, count: int) -> None:
    """Write a word so many times to an address."""
    k = lane()
    while lt_i64(k, count):
        store_word(add_i64(target, shl_i64(k, 3)), word)
        k = add_i64(k, _LANES)


def packed_words(at: int, width: int, count: int, dictionary: int, entries: int, target: int) -> int:
    """Write the words of a dictionary that so many codes, packed in ``width`` bits, stand for to an address; the greatest code:
    beyond the last one they stand for that."""
    mask, most, k = sub_i64(shl_i64(1, width), 1), i64(0), lane()
    while lt_i64(k, count):
        bit = mul_i64(k, width)
        packed = shr_u64(load_word_unaligned(add_i64(at, shr_i64(bit, 3))), and_i64(bit, 7))
        code = and_i64(packed, mask)
        most = max_i64(most, code)
        word = load_word_unaligned(add_i64(dictionary, shl_i64(min_i64(code, sub_i64(entries, 1)), 3)))
        store_word(add_i64(target, shl_i64(k, 3)), word)
        k = add_i64(k, _LANES)
    offset = i64(16)
    while ne_i64(offset, 0):
        most = max_i64(most, shuffle_down_i64(most, offset))
        offset = shr_i64(offset, 1)
    return shuffle_from_i64(most, 0)


def plain_words(at: int, end: int, width: int, count: int, words: int) -> bool:
    """Write so many integers of ``width`` bytes, 4 or 8, to an address, or of 1 to 8 with the highest first where it is below 0;
    whether all are there."""
    size, k = max_i64(width, neg_i64(width)), lane()
    if eq_i64(width, 0) or gt_i64(mul_i64(count, size), sub_i64(end, at)):
        return False
    surplus = sub_i64(64, shl_i64(size, 3))
    while lt_i64(k, count):
        word = load_word_unaligned(add_i64(at, mul_i64(k, size)))
        if lt_i64(width, 0):
            word = swapped(word)
        else:
            word = shl_i64(word, surplus)
        store_word(add_i64(words, shl_i64(k, 3)), shr_i64(word, surplus))
        k = add_i64(k, _LANES)
    return True
