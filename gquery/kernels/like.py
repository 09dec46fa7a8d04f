"""LIKE with a constant pattern: how it is prepared, and the lines that test it.

A pattern without ``_`` is a beginning, an end, and parts between that have to follow one another anywhere: what begins
and ends is compared, and the parts are searched for in one walk over the string, eight bytes at a time
(`primitives.search.str_has_parts`). Any other pattern is matched a code point at a time.
"""

from __future__ import annotations

from gquery.device.buffer import Buffer
from gquery.expression.expr import Literal
from gquery.expression.slots import decided
from gquery.kernels import ir
from gquery.kernels.code import Code
from gquery.kernels.patterns import ANY, ONE, like_pattern, part_table
from gquery.kernels.primitives.search import PART_WORDS
from gquery.kernels.slot_constants import array_of, string_of


def like(var: ir.Expression, pattern: Literal, escape: Literal, code: Code) -> ir.Expression:
    """A variable that says whether a string is LIKE a constant pattern. The text depends on the pattern's form alone."""
    literals = pattern, escape
    form = decided(_form, literals)
    if form is None:
        return code.let(code.call("str_like", var, string_of(like_pattern, literals, code)))
    has_start, has_end, parts = form

    def piece(n: int) -> ir.Name:
        return string_of(_piece, literals, code, n)

    if not parts and not (has_start and has_end):
        if has_start:
            return code.let(code.call("str_starts_with", var, piece(0)))
        return code.let(code.call("str_ends_with", var, piece(-1)))
    if has_start or has_end:
        var = code.let(code.call("str_inside", var, piece(0), piece(-1)))
    if not parts:
        return code.let(code.call("ge_i64", code.call("str_bytes", var), code.integer(0)))
    table = array_of(_table, literals, code, "i64")
    needles = string_of(_needles, literals, code)
    return code.let(code.call("str_has_parts", var, table, code.constant(parts * PART_WORDS), needles))


def pieces(pattern: str, escape: str) -> list[bytes] | None:
    """What stands before, between and behind the % of a pattern; None of one that is matched a code point at a time."""
    prepared = like_pattern(pattern, escape)
    return None if ONE in prepared or ANY not in prepared else prepared.split(bytes([ANY]))


def _pieces(pattern: str, escape: str) -> list[bytes]:
    """The same of a pattern that is known to have them."""
    return like_pattern(pattern, escape).split(bytes([ANY]))


def _form(pattern: str, escape: str) -> tuple[bool, bool, int] | None:
    """Whether a pattern has a beginning and an end, and how many parts between; None of one that is matched a code point at
    a time."""
    split = pieces(pattern, escape)
    if split is None:
        return None
    start, *parts, end = split
    return bool(start), bool(end), len(parts)


def _piece(pattern: str, escape: str, n: int) -> bytes:
    return _pieces(pattern, escape)[n]


def _needles(pattern: str, escape: str) -> bytes:
    return b"".join(_pieces(pattern, escape)[1:-1])


def _table(pattern: str, escape: str) -> Buffer:
    return Buffer(part_table(_pieces(pattern, escape)[1:-1]))
