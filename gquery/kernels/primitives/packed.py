"""What pages of Parquet files are packed in: Snappy, levels of one bit, codes of few bits, integers of 4 and 8 bytes.

What a file holds is not ours: every length is checked before bytes are read or written by it, and what contradicts itself is
told, so that somebody else reads it. Buffers have `primitives.pages.SLACK` bytes behind what they hold, as words of eight
bytes are moved.
"""

from __future__ import annotations

from gquery.kernels.primitives.python.bits import popcount
from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    from_bool,
    ge_i64,
    gt_i64,
    i64,
    lt_i64,
    max_i64,
    min_i64,
    mul_i64,
    ne_i64,
    neg_i64,
    or_i64,
    shl_i64,
    shr_i64,
    shr_u64,
    sub_i64,
    xor_i64,
)
from gquery.kernels.primitives.python.memory import (
    load_i64,
    load_u8,
    load_word_unaligned,
    store_byte,
    store_i64,
    store_word_unaligned,
)
from gquery.kernels.primitives.python.values import Pointer

_EVERY_BYTE, _DIAGONAL, _ALL_BUT_HIGHEST = 0x0101010101010101, -0x7FBFDFEFF7FBFDFF, 0x7F7F7F7F7F7F7F7F
_EVEN_BYTES, _EVEN_PAIRS = 0x00FF00FF00FF00FF, 0x0000FFFF0000FFFF
_LONGEST = 60  # bytes as they are, of an element of Snappy that tells in its first byte how many there are
VALUE, DICTIONARY, ENTRIES = 0, 48, 49
"""Words of the state: what `varint_word` has read; where the words of a dictionary lie, and how many there are."""


def varint_word(at: int, end: int, state: Pointer) -> int:
    """Read an integer of 7 bits a byte into the word `VALUE`; the address behind it, 0 where it does not end."""
    value, shift = i64(0), i64(0)
    while lt_i64(at, end) and lt_i64(shift, 64):
        byte = load_u8(at)
        at = add_i64(at, 1)
        value = or_i64(value, shl_i64(and_i64(byte, 127), shift))
        if lt_i64(byte, 128):
            store_i64(state, VALUE, value)
            return at
        shift = add_i64(shift, 7)
    return i64(0)


# ---- bytes ---------------------------------------------------------------------------------------------------------
def snappy_decompress(source: int, size: int, target: int, room: int) -> int:
    """The bytes that ``size`` bytes of Snappy at ``source`` stand for, written to ``target``: how many, -1 if they are none or
    take more than ``room``."""
    at, end, out, last = _snappy_elements(source, size), add_i64(source, size), i64(target), add_i64(target, room)
    while lt_i64(at, end):
        word = load_word_unaligned(at)
        kind, upper = and_i64(word, 3), and_i64(shr_u64(word, 2), 63)
        length = add_i64(upper, 1)
        if eq_i64(kind, 0) and lt_i64(upper, _LONGEST):
            at = add_i64(at, 1)
            if gt_i64(length, sub_i64(end, at)) or gt_i64(length, sub_i64(last, out)):
                return i64(-1)
            copy_words(at, out, length)
            at = add_i64(at, length)
        else:
            offset, taken = and_i64(shr_u64(word, 8), 0xFFFF), i64(3)
            if eq_i64(kind, 1):
                length, taken = add_i64(and_i64(upper, 7), 4), i64(2)
                offset = or_i64(shl_i64(shr_u64(upper, 3), 8), and_i64(offset, 255))
            if lt_i64(offset, 8) or eq_i64(kind, 3) or eq_i64(kind, 0):
                length = _element_length(word)
                at = _write_element(at, end, out, sub_i64(last, out), sub_i64(out, target))
                if lt_i64(at, 0):
                    return i64(-1)
            else:
                if gt_i64(length, sub_i64(last, out)) or gt_i64(offset, sub_i64(out, target)):
                    return i64(-1)
                copy_words(sub_i64(out, offset), out, length)
                at = add_i64(at, taken)
        out = add_i64(out, length)
    if gt_i64(at, end):
        return i64(-1)
    return sub_i64(out, target)


def snappy_texts(source: int, size: int, target: int, room: int) -> int:
    """The same of texts. Numbers have elements that are alike, so that a processor guesses which comes next; those of texts it
    cannot guess, and they are told apart without jumps, but for rare ones."""
    at, end, out, last = _snappy_elements(source, size), add_i64(source, size), i64(target), add_i64(target, room)
    while lt_i64(at, end):
        word = load_word_unaligned(at)
        kind, upper = and_i64(word, 3), and_i64(shr_u64(word, 2), 63)
        copied, near = neg_i64(from_bool(ne_i64(kind, 0))), neg_i64(from_bool(eq_i64(kind, 1)))
        offset, length = and_i64(shr_u64(word, 8), 0xFFFF), add_i64(upper, 1)
        offset = _either(near, or_i64(shl_i64(shr_u64(upper, 3), 8), and_i64(offset, 255)), offset)
        length = _either(near, add_i64(and_i64(upper, 7), 4), length)
        begin = _either(copied, sub_i64(out, offset), add_i64(at, 1))
        behind = add_i64(at, _either(copied, add_i64(3, near), add_i64(length, 1)))
        rare = _either(copied, from_bool(lt_i64(offset, 8)), from_bool(gt_i64(length, _LONGEST)))
        if ne_i64(or_i64(rare, from_bool(eq_i64(kind, 3))), 0):
            length = _element_length(word)
            behind = _write_element(at, end, out, sub_i64(last, out), sub_i64(out, target))
            if lt_i64(behind, 0):
                return i64(-1)
        else:
            is_before = and_i64(copied, from_bool(lt_i64(begin, target)))
            if gt_i64(length, sub_i64(last, out)) or gt_i64(behind, end) or ne_i64(is_before, 0):
                return i64(-1)
            copy_text(begin, out, length)
        at, out = i64(behind), add_i64(out, length)
    if gt_i64(at, end):
        return i64(-1)
    return sub_i64(out, target)


def _snappy_elements(source: int, size: int) -> int:
    """Where elements begin, behind how many bytes there will be, which the page tells."""
    at, end = i64(source), add_i64(source, size)
    while lt_i64(at, end) and gt_i64(load_u8(at), 127):
        at = add_i64(at, 1)
    return add_i64(at, 1)


def _either(mask: int, one: int, other: int) -> int:
    """One where all bits of a mask are set, the other where none is."""
    return xor_i64(other, and_i64(xor_i64(one, other), mask))


def _element_length(word: int) -> int:
    """The bytes that an element of Snappy stands for."""
    kind, upper = and_i64(word, 3), and_i64(shr_u64(word, 2), 63)
    if eq_i64(kind, 1):
        return add_i64(and_i64(upper, 7), 4)
    if eq_i64(kind, 0) and ge_i64(upper, _LONGEST):
        bits = shl_i64(sub_i64(upper, _LONGEST - 1), 3)
        return add_i64(and_i64(shr_u64(word, 8), sub_i64(shl_i64(1, bits), 1)), 1)
    return add_i64(upper, 1)


def _write_element(at: int, end: int, out: int, room: int, before: int) -> int:
    """Write the bytes of an element behind ``before`` others; the address behind it, -1 where it is none or takes more than
    ``room``."""
    word = load_word_unaligned(at)
    kind, upper, length = and_i64(word, 3), and_i64(shr_u64(word, 2), 63), _element_length(word)
    if gt_i64(length, room):
        return i64(-1)
    if eq_i64(kind, 0):  # bytes as they are
        begin = add_i64(add_i64(at, 1), max_i64(sub_i64(upper, _LONGEST - 1), 0))
        if gt_i64(length, sub_i64(end, begin)):
            return i64(-1)
        copy_words(begin, out, length)
        return add_i64(begin, length)
    offset, taken = and_i64(shr_u64(word, 8), 0xFFFF), i64(3)  # bytes that were written before
    if eq_i64(kind, 1):
        offset, taken = or_i64(shl_i64(shr_u64(upper, 3), 8), and_i64(offset, 255)), i64(2)
    if eq_i64(kind, 3):
        offset, taken = and_i64(shr_u64(word, 8), 0xFFFFFFFF), i64(5)
    if lt_i64(offset, 1) or gt_i64(offset, before):
        return i64(-1)
    if ge_i64(offset, 8):
        copy_words(sub_i64(out, offset), out, length)
    else:
        repeat_bytes(sub_i64(out, offset), out, length)
    return add_i64(at, taken)


def copy_words(source: int, target: int, length: int) -> None:
    """Copy bytes, of which there is one at least, and up to 7 behind them; the target lies eight bytes behind the source, or
    further, or apart from it."""
    store_word_unaligned(target, load_word_unaligned(source))
    k = i64(8)
    while lt_i64(k, length):
        store_word_unaligned(add_i64(target, k), load_word_unaligned(add_i64(source, k)))
        k = add_i64(k, 8)


def copy_text(source: int, target: int, length: int) -> None:
    """The same of text, and up to 15 bytes behind: fewer rounds, as nobody can guess how many there will be."""
    store_word_unaligned(target, load_word_unaligned(source))
    store_word_unaligned(add_i64(target, 8), load_word_unaligned(add_i64(source, 8)))
    k = i64(16)
    while lt_i64(k, length):
        store_word_unaligned(add_i64(target, k), load_word_unaligned(add_i64(source, k)))
        store_word_unaligned(add_i64(target, add_i64(k, 8)), load_word_unaligned(add_i64(source, add_i64(k, 8))))
        k = add_i64(k, 16)


def repeat_bytes(source: int, target: int, length: int) -> None:
    """Copy bytes one after another, of which some may be those that are written."""
    k = i64(0)
    while lt_i64(k, length):
        store_byte(add_i64(target, k), load_u8(add_i64(source, k)))
        k = add_i64(k, 1)


def page_bytes(source: int, packed: int, target: int, size: int, codec: int, width: int) -> bool:
    """Whether ``packed`` bytes stand for ``size``, which are written to ``target``: values of so many bytes, 0: texts. The codec
    is 1 for Snappy, 0 for none."""
    if eq_i64(size, 0):
        return True
    if eq_i64(codec, 1) and eq_i64(width, 0):
        return eq_i64(snappy_texts(source, packed, target, size), size)
    if eq_i64(codec, 1):
        return eq_i64(snappy_decompress(source, packed, target, size), size)
    if eq_i64(packed, size):
        copy_words(source, target, size)
    return eq_i64(packed, size)


# ---- levels and values -----------------------------------------------------------------------------------------------
def level_values(at: int, end: int, count: int, flags: int, state: Pointer) -> int:
    """Read so many levels of one bit, in runs and packed, and write a byte for each, 1 for a value and 0 for NULL: how many
    values there are, -1 where the levels do not end well. Behind the flags lie seven bytes that may be written."""
    left, values = i64(count), i64(0)
    while gt_i64(left, 0):
        at = varint_word(at, end, state)
        if eq_i64(at, 0) or ge_i64(at, end):
            return i64(-1)
        run = load_i64(state, VALUE)
        size = shr_u64(run, 1)
        if lt_i64(size, 1):
            return i64(-1)
        if eq_i64(and_i64(run, 1), 0):
            level = and_i64(load_u8(at), 1)
            at, size = add_i64(at, 1), min_i64(size, left)
            fill_bytes(flags, size, level)
            values = add_i64(values, mul_i64(level, size))
        else:
            if gt_i64(size, sub_i64(end, at)):
                return i64(-1)
            last, size, k = add_i64(at, size), min_i64(shl_i64(size, 3), left), i64(0)
            while lt_i64(k, size):
                eight = load_u8(at)
                if gt_i64(8, sub_i64(size, k)):
                    eight = and_i64(eight, sub_i64(shl_i64(1, sub_i64(size, k)), 1))
                store_word_unaligned(add_i64(flags, k), _byte_flags(eight))
                values = add_i64(values, popcount(eight))
                at, k = add_i64(at, 1), add_i64(k, 8)
            at = i64(last)
        left, flags = sub_i64(left, size), add_i64(flags, size)
    return values


def fill_bytes(target: int, count: int, bit: int) -> None:
    """Write so many bytes of 0 or 1, and up to seven behind them."""
    word, k = mul_i64(bit, _EVERY_BYTE), i64(0)
    while lt_i64(k, count):
        store_word_unaligned(add_i64(target, k), word)
        k = add_i64(k, 8)


def _byte_flags(eight: int) -> int:
    """A word of eight bytes, each of which is one of eight bits, the lowest first."""
    apart = and_i64(mul_i64(eight, _EVERY_BYTE), _DIAGONAL)
    return and_i64(shr_u64(add_i64(apart, _ALL_BUT_HIGHEST), 7), _EVERY_BYTE)


def scatter_words(words: int, flags: int, count: int, values: int) -> None:
    """Move so many words at an address to where the flag of a byte is 1, in order, of ``count`` flags; elsewhere goes 0."""
    k, left = i64(count), i64(values)
    while lt_i64(left, k):  # below, all are where they belong
        k = sub_i64(k, 1)
        flag = load_u8(add_i64(flags, k))
        left = sub_i64(left, flag)
        word = load_word_unaligned(add_i64(words, shl_i64(left, 3)))
        store_word_unaligned(add_i64(words, shl_i64(k, 3)), mul_i64(word, flag))


def coded_words(at: int, end: int, width: int, count: int, words: int, state: Pointer) -> bool:
    """Write the words of the dictionary that so many codes stand for, in runs and packed in ``width`` bits, to an address;
    whether all are there."""
    made, most, mask = i64(0), i64(0), sub_i64(shl_i64(1, width), 1)
    dictionary, entries = load_i64(state, DICTIONARY), load_i64(state, ENTRIES)
    if gt_i64(width, 32) or lt_i64(entries, 1):
        return False
    while lt_i64(made, count):
        at = varint_word(at, end, state)
        if eq_i64(at, 0):
            return False
        run = load_i64(state, VALUE)
        values = shr_u64(run, 1)
        if lt_i64(values, 1) or gt_i64(values, 0x7FFFFFFF):
            return False
        target = add_i64(words, shl_i64(made, 3))
        if eq_i64(and_i64(run, 1), 0):
            size = shr_i64(add_i64(width, 7), 3)
            code = and_i64(load_word_unaligned(at), mask)
            if gt_i64(size, sub_i64(end, at)) or ge_i64(code, entries):
                return False
            values = min_i64(values, sub_i64(count, made))
            word = load_word_unaligned(add_i64(dictionary, shl_i64(code, 3)))
            repeat_word(target, word, values)
        else:
            size = mul_i64(values, width)
            if gt_i64(size, sub_i64(end, at)):
                return False
            values = min_i64(shl_i64(values, 3), sub_i64(count, made))
            most = max_i64(most, packed_words(at, width, values, dictionary, entries, target))
        at = add_i64(at, size)
        made = add_i64(made, values)
    return lt_i64(most, entries)


def repeat_word(target: int, word: int, count: int) -> None:
    """Write a word so many times to an address."""
    k = i64(0)
    while lt_i64(k, count):
        store_word_unaligned(add_i64(target, shl_i64(k, 3)), word)
        k = add_i64(k, 1)


def packed_words(at: int, width: int, count: int, dictionary: int, entries: int, target: int) -> int:
    """Write the words of a dictionary that so many codes, packed in ``width`` bits, stand for to an address; the greatest code:
    beyond the last one they stand for that."""
    mask, most, bit, k = sub_i64(shl_i64(1, width), 1), i64(0), i64(0), i64(0)
    while lt_i64(k, count):
        packed = shr_u64(load_word_unaligned(add_i64(at, shr_i64(bit, 3))), and_i64(bit, 7))
        code = and_i64(packed, mask)
        most = max_i64(most, code)
        word = load_word_unaligned(add_i64(dictionary, shl_i64(min_i64(code, sub_i64(entries, 1)), 3)))
        store_word_unaligned(add_i64(target, shl_i64(k, 3)), word)
        bit = add_i64(bit, width)
        k = add_i64(k, 1)
    return most


def plain_words(at: int, end: int, width: int, count: int, words: int) -> bool:
    """Write so many integers of ``width`` bytes, 4 or 8, to an address, or of 1 to 8 with the highest first where it is below 0;
    whether all are there."""
    k, size = i64(0), max_i64(width, neg_i64(width))
    if eq_i64(width, 0) or gt_i64(mul_i64(count, size), sub_i64(end, at)):
        return False
    if lt_i64(width, 0):
        surplus = sub_i64(64, shl_i64(size, 3))
        while lt_i64(k, count):
            word = swapped(load_word_unaligned(add_i64(at, mul_i64(k, size))))
            store_word_unaligned(add_i64(words, shl_i64(k, 3)), shr_i64(word, surplus))
            k = add_i64(k, 1)
        return True
    if eq_i64(width, 8):
        while lt_i64(k, count):
            store_word_unaligned(add_i64(words, shl_i64(k, 3)), load_word_unaligned(add_i64(at, shl_i64(k, 3))))
            k = add_i64(k, 1)
        return True
    while lt_i64(k, count):
        word = load_word_unaligned(add_i64(at, shl_i64(k, 2)))
        store_word_unaligned(add_i64(words, shl_i64(k, 3)), shr_i64(shl_i64(word, 32), 32))
        k = add_i64(k, 1)
    return True


def swapped(word: int) -> int:
    """The bytes of a word the other way round."""
    word = or_i64(and_i64(shr_u64(word, 8), _EVEN_BYTES), shl_i64(and_i64(word, _EVEN_BYTES), 8))
    word = or_i64(and_i64(shr_u64(word, 16), _EVEN_PAIRS), shl_i64(and_i64(word, _EVEN_PAIRS), 16))
    return or_i64(shr_u64(word, 32), shl_i64(word, 32))


def pick_words(words: int, count: int, bits: int, first: int) -> int:
    """Move those of so many words whose bit is set, the bit ``first`` belonging to the first, to the front, in order; how many
    there are. Behind the bits lie eight bytes that may be read."""
    made, k = i64(0), i64(0)
    while lt_i64(k, count):
        bit = add_i64(first, k)
        flags = shr_u64(load_word_unaligned(add_i64(bits, shr_i64(bit, 3))), and_i64(bit, 7))
        end = min_i64(add_i64(k, 56), count)
        if eq_i64(and_i64(flags, sub_i64(shl_i64(1, 56), 1)), 0):
            k = i64(end)
        while lt_i64(k, end):
            word = load_word_unaligned(add_i64(words, shl_i64(k, 3)))
            store_word_unaligned(add_i64(words, shl_i64(made, 3)), word)
            made = add_i64(made, and_i64(flags, 1))
            flags = shr_u64(flags, 1)
            k = add_i64(k, 1)
    return made
