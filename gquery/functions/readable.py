"""Numbers as people read them: sizes in bytes, and bars."""

from __future__ import annotations

import math

import pyarrow as pa

from gquery.errors import DataError
from gquery.expression.expr import Expr, Literal
from gquery.expression.types import BIGINT, DOUBLE, UBIGINT, VARCHAR
from gquery.functions.registry import by_signature, host_scalar, resolver
from gquery.functions.vectors import Vector, each_row
from gquery.runtime.pattern import pattern

_BINARY = ("KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL = ("kB", "MB", "GB", "TB", "PB")
_UNITS = {"b": 1, "byte": 1, "bytes": 1}
for _power, _prefix in enumerate(("kilo", "mega", "giga", "tera"), 1):
    _letter = _prefix[0]
    _UNITS |= dict.fromkeys((_letter, f"{_letter}b", f"{_prefix}byte", f"{_prefix}bytes"), 1000**_power)
    _UNITS[f"{_letter}ib"] = 1024**_power
_SIZE = pattern(r"\s*([-0-9.eE][-+0-9.eE]*)\s*(\S*)")
_PARTS = " ▏▎▍▌▋▊▉"
_FULL, _MOST_WIDTH = "█", 1000
_BAR = (((DOUBLE, DOUBLE, DOUBLE, DOUBLE), VARCHAR),)


def _size(n: int, base: int, units: tuple[str, ...]) -> str:
    """A number of bytes in the largest unit that it has one of, with a digit behind the point that is not rounded."""
    sign, left, power = "-" if n < 0 else "", abs(n), 0
    rest = 0
    while left >= base and power < len(units):
        left, rest = divmod(left, base)
        power += 1
    if not power:
        return f"{sign}{left} byte{'' if left == 1 else 's'}"
    return f"{sign}{left}.{rest * 10 // base} {units[power - 1]}"


@host_scalar(
    "formatreadablesize format_bytes pg_size_pretty", ((BIGINT,), VARCHAR), example=("format_bytes(1536)", "1.5 KiB")
)
def format_bytes(n: Vector) -> Vector:
    """A number of bytes in units of 1024."""
    return each_row(lambda n: _size(n, 1024, _BINARY), pa.string(), n)


@host_scalar("formatreadabledecimalsize", ((BIGINT,), VARCHAR), example=("formatReadableDecimalSize(1500)", "1.5 kB"))
def format_decimal_bytes(n: Vector) -> Vector:
    """A number of bytes in units of 1000."""
    return each_row(lambda n: _size(n, 1000, _DECIMAL), pa.string(), n)


@host_scalar("parse_formatted_bytes", ((VARCHAR,), UBIGINT), example=("parse_formatted_bytes('1.5KB')", "1500"),
             fails=(DataError, "parse_formatted_bytes takes a number from 0 and a unit: B, KB, KiB, MB, ..."))  # fmt: skip
def parse_formatted_bytes(s: Vector) -> Vector:
    """The bytes that a text like 1.5 KB or 3GiB says."""

    def parsed(s: str) -> int | None:
        found = _SIZE.match(s)
        try:
            number = float(found[1]) if found else -1.0
        except ValueError:
            return None
        unit = _UNITS.get(found[2].lower(), 0) if found else 0
        return int(number * unit) if unit and number >= 0 else None

    return each_row(parsed, pa.uint64(), s)


@host_scalar("_bar", *_BAR, fails=(DataError, "the width of a bar is a number of 1 to 1000"))
def bar(x: Vector, low: Vector, high: Vector, width: Vector) -> Vector:
    """`bar` with a width."""

    def drawn(x: float, low: float, high: float, width: float) -> str | None:
        if not 1 <= width <= _MOST_WIDTH:
            return None
        filled = 0.0
        if not (math.isnan(x) or math.isnan(low) or math.isnan(high) or x <= low):
            filled = width if x >= high else width * (x - low) / (high - low)
        if not math.isfinite(filled):
            return None
        eighths = int(filled * len(_PARTS))
        rest = eighths % len(_PARTS)
        return (_FULL * (eighths // len(_PARTS)) + (_PARTS[rest] if rest else "")).ljust(int(width))

    return each_row(drawn, pa.string(), x, low, high, width)


@resolver("bar", "$(x DOUBLE, min DOUBLE, max DOUBLE, width) -> VARCHAR", example=("bar(5, 0, 10, 4)", "██  "))
def _bar(x: Expr, low: Expr, high: Expr, width: Expr | None = None) -> Expr | None:
    """A bar as long as x lies between two numbers, in a width of 80 characters unless it is given."""
    return by_signature("_bar", (x, low, high, Literal(80.0, DOUBLE) if width is None else width), _BAR)
