"""`format` and `printf`: a text with values in the places that its specifications mark.

A pattern is taken apart once. One that is the same for all rows writes column by column (`format_columns`), others row by row
in Python. What a specification means stands in `format_specs`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa

from gquery.errors import DataError
from gquery.expression.expr import Expr
from gquery.expression.types import DOUBLE, VARCHAR, Kind
from gquery.functions.casts import cast
from gquery.functions.format_columns import Parts, filled_in
from gquery.functions.format_specs import Place, Spec, Value, written
from gquery.functions.registry import host_scalar, is_null_literal, make, resolver
from gquery.functions.vectors import Vector, each_row, is_constant
from gquery.runtime.pattern import pattern
from gquery.runtime.records import replace

_SS = (VARCHAR, VARCHAR)
_BITS = {"hh": 8, "h": 16}
_FIELD = pattern(
    r"(?:(?P<fill>[\x00-\x7f]?)(?P<align>[<>=^]))?(?P<sign>[-+ ]?)(?P<alternate>#?)(?P<zeros>0?)(?P<width>\d+|\{\d*\})?"
    r"(?:(?P<separator>[,_']|t[\x00-\x7f]))?(?:\.(?P<precision>\d+|\{\d*\}))?(?P<kind>[a-zA-Z]?)"
)
_DIRECTIVE = pattern(
    r"%(?:(?P<place>\d+)\$)?(?P<flags>[-+ #0]*)(?P<width>\d+|\*)?(?P<separator>[,_']?)(?:\.(?P<precision>\d+|\*)?)?"
    r"(?P<length>hh|h|ll|l|j|z|t|L|)(?P<kind>[a-zA-Z%])"
)


class _Numbering:
    """Which argument comes next: in turn, or as they are numbered, and never both."""

    def __init__(self) -> None:
        self.next, self.is_manual = 0, False

    def take(self, number: str | None) -> int:
        if (number and self.next) or (not number and self.is_manual):
            raise DataError("format: arguments are numbered in some places only")
        if number:
            self.is_manual = True
            return int(number)
        self.next += 1
        return self.next - 1


@lru_cache(256)
def _fields(pattern: str) -> Parts:
    """A pattern of format."""
    parts: list[tuple[str, int, Spec | None, int]] = []
    text, at, numbering = "", 0, _Numbering()
    while at < len(pattern):
        c = pattern[at]
        if c in "{}" and pattern[at + 1 : at + 2] == c:
            text, at = text + c, at + 2
        elif c == "}":
            raise DataError(f"format: a '}}' without a '{{' in {pattern!r}")
        elif c == "{":
            found = re.compile(r"\{(\d*)(?::)?").match(pattern, at)
            assert found is not None
            argument = numbering.take(found[1])
            end = found.end()
            spec = _FIELD.match(pattern, end) if found[0].endswith(":") else None
            end = end if spec is None else spec.end()
            if pattern[end : end + 1] != "}":
                raise DataError(f"format: no specification is {pattern[at:]!r}")
            parts.append((text, argument, Spec() if spec is None else _spec(spec, numbering), 0))
            text, at = "", end + 1
        else:
            text, at = text + c, at + 1
    return (*parts, (text, -1, None, 0))


def _spec(found: re.Match[str], numbering: _Numbering) -> Spec:
    def number(name: str) -> int | Place | None:
        given = found[name]
        if given is None:
            return None
        return Place(numbering.take(given[1:-1])) if given.startswith("{") else int(given)

    if found["separator"] and (
        found["width"] or found["sign"] or found["alternate"] or found["zeros"] or found["align"]
    ):
        raise DataError(f"format: a separator of thousands stands behind the colon, not in {found[0]!r}")
    width, precision = number("width"), number("precision")
    return Spec(
        found["kind"],
        found["fill"] or " ",
        found["align"] or "",
        found["sign"],
        bool(found["alternate"]),
        bool(found["zeros"]),
        width or 0,
        precision,
        (found["separator"] or "")[-1:],
    )


@lru_cache(256)
def _directives(pattern: str) -> Parts:
    """A pattern of printf."""
    parts: list[tuple[str, int, Spec | None, int]] = []
    text, at, numbering = "", 0, _Numbering()
    while at < len(pattern):
        if pattern[at] != "%":
            text, at = text + pattern[at], at + 1
            continue
        found = _DIRECTIVE.match(pattern, at)
        if found is None or (found["kind"] == "%" and found[0] != "%%"):
            raise DataError(f"printf: no directive is {pattern[at:]!r}")
        at = found.end()
        if found["kind"] == "%":
            text += "%"
            continue
        flags = found["flags"]
        if found["kind"] == "n" or (found["separator"] and (flags or found["width"])):
            raise DataError(f"printf: no directive is {found[0]!r}")
        width: int | Place = int(found["width"] or 0) if found["width"] != "*" else Place(numbering.take(None))
        precision: int | Place | None = None
        if found["precision"] == "*":
            precision = Place(numbering.take(None))
        elif "." in found[0]:
            precision = int(found["precision"] or 0)
        sign = "+" if "+" in flags else " " if " " in flags else ""
        place = None if found["place"] is None else str(int(found["place"]) - 1)
        spec = Spec(found["kind"], " ", "<" if "-" in flags else "", sign, "#" in flags, "0" in flags,
                    width, precision, found["separator"], True)  # fmt: skip
        parts.append((text, numbering.take(place), spec, _BITS.get(found["length"], 0)))
        text = ""
    return (*parts, (text, -1, None, 0))


def _filled_in(parts: Parts, values: tuple[Value, ...]) -> str:
    def argument(number: int) -> Value:
        if not 0 <= number < len(values):
            raise DataError(f"format: there is no argument {number + 1}")
        return values[number]

    def length(given: int | Place | None) -> int | None:
        if not isinstance(given, Place):
            return given
        found = argument(given.argument)
        if not isinstance(found, int):
            raise DataError("format: a width or precision that is no integer")
        return found

    made = ""
    for text, number, spec, bits in parts:
        made += text
        if spec is None:
            continue
        value, width = argument(number), length(spec.width) or 0
        if width < 0:
            spec, width = replace(spec, align="<"), -width
        if bits and isinstance(value, int):
            half = 0 if spec.kind in "uxXobB" else 1 << bits - 1
            value = (value + half) % (1 << bits) - half
        made += written(spec, value, width, length(spec.precision))
    return made


def _formatted(read: Callable[[str], Parts], pattern: Vector, values: tuple[Vector, ...]) -> pa.Array:
    if is_constant(pattern) and any(isinstance(v, pa.Array) and len(v) for v in values):
        made = filled_in(lambda: read(pattern.as_py()), values)
        if made is not None:
            return made
    return each_row(lambda p, *row: _filled_in(read(p), row), pa.string(), pattern, *values)


@host_scalar("_format", (_SS, VARCHAR))
def format_(pattern: Vector, *values: Vector) -> Vector:
    """`format`."""
    return _formatted(_fields, pattern, values)


@host_scalar("_printf", (_SS, VARCHAR))
def printf_(pattern: Vector, *values: Vector) -> Vector:
    """`printf`."""
    return _formatted(_directives, pattern, values)


def _call(name: str, pattern: Expr, values: tuple[Expr, ...]) -> Expr | None:
    if pattern.dtype != VARCHAR and not is_null_literal(pattern):
        return None
    return make(name, (cast(pattern, VARCHAR), *map(_plain, values)), VARCHAR)


def _plain(e: Expr) -> Expr:
    """A value as one that a specification knows: an integer, a DOUBLE, a BOOLEAN or a text."""
    if e.dtype.is_integer or e.dtype.kind in (Kind.BOOLEAN, Kind.DOUBLE):
        return e
    return cast(e, DOUBLE if e.dtype.is_numeric else VARCHAR)


@resolver("format", "$(VARCHAR, any, ...) -> VARCHAR", example=("format('{:>5} {:.2f}', 'a', 1.5)", "    a 1.50"))
def _format(pattern: Expr, *values: Expr) -> Expr | None:
    """A text with values in its braces: ``{}``, ``{0}``, ``{:05d}``, ``{:,}``, ``{:<8}``, ``{:.2f}``, ``{:x}``."""
    return _call("_format", pattern, values)


@resolver("printf", "$(VARCHAR, any, ...) -> VARCHAR", example=("printf('%5s %.2f', 'a', 1.5)", "    a 1.50"))
def _printf(pattern: Expr, *values: Expr) -> Expr | None:
    """A text with values in place of C's directives: ``%d``, ``%5s``, ``%-8s``, ``%.2f``, ``%05d``, ``%,d``, ``%x``."""
    return _call("_printf", pattern, values)
