"""Regular expressions: RE2's, as in DuckDB, over Arrow arrays.

RE2 looks at each byte of a string once, whatever the pattern. Arrow brings it, but not all that SQL asks of it: a match
of the whole string is a pattern with anchors, options are flags in front of it, and a group is taken by a name, which
the group that is asked for gets here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
import pyarrow as pa

from gquery.errors import BindError, DataError
from gquery.expression.expr import Case, Expr, IsNull, Literal
from gquery.expression.traverse import disjunction, pinned
from gquery.expression.types import BIGINT, BOOLEAN, VARCHAR
from gquery.functions.registry import LIST_RESOLVERS, call, host_scalar, is_null_literal, resolver
from gquery.functions.vectors import (
    Vector,
    by_parameters,
    fitting,
    from_numpy,
    null,
    room,
    scalar_text,
    strings,
    text_bytes,
    text_like,
)
from gquery.runtime.arrow_compute import pc
from gquery.runtime.pattern import pattern

_SS, _SSS = (VARCHAR, VARCHAR), (VARCHAR, VARCHAR, VARCHAR)
_NONE, _MATCH = scalar_text(""), from_numpy(np.zeros(1, np.int64))[0]
_PROBE = strings([""])  # a pattern is looked at where there is a row
_WANTED = "wanted"


@host_scalar("regexp_matches", (_SS, BOOLEAN), (_SSS, BOOLEAN),
        example=("regexp_matches('gquery', 'q.e')", "True"))  # fmt: skip
def regexp_matches(s: Vector, pattern: Vector, options: Vector = _NONE) -> Vector:
    """Whether a regular expression occurs in s. Options: ``c`` (case matters), ``i`` (it does not), ``l`` (the pattern is plain
    text), ``m``, ``n`` or ``p`` (``.`` matches no new line), ``s`` (it does)."""

    def matches(s: pa.Array, pattern: str, options: str) -> pa.Array:
        return _run(lambda p: pc.match_substring_regex(s, p), _prepared(pattern, options))

    return by_parameters(matches, s, pattern, options, gives=pa.bool_())


@host_scalar("regexp_full_match", (_SS, BOOLEAN), (_SSS, BOOLEAN),
        example=("regexp_full_match('gquery', 'g.*')", "True"))  # fmt: skip
def regexp_full_match(s: Vector, pattern: Vector, options: Vector = _NONE) -> Vector:
    """Whether all of s is a regular expression; also ``s ~ pattern`` and ``s SIMILAR TO pattern``."""

    def matches(s: pa.Array, pattern: str, options: str) -> pa.Array:
        prepared = _prepared(pattern, options)
        return _run(lambda p: pc.match_substring_regex(s, rf"\A(?:{p})\z"), prepared)

    return by_parameters(matches, s, pattern, options, gives=pa.bool_())


@host_scalar("regexp_replace", (_SSS, VARCHAR), ((VARCHAR, VARCHAR, VARCHAR, VARCHAR), VARCHAR),
        example=("regexp_replace('aab', 'a', 'x')", "xab"))  # fmt: skip
def regexp_replace(s: Vector, pattern: Vector, new: Vector, options: Vector = _NONE) -> Vector:
    """The first match replaced; all of them with the option ``g``. ``\\1`` stands for a group, ``\\0`` for the match."""

    def replaced(s: pa.Array, pattern: str, new: str, options: str) -> pa.Array:
        most = None if "g" in options else 1
        prepared = _prepared(pattern, options.replace("g", ""))
        by = _rewrite(prepared, new, most is None)
        if by is None:
            return s
        size = text_bytes(s)
        if most is None and by:  # each place between two bytes may match, and each group be all of the string
            size += _growth(s, prepared, by)
            room(size)
        if most is not None and _LOOKS_AROUND.search(prepared):
            most = None
            if not _is_anchored(prepared):
                prepared, by = _whole(prepared, by)
        return _run(lambda p: pc.replace_substring_regex(fitting(s, size), p, by, max_replacements=most), prepared)

    return by_parameters(replaced, s, pattern, new, options)


@host_scalar("regexp_extract", (_SS, VARCHAR), ((VARCHAR, VARCHAR, BIGINT), VARCHAR),
        ((VARCHAR, VARCHAR, BIGINT, VARCHAR), VARCHAR),
        example=("regexp_extract('abc', '(b)(c)', 2)", "c"))  # fmt: skip
def regexp_extract(s: Vector, pattern: Vector, group: Vector = _MATCH, options: Vector = _NONE) -> Vector:
    """The first match, or a group of it; an empty string for none."""

    def extracted(s: pa.Array, pattern: str, group: int, options: str) -> pa.Array:
        prepared = _with_group(_prepared(pattern, options), group)
        if prepared is None:
            return pc.if_else(s.is_valid(), text_like("", s), null(s.type))
        found = _run(lambda p: pc.extract_regex(s, p), prepared)
        return pc.if_else(s.is_valid(), pc.coalesce(found.field(0), text_like("", s)), null(s.type))

    return by_parameters(extracted, s, pattern, group, options)


@resolver("regexp_extract")
def _no_group(s: Expr, pattern: Expr, group: Expr) -> Expr | None:
    """The text of no group, which NULL names, is empty."""
    if not is_null_literal(group):
        return None
    return Case(((disjunction((IsNull(s), IsNull(pattern))), Literal(None, VARCHAR)),), Literal("", VARCHAR))


def _named_groups(args: Sequence[Expr]) -> Expr | None:
    """Groups that a list of constants names, as a struct."""
    from gquery.functions.structs import constant_names, struct_or_null

    if not 3 <= len(args) <= 4 or not args[2].dtype.is_list or any(a.dtype.is_opaque for a in (*args[:2], *args[3:])):
        return None
    names, pattern = constant_names(args[2], "groups of regexp_extract"), pinned(args[1])
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise BindError("regexp_extract with names of groups takes a pattern that is a constant")
    groups = len(_tokens(_prepared(pattern.value, ""))[0])
    if groups < len(names):
        raise BindError(f"regexp_extract: {len(names)} names, and {pattern.value!r} has {groups} groups")
    made = [(n, call("regexp_extract", args[0], pattern, Literal(i, BIGINT), *args[3:])) for i, n in enumerate(names, 1)]
    return struct_or_null(args[0], made)


LIST_RESOLVERS["regexp_extract"] = [_named_groups]


def unused_character(texts: pa.Array) -> str:
    """A character that none of some texts has, and that means nothing in a pattern."""
    for code in chain(range(32), range(0xE000, 0xF900), range(0xF0000, 0x10FFFE)):
        if not pc.any(pc.match_substring(texts, chr(code))).as_py():
            return chr(code)
    raise DataError("texts that have every character for private use cannot be taken apart")


def marked_matches(s: pa.Array, pattern: str, group: int, options: str) -> tuple[pa.Array, str, bool]:
    """Texts in which each match, or a group of it, stands between two characters that no text has, that character, and whether
    what stands there can be empty: RE2 has an empty text for a group that takes no part in a match."""
    prepared = _prepared(pattern, options)
    groups, _ = _tokens(prepared)
    if group > len(groups) or group > 9:
        few = f"there are {len(groups)}" if group > len(groups) else "9 can be asked for"
        raise DataError(f"regexp_extract_all: no group {group} of {pattern!r}; {few}")
    if _matches_nothing(prepared):
        raise DataError(f"regexp_extract_all: {pattern!r} matches empty texts, which is not supported")
    count = int(pc.sum(_run(lambda p: pc.count_substring_regex(s, p), prepared)).as_py() or 0)
    mark = unused_character(s)
    s = fitting(s, text_bytes(s) + _growth(s, prepared, f"\\{group}") + 2 * count * len(mark.encode()))
    made = _run(lambda p: pc.replace_substring_regex(s, p, f"{mark}\\{group}{mark}"), prepared)
    if not group:
        return made, mark, True
    inner = prepared[groups[group - 1][1] : _end_of_group(prepared, groups[group - 1][1])]
    return made, mark, bool(_run(lambda p: pc.match_substring_regex(_PROBE, rf"\A(?:{p})\z"), inner)[0].as_py())


def _matches_nothing(prepared: str) -> bool:
    """Whether a match may be empty: at an end of a text, at a word's, or anywhere."""
    texts = strings(["", "a", " ", "\n", "a b"])
    wanted = _with_group(prepared, 0)
    assert wanted is not None
    found = _run(lambda p: pc.extract_regex(texts, p), wanted)
    is_empty = pc.and_(found.is_valid(), pc.equal(found.field(0), text_like("", texts)))
    return bool(pc.any(is_empty).as_py())


def _end_of_group(pattern: str, i: int) -> int:
    """The place of the parenthesis that closes the group whose inside begins at ``i``."""
    depth = 0
    while depth or pattern[i] != ")":
        c = pattern[i]
        if c == "\\":
            i = pattern.index("\\E", i) + 2 if pattern[i + 1] == "Q" else i + 2
        elif c == "[":
            i = _behind_class(pattern, i)
        else:
            depth += (c == "(") - (c == ")")
            i += 1
    return i


def _run(f: Callable[[str], pa.Array], pattern: str) -> pa.Array:
    try:
        return f(pattern)
    except pa.ArrowInvalid as error:
        raise DataError(str(error)) from None


def _growth(s: pa.Array, pattern: str, new: str) -> int:
    """The bytes that replacing all matches may add, at most."""
    matches = int(pc.sum(_run(lambda p: pc.count_substring_regex(s, p), pattern)).as_py() or 0)
    longest = int(pc.max(pc.binary_length(s)).as_py() or 0)
    return matches * (len(new.encode()) + (longest * new.count("\\") if "\\" in new else 0))


_LOOKS_AROUND = pattern(r"[\^$]|\\[bBAz]")
_FLAGS = {"c": "-i", "i": "i", "m": "-s", "n": "-s", "p": "-s", "s": "s"}


@lru_cache(256)
def _prepared(pattern: str, options: str) -> str:
    """A pattern with its options as flags; DataError where it is none."""
    flags, is_literal = {"i": False, "s": False}, False
    for option in options:
        if option == "l":
            is_literal = True
        elif option in _FLAGS:
            flags[_FLAGS[option][-1]] = not _FLAGS[option].startswith("-")
        elif not option.isspace():
            raise DataError(f"unknown option {option!r} of a regular expression; there are c, i, l, m, n, p, s, g")
    if is_literal:
        pattern = "".join(c if c.isalnum() or ord(c) > 127 else f"\\x{{{ord(c):x}}}" for c in pattern)
    else:
        _run(lambda p: pc.match_substring_regex(_PROBE, p), pattern)
        if _tokens(pattern)[1]:
            pattern += "\\E"
    on = "".join(f for f, is_on in flags.items() if is_on)
    return f"(?{on}:{pattern})" if on else pattern


@lru_cache(256)
def _is_anchored(prepared: str) -> bool:
    """Whether a pattern, for certain, matches at the beginning of a text alone: then its first match is all of them. It begins
    with an anchor that is no choice of several, and ``^`` means no line in it."""
    begins = re.match(r"(?:\(\?[is]+:)?(?:\^|\\A)(?![*+?{])", prepared)
    if begins is None or re.search(r"\(\?[a-zA-Z]*m", prepared):
        return False
    depth, i = 0, begins.end()
    while i < len(prepared):
        c = prepared[i]
        if c == "\\":
            if prepared[i + 1 : i + 2] == "Q":
                return False
            i += 2
            continue
        if c == "[":
            i = _behind_class(prepared, i)
            continue
        if c == "|" and depth <= 0:
            return False
        depth += (c == "(") - (c == ")")
        i += 1
    return True


def _whole(prepared: str, by: str) -> tuple[str, str]:
    """A pattern of the whole string around the first match, and what it is replaced by. (Arrow replaces a first match apart
    from what stands around it.)"""
    used = sorted({int(d) for d in re.findall(r"\\(?:\\|([0-9]))", by) if d})
    groups, _ = _tokens(prepared)
    out, at, numbers = [], 0, {0: 2}
    for number, (start, end) in enumerate(groups, 1):
        out += [prepared[at:start], "(" if number in used else "(?:"]
        if number in used:
            numbers[number] = len(numbers) + 2
        at = end
    inner = "".join([*out, prepared[at:]])
    if len(numbers) + 2 > 9:
        raise DataError("regexp_replace uses more than 7 groups of a pattern that looks at what stands around it")
    moved = re.sub(r"\\([0-9\\])", lambda m: f"\\{numbers[int(m[1])]}" if m[1] != "\\" else m[0], by)
    return rf"\A((?s:.*?))({inner})((?s:.*))\z", rf"\1{moved}\{len(numbers) + 2}"


def _rewrite(prepared: str, new: str, replaces_all: bool) -> str | None:
    """What a match is replaced by, as RE2 reads it; None where it replaces nothing, as ``new`` names a group that there is not.
    Behind a wrong escape one match stays, and of all each becomes what stands before it."""
    wrong, i = None, 0
    while (i := new.find("\\", i)) >= 0:
        following = new[i + 1 : i + 2]
        if following.isdecimal() and following.isascii():
            if int(following) > len(_tokens(prepared)[0]):
                return None
        elif following != "\\" and wrong is None:
            wrong = i
        i += 2
    if wrong is None:
        return new
    return new[:wrong] if replaces_all else None


@lru_cache(256)
def _tokens(pattern: str) -> tuple[tuple[tuple[int, int], ...], bool]:
    """Where the capturing groups of a pattern begin and where what names them ends, and whether it ends in an open quote."""
    groups: list[tuple[int, int]] = []
    i, n = 0, len(pattern)
    while i < n:
        c = pattern[i]
        if c == "\\":
            if pattern[i + 1 : i + 2] == "Q":
                end = pattern.find("\\E", i + 2)
                if end < 0:
                    return tuple(groups), True
                i = end
            i += 2
        elif c == "[":
            i = _behind_class(pattern, i)
        elif c == "(":
            if pattern[i + 1 : i + 2] != "?":
                groups.append((i, i + 1))
            elif pattern[i + 2 : i + 3] == "<":  # newer versions of RE2 than DuckDB's name groups so
                raise DataError(f"invalid perl operator: (?< in the regular expression {pattern!r}")
            elif pattern[i + 2 : i + 4] == "P<":
                groups.append((i, pattern.index(">", i) + 1))
            i += 1
        else:
            i += 1
    return tuple(groups), False


def _behind_class(pattern: str, i: int) -> int:
    """The place behind the class of characters that begins at ``i``."""
    i += 1
    if pattern[i : i + 1] == "^":
        i += 1
    if pattern[i : i + 1] == "]":
        i += 1
    while i < len(pattern) and pattern[i] != "]":
        if pattern[i] == "\\":
            i += 2
        elif pattern.startswith("[:", i) and ":]" in pattern[i:]:
            i = pattern.index(":]", i) + 2
        else:
            i += 1
    return i + 1


@lru_cache(256)
def _with_group(prepared: str, group: int) -> str | None:
    """A pattern in which only the group that is wanted captures, under a name; None where there is none. Group 0 is the
    match."""
    groups, _ = _tokens(prepared)
    if not 0 <= group <= 9:
        raise DataError(f"the group of regexp_extract is 0 to 9, not {group}")
    if group > len(groups):
        return None
    out, at = [], 0
    for number, (start, end) in enumerate(groups, 1):
        out += [prepared[at:start], f"(?P<{_WANTED}>" if number == group else "(?:"]
        at = end
    made = "".join([*out, prepared[at:]])
    return made if group else f"(?P<{_WANTED}>{made})"
