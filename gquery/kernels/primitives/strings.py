"""Strings: (address, length) of UTF-8 bytes, so that a substring is a view. Lengths and positions count code points.

Searching reads eight aligned bytes at a time and looks for the needle's first two in all of them at once; an aligned
word that straddles an end of the string lies in the same page (on the GPU: allocation) as the string's own byte.
"""

from __future__ import annotations

from gquery.kernels.targets.python_words import (
    Pointer,
    Str,
    add_i64,
    and_i64,
    byte_swap,
    eq_i64,
    ge_i64,
    gt_i64,
    hash_combine,
    hash_i64,
    i64,
    le_i64,
    load_i64,
    load_u8,
    load_word,
    load_word_unaligned,
    lowest_byte,
    lt_i64,
    make_str,
    max_i64,
    min_i64,
    mul_i64,
    ne_i64,
    or_i64,
    shl_i64,
    shr_u64,
    store_byte,
    store_word_unaligned,
    str_address,
    str_bytes,
    sub_i64,
    xor_i64,
    zero_bytes,
)

_ANY, _ONE = 0xFF, 0xFE  # % and _ in a prepared pattern: bytes that UTF-8 never has
_EVERY_BYTE = 0x0101010101010101
PART_WORDS = 7  # of a part of a pattern in the table that `str_has_parts` reads, made by `kernels.like`


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
    if ne_i64(str_bytes(s), str_bytes(t)):
        return False
    return _same(str_address(s), str_address(t), str_bytes(s))


def ne_str(s: Str, t: Str) -> bool:
    return not eq_str(s, t)


def compare_str(s: Str, t: Str) -> int:
    """Negative, 0 or positive, by bytes: the order of code points."""
    p, q = str_address(s), str_address(t)
    length = min_i64(str_bytes(s), str_bytes(t))
    k = i64(0)
    while le_i64(add_i64(k, 8), length) and eq_i64(
        load_word_unaligned(add_i64(p, k)), load_word_unaligned(add_i64(q, k))
    ):
        k = add_i64(k, 8)
    while lt_i64(k, length):
        difference = sub_i64(load_u8(add_i64(p, k)), load_u8(add_i64(q, k)))
        if ne_i64(difference, 0):
            return difference
        k = add_i64(k, 1)
    return sub_i64(str_bytes(s), str_bytes(t))


def lt_str(s: Str, t: Str) -> bool:
    return lt_i64(compare_str(s, t), 0)


def le_str(s: Str, t: Str) -> bool:
    return le_i64(compare_str(s, t), 0)


def gt_str(s: Str, t: Str) -> bool:
    return gt_i64(compare_str(s, t), 0)


def ge_str(s: Str, t: Str) -> bool:
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


# ---- search ------------------------------------------------------------------------------------------------------
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
    return ge_i64(_find(s, needle), 0)


def str_position(s: Str, needle: Str) -> int:
    """The code point, from 1, at which ``needle`` first starts; 0 where it does not occur."""
    offset = _find(s, needle)
    if lt_i64(offset, 0):
        return i64(0)
    return add_i64(_count(str_address(s), add_i64(str_address(s), offset)), 1)


def str_starts_with(s: Str, prefix: Str) -> bool:
    if lt_i64(str_bytes(s), str_bytes(prefix)):
        return False
    return _same(str_address(s), str_address(prefix), str_bytes(prefix))


def str_ends_with(s: Str, suffix: Str) -> bool:
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
    """Whether the parts of a pattern, ``stop`` words of the table that `kernels.like.part_table` makes, are in a string one
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
    p = str_address(s)
    end = add_i64(p, str_bytes(s))
    while lt_i64(p, end):
        space = _space_bytes(p, end)
        if eq_i64(space, 0):
            return make_str(p, sub_i64(end, p))
        p = add_i64(p, space)
    return make_str(end, 0)


def str_rtrim(s: Str) -> Str:
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
    return str_rtrim(str_ltrim(s))
