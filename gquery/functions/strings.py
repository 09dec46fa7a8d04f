# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Functions of strings.

Bodies work on ``STR`` registers, (address, length) of UTF-8 bytes, and give numbers, truth values or views of their
argument. Functions that make new strings stand in `gquery.functions.new_strings`.
"""

from __future__ import annotations

from gquery.expression.expr import Expr, Not
from gquery.expression.types import BIGINT, BOOLEAN, INTEGER, VARCHAR, Bounds
from gquery.functions.casts import cast
from gquery.functions.registry import call, is_null_literal, make, resolver, scalar

Str = tuple[int, int]
_LENGTH = Bounds(0, 2**40)
_S, _SS, _SI, _SII = (VARCHAR,), (VARCHAR, VARCHAR), (VARCHAR, BIGINT), (VARCHAR, BIGINT, BIGINT)


@scalar(
    "length len char_length character_length", (_S, BIGINT), bounds=lambda s: _LENGTH, example=("length('añb')", "3")
)
def length(s: Str) -> int:
    """How many characters a string has."""
    return str_length(s)


@scalar("strlen octet_length", (_S, BIGINT), bounds=lambda s: _LENGTH, example=("strlen('añb')", "4"))
def strlen(s: Str) -> int:
    """How many bytes a string has in UTF-8."""
    return str_bytes(s)


@scalar("unicode ord", (_S, INTEGER), bounds=lambda s: Bounds(-1, 0x10FFFF), example=("unicode('')", "-1"))
def unicode(s: Str) -> int:
    """The code point of the first character; -1 for an empty string."""
    if eq_i64(str_bytes(s), 0):
        return i64(-1)
    return str_ascii(s)


@scalar("ascii", (_S, INTEGER), bounds=lambda s: Bounds(0, 0x10FFFF), example=("ascii('a')", "97"))
def ascii(s: Str) -> int:  # noqa: A001  (SQL's name)
    """The code point of the first character; 0 for an empty string."""
    return str_ascii(s)


@scalar("starts_with prefix", (_SS, BOOLEAN), example=("starts_with('gquery', 'gq')", "True"))
def starts_with(s: Str, t: Str) -> bool:
    """Whether s begins with t."""
    return str_starts_with(s, t)


@scalar("ends_with suffix", (_SS, BOOLEAN), example=("ends_with('gquery', 'ry')", "True"))
def ends_with(s: Str, t: Str) -> bool:
    """Whether s ends with t."""
    return str_ends_with(s, t)


@scalar("contains", (_SS, BOOLEAN), example=("contains('gquery', 'que')", "True"))
def contains(s: Str, t: Str) -> bool:
    """Whether t occurs in s."""
    return str_contains(s, t)


@scalar("strpos instr position", (_SS, BIGINT), bounds=lambda s, t: _LENGTH, example=("strpos('gquery', 'q')", "2"))
def strpos(s: Str, t: Str) -> int:
    """The place of the first t in s, from 1; 0 where there is none. Also ``position(t IN s)``."""
    return str_position(s, t)


@scalar("split_part", ((VARCHAR, VARCHAR, BIGINT), VARCHAR), example=("split_part('a-b-c', '-', 2)", "b"))
def split_part(s: Str, separator: Str, place: int) -> Str:
    """The part at a place, from 1, or from the end where it is below 0; empty where there is none."""
    return str_part(s, separator, place)


@scalar("_substring", (_SII, VARCHAR))
def substring(s: Str, start: int, count: int) -> Str:
    """Some characters from a place, counted from 1, or from the end where it is negative."""
    return str_substring(s, start, count)


@scalar("_substring_from", (_SI, VARCHAR))
def substring_from(s: Str, start: int) -> Str:
    """All characters from a place."""
    return str_substring_from(s, start)


@resolver(
    "substring substr", "$(VARCHAR, start)", "$(VARCHAR, start, length)", example=("substring('gquery', 2, 3)", "que")
)
def _substring(s: Expr, start: Expr, count: Expr | None = None) -> Expr | None:
    """Some characters from a place, counted from 1, or from the end where it is negative."""
    args = (s, start) if count is None else (s, start, count)
    if not all(a.dtype.is_integer or is_null_literal(a) for a in args[1:]):
        return None
    if not (s.dtype == VARCHAR or is_null_literal(s)):
        return None
    name = "_substring_from" if count is None else "_substring"
    return make(name, (cast(s, VARCHAR), *(cast(a, BIGINT) for a in args[1:])), VARCHAR)


@scalar("_like_prepared", (_SS, BOOLEAN))
def like_prepared(s: Str, pattern: Str) -> bool:
    """LIKE with a pattern that is not constant, as `_like_pattern` prepares it."""
    return str_like(s, pattern)


@scalar("left", (_SI, VARCHAR), example=("left('gquery', 2)", "gq"))
def left(s: Str, count: int) -> Str:
    """The first characters; all but the last -count for a negative count."""
    return str_left(s, count)


@scalar("right", (_SI, VARCHAR), example=("right('gquery', 2)", "ry"))
def right(s: Str, count: int) -> Str:
    """The last characters; all but the first -count for a negative count."""
    return str_right(s, count)


@scalar("trim", (_S, VARCHAR), example=("trim('  a b ')", "a b"))
def trim(s: Str) -> Str:
    """Without spaces at both ends; ``trim(s, characters)`` drops those characters."""
    return str_trim(s)


@scalar("ltrim", (_S, VARCHAR), example=("ltrim('  a ')", "a "))
def ltrim(s: Str) -> Str:
    """Without spaces at the start."""
    return str_ltrim(s)


@scalar("rtrim", (_S, VARCHAR), example=("rtrim(' a  ')", " a"))
def rtrim(s: Str) -> Str:
    """Without spaces at the end."""
    return str_rtrim(s)


@scalar("_glob", (_SS, BOOLEAN), example=("'gquery' GLOB 'g[a-q]*y'", "True"))
def glob(s: Str, pattern: Str) -> bool:
    """Whether a string matches a pattern of the shell's: * any bytes, ? one, [a-c] one of some, [!a-c] one of all others."""
    return str_glob(s, pattern)


@resolver("like_escape", "$(VARCHAR, pattern, escape) -> BOOLEAN", example=("like_escape('a%', 'a$%', '$')", "True"))
def _like_escape(s: Expr, pattern: Expr, escape: Expr) -> Expr:
    """The function behind ``s LIKE pattern ESCAPE escape``."""
    return call("like", s, pattern, escape)


@resolver(
    "not_like_escape", "$(VARCHAR, pattern, escape) -> BOOLEAN", example=("not_like_escape('a%', 'a$%', '$')", "False")
)
def _not_like_escape(s: Expr, pattern: Expr, escape: Expr) -> Expr:
    """Its opposite."""
    return Not(call("like", s, pattern, escape))


@resolver("ilike_escape", "$(VARCHAR, pattern, escape) -> BOOLEAN", example=("ilike_escape('A%', 'a$%', '$')", "True"))
def _ilike_escape(s: Expr, pattern: Expr, escape: Expr) -> Expr:
    """The function behind ``s ILIKE pattern ESCAPE escape``."""
    return call("ilike", s, pattern, escape)


@resolver(
    "not_ilike_escape",
    "$(VARCHAR, pattern, escape) -> BOOLEAN",
    example=("not_ilike_escape('A%', 'a$%', '$')", "False"),
)
def _not_ilike_escape(s: Expr, pattern: Expr, escape: Expr) -> Expr:
    """Its opposite."""
    return Not(call("ilike", s, pattern, escape))
