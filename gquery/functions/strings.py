# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Functions of strings.

Bodies work on ``STR`` registers, (address, length) of UTF-8 bytes, and give numbers, truth values or views of their
argument. Functions that make new strings are host functions over Python's `str`: the engine runs them once an entry of
a dictionary, or once a row on the host.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from gquery.dtypes import BIGINT, BOOLEAN, INTEGER, VARCHAR, Bounds
from gquery.errors import DataError
from gquery.expr import Call, Expr, Literal
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


@scalar("ascii ord unicode", (_S, INTEGER), bounds=lambda s: Bounds(-1, 0x10FFFF), example=("ascii('a')", "97"))
def ascii(s: Str) -> int:  # noqa: A001
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


# ---- new strings, on the host ----------------------------------------------------------------------------------------


@scalar("_trim_set", (_SS, VARCHAR), host=True)
def trim_set(s: str, characters: str) -> str:
    """Without some characters at both ends."""
    return s.strip(characters) if characters else s


@scalar("_ltrim_set", (_SS, VARCHAR), host=True)
def ltrim_set(s: str, characters: str) -> str:
    """Without some characters at the start."""
    return s.lstrip(characters) if characters else s


@scalar("_rtrim_set", (_SS, VARCHAR), host=True)
def rtrim_set(s: str, characters: str) -> str:
    """Without some characters at the end."""
    return s.rstrip(characters) if characters else s


@resolver("trim", "$(VARCHAR, characters)", example=("trim('xxaxx', 'x')", "a"))
def _trim(s: Expr, characters: Expr) -> Expr:
    """Without some characters at both ends."""
    return call("_trim_set", s, characters)


@resolver("ltrim", "$(VARCHAR, characters)")
def _ltrim(s: Expr, characters: Expr) -> Expr:
    """Without some characters at the start."""
    return call("_ltrim_set", s, characters)


@resolver("rtrim", "$(VARCHAR, characters)")
def _rtrim(s: Expr, characters: Expr) -> Expr:
    """Without some characters at the end."""
    return call("_rtrim_set", s, characters)


@scalar("lower lcase", (_S, VARCHAR), host=True, example=("lower('GQuery')", "gquery"))
def lower(s: str) -> str:
    """In lower case, character by character."""
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in s)


@scalar("upper ucase", (_S, VARCHAR), host=True, example=("upper('gquery')", "GQUERY"))
def upper(s: str) -> str:
    """In upper case, character by character."""
    return "".join(c.upper() if len(c.upper()) == 1 else c for c in s)


@scalar("concat", (_SS, VARCHAR), host=True, example=("'g' || 'query'", "gquery"))
def concat(a: str, b: str) -> str:
    """Two strings joined: ``a || b``. ``concat(...)`` takes any values and passes over NULLs."""
    return a + b


@resolver("concat", "$(any, ...) -> VARCHAR", example=("concat('a', NULL, 1)", "a1"))
def _concat(first: Expr, *more: Expr) -> Expr:
    """All values as text, joined; NULLs are passed over."""
    joined: Expr | None = None
    for e in (first, *more):
        if is_null_literal(e):
            continue
        text = cast(e, VARCHAR)
        if text.nullable:
            text = call("coalesce", text, Literal("", VARCHAR))
        joined = text if joined is None else make("concat", (joined, text), VARCHAR)
    return Literal("", VARCHAR) if joined is None else joined


@resolver("_concat_operator", "any || any -> VARCHAR")
def _concat_operator(a: Expr, b: Expr) -> Expr:
    """``a || b``: NULL with a NULL."""
    return make("concat", (cast(a, VARCHAR), cast(b, VARCHAR)), VARCHAR)


@scalar("replace", ((VARCHAR, VARCHAR, VARCHAR), VARCHAR), host=True, example=("replace('aba', 'a', 'c')", "cbc"))
def replace(s: str, old: str, new: str) -> str:
    """Every ``old`` in s replaced."""
    return s.replace(old, new) if old else s


@scalar("reverse", (_S, VARCHAR), host=True, example=("reverse('abc')", "cba"))
def reverse(s: str) -> str:
    """The characters from last to first."""
    return s[::-1]


@scalar("repeat", (_SI, VARCHAR), host=True, example=("repeat('ab', 2)", "abab"))
def repeat(s: str, count: int) -> str:
    """The string some times over."""
    return s * max(0, count)


def _padding(s: str, count: int, fill: str) -> str:
    missing = count - len(s)
    if missing > 0 and not fill:
        raise DataError("insufficient padding: the fill of LPAD or RPAD is empty")
    return (fill * (missing // len(fill) + 1))[:missing] if missing > 0 else ""


@scalar("lpad", ((VARCHAR, BIGINT, VARCHAR), VARCHAR), host=True, example=("lpad('7', 3, '0')", "007"))
def lpad(s: str, count: int, fill: str) -> str:
    """Filled up at the start to some characters, or cut to them."""
    return _padding(s, count, fill) + s[: max(0, count)]


@scalar("rpad", ((VARCHAR, BIGINT, VARCHAR), VARCHAR), host=True, example=("rpad('ab', 5, 'xy')", "abxyx"))
def rpad(s: str, count: int, fill: str) -> str:
    """Filled up at the end to some characters, or cut to them."""
    return s[: max(0, count)] + _padding(s, count, fill)


@scalar("chr", ((BIGINT,), VARCHAR), host=True, example=("chr(97)", "a"))
def chr_(code: int) -> str:
    """The character of a code point."""
    return chr(code)


@scalar("md5", (_S, VARCHAR), host=True, example=("md5('a')", "0cc175b9c0f1b6a831c399e269772661"))
def md5(s: str) -> str:
    """The MD5 hash in hexadecimal digits."""
    return hashlib.md5(s.encode(), usedforsecurity=False).hexdigest()


# ---- regular expressions, on the host --------------------------------------------------------------------------------


@lru_cache(256)
def _pattern(pattern: str, options: str = "") -> re.Pattern[str]:
    flags = {"i": re.IGNORECASE, "s": re.DOTALL, "m": re.MULTILINE}
    return re.compile(pattern, sum(flags.get(o, 0) for o in set(options)))


@lru_cache(1024)
def _like_pattern(pattern: str, escape: str, flags: int) -> re.Pattern[str]:
    parts: list[str] = []
    characters = iter(pattern)
    for c in characters:
        if escape and c == escape:
            parts.append(re.escape(next(characters, "")))
        else:
            parts.append(".*" if c == "%" else "." if c == "_" else re.escape(c))
    return re.compile("".join(parts), re.DOTALL | flags)


@scalar("_like_any", ((VARCHAR, VARCHAR, VARCHAR), BOOLEAN), host=True)
def like_any(s: str, pattern: str, escape: str) -> bool:
    """LIKE with a pattern that is not constant."""
    return _like_pattern(pattern, escape, 0).fullmatch(s) is not None


@scalar("_ilike_any", ((VARCHAR, VARCHAR, VARCHAR), BOOLEAN), host=True)
def ilike_any(s: str, pattern: str, escape: str) -> bool:
    """ILIKE with a pattern that is not constant."""
    return _like_pattern(pattern, escape, re.IGNORECASE).fullmatch(s) is not None


@scalar("regexp_matches", (_SS, BOOLEAN), ((VARCHAR, VARCHAR, VARCHAR), BOOLEAN), host=True,
        example=("regexp_matches('gquery', 'q.e')", "True"))  # fmt: skip
def regexp_matches(s: str, pattern: str, options: str = "") -> bool:
    """Whether a regular expression occurs in s."""
    return _pattern(pattern, options).search(s) is not None


@scalar("regexp_full_match", (_SS, BOOLEAN), host=True, example=("regexp_full_match('gquery', 'g.*')", "True"))
def regexp_full_match(s: str, pattern: str) -> bool:
    """Whether all of s is a regular expression; also ``s ~ pattern``."""
    return _pattern(pattern).fullmatch(s) is not None


@scalar("regexp_replace", ((VARCHAR, VARCHAR, VARCHAR), VARCHAR), ((VARCHAR, VARCHAR, VARCHAR, VARCHAR), VARCHAR),
        host=True, example=("regexp_replace('aab', 'a', 'x')", "xab"))  # fmt: skip
def regexp_replace(s: str, pattern: str, new: str, options: str = "") -> str:
    """The first match replaced; all of them with the option ``g``. ``\\1`` stands for a group."""
    return _pattern(pattern, options).sub(new, s, count=0 if "g" in options else 1)


@scalar("regexp_extract", (_SS, VARCHAR), ((VARCHAR, VARCHAR, BIGINT), VARCHAR), host=True,
        example=("regexp_extract('abc', '(b)(c)', 2)", "c"))  # fmt: skip
def regexp_extract(s: str, pattern: str, group: int = 0) -> str:
    """The first match, or a group of it; an empty string for none."""
    match = _pattern(pattern).search(s)
    return (match[group] or "") if match else ""


@resolver("concat_ws", "$(separator, any, ...) -> VARCHAR", example=("concat_ws('-', 'a', NULL, 'b')", "a-b"))
def _concat_ws(separator: Expr, first: Expr, *more: Expr) -> Expr:
    """All values as text with a separator between; NULLs are passed over."""
    joined: Expr | None = None
    for e in (first, *more):
        if is_null_literal(e):
            continue
        text = cast(e, VARCHAR)
        part: Expr = Call("concat", (cast(separator, VARCHAR), text), VARCHAR, text.nullable or separator.nullable)
        part = call("coalesce", part, Literal("", VARCHAR)) if part.nullable else part
        joined = part if joined is None else make("concat", (joined, part), VARCHAR)
    if joined is None:
        return Literal("", VARCHAR)
    # every part begins with the separator: drop the first
    skip = call("add", call("length", cast(separator, VARCHAR)), Literal(1, BIGINT))
    return make("_substring_from", (joined, cast(skip, BIGINT)), VARCHAR)
