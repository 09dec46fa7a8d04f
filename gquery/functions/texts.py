"""Text of values and values of text, as CAST has them: one place for constants, dictionaries and rows.

`value_of` and `text_of` work on physical values (see `gquery.expression.types`), so years outside 1 to 9999 and 128-bit decimals
need nothing of Python's own types. The spellings are those that DuckDB 1.5.5 takes and prints.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal
from typing import Any

import numpy as np

from gquery.expression.interval import interval_text
from gquery.expression.types import INT64, DType, Kind, type_bounds
from gquery.functions.calendar import (
    date_text,
    parse_date,
    parse_moment,
    parse_time,
    parse_timestamp,
    timestamp_text,
)
from gquery.functions.interval_texts import parse_interval
from gquery.runtime.pattern import pattern

SPACES = " \t\n\v\f\r"
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_DIGITS = r"\d(?:_?\d)*"
_NUMBER = pattern(rf"([+-]?)(?:({_DIGITS})(?:\.({_DIGITS})?)?|\.({_DIGITS}))(?:[eE]([+-]?{_DIGITS}))?", re.ASCII)
_BASES = pattern(r"0(?:[xX]([0-9a-fA-F](?:_?[0-9a-fA-F])*)|[bB]([01](?:_?[01])*))")
_SPECIAL = pattern(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
_MOST_EXPONENT = 2**15 - 1


def value_of(text: str, dtype: DType) -> Any:
    """The physical value that a text stands for; None where it stands for none.

    >>> value_of(" 1_000 ", DType(Kind.INTEGER)), value_of("0x1F", DType(Kind.INTEGER)), value_of("1__0", DType(Kind.INTEGER))
    (1000, 31, None)
    """
    match dtype.kind:
        case Kind.VARCHAR:
            return text
        case Kind.BOOLEAN:
            low = text.lower()
            return 1 if low in _TRUE else 0 if low in _FALSE else None
        case Kind.DATE:
            return parse_date(text)
        case Kind.TIMESTAMP:
            return parse_timestamp(text)
        case Kind.TIMESTAMPTZ:
            return parse_moment(text)
        case Kind.TIME:
            return parse_time(text)
        case Kind.INTERVAL:
            return _interval(text)
        case Kind.REAL | Kind.DOUBLE:
            return _real(text, dtype)
        case Kind.DECIMAL:
            return _decimal(text, dtype)
        case _:
            return _integer(text, dtype)


def text_of(value: Any, dtype: DType) -> str:
    """A physical value as CAST(... AS VARCHAR) prints it.

    >>> text_of(-5, DType(Kind.DECIMAL, 3, 2)), text_of(100, DType(Kind.DECIMAL, 3, 3)), text_of(1e16, DType(Kind.DOUBLE))
    ('-0.05', '.100', '1e+16')
    """
    match dtype.kind:
        case Kind.VARCHAR:
            return str(value)
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.DECIMAL:
            return decimal_text(int(value), dtype)
        case Kind.REAL:
            return _real_text(float(value))
        case Kind.DOUBLE:
            return _float_text(float(value), repr(float(value)))
        case Kind.DATE:
            return date_text(int(value))
        case Kind.TIMESTAMP:
            return timestamp_text(int(value))
        case Kind.TIMESTAMPTZ:
            return timestamp_text(int(value)) + "+00"
        case Kind.TIME:
            return timestamp_text(int(value)).partition(" ")[2]
        case Kind.INTERVAL:
            return interval_text(int(value))
        case _:
            return str(value)


def decimal_text(value: int, dtype: DType) -> str:
    """An unscaled decimal as DuckDB prints it: no 0 before the point where the type has no place for one."""
    scale = dtype.scale
    if not scale:
        return str(value)
    whole, fraction = divmod(abs(value), 10**scale)
    head = "" if dtype.precision == scale else str(whole)
    return f"{'-' if value < 0 else ''}{head}.{fraction:0{scale}d}"


def _real_text(value: float) -> str:
    """The shortest digits that give the same FLOAT; an exponent as for a DOUBLE."""
    real = np.float32(value)
    if np.float32(1e-4) <= abs(real) < np.float32(1e16):
        return str(np.format_float_positional(real, trim="0"))
    return _float_text(value, str(real))


def _float_text(value: float, text: str) -> str:
    if value != value:
        return "nan"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return text


def _interval(text: str) -> int | None:
    value = parse_interval(text)
    try:
        return None if value is None else value.packed
    except OverflowError:
        return None


def _real(text: str, dtype: DType) -> float | None:
    stripped = text.strip(SPACES)
    if _NUMBER.fullmatch(stripped) is None and _SPECIAL.fullmatch(stripped) is None:
        return None
    value = float(stripped)
    if dtype.kind is Kind.REAL:
        with np.errstate(over="ignore"):
            return float(np.float32(_odd(value, stripped)))
    return value


def _odd(value: float, text: str) -> float:
    """The double that was read, or the one beside it that is odd where the text lies between: rounded again, it is as if once.

    >>> _odd(1.0, "1"), _odd(1.0, "1.00000000000000000000001")
    (1.0, 1.0000000000000002)
    """
    if not math.isfinite(value) or _SPECIAL.fullmatch(text):
        return value
    exact = Decimal(text)
    is_even = not struct.unpack("<q", struct.pack("<d", value))[0] & 1
    return math.nextafter(value, math.inf if exact > value else -math.inf) if exact != value and is_even else value


def _fitting(value: int, dtype: DType) -> int | None:
    bounds = type_bounds(dtype) or INT64
    return value if bounds.low <= value <= bounds.high else None


def _integer(text: str, dtype: DType) -> int | None:
    start = text.lstrip(SPACES)
    if (other := _BASES.fullmatch(start)) is not None:
        return _fitting(int(other[1], 16) if other[1] else int(other[2], 2), dtype)
    match = _NUMBER.fullmatch(start.rstrip(SPACES))
    if match is None:
        return None
    sign, whole, fraction, bare, exponent = match.groups()
    if sign == "-" and dtype.kind.value.startswith("U") and start.strip("0") != "-":
        return None
    number = _exact(sign, whole, fraction or bare, exponent)
    return None if number is None else _fitting(number, dtype)


def _exact(sign: str, whole: str | None, fraction: str | None, exponent: str | None, scale: int = 0) -> int | None:
    """The number times 10**scale, rounded half away from zero; None where the exponent is beyond 16 bits."""
    power = int(exponent or 0)
    if abs(power) > _MOST_EXPONENT:
        return None
    digits = (whole or "") + (fraction or "")
    places = len((fraction or "").replace("_", "")) - power - scale
    number = int(digits.replace("_", "") or 0)
    if places <= 0:
        number = number * 10**-places if -places < 80 or not number else 10**80
    elif places > len(digits) + 1:
        number = 0
    else:
        factor: int = 10**places
        number = (number + factor // 2) // factor
    return -number if sign == "-" else number


def _decimal(text: str, dtype: DType) -> int | None:
    match = _NUMBER.fullmatch(text.strip(SPACES))
    if match is None:
        return None
    sign, whole, fraction, bare, exponent = match.groups()
    number = _exact(sign, whole, fraction or bare, exponent, dtype.scale)
    return None if number is None else _fitting(number, dtype)


__all__ = ["decimal_text", "text_of", "value_of"]
