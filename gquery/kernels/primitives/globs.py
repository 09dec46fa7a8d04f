"""GLOB: a pattern of ``*``, ``?``, ``[a-c]``, ``[!a-c]`` and ``\\``, byte by byte as DuckDB matches it."""

from __future__ import annotations

from gquery.kernels.primitives.python.integers import add_i64, eq_i64, i64, le_i64, lt_i64, ne_i64, xor_i64
from gquery.kernels.primitives.python.memory import load_u8
from gquery.kernels.primitives.python.strings import str_address, str_bytes
from gquery.kernels.primitives.python.values import Str

_ANY, _ONE, _OPEN, _CLOSE, _NOT, _TO, _LITERAL = 0x2A, 0x3F, 0x5B, 0x5D, 0x21, 0x2D, 0x5C  # * ? [ ] ! - and a backslash
_SIGN = 0x80  # bytes are compared as signed ones


def _behind_set(q: int, stop: int, byte: int) -> int:
    """The address behind a set, whose inside begins at ``q``, if ``byte`` is in it; 0 if it is not, or the set has no end."""
    wanted, found = i64(1), i64(0)
    if lt_i64(q, stop) and eq_i64(load_u8(q), _NOT):
        wanted = i64(0)
        q = add_i64(q, 1)
    start = q
    while lt_i64(q, stop):
        low = load_u8(q)
        if eq_i64(low, _CLOSE) and lt_i64(start, q):
            return add_i64(q, 1) if eq_i64(found, wanted) else i64(0)
        high = low
        if not lt_i64(add_i64(q, 1), stop):
            return i64(0)
        if eq_i64(load_u8(add_i64(q, 1)), _TO):
            if not lt_i64(add_i64(q, 2), stop):
                return i64(0)
            high = load_u8(add_i64(q, 2))
            q = add_i64(q, 2)
        signed = xor_i64(byte, _SIGN)
        if le_i64(xor_i64(low, _SIGN), signed) and le_i64(signed, xor_i64(high, _SIGN)):
            found = i64(1)
        q = add_i64(q, 1)
    return i64(0)


def _behind_one(q: int, stop: int, byte: int) -> int:
    """The address behind what matches ``byte`` at ``q`` in a pattern; 0 where it does not."""
    want = load_u8(q)
    if eq_i64(want, _ONE):
        return add_i64(q, 1)
    if eq_i64(want, _OPEN):
        return _behind_set(add_i64(q, 1), stop, byte)
    if eq_i64(want, _LITERAL):
        q = add_i64(q, 1)
        if not lt_i64(q, stop):
            return i64(0)
        want = load_u8(q)
    return add_i64(q, 1) if eq_i64(want, byte) else i64(0)


def str_glob(s: Str, pattern: Str) -> bool:
    """Whether a string matches; a mismatch goes back to the last * alone, as LIKE does to its last %."""
    p, q = str_address(s), str_address(pattern)
    end, stop = add_i64(p, str_bytes(s)), add_i64(q, str_bytes(pattern))
    after_any, mark = i64(0), i64(0)
    while True:
        if lt_i64(q, stop) and eq_i64(load_u8(q), _ANY):
            q = add_i64(q, 1)
            if eq_i64(q, stop):
                return True
            after_any, mark = q, p
        elif eq_i64(p, end):
            return eq_i64(q, stop)
        else:
            behind = i64(0)
            if lt_i64(q, stop):
                behind = _behind_one(q, stop, load_u8(p))
            if ne_i64(behind, 0):
                p, q = add_i64(p, 1), behind
            elif eq_i64(after_any, 0):
                return False
            else:
                mark = add_i64(mark, 1)
                p, q = mark, after_any
