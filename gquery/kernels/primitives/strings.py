"""Strings: (address, length) of UTF-8 bytes, so that a substring is a view. Lengths and positions count code points.
`primitives.search` looks for strings in strings.
"""

from __future__ import annotations

from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    ge_i64,
    gt_i64,
    hash_combine,
    hash_i64,
    i64,
    le_i64,
    lt_i64,
    lt_u64,
    max_i64,
    min_i64,
    ne_i64,
    or_i64,
    shl_i64,
    shr_u64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import (
    byte_swap,
    load_i64,
    load_u8,
    load_word,
    load_word_unaligned,
    store_byte,
    store_word_unaligned,
)
from gquery.kernels.primitives.python.strings import make_str, str_address, str_bytes
from gquery.kernels.primitives.python.values import Pointer, Str


# ---- order and equality ------------------------------------------------------------------------------------------
def _same(p: int, q: int, length: int) -> bool:
    """Whether ``length`` bytes at two addresses are equal."""
    k = i64(0)
    while le_i64(add_i64(k, 8), length):
        if ne_i64(load_word_unaligned(add_i64(p, k)), load_word_unaligned(add_i64(q, k))):
            return False
        k = add_i64(k, 8)
    while lt_i64(k, length):
        if ne_i64(load_u8(add_i64(p, k)), load_u8(add_i64(q, k))):
            return False
        k = add_i64(k, 1)
    return True


def eq_str(s: Str, t: Str) -> bool:
    """Whether two texts have the same bytes."""
    if ne_i64(str_bytes(s), str_bytes(t)):
        return False
    return _same(str_address(s), str_address(t), str_bytes(s))


def ne_str(s: Str, t: Str) -> bool:
    """Whether two texts differ in some byte."""
    return not eq_str(s, t)


def one_of(s: Str, texts: int, ends: Pointer, count: int) -> bool:
    """Whether a string is one of ``count`` others, whose bytes lie one after another at ``texts``; ``ends`` says up to where."""
    k = start = i64(0)
    while lt_i64(k, count):
        length = sub_i64(load_i64(ends, k), start)
        if eq_i64(length, str_bytes(s)) and _same(str_address(s), add_i64(texts, start), length):
            return True
        start = add_i64(start, length)
        k = add_i64(k, 1)
    return False


def compare_str(s: Str, t: Str) -> int:
    """Negative, 0 or positive, by bytes: the order of code points."""
    p, q = str_address(s), str_address(t)
    length = min_i64(str_bytes(s), str_bytes(t))
    k = i64(0)
    while le_i64(add_i64(k, 8), length):
        a, b = load_word_unaligned(add_i64(p, k)), load_word_unaligned(add_i64(q, k))
        if ne_i64(a, b):
            if lt_u64(byte_swap(a), byte_swap(b)):
                return i64(-1)
            return i64(1)
        k = add_i64(k, 8)
    while lt_i64(k, length):
        difference = sub_i64(load_u8(add_i64(p, k)), load_u8(add_i64(q, k)))
        if ne_i64(difference, 0):
            return difference
        k = add_i64(k, 1)
    return sub_i64(str_bytes(s), str_bytes(t))


def lt_str(s: Str, t: Str) -> bool:
    """Whether s comes before t, by bytes."""
    return lt_i64(compare_str(s, t), 0)


def le_str(s: Str, t: Str) -> bool:
    """Whether s comes before t or has the same bytes."""
    return le_i64(compare_str(s, t), 0)


def gt_str(s: Str, t: Str) -> bool:
    """Whether s comes behind t, by bytes."""
    return gt_i64(compare_str(s, t), 0)


def ge_str(s: Str, t: Str) -> bool:
    """Whether s comes behind t or has the same bytes."""
    return ge_i64(compare_str(s, t), 0)


def text_word(s: Str, n: int) -> int:
    """The n-th eight bytes as a bit pattern that compares, unsigned, as they do: the first byte on top, zeros behind the end."""
    left = sub_i64(str_bytes(s), shl_i64(n, 3))
    if le_i64(left, 0):
        return i64(0)
    p = add_i64(str_address(s), shl_i64(n, 3))
    base, moved = and_i64(p, -8), and_i64(p, 7)
    word = shr_u64(load_word(base), shl_i64(moved, 3))
    if gt_i64(add_i64(moved, min_i64(left, 8)), 8):
        word = or_i64(word, shl_i64(load_word(add_i64(base, 8)), sub_i64(64, shl_i64(moved, 3))))
    word = byte_swap(word)
    if lt_i64(left, 8):
        word = and_i64(word, shl_i64(-1, sub_i64(64, shl_i64(left, 3))))
    return word


def hash_str(s: Str) -> int:
    """A hash of 64 bits of a text's bytes."""
    length, p = str_bytes(s), str_address(s)
    h = hash_i64(length)
    k = i64(0)
    while le_i64(add_i64(k, 8), length):
        h = hash_combine(h, load_word_unaligned(add_i64(p, k)))
        k = add_i64(k, 8)
    rest, shift = i64(0), i64(0)
    while lt_i64(k, length):
        rest = or_i64(rest, shl_i64(load_u8(add_i64(p, k)), shift))
        shift = add_i64(shift, 8)
        k = add_i64(k, 1)
    return hash_combine(h, rest)


def copy_bytes(source: int, target: int, length: int) -> None:
    """Copy bytes between two places that do not overlap."""
    k = i64(0)
    while le_i64(add_i64(k, 8), length):
        store_word_unaligned(add_i64(target, k), load_word_unaligned(add_i64(source, k)))
        k = add_i64(k, 8)
    while lt_i64(k, length):
        store_byte(add_i64(target, k), load_u8(add_i64(source, k)))
        k = add_i64(k, 1)


# ---- code points -------------------------------------------------------------------------------------------------
def _starts(address: int) -> int:
    """1 where a code point starts, 0 inside one."""
    if eq_i64(and_i64(load_u8(address), 0xC0), 0x80):
        return i64(0)
    return i64(1)


def _count(p: int, end: int) -> int:
    """Code points between two addresses."""
    n = i64(0)
    while lt_i64(p, end):
        n = add_i64(n, _starts(p))
        p = add_i64(p, 1)
    return n


def _after(p: int, end: int) -> int:
    """Where the code point behind that at ``p`` starts."""
    p = add_i64(p, 1)
    while lt_i64(p, end) and eq_i64(_starts(p), 0):
        p = add_i64(p, 1)
    return p


def _advance(p: int, end: int, n: int) -> int:
    """``n`` code points on, at most to the end."""
    while lt_i64(p, end) and gt_i64(n, 0):
        p = _after(p, end)
        n = sub_i64(n, 1)
    return p


def str_length(s: Str) -> int:
    """How many characters (code points) a text has."""
    return _count(str_address(s), add_i64(str_address(s), str_bytes(s)))


def _slice(s: Str, start: int, length: int) -> Str:
    """``length`` code points from the ``start``-th on, counted from 0, neither negative."""
    end = add_i64(str_address(s), str_bytes(s))
    p = _advance(str_address(s), end, start)
    return make_str(p, sub_i64(_advance(p, end, length), p))


def str_substring(s: Str, start: int, length: int) -> Str:
    """``length`` places from ``start`` on (1 is the first, -1 the last); a negative length takes those before it.

    Places before the first (0 is one, and what a negative start reaches beyond the string) count, but hold nothing.
    """
    begin = sub_i64(start, 1)
    if lt_i64(start, 0):
        begin = add_i64(str_length(s), start)
    stop = add_i64(begin, length)
    first, last = max_i64(min_i64(begin, stop), 0), max_i64(max_i64(begin, stop), 0)
    return _slice(s, first, sub_i64(last, first))


def str_substring_from(s: Str, start: int) -> Str:
    """The text from character ``start`` on, which counts from 1; a view of the same bytes."""
    return str_substring(s, start, 0xFFFFFFFF)


def str_left(s: Str, n: int) -> Str:
    """The first ``n`` code points; a negative ``n`` leaves out the last -n."""
    if lt_i64(n, 0):
        n = max_i64(add_i64(str_length(s), n), 0)
    return _slice(s, 0, n)


def str_right(s: Str, n: int) -> Str:
    """The last ``n`` code points; a negative ``n`` leaves out the first -n."""
    if lt_i64(n, 0):
        return _slice(s, sub_i64(0, n), 0xFFFFFFFF)
    return _slice(s, max_i64(sub_i64(str_length(s), n), 0), n)


def str_ascii(s: Str) -> int:
    """The first code point's number; 0 for an empty string."""
    if eq_i64(str_bytes(s), 0):
        return i64(0)
    p = str_address(s)
    end = _after(p, add_i64(p, str_bytes(s)))
    first, size = load_u8(p), sub_i64(end, p)
    if eq_i64(size, 1):
        return first
    code = and_i64(first, sub_i64(shl_i64(1, sub_i64(7, size)), 1))
    p = add_i64(p, 1)
    while lt_i64(p, end):
        code = or_i64(shl_i64(code, 6), and_i64(load_u8(p), 0x3F))
        p = add_i64(p, 1)
    return code


# ---- trimming ----------------------------------------------------------------------------------------------------
def _space_bytes(p: int, end: int) -> int:
    """The bytes of the space separator (Unicode category Zs) at ``p``, or 0."""
    first, size = load_u8(p), sub_i64(end, p)
    if eq_i64(first, 0x20):
        return i64(1)
    if lt_i64(first, 0xC2) or lt_i64(size, 2):
        return i64(0)
    second = load_u8(add_i64(p, 1))
    if eq_i64(first, 0xC2) and eq_i64(second, 0xA0):
        return i64(2)
    if lt_i64(first, 0xE1) or gt_i64(first, 0xE3) or lt_i64(size, 3):
        return i64(0)
    code = or_i64(or_i64(shl_i64(and_i64(first, 15), 12), shl_i64(and_i64(second, 63), 6)),
                  and_i64(load_u8(add_i64(p, 2)), 63))  # fmt: skip
    if ge_i64(code, 0x2000) and le_i64(code, 0x200A):
        return i64(3)
    if eq_i64(code, 0x1680) or eq_i64(code, 0x202F) or eq_i64(code, 0x205F) or eq_i64(code, 0x3000):
        return i64(3)
    return i64(0)


def str_ltrim(s: Str) -> Str:
    """The text without spaces at its beginning; a view of the same bytes."""
    p = str_address(s)
    end = add_i64(p, str_bytes(s))
    while lt_i64(p, end):
        space = _space_bytes(p, end)
        if eq_i64(space, 0):
            return make_str(p, sub_i64(end, p))
        p = add_i64(p, space)
    return make_str(end, 0)


def str_rtrim(s: Str) -> Str:
    """The text without spaces at its end; a view of the same bytes."""
    start = str_address(s)
    end = add_i64(start, str_bytes(s))
    while lt_i64(start, end):
        p = sub_i64(end, 1)
        while lt_i64(start, p) and eq_i64(_starts(p), 0):
            p = sub_i64(p, 1)
        if eq_i64(_space_bytes(p, end), 0):
            return make_str(start, sub_i64(end, start))
        end = p
    return make_str(start, 0)


def str_trim(s: Str) -> Str:
    """The text without spaces at both ends; a view of the same bytes."""
    return str_rtrim(str_ltrim(s))
