"""Casts of the numbers within lists, structs and maps, on the host: each gives what the cast of a column gives.

PyArrow's casts do not: they refuse integers that a DOUBLE rounds and decimals without room for all integers of the source, round
halves to even, lose carries of decimals and make infinities of what is too large.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gquery.expression.facts import INT64_BITS
from gquery.expression.types import INT64, DType, Kind, type_bounds
from gquery.functions.nested_arrays import bitmap_of
from gquery.functions.vectors import doubles, flags, from_numpy, integers
from gquery.runtime.arrow_compute import pc

_MOST_DIGITS = 18  # of decimals that are one word
_WORD = (1 << INT64_BITS) - 1


def cast_numbers(elements: pa.Array, source: DType, target: DType, to: pa.DataType) -> pa.Array:
    """Numbers or truths of a type in another one, whose Arrow type is ``to``; NULL where one has no value there."""
    ok = flags(elements.is_valid())
    if source.is_float:
        values = doubles(elements.cast(pa.float64()))
        return _from_floats(values, ok, source, target, to)
    values = _unscaled(elements, source, ok)
    if target.kind is Kind.BOOLEAN:
        return from_numpy(values != 0, ok)
    if target.is_float:
        type_ = np.float32 if target.kind is Kind.REAL else np.float64
        is_wide = source.is_decimal and source.precision > _MOST_DIGITS
        made = _quotients(values, source.scale, type_, is_wide) if source.scale else _as_floats(values, type_, is_wide)
        return _floats(made, ok, to)
    return _exact(_rescaled(values, target.scale - source.scale), ok, target, to)


def _as_floats(values: Any, type_: Any, is_wide: bool) -> Any:
    """Integers as floats, as DuckDB makes them: of two words, which are doubles first, or else rounded once."""
    if not is_wide:
        return (values.astype(np.uint64) if values.dtype == np.object_ else values).astype(type_)
    low = (values & _WORD).astype(np.uint64) if values.dtype == np.object_ else values.view(np.uint64)
    high = (values >> INT64_BITS if values.dtype == np.object_ else values >> (INT64_BITS - 1)).astype(np.int64)
    sums = low.astype(np.float64) + high.astype(np.float64) * 2.0**INT64_BITS
    return np.where(high == -1, -(~low).astype(np.float64) - 1.0, sums).astype(type_)


def _quotients(values: Any, scale: int, type_: Any, is_wide: bool) -> Any:
    """Decimals as floats: what a float does not hold is divided as whole part and fraction, as DuckDB does."""
    power, divisor = 10**scale, type_(10.0**scale)
    size = abs(values)
    if power > INT64.high:
        size = size.astype(np.object_)
    whole = np.where(values < 0, -(size // power), size // power)
    rest = values - whole * power
    apart = _as_floats(whole, type_, is_wide) + _as_floats(rest, type_, is_wide) / divisor
    return np.where(size <= (1 << np.finfo(type_).nmant + 1), _as_floats(values, type_, is_wide) / divisor, apart)


def _from_floats(values: Any, ok: Any, source: DType, target: DType, to: pa.DataType) -> pa.Array:
    if target.kind is Kind.BOOLEAN:
        return from_numpy(values != 0, ok)
    with np.errstate(over="ignore", invalid="ignore"):
        if target.is_float:
            small = values.astype(np.float32)
            fits = np.isfinite(small) | ~np.isfinite(values) | (target.kind is Kind.DOUBLE)
            return _floats(values, ok & fits, to)
        if not target.is_decimal:
            low = (type_bounds(target) or INT64).low
            return _exact_of_whole(np.rint(values), ok & (values >= low), target, to)  # nothing is rounded up to the least
        values = values * 10.0**target.scale
        whole = np.trunc(values)
        whole += np.copysign(np.abs(values - whole) >= 0.5, values)
        if source.kind is Kind.REAL:  # and to the digits of a float, as in DuckDB
            whole = whole.astype(np.float32).astype(np.float64)
        return _exact_of_whole(whole, ok, target, to)


def _exact_of_whole(values: Any, ok: Any, target: DType, to: pa.DataType) -> pa.Array:
    """Integers that stand in doubles, as a type."""
    size = np.abs(values)
    if bool((ok & ~(size < 2.0 ** (INT64_BITS - 1))).any()):
        made = np.array([int(v) if np.isfinite(v) else 10**40 for v in values.tolist()], np.object_)  # 10^40 fits none
        return _exact(made, ok, target, to)
    return _exact(np.where(ok, values, 0).astype(np.int64), ok, target, to)


def _unscaled(elements: pa.Array, source: DType, ok: Any) -> Any:
    """Truths, integers and decimals as integers: int64, or Python's where one does not fit that; 0 for NULL."""
    if source.kind is Kind.BOOLEAN:
        return flags(elements).astype(np.int64)
    if not source.is_decimal:
        if pa.types.is_uint64(elements.type) and (pc.max(elements).as_py() or 0) > INT64.high:
            return np.array(elements.fill_null(0).to_pylist(), np.object_)
        return integers(elements, len(elements))
    words = np.frombuffer(elements.buffers()[1] or b"", np.int64).reshape(-1, 2)
    low, high = words[elements.offset : elements.offset + len(elements)].T
    if bool((ok & (high != low >> (INT64_BITS - 1))).any()):
        made = high.astype(np.object_) * (1 << INT64_BITS) + (low.astype(np.object_) & _WORD)
        return np.where(ok, made, 0)
    return np.where(ok, low, 0)


def _rescaled(values: Any, by: int) -> Any:
    """Integers times a power of ten; what is lost is rounded, halves away from zero."""
    if not by:
        return values
    factor = 10 ** abs(by)
    most = max(abs(int(values.max())), abs(int(values.min()))) if len(values) else 0
    if most * factor > INT64.high or factor > INT64.high:
        values = values.astype(np.object_)
    if by > 0:
        return values * factor
    size = (abs(values) + factor // 2) // factor
    return np.where(values < 0, -size, size)


def _exact(values: Any, ok: Any, target: DType, to: pa.DataType) -> pa.Array:
    """Unscaled integers as a type; NULL where they do not fit."""
    bounds = type_bounds(target) or INT64
    ok = ok & (values >= bounds.low) & (values <= bounds.high)
    values = np.where(ok, values, 0)
    if not target.is_decimal:
        return from_numpy(values.astype(np.uint64 if bounds.high > INT64.high else np.int64), ok).cast(to)
    made = np.empty((len(values), 2), np.int64)
    if values.dtype == np.object_:
        made[:, 0] = (values & _WORD).astype(np.uint64).view(np.int64)
        made[:, 1] = (values >> INT64_BITS).astype(np.int64)
    else:
        made[:, 0], made[:, 1] = values, values >> (INT64_BITS - 1)
    return pa.Array.from_buffers(to, len(values), [bitmap_of(ok), pa.py_buffer(made)])


def _floats(values: Any, ok: Any, to: pa.DataType) -> pa.Array:
    type_ = np.float32 if to == pa.float32() else np.float64
    with np.errstate(over="ignore"):
        made = np.ascontiguousarray(values.astype(type_))
    return pa.Array.from_buffers(to, len(made), [bitmap_of(ok), pa.py_buffer(made)])
