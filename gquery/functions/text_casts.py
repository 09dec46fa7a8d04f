"""Casts of text over Arrow arrays to what it says.

What a text or a value looks like stands in `gquery.functions.texts`; here the same is done for all rows at once. Arrow
takes the plain forms. Where its answer would be another one, or it gives up a whole array for one row, rows are
told apart by their form; what is left of rare forms is asked for by value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.expression.types import TIMESTAMP, DType, Kind, type_bounds
from gquery.functions.interval_texts import from_texts
from gquery.functions.texts import SPACES, value_of
from gquery.functions.vectors import (
    characters_of,
    each_value,
    flags,
    from_numpy,
    integers,
    joined_texts,
    null,
    offsets_of,
    piecewise,
    scalar_text,
    scattered,
    strings,
    text_like,
)
from gquery.runtime.arrow_compute import pc
from gquery.runtime.records import dataclass

_MICROS = pa.timestamp("us")
_INFINITE = 2**63 - 1  # the microseconds of no finite moment, with either sign
_TRUE, _FALSE = strings(["true", "t", "yes", "y", "1"]), strings(["false", "f", "no", "n", "0"])
_SPACES = r"[ \t\n\v\f\r]*"
_PLAIN_INTEGER = r"\A-?[0-9]{1,18}\z"
_NINE, _POINT = ord("9"), ord(".")
_SHORT = 15  # characters of a number of which a double loses nothing
_MOST_DIGITS = 18  # of numbers that are surely held in 64 bits
_NUMBER = rf"\A{_SPACES}[+-]?[0-9._]+(?:[eE][+-]?[0-9_]+)?{_SPACES}\z|\A{_SPACES}0[xXbB][0-9a-fA-F_]+\z"
_REAL = rf"\A{_SPACES}[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?{_SPACES}\z"
_RARE_REAL = rf"(?i)\A{_SPACES}[+-]?(?:[0-9._]+(?:e[+-]?[0-9_]+)?|inf|infinity|nan){_SPACES}\z"
_PLAIN_DATE = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
_PLAIN_TIMESTAMP = r"\A[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?\z"
_PLAIN_TIME = r"\A[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?\z"
_RARE_TIME = r"[0-9][:/ \\-]"
_OFFSET = (  # as `calendar.parse_moment` has it: behind the minutes
    r":[0-9]{1,2}(?:\.[0-9]*)?(?:Z| [uU][tT][cC]|(?P<sign>[+-])(?P<hour>[0-9]{2})(?::?(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2}))?)?)[ \t\n\v\f\r]*\z"
)
_DATE_FIRST = b"-0123456789eEiI"
_RARE_DATE = r"(?i)\A[ \t\n\v\f\r]*-?(?:[0-9]+[-/ \\][0-9]|epoch|inf)"


# ---- to text ----------------------------------------------------------------------------------------------------------


Parse = Callable[[pa.Array], pa.Array]
Classes = tuple[tuple[str, Parse], ...]


def floats_of(values: pa.Array) -> Any:
    """The values of an array, 0 for NULL."""
    if not len(values):
        return np.zeros(0)
    width = f"f{values.type.bit_width // 8}"
    found = np.frombuffer(values.buffers()[1], width)[values.offset : values.offset + len(values)]
    return np.where(flags(values.is_valid()), found, found.dtype.type(0)) if values.null_count else found


def zero(type_: pa.DataType) -> pa.Scalar:
    return from_numpy(np.zeros(1, np.int64))[0].cast(type_)


def _decimal_scalar(value: int) -> pa.Scalar:
    return strings([str(value)]).cast(pa.decimal128(38, 0))[0]


# ---- from text --------------------------------------------------------------------------------------------------------


def from_text(texts: pa.Array, dtype: DType, type_: pa.DataType) -> pa.Array:
    """The values that texts stand for, in the Arrow type of ``dtype``; NULL where one stands for none."""
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), type_)
    match dtype.kind:
        case Kind.BOOLEAN:
            lower = pc.ascii_lower(texts)
            is_true, is_false = pc.is_in(lower, _TRUE.cast(texts.type)), pc.is_in(lower, _FALSE.cast(texts.type))
            return pc.if_else(pc.or_(is_true, is_false), is_true, null(pa.bool_()))
        case Kind.REAL | Kind.DOUBLE:
            return _reals(texts, dtype, type_)
        case Kind.DATE:
            dates = Forms(lambda t: t.cast(type_), ((_PLAIN_DATE, _dates),), _RARE_DATE, _DATE_FIRST)
            return _parsed(texts, dtype, type_, dates)
        case Kind.TIMESTAMP:
            times = Forms(_timestamps, ((_PLAIN_TIMESTAMP, _timestamps_of_parts),), _RARE_DATE, _DATE_FIRST)
            return _parsed(texts, dtype, type_, times)
        case Kind.TIMESTAMPTZ:
            return _moments(texts).view(type_)
        case Kind.TIME:
            times = Forms(_times, (), _RARE_TIME, b"0123456789")
            return _parsed(texts, dtype, type_, times)
        case Kind.INTERVAL:
            return from_texts(texts)
        case Kind.DECIMAL:
            return _parsed(texts, dtype, type_, _decimal_forms(dtype, type_))
        case _:
            return _parsed(texts, dtype, type_, _integer_forms(dtype, type_))


def _decimal_forms(dtype: DType, type_: pa.DataType) -> Forms:
    exact = (_number_of(38 - dtype.scale, dtype.scale), lambda t: _decimals(t, dtype, type_))
    classes = (exact, (_number_of(_MOST_DIGITS - dtype.scale), lambda t: _rounded(t, dtype, type_)))
    return Forms(lambda t: _plain_decimals(t, dtype, type_), classes, _NUMBER)


def _integer_forms(dtype: DType, type_: pa.DataType) -> Forms:
    classes: Classes = (
        (_PLAIN_INTEGER, lambda t: _in_range(t.cast(pa.int64()), dtype, type_)),
        (_number_of(_MOST_DIGITS), lambda t: _rounded(t, dtype, type_)),
    )
    if dtype.kind.value.startswith("U"):  # -0.4 is none
        classes = classes[:1]
    return Forms(lambda t: _plain_integers(t, type_), classes, _NUMBER)


def _number_of(digits: int, places: int | None = None) -> str:
    """The pattern of numbers of so many digits in front of the point, and behind it (None: any)."""
    if digits < 1:
        return r"[^\x00-\x{10FFFF}]"  # none
    return rf"\A[+-]?[0-9]{{1,{digits}}}(?:\.[0-9]{'*' if places is None else f'{{0,{places}}}'})?\z"


@dataclass(frozen=True)
class Forms:
    """The texts that stand for values of a type: ``all_plain`` reads them if each has a plain form, ``classes`` are further
    forms (a pattern, and how to read it), and a text that matches ``possible`` may be one of the rest. All begin with a space or
    one of ``first``."""

    all_plain: Parse
    classes: Classes
    possible: str
    first: bytes = b"+-.0123456789"


def _parsed(texts: pa.Array, dtype: DType, type_: pa.DataType, forms: Forms) -> pa.Array:
    """All texts at once where each has a plain form. Else each class of forms at once, and what may still be one value by
    value."""
    valid = flags(texts.is_valid())
    left = valid & _begins_with(texts, forms.first)
    if np.array_equal(left, valid):  # Arrow takes long over an array to give it up
        try:
            return forms.all_plain(texts)
        except pa.ArrowInvalid:
            pass
    made = pa.nulls(len(texts), type_)
    if not left.any():
        return made
    if left.sum() * 2 < len(texts):  # the rest is not looked at again
        few = texts.take(from_numpy(np.flatnonzero(left)))
        return scattered(_parsed(few, dtype, type_, forms), np.flatnonzero(left), len(texts))
    for pattern, parse in forms.classes:
        here = left & flags(pc.match_substring_regex(texts, pattern))
        if here.any():
            made = pc.coalesce(made, piecewise(texts, here, parse, type_))
            left &= ~here
    left &= flags(pc.match_substring_regex(texts, forms.possible)) if left.any() else left
    if left.any():
        made = pc.coalesce(made, piecewise(texts, left, lambda t: _by_value(t, dtype, type_), type_))
    return made


def _begins_with(texts: pa.Array, first: bytes) -> Any:
    """Which texts begin with a space or one of these characters."""
    table = np.zeros(256, np.bool_)
    table[list(first + SPACES.encode())] = True
    offsets, data = offsets_of(texts), characters_of(texts)
    if not len(data):
        return np.zeros(len(texts), np.bool_)
    return table[data[np.minimum(offsets[:-1], len(data) - 1)]] & (offsets[1:] > offsets[:-1])


def _by_value(texts: pa.Array, dtype: DType, type_: pa.DataType) -> pa.Array:
    storage = {Kind.DATE: pa.int32(), Kind.TIMESTAMP: pa.int64(), Kind.TIME: pa.int64()}.get(dtype.kind, type_)
    if dtype.kind is Kind.DECIMAL:
        return _scaled(each_value(texts, lambda t: value_of(t, dtype), pa.decimal128(38, 0)), type_)
    return each_value(texts, lambda t: value_of(t, dtype), storage).view(type_)


def _scaled(unscaled: pa.Array, type_: pa.DataType) -> pa.Array:
    """Unscaled numbers as decimals of a type."""
    return pa.Array.from_buffers(type_, len(unscaled), unscaled.buffers(), unscaled.null_count, unscaled.offset)


def _bytes_of(texts: pa.Array) -> Any:
    offsets = offsets_of(texts)
    return characters_of(texts)[offsets[0] : offsets[-1]]


def _greatest(texts: pa.Array) -> int:
    """The greatest byte of texts: letters come behind digits."""
    data = _bytes_of(texts)
    return int(data.max()) if len(data) else 0


def _has_point(texts: pa.Array) -> bool:
    return bool((_bytes_of(texts) == _POINT).any())


def _plain_integers(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    if _greatest(texts) > _NINE:
        raise pa.ArrowInvalid("hexadecimal numbers, of which Arrow wraps those beyond the type, or exponents")
    return _rounded_integers(texts, type_) if _has_point(texts) else texts.cast(type_)


def _decimals(texts: pa.Array, dtype: DType, type_: pa.DataType) -> pa.Array:
    wide = texts.cast(pa.decimal128(38, dtype.scale))
    return _scaled(_in_range(wide, dtype, type_), type_)


def _plain_decimals(texts: pa.Array, dtype: DType, type_: pa.DataType) -> pa.Array:
    longest = pc.max(pc.binary_length(texts)).as_py()
    if longest > 38 - dtype.scale or _greatest(texts) > _NINE:
        raise pa.ArrowInvalid("Arrow wraps what is beyond 128 bits")
    if longest <= dtype.precision - dtype.scale:  # whatever the digits are
        return texts.cast(type_)
    return _decimals(texts, dtype, type_)


def _rounded_integers(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    """Integers of short numbers, rounded half away from zero."""
    lengths = pc.binary_length(texts)
    if pa.types.is_unsigned_integer(type_) or pc.max(lengths).as_py() > _SHORT:
        raise pa.ArrowInvalid("digits that a double does not hold")
    numbers = floats_of(texts.cast(pa.float64()))
    rounded = np.copysign(np.floor(np.abs(numbers) + 0.5), numbers)
    limit = np.iinfo(f"i{type_.bit_width // 8}")
    ok = flags(texts.is_valid()) & (rounded >= limit.min) & (rounded <= limit.max)
    return from_numpy(np.where(ok, rounded, 0).astype(np.int64), ok).cast(type_)


def _in_range(values: pa.Array, dtype: DType, type_: pa.DataType) -> pa.Array:
    """Numbers in a narrower type, NULL where they do not fit."""
    bounds = type_bounds(dtype)
    assert bounds is not None
    if values.type == type_ and not dtype.is_decimal:
        return values
    if dtype.is_decimal:
        whole = _scaled(values, pa.decimal128(38, 0))
        limit = _decimal_scalar(bounds.high)
        inside = pc.and_(pc.less_equal(whole, limit), pc.greater_equal(whole, pc.negate(limit)))
        return pc.if_else(inside, values, null(values.type))
    low, high = max(bounds.low, -(2**63)), min(bounds.high, 2**63 - 1)
    numbers = integers(values, len(values))
    inside = (numbers >= low) & (numbers <= high) & flags(values.is_valid())
    return from_numpy(np.where(inside, numbers, 0), inside).cast(type_)


def _rounded(texts: pa.Array, dtype: DType, type_: pa.DataType) -> pa.Array:
    """Numbers of up to 18 digits in all, rounded half away from zero. (Arrow's rounding of decimals loses a carry.)"""
    parts = pc.extract_regex(texts, r"\A[+-]?(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?\z")
    whole, fraction = (pc.struct_field(parts, n) for n in (0, 1))
    fraction = pc.ascii_rpad(fraction, dtype.scale + 1, "0")
    digits = joined_texts(whole, pc.utf8_slice_codeunits(fraction, 0, dtype.scale))
    is_up = flags(pc.greater_equal(pc.utf8_slice_codeunits(fraction, dtype.scale, dtype.scale + 1), scalar_text("5")))
    size = integers(digits.cast(pa.int64()), len(texts)) + is_up
    value = np.where(flags(pc.starts_with(texts, "-")), -size, size)
    bounds = type_bounds(dtype)
    assert bounds is not None
    ok = (value >= max(bounds.low, -(2**63))) & (value <= min(bounds.high, 2**63 - 1))
    made = from_numpy(np.where(ok, value, 0), ok)
    return _scaled(made.cast(pa.decimal128(38, 0)), type_) if dtype.is_decimal else made.cast(type_)


def _reals(texts: pa.Array, dtype: DType, type_: pa.DataType) -> pa.Array:
    def plain(texts: pa.Array) -> pa.Array:
        made = texts.cast(type_)  # a FLOAT is read as one: a double between would be rounded, and rounded again
        if pc.any(pc.match_substring(texts, "(")).as_py():  # nan(1)
            raise pa.ArrowInvalid("nan with a payload")
        return made

    def stripped(texts: pa.Array) -> pa.Array:
        return pc.ascii_trim(texts, SPACES).cast(type_)

    forms = Forms(plain, ((_REAL, stripped),), _RARE_REAL, b"+-.0123456789iInN")
    return _parsed(texts, dtype, type_, forms)


# ---- dates of parts ---------------------------------------------------------------------------------------------------


def _characters(texts: pa.Array, width: int) -> Any:
    """The digits of texts of equal width, NULLs among them as anything, a row a text."""
    joined = texts.cast(pa.binary()).cast(pa.binary(width))
    data = np.frombuffer(joined.buffers()[1], np.uint8)[joined.offset * width : (joined.offset + len(joined)) * width]
    return data.reshape(-1, width).astype(np.int64) - 48


def _number(digits: Any, start: int, end: int) -> Any:
    made = digits[:, start].copy()
    for k in range(start + 1, end):
        made = made * 10 + digits[:, k]
    return made


def _days(digits: Any) -> tuple[Any, Any]:
    """Days since 1970-01-01 of ``YYYY-MM-DD``, and which are days."""
    year, month, day = _number(digits, 0, 4), _number(digits, 5, 7), _number(digits, 8, 10)
    ok = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    months = (year - 1970) * 12 + np.where(ok, month, 1) - 1
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    following = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64)
    days = first + day - 1
    return days, ok & (days < following)


def _dates(texts: pa.Array) -> pa.Array:
    days, ok = _days(_characters(texts, 10))
    return from_numpy(days.astype(np.int32), ok).view(pa.date32())


def _timestamps(texts: pa.Array) -> pa.Array:
    made = texts.cast(pa.timestamp("us"))
    if bool((integers(pc.binary_length(texts), len(texts)) == 13).any()):  # hours alone
        raise pa.ArrowInvalid("no minutes")
    return made


def _moments(texts: pa.Array) -> pa.Array:
    """Moments of texts with an offset, or of UTC, the session's zone."""
    local = from_text(texts, TIMESTAMP, _MICROS)
    parts, rows = pc.extract_regex(texts, _OFFSET), len(texts)
    seconds = np.zeros(rows, np.int64)
    for name, unit in (("hour", 3600), ("minute", 60), ("second", 1)):
        part = pc.struct_field(parts, name)
        digits = pc.if_else(pc.equal(part, scalar_text("")), null(pa.string()), part)
        seconds += integers(digits.cast(pa.int64()), rows) * unit
    is_minus = flags(pc.equal(pc.struct_field(parts, "sign"), scalar_text("-")))
    given, ahead = integers(local.view(pa.int64()), rows), np.where(is_minus, seconds, -seconds) * 1_000_000
    micros = given + ahead
    fits = np.where(ahead < 0, micros < given, micros >= given) & ((ahead == 0) | (np.abs(micros) < _INFINITE))
    return from_numpy(micros, flags(local.is_valid()) & fits).view(_MICROS)


def _times(texts: pa.Array) -> pa.Array:
    if not pc.all(pc.match_substring_regex(texts, _PLAIN_TIME)).as_py():
        raise pa.ArrowInvalid("another form")
    stamps = joined_texts(text_like("1970-01-01 ", texts), texts).cast(pa.timestamp("us"))  # Arrow casts no text to a time
    return stamps.view(pa.int64()).view(pa.time64("us"))


def _timestamps_of_parts(texts: pa.Array) -> pa.Array:
    digits = _characters(pc.utf8_slice_codeunits(texts, 0, 19), 19)
    days, ok = _days(digits)
    hour, minute, second = _number(digits, 11, 13), _number(digits, 14, 16), _number(digits, 17, 19)
    fraction = _characters(pc.ascii_rpad(pc.utf8_slice_codeunits(texts, 20), 6, "0"), 6)
    of_day = ((hour * 60 + minute) * 60 + second) * 1_000_000 + _number(fraction, 0, 6)
    ok &= (minute < 60) & (second < 60) & (of_day <= 86_400_000_000)
    return from_numpy(days * 86_400_000_000 + of_day, ok).view(pa.timestamp("us"))
