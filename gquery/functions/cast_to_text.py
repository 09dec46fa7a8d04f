"""Casts of Arrow values to text, as DuckDB prints them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from gquery.expression.types import TIMESTAMP, DType, Kind
from gquery.functions.interval_texts import to_texts
from gquery.functions.text_casts import floats_of, zero
from gquery.functions.texts import text_of
from gquery.functions.vectors import (
    characters_of,
    each_value,
    fixed_width_text,
    flags,
    from_numpy,
    integers,
    joined_texts,
    piecewise,
    scalar_text,
    scattered,
    with_nulls_of,
)
from gquery.runtime.arrow_compute import pc

_NO_EXPONENT = 6  # places behind the point up to which Arrow prints no exponent


def to_text(values: pa.Array, dtype: DType) -> pa.Array:
    """Values as CAST(... AS VARCHAR) prints them."""
    match dtype.kind:
        case Kind.BOOLEAN:
            return pc.if_else(values, scalar_text("true"), scalar_text("false"))
        case Kind.DECIMAL:
            return _decimal_text(values, dtype)
        case Kind.REAL | Kind.DOUBLE:
            return _float_text(values)
        case Kind.DATE:
            return _temporal_text(values, dtype, _date_text)
        case Kind.INTERVAL:
            return to_texts(values)
        case Kind.TIMESTAMP:
            return _temporal_text(values, dtype, _timestamp_text)
        case Kind.TIMESTAMPTZ:  # by the clock of UTC
            made = to_text(values.view(pa.int64()).view(pa.timestamp("us")), TIMESTAMP)
            return pc.if_else(pc.match_substring(made, "infinity"), made, joined_texts(made, scalar_text("+00")))
        case Kind.TIME:
            if not (integers(values, len(values)) % 1_000_000).any():
                return values.cast(pa.time32("s")).cast(pa.string())
            return pc.ascii_rtrim(pc.ascii_rtrim(values.cast(pa.string()), "0"), ".")
        case _:
            return values.cast(pa.string())


def _decimal_text(values: pa.Array, dtype: DType) -> pa.Array:
    """The digits of the unscaled number with a point among them: Arrow prints very small ones with an exponent."""
    if dtype.scale <= _NO_EXPONENT and dtype.precision > dtype.scale:
        return values.cast(pa.string())
    whole = pa.Array.from_buffers(pa.decimal128(38, 0), len(values), values.buffers(), values.null_count, values.offset)
    if dtype.precision <= 18:
        whole = whole.cast(pa.int64())
    scale = dtype.scale
    if not scale:
        return whole.cast(pa.string())
    is_negative = pc.less(whole, zero(whole.type))
    digits = pc.abs(whole).cast(pa.string())
    digits = pc.ascii_lpad(digits, scale + (dtype.precision > scale), "0")
    sign = pc.if_else(is_negative, scalar_text("-"), scalar_text(""))
    whole_digits = pc.utf8_slice_codeunits(digits, 0, -scale) if dtype.precision > scale else scalar_text("")
    fraction = pc.utf8_slice_codeunits(digits, -scale)
    return joined_texts(sign, whole_digits, scalar_text("."), fraction)


def _float_text(values: pa.Array) -> pa.Array:
    """Shortest digits; Arrow writes whole numbers without a point, and exponents in other places than DuckDB."""
    rows, type_ = len(values), pa.string()
    text = values.cast(type_)
    size = np.abs(floats_of(values))
    with np.errstate(invalid="ignore"):
        is_plain = (size == 0) | ((size >= 1e-4) & (size < 1e10))
        is_whole = is_plain & (np.floor(size) == size)
        others = (~is_plain) & (size < 1e16)
    if is_whole.any():
        text = pc.if_else(from_numpy(is_whole), joined_texts(text, scalar_text(".0")), text)
    if not others.any():
        return text
    (places,) = np.nonzero(others)
    return pc.coalesce(
        scattered(_moved_point(text.take(from_numpy(places))), places, rows),
        text,
    )


def _moved_point(text: pa.Array) -> pa.Array:
    """Numbers of 10 to 16 whole digits without their exponent, and small ones with one of two digits."""
    sign = pc.if_else(pc.starts_with(text, "-"), scalar_text("-"), scalar_text(""))
    power = pc.struct_field(pc.extract_regex(text, r"e(?P<power>[+-][0-9]+)$"), 0)
    digits = pc.replace_substring_regex(text, r"^-?0?\.?0*|\.|e.*$", "")
    exponents = pc.replace_substring(power, "+", "").cast(pa.int32())
    zeros = pc.struct_field(pc.extract_regex(text, r"^-?0\.(?P<zeros>0*)"), 0)
    exponent = integers(pc.coalesce(exponents, _below_one(zeros)), len(text))
    made = pa.nulls(len(text), pa.string())
    for n in np.unique(exponent):
        (at,) = np.nonzero(exponent == n)
        d, s = digits.take(from_numpy(at)), sign.take(from_numpy(at))
        if n > 0:
            whole = pc.ascii_rpad(pc.utf8_slice_codeunits(d, 0, int(n) + 1), int(n) + 1, "0")
            rest = pc.utf8_slice_codeunits(d, int(n) + 1)
            rest = pc.if_else(pc.equal(rest, scalar_text("")), scalar_text("0"), rest)
            few = joined_texts(s, whole, scalar_text("."), rest)
        else:
            first, rest = pc.utf8_slice_codeunits(d, 0, 1), pc.utf8_slice_codeunits(d, 1)
            rest = pc.if_else(pc.equal(rest, scalar_text("")), rest, joined_texts(scalar_text("."), rest))
            few = joined_texts(s, first, rest, scalar_text(f"e-{-int(n):02d}"))
        made = pc.coalesce(made, scattered(few, at, len(text)))
    return made


def _temporal_text(values: pa.Array, dtype: DType, plain: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Years 1 to 9999 as Arrow prints them, others by value."""
    unit = 1 if dtype.kind is Kind.DATE else 86_400_000_000
    number = integers(values, len(values))
    usual = (number >= -719162 * unit) & (number < 2932897 * unit)
    if usual.all():
        return plain(values)
    physical = values.view(pa.int32() if dtype.kind is Kind.DATE else pa.int64())
    others = piecewise(physical, ~usual, lambda a: each_value(a, lambda v: text_of(v, dtype), pa.string()), pa.string())
    return pc.coalesce(piecewise(values, usual, plain, pa.string()), others)


def _date_text(values: pa.Array) -> pa.Array:
    """Dates of years 1 to 9999. There are few different days in most columns: each is printed once and copied to its rows."""
    days = integers(values, len(values))
    low, high = (int(days.min()), int(days.max())) if len(days) else (0, len(days))
    if high - low >= len(days) // 2:
        return values.cast(pa.string())
    known = from_numpy(np.arange(low, high + 1, dtype=np.int32)).view(pa.date32()).cast(pa.string())
    width = len("YYYY-MM-DD")
    printed = characters_of(known)[: len(known) * width].view(f"V{width}")
    return with_nulls_of(fixed_width_text(printed[days - low].view(np.uint8).reshape(-1, width)), values)


def _timestamp_text(values: pa.Array) -> pa.Array:
    if not (integers(values, len(values)) % 1_000_000).any():
        return values.cast(pa.timestamp("s")).cast(pa.string())
    return pc.ascii_rtrim(pc.ascii_rtrim(values.cast(pa.string()), "0"), ".")


def _below_one(zeros: pa.Array) -> pa.Array:
    """The exponents of numbers that have so many zeros behind the point."""
    return from_numpy((-1 - integers(pc.binary_length(zeros), len(zeros))).astype(np.int32), flags(zeros.is_valid()))
