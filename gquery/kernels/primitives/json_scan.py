"""Where a path leads to in a text of JSON, found in one pass that reads all of it.

Only what is plainly JSON is answered: of any other text, and of what is rare (halves of surrogate pairs, names with escapes, deep
nesting), the outcome is `ASK`, and Python's reader says what it is. So nothing is taken for JSON here that is none there.
"""

from __future__ import annotations

from gquery.kernels.primitives.python.integers import (
    add_i64,
    and_i64,
    eq_i64,
    from_bool,
    ge_i64,
    gt_i64,
    i64,
    le_i64,
    lt_i64,
    mul_i64,
    ne_i64,
    or_i64,
    shl_i64,
    shr_i64,
    sub_i64,
)
from gquery.kernels.primitives.python.memory import load_i64, load_u8, store_i64
from gquery.kernels.primitives.python.values import Pointer

ASK, MISSING, NULL, TRUE, FALSE, INTEGER, DECIMAL, OTHER_NUMBER, TEXT, ESCAPED = range(10)
OBJECT, ARRAY, COMPACT_OBJECT, COMPACT_ARRAY = range(10, 14)
"""What a text has at a path: it has to be asked of Python; nothing; or a value. An `INTEGER` has at most 18 digits, a `DECIMAL`
is written as its double is; `TEXT` has no escapes. What is compact is as DuckDB writes it: all in it is, without spaces."""
START, SIZE, ELEMENTS, COMPACT, LEVEL, PLACE, HITS, DONE, TARGET, FOUND = range(1, 11)
"""Words of what is found, behind what it is: where it begins in the text, its bytes, how many values an array has. Then what is
known on the way: is it compact so far; how many objects and arrays of those that are open are on the path, where in the innermost
array, whether the value that comes is; nothing more is looked for; how many were open where one begins that is found."""
STEP = 3
"""Words of a step of a path behind their number: a place in an array, or -1; the address of a name and its size, or -1."""

_VALUE, _FIRST_VALUE, _FIRST_NAME, _NAME, _COLON, _NEXT, _END = range(7)  # what may come
_QUOTE, _ESCAPE, _COMMA, _COLON_SIGN, _MINUS, _POINT, _ZERO = 0x22, 0x5C, 0x2C, 0x3A, 0x2D, 0x2E, 0x30
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
_DEEPEST = 60  # open objects and arrays, a bit each
_WHAT = 56  # the bits of an address below what is said of the bytes before it
_ADDRESS = (1 << _WHAT) - 1


def _is_space(c: int) -> bool:
    return eq_i64(c, 0x20) or eq_i64(c, 0x0A) or eq_i64(c, 0x0D) or eq_i64(c, 0x09)


def _is_digit(p: int, end: int) -> bool:
    return lt_i64(p, end) and ge_i64(load_u8(p), _ZERO) and le_i64(load_u8(p), 0x39)


def _behind_digits(p: int, end: int) -> int:
    """The first address that has no digit."""
    while _is_digit(p, end):
        p = add_i64(p, 1)
    return p


def _is_escapable(c: int) -> bool:
    is_sign = eq_i64(c, _QUOTE) or eq_i64(c, _ESCAPE) or eq_i64(c, 0x2F)
    return is_sign or eq_i64(c, 0x62) or eq_i64(c, 0x66) or eq_i64(c, 0x6E) or eq_i64(c, 0x72) or eq_i64(c, 0x74)


def _is_hexadecimal(c: int) -> bool:
    is_digit = ge_i64(c, _ZERO) and le_i64(c, 0x39)
    return is_digit or (ge_i64(c, 0x41) and le_i64(c, 0x46)) or (ge_i64(c, 0x61) and le_i64(c, 0x66))


def _is_character(p: int, end: int) -> bool:
    """Whether four digits at an address stand for a character, not for a half of a surrogate pair."""
    if lt_i64(sub_i64(end, p), 4):
        return False
    if eq_i64(or_i64(load_u8(p), 0x20), 0x64) and gt_i64(load_u8(add_i64(p, 1)), 0x37):
        return False
    k = i64(0)
    while lt_i64(k, 4):
        if not _is_hexadecimal(load_u8(add_i64(p, k))):
            return False
        k = add_i64(k, 1)
    return True


def _behind_text(p: int, end: int) -> int:
    """The address behind the quote that ends a text, with `TEXT` or `ESCAPED`; 0 where it has to be asked."""
    what = i64(TEXT)
    while lt_i64(p, end):
        c = load_u8(p)
        if eq_i64(c, _QUOTE):
            return or_i64(add_i64(p, 1), shl_i64(what, _WHAT))
        if lt_i64(c, 0x20):
            return i64(0)
        if eq_i64(c, _ESCAPE):
            what = i64(ESCAPED)
            p = add_i64(p, 1)
            if not lt_i64(p, end):
                return i64(0)
            if eq_i64(load_u8(p), 0x75):
                if not _is_character(add_i64(p, 1), end):
                    return i64(0)
                p = add_i64(p, 4)
            elif not _is_escapable(load_u8(p)):
                return i64(0)
        p = add_i64(p, 1)
    return i64(0)


def _kind_of_decimal(first: int, point: int, end: int) -> int:
    """`DECIMAL` of digits with a point that are written as the double is which they are read as: few, none too many, none too
    small. ``first`` is the address of the first digit."""
    if gt_i64(sub_i64(end, first), 16):
        return i64(OTHER_NUMBER)
    if gt_i64(sub_i64(end, point), 2) and eq_i64(load_u8(sub_i64(end, 1)), _ZERO):
        return i64(OTHER_NUMBER)
    if ne_i64(load_u8(first), _ZERO) or ne_i64(load_u8(add_i64(point, 1)), _ZERO):
        return i64(DECIMAL)
    return i64(DECIMAL) if eq_i64(sub_i64(end, point), 2) else i64(OTHER_NUMBER)


def _behind_number(p: int, end: int) -> int:
    """The address behind a number, with what it is; 0 where it has to be asked."""
    begin = p
    if eq_i64(load_u8(p), _MINUS):
        p = add_i64(p, 1)
    first = p
    p = _behind_digits(p, end)
    if eq_i64(p, first):
        return i64(0)
    is_zero = eq_i64(load_u8(first), _ZERO)
    if is_zero and gt_i64(sub_i64(p, first), 1):
        return i64(0)
    what = i64(INTEGER)
    if gt_i64(sub_i64(p, first), 18) or (is_zero and lt_i64(begin, first)):
        what = i64(OTHER_NUMBER)
    if lt_i64(p, end) and eq_i64(load_u8(p), _POINT):
        point = p
        p = _behind_digits(add_i64(p, 1), end)
        if eq_i64(p, add_i64(point, 1)):
            return i64(0)
        what = _kind_of_decimal(first, point, p)
    if lt_i64(p, end) and (eq_i64(load_u8(p), 0x65) or eq_i64(load_u8(p), 0x45)):
        p = add_i64(p, 1)
        if lt_i64(p, end) and (eq_i64(load_u8(p), 0x2B) or eq_i64(load_u8(p), _MINUS)):
            p = add_i64(p, 1)
        first = p
        p = _behind_digits(p, end)
        if eq_i64(p, first):
            return i64(0)
        what = i64(OTHER_NUMBER)
    return or_i64(p, shl_i64(what, _WHAT))


def _has(p: int, end: int, a: int, b: int, c: int) -> bool:
    """Whether behind an address are three letters."""
    if not lt_i64(add_i64(p, 3), end):
        return False
    return eq_i64(load_u8(add_i64(p, 1)), a) and eq_i64(load_u8(add_i64(p, 2)), b) and eq_i64(load_u8(add_i64(p, 3)), c)


def _behind_word(p: int, end: int) -> int:
    """The address behind null, true or false, with what it is; 0 for anything else."""
    c = load_u8(p)
    if eq_i64(c, 0x6E) and _has(p, end, 0x75, 0x6C, 0x6C):
        return or_i64(add_i64(p, 4), shl_i64(NULL, _WHAT))
    if eq_i64(c, 0x74) and _has(p, end, 0x72, 0x75, 0x65):
        return or_i64(add_i64(p, 4), shl_i64(TRUE, _WHAT))
    if eq_i64(c, 0x66) and _has(p, end, 0x61, 0x6C, 0x73) and lt_i64(add_i64(p, 4), end):
        if eq_i64(load_u8(add_i64(p, 4)), 0x65):
            return or_i64(add_i64(p, 5), shl_i64(FALSE, _WHAT))
    return i64(0)


def _behind_scalar(p: int, end: int) -> int:
    """The address behind a value that is no object and no array, with what it is; 0 where it has to be asked."""
    c = load_u8(p)
    if eq_i64(c, _QUOTE):
        return _behind_text(add_i64(p, 1), end)
    if eq_i64(c, _MINUS) or _is_digit(p, end):
        return _behind_number(p, end)
    return _behind_word(p, end)


def _is_name(p: int, size: int, steps: Pointer, number: int) -> bool:
    """Whether so many bytes are the name of a step."""
    at = add_i64(1, mul_i64(number, STEP))
    if ne_i64(load_i64(steps, add_i64(at, 2)), size):
        return False
    name, k = load_i64(steps, add_i64(at, 1)), i64(0)
    while lt_i64(k, size):
        if ne_i64(load_u8(add_i64(p, k)), load_u8(add_i64(name, k))):
            return False
        k = add_i64(k, 1)
    return True


def _is_next(depth: int, found: Pointer, at: int) -> bool:
    """Whether what is in the innermost object or array may be on the path."""
    return eq_i64(depth, load_i64(found, add_i64(at, LEVEL))) and eq_i64(load_i64(found, add_i64(at, DONE)), 0)


def _take_name(p: int, behind: int, depth: int, steps: Pointer, found: Pointer, at: int) -> int:
    """Note a name that begins behind an address; 0 where it has to be asked."""
    is_plain = eq_i64(shr_i64(behind, _WHAT), TEXT)
    if not is_plain:
        store_i64(found, add_i64(at, COMPACT), i64(0))
    if _is_next(depth, found, at):
        if not is_plain:
            return i64(0)
        size = sub_i64(sub_i64(and_i64(behind, _ADDRESS), p), 2)
        hits = from_bool(_is_name(add_i64(p, 1), size, steps, sub_i64(load_i64(found, add_i64(at, LEVEL)), 1)))
        store_i64(found, add_i64(at, HITS), hits)
    return i64(1)


def _take_comma(depth: int, steps: Pointer, found: Pointer, at: int) -> None:
    """Note that another value of an array comes."""
    level = load_i64(found, add_i64(at, LEVEL))
    if eq_i64(depth, level):
        place = add_i64(load_i64(found, add_i64(at, PLACE)), 1)
        wanted = load_i64(steps, add_i64(1, mul_i64(sub_i64(level, 1), STEP)))
        store_i64(found, add_i64(at, PLACE), place)
        store_i64(found, add_i64(at, HITS), from_bool(eq_i64(place, wanted)))


def _begin_value(depth: int, found: Pointer, at: int) -> bool:
    """Note that a value begins; whether it is on the path."""
    target = load_i64(found, add_i64(at, TARGET))
    if ge_i64(target, 0) and eq_i64(depth, add_i64(target, 1)):
        store_i64(found, add_i64(at, ELEMENTS), add_i64(load_i64(found, add_i64(at, ELEMENTS)), 1))
    return _is_next(depth, found, at) and eq_i64(load_i64(found, add_i64(at, HITS)), 1)


def _take_scalar(p: int, behind: int, depth: int, steps: Pointer, found: Pointer, at: int) -> None:
    """Note a value that is no object and no array."""
    kind = shr_i64(behind, _WHAT)
    if _begin_value(depth, found, at):
        store_i64(found, add_i64(at, DONE), i64(1))
        if eq_i64(load_i64(found, add_i64(at, LEVEL)), load_i64(steps, 0)):
            store_i64(found, at, kind)
            store_i64(found, add_i64(at, START), p)
            store_i64(found, add_i64(at, SIZE), sub_i64(and_i64(behind, _ADDRESS), p))
    if eq_i64(kind, ESCAPED) or eq_i64(kind, OTHER_NUMBER):
        store_i64(found, add_i64(at, COMPACT), i64(0))


def _open(p: int, is_object: int, depth: int, steps: Pointer, found: Pointer, at: int) -> None:
    """Note an object or array that begins."""
    if _begin_value(depth, found, at):
        level = load_i64(found, add_i64(at, LEVEL))
        if eq_i64(level, load_i64(steps, 0)):
            store_i64(found, at, sub_i64(ARRAY, is_object))
            store_i64(found, add_i64(at, START), p)
            store_i64(found, add_i64(at, TARGET), depth)
            store_i64(found, add_i64(at, COMPACT), i64(1))
            store_i64(found, add_i64(at, DONE), i64(1))
        else:  # it goes on to a place in an array, or to a name, if there is one
            step = add_i64(1, mul_i64(level, STEP))
            wanted = load_i64(steps, add_i64(step, mul_i64(is_object, 2)))
            if lt_i64(wanted, 0):
                store_i64(found, add_i64(at, DONE), i64(1))
            else:
                store_i64(found, add_i64(at, LEVEL), add_i64(level, 1))
                store_i64(found, add_i64(at, PLACE), i64(0))
                store_i64(found, add_i64(at, HITS), from_bool(eq_i64(wanted, 0) and eq_i64(is_object, 0)))


def _close(p: int, depth: int, found: Pointer, at: int) -> None:
    """Note that an object or array ends at an address, within so many others."""
    if gt_i64(load_i64(found, add_i64(at, LEVEL)), depth):  # the first value of a name is found, and no other
        store_i64(found, add_i64(at, LEVEL), depth)
        store_i64(found, add_i64(at, DONE), i64(1))
    if eq_i64(load_i64(found, add_i64(at, TARGET)), depth):
        compact = load_i64(found, add_i64(at, COMPACT))
        store_i64(found, add_i64(at, SIZE), sub_i64(p, load_i64(found, add_i64(at, START))))
        store_i64(found, add_i64(at, TARGET), i64(-1))
        store_i64(found, at, add_i64(load_i64(found, at), shl_i64(compact, 1)))


def _ends(expected: int, c: int, objects: int) -> bool:
    """Whether a byte ends the innermost object or array. A brace is 32 behind a bracket."""
    if ne_i64(c, add_i64(_CLOSE_ARRAY, shl_i64(and_i64(objects, 1), 5))):
        return False
    return eq_i64(expected, _NEXT) or eq_i64(expected, _FIRST_NAME) or eq_i64(expected, _FIRST_VALUE)


def find_json(begin: int, end: int, steps: Pointer, found: Pointer, at: int) -> None:
    """What a path leads to in the bytes from one address to another. ``steps`` is their number, and `STEP` words of each;
    ``found`` gets `FOUND` words from ``at`` on: they are 0 before."""
    store_i64(found, add_i64(at, START), begin)
    store_i64(found, add_i64(at, HITS), i64(1))
    store_i64(found, add_i64(at, TARGET), i64(-1))
    store_i64(found, at, i64(MISSING))
    if ne_i64(_read_bytes(begin, end, steps, found, at), _END):
        store_i64(found, at, i64(ASK))
    store_i64(found, add_i64(at, START), sub_i64(load_i64(found, add_i64(at, START)), begin))


def _read_bytes(p: int, end: int, steps: Pointer, found: Pointer, at: int) -> int:
    """Go through all bytes: what may come behind them, `_END` of what is JSON."""
    expected, depth, objects = i64(_VALUE), i64(0), i64(0)  # what is open, the innermost the lowest bit: 1 of an object
    while lt_i64(p, end):
        c = load_u8(p)
        behind = add_i64(p, 1)
        if _is_space(c):
            store_i64(found, add_i64(at, COMPACT), i64(0))
        elif gt_i64(depth, 0) and _ends(expected, c, objects):
            depth, objects = sub_i64(depth, 1), shr_i64(objects, 1)
            _close(behind, depth, found, at)
            expected = _behind_value(depth)
        elif eq_i64(expected, _NEXT) and eq_i64(c, _COMMA):
            expected = i64(_NAME)
            if eq_i64(and_i64(objects, 1), 0):
                _take_comma(depth, steps, found, at)
                expected = i64(_VALUE)
        elif eq_i64(expected, _COLON) and eq_i64(c, _COLON_SIGN):
            expected = i64(_VALUE)
        elif (eq_i64(expected, _FIRST_NAME) or eq_i64(expected, _NAME)) and eq_i64(c, _QUOTE):
            behind = _behind_text(behind, end)
            if eq_i64(behind, 0) or eq_i64(_take_name(p, behind, depth, steps, found, at), 0):
                return i64(_VALUE)
            behind, expected = and_i64(behind, _ADDRESS), i64(_COLON)
        elif gt_i64(expected, _FIRST_VALUE) or ge_i64(depth, _DEEPEST):
            return i64(_VALUE)
        elif eq_i64(c, _OPEN_OBJECT) or eq_i64(c, _OPEN_ARRAY):
            is_object = from_bool(eq_i64(c, _OPEN_OBJECT))
            _open(p, is_object, depth, steps, found, at)
            depth, objects = add_i64(depth, 1), or_i64(shl_i64(objects, 1), is_object)
            expected = add_i64(_FIRST_VALUE, is_object)
        else:
            behind = _behind_scalar(p, end)
            if eq_i64(behind, 0):
                return i64(_VALUE)
            _take_scalar(p, behind, depth, steps, found, at)
            behind, expected = and_i64(behind, _ADDRESS), _behind_value(depth)
        p = behind
    return expected


def _behind_value(depth: int) -> int:
    return i64(_END) if eq_i64(depth, 0) else i64(_NEXT)
