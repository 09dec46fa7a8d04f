"""Searching strings: a needle, LIKE and its parts. See `primitives.strings`.

Eight aligned bytes are read at a time, and the needle's first two are looked for in all of them at once; an aligned word that
straddles an end of the string lies in the same page (on the GPU: allocation) as the string's own byte.
"""

from __future__ import annotations

from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    ge_i64,
    gt_i64,
    i64,
    le_i64,
    lt_i64,
    mul_i64,
    ne_i64,
    or_i64,
    shl_i64,
    shr_u64,
    sub_i64,
    xor_i64,
)
from gquery.kernels.primitives.python.memory import load_i64, load_u8, load_word, lowest_byte, zero_bytes
from gquery.kernels.primitives.python.strings import make_str, str_address, str_bytes
from gquery.kernels.primitives.python.values import Pointer, Str
from gquery.kernels.primitives.strings import _after, _count, _same, _slice, str_length

_ANY, _ONE = 0xFF, 0xFE  # % and _ in a prepared pattern: bytes that UTF-8 never has
_EVERY_BYTE = 0x0101010101010101
PART_WORDS = 7  # of a part of a pattern in the table that `str_has_parts` reads, made by `kernels.like`


def _find_byte(p: int, end: int, byte: int) -> int:
    """The first address in p..end that holds ``byte``; ``end`` if none does."""
    pattern = mul_i64(byte, _EVERY_BYTE)
    base = and_i64(p, -8)
    while lt_i64(base, end):
        hits = zero_bytes(xor_i64(load_word(base), pattern))
        while ne_i64(hits, 0):
            q = add_i64(base, lowest_byte(hits))
            if ge_i64(q, end):
                return end
            if ge_i64(q, p):
                return q
            hits = and_i64(hits, sub_i64(hits, 1))
        base = add_i64(base, 8)
    return end


def _find_pair(p: int, end: int, first: int, second: int) -> int:
    """The first address in p..end - 1 with two bytes, one after the other; ``end`` if there is none.

    Two bytes rule out nearly every place that a common first letter alone would have to be compared at.
    """
    first_pattern, second_pattern = mul_i64(first, _EVERY_BYTE), mul_i64(second, _EVERY_BYTE)
    last = sub_i64(end, 1)
    base = and_i64(p, -8)
    word = i64(0)
    if lt_i64(base, last):
        word = load_word(base)
    while lt_i64(base, last):
        following = i64(0)
        if lt_i64(add_i64(base, 8), end):
            following = load_word(add_i64(base, 8))
        moved = or_i64(shr_u64(word, 8), shl_i64(following, 56))
        hits = and_i64(zero_bytes(xor_i64(word, first_pattern)), zero_bytes(xor_i64(moved, second_pattern)))
        while ne_i64(hits, 0):
            q = add_i64(base, lowest_byte(hits))
            if ge_i64(q, last):
                return end
            if ge_i64(q, p) and eq_i64(load_u8(q), first) and eq_i64(load_u8(add_i64(q, 1)), second):
                return q
            hits = and_i64(hits, sub_i64(hits, 1))
        word = following
        base = add_i64(base, 8)
    return end


def _find_start(p: int, end: int, q: int, stop: int) -> int:
    """Where, from ``p`` on, the part of a pattern at ``q`` may start to match; ``end`` if nowhere."""
    first = load_u8(q)
    if ge_i64(first, _ONE):
        return p
    if lt_i64(add_i64(q, 1), stop):
        second = load_u8(add_i64(q, 1))
        if lt_i64(second, _ONE):
            return _find_pair(p, end, first, second)
    return _find_byte(p, end, first)


def _find(s: Str, needle: Str) -> int:
    """Bytes before the first place of ``needle`` in ``s``, or -1."""
    size = str_bytes(needle)
    if eq_i64(size, 0):
        return i64(0)
    end = add_i64(str_address(s), str_bytes(s))
    last = sub_i64(end, size)
    p = str_address(s)
    while le_i64(p, last):
        p = _find_start(p, end, str_address(needle), add_i64(str_address(needle), size))
        if le_i64(p, last) and _same(p, str_address(needle), size):
            return sub_i64(p, str_address(s))
        p = add_i64(p, 1)
    return i64(-1)


def str_contains(s: Str, needle: Str) -> bool:
    """Whether the bytes of ``needle`` stand in a text."""
    return ge_i64(_find(s, needle), 0)


def str_position(s: Str, needle: Str) -> int:
    """The code point, from 1, at which ``needle`` first starts; 0 where it does not occur."""
    offset = _find(s, needle)
    if lt_i64(offset, 0):
        return i64(0)
    return add_i64(_count(str_address(s), add_i64(str_address(s), offset)), 1)


def _parts(s: Str, separator: Str) -> int:
    """How many parts a separator that is not empty cuts a text into."""
    p, count = str_address(s), i64(1)
    end = add_i64(p, str_bytes(s))
    offset = _find(s, separator)
    while ge_i64(offset, 0):
        count = add_i64(count, 1)
        p = add_i64(p, add_i64(offset, str_bytes(separator)))
        offset = _find(make_str(p, sub_i64(end, p)), separator)
    return count


def str_part(s: Str, separator: Str, n: int) -> Str:
    """The ``n``-th part of a text between separators, from 1, or from the end where ``n`` is below 0; empty where there is none.
    A view of the same bytes. An empty separator stands between all code points.

    Separators are found from the beginning, wherever the part is counted from: two of them may overlap.
    """
    p = str_address(s)
    end, size = add_i64(p, str_bytes(s)), str_bytes(separator)
    if lt_i64(n, 0):
        if eq_i64(size, 0):
            n = add_i64(add_i64(str_length(s), n), 1)
        else:
            n = add_i64(add_i64(_parts(s, separator), n), 1)
    if le_i64(n, 0):
        return make_str(end, 0)
    if eq_i64(size, 0):
        return _slice(s, sub_i64(n, 1), 1)
    offset = _find(s, separator)
    while gt_i64(n, 1):
        if lt_i64(offset, 0):
            return make_str(end, 0)
        p = add_i64(p, add_i64(offset, size))
        n = sub_i64(n, 1)
        offset = _find(make_str(p, sub_i64(end, p)), separator)
    if lt_i64(offset, 0):
        offset = sub_i64(end, p)
    return make_str(p, offset)


def str_starts_with(s: Str, prefix: Str) -> bool:
    """Whether a text begins with the bytes of ``prefix``."""
    if lt_i64(str_bytes(s), str_bytes(prefix)):
        return False
    return _same(str_address(s), str_address(prefix), str_bytes(prefix))


def str_ends_with(s: Str, suffix: Str) -> bool:
    """Whether a text ends with the bytes of ``suffix``."""
    if lt_i64(str_bytes(s), str_bytes(suffix)):
        return False
    start = sub_i64(add_i64(str_address(s), str_bytes(s)), str_bytes(suffix))
    return _same(start, str_address(suffix), str_bytes(suffix))


def _lower(byte: int) -> int:
    if ge_i64(byte, 65) and le_i64(byte, 90):
        return add_i64(byte, 32)
    return byte


def str_like(s: Str, pattern: Str) -> bool:
    """LIKE with a prepared pattern: byte 0xFF for %, 0xFE for _, others literal.

    A mismatch goes back to the last % alone: what lies before it is matched as early as can be, so nothing else can
    help. After a % the next literal byte is searched for, a word at a time.
    """
    p = str_address(s)
    end = add_i64(p, str_bytes(s))
    q = str_address(pattern)
    stop = add_i64(q, str_bytes(pattern))
    after_any, mark = i64(0), i64(0)
    while True:
        want = i64(-1)
        if lt_i64(q, stop):
            want = load_u8(q)
        if eq_i64(want, _ANY):
            q = add_i64(q, 1)
            if eq_i64(q, stop):
                return True
            after_any = q
            p = _find_start(p, end, q, stop)
            mark = p
        elif lt_i64(p, end) and eq_i64(want, _ONE):
            p = _after(p, end)
            q = add_i64(q, 1)
        elif lt_i64(p, end) and eq_i64(want, load_u8(p)):
            p = add_i64(p, 1)
            q = add_i64(q, 1)
        elif eq_i64(p, end) and eq_i64(q, stop):
            return True
        elif eq_i64(after_any, 0) or ge_i64(mark, end):
            return False
        else:
            mark = _find_start(_after(mark, end), end, after_any, stop)
            p, q = mark, after_any


def str_inside(s: Str, start: Str, end: Str) -> Str:
    """What lies between the beginning ``start`` and the end ``end`` of a string; of length -1 where it has not both."""
    rest = sub_i64(sub_i64(str_bytes(s), str_bytes(start)), str_bytes(end))
    if lt_i64(rest, 0) or not (str_starts_with(s, start) and str_ends_with(s, end)):
        return make_str(str_address(s), i64(-1))
    return make_str(add_i64(str_address(s), str_bytes(start)), rest)


def str_has_parts(s: Str, parts: Pointer, stop: int, needles: Str) -> bool:
    """Whether the parts of a pattern, ``stop`` words of the table that `kernels.patterns.part_table` makes, are in a string one
    behind another. What goes on is told by eight bytes at once: a part's first two narrow the places down to a few, and a
    word that begins there settles the first eight.

    One loop walks over the string for all parts, so that the threads of a warp stay together wherever theirs are found.
    """
    p = str_address(s)
    end = add_i64(p, str_bytes(s))
    part = i64(0)
    length, first, second = load_i64(parts, 0), load_i64(parts, 1), load_i64(parts, 2)
    last = sub_i64(end, length)
    base = and_i64(p, -8)
    word = i64(0)
    if le_i64(p, last):
        word = load_word(base)
    while le_i64(base, last):
        following = i64(0)
        if lt_i64(add_i64(base, 8), end):
            following = load_word(add_i64(base, 8))
        moved = or_i64(shr_u64(word, 8), shl_i64(following, 56))
        seconds = or_i64(zero_bytes(xor_i64(moved, second)), load_i64(parts, add_i64(part, 3)))
        hits = and_i64(zero_bytes(xor_i64(word, first)), seconds)
        while ne_i64(hits, 0):
            byte = lowest_byte(hits)
            q, shift = add_i64(base, byte), shl_i64(byte, 3)
            if gt_i64(q, last):
                return False
            there = or_i64(shr_u64(word, shift), shl_i64(shl_i64(following, sub_i64(56, shift)), 8))
            differ = and_i64(xor_i64(there, load_i64(parts, add_i64(part, 4))), load_i64(parts, add_i64(part, 5)))
            if eq_i64(differ, 0) and ge_i64(q, p) and _has_rest(q, length, needles, load_i64(parts, add_i64(part, 6))):
                p = add_i64(q, length)
                part = add_i64(part, PART_WORDS)
                if eq_i64(part, stop):
                    return True
                length, first = load_i64(parts, part), load_i64(parts, add_i64(part, 1))
                second = load_i64(parts, add_i64(part, 2))
                last = sub_i64(end, length)
                seconds = or_i64(zero_bytes(xor_i64(moved, second)), load_i64(parts, add_i64(part, 3)))
                hits = and_i64(zero_bytes(xor_i64(word, first)), seconds)
            else:
                hits = and_i64(hits, sub_i64(hits, 1))
        word = following
        base = add_i64(base, 8)
    return False


def _has_rest(q: int, length: int, needles: Str, place: int) -> bool:
    """Whether what stands behind the first eight bytes of a part stands there, too."""
    if le_i64(length, 8):
        return True
    return _same(add_i64(q, 8), add_i64(add_i64(str_address(needles), place), 8), sub_i64(length, 8))


def str_ilike(s: Str, pattern: Str) -> bool:
    """`str_like` where A to Z equal a to z; the pattern comes in lower case."""
    p = str_address(s)
    end = add_i64(p, str_bytes(s))
    q = str_address(pattern)
    stop = add_i64(q, str_bytes(pattern))
    after_any, mark = i64(0), i64(0)
    while True:
        want = i64(-1)
        if lt_i64(q, stop):
            want = load_u8(q)
        if eq_i64(want, _ANY):
            q = add_i64(q, 1)
            after_any, mark = q, p
        elif lt_i64(p, end) and eq_i64(want, _ONE):
            p = _after(p, end)
            q = add_i64(q, 1)
        elif lt_i64(p, end) and eq_i64(want, _lower(load_u8(p))):
            p = add_i64(p, 1)
            q = add_i64(q, 1)
        elif eq_i64(p, end) and eq_i64(q, stop):
            return True
        elif eq_i64(after_any, 0) or ge_i64(mark, end):
            return False
        else:
            mark = _after(mark, end)
            p, q = mark, after_any
