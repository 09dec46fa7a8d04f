"""Lists of moments, one interval after another: ``range(day, day, INTERVAL 1 DAY)``, ``generate_series``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gquery.errors import DataError, OutOfRangeError
from gquery.expression.expr import Expr, Literal
from gquery.expression.facts import MICROS_PER_DAY
from gquery.expression.interval import Interval
from gquery.expression.nested_types import list_of
from gquery.expression.traverse import pinned
from gquery.expression.types import BIGINT, DATE, TIMESTAMP, Kind
from gquery.functions.calendar import add_interval
from gquery.functions.casts import cast
from gquery.functions.list_arrays import list_array
from gquery.functions.list_function import Typed, list_function
from gquery.functions.registry import call, is_null_literal, make, resolver
from gquery.functions.vectors import Vector, array_of, flags, from_numpy, integers, room, size_of

_MOST = 2**31


def _series(start: Expr, stop: Expr, step: Expr, has_stop: bool) -> Expr | None:
    moments = (DATE, TIMESTAMP)
    if step.dtype.kind is not Kind.INTERVAL or not all(e.dtype in moments or is_null_literal(e) for e in (start, stop)):
        return None
    value = pinned(step)
    if not isinstance(value, Literal):
        return None
    found = None if value.value is None else Interval.of(value.value)
    parts = (None,) * 3 if found is None else (found.months, found.days, found.micros)
    ends = [call("epoch_us", cast(e, TIMESTAMP)) for e in (start, stop)]
    more = Literal(int(has_stop), BIGINT)
    return make("_moments", (*ends, *(Literal(p, BIGINT) for p in parts), more), list_of(TIMESTAMP))


@resolver("range", "$(moment, moment, constant INTERVAL) -> TIMESTAMP[]")
def _range(start: Expr, stop: Expr, step: Expr) -> Expr | None:
    """The moments from start to stop, which is left out."""
    return _series(start, stop, step, has_stop=False)


@resolver(
    "generate_series",
    "$(moment, moment, constant INTERVAL) -> TIMESTAMP[]",
    example=("len(generate_series(DATE '2024-01-01', DATE '2024-01-31', INTERVAL 1 DAY))", "31"),
)
def _generate_series(start: Expr, stop: Expr, step: Expr) -> Expr | None:
    """The moments from start to stop, which is among them."""
    return _series(start, stop, step, has_stop=True)


def _typed(*args: Expr) -> Typed | None:
    return args, list_of(TIMESTAMP)


@list_function("_moments", _typed, "")
def moments(start: Vector, stop: Vector, months: Vector, days: Vector, micros: Vector, more: Vector) -> Vector:
    """The moments of each row, as microseconds. Each is the one before it plus the interval, so that days beyond the end of a
    month are lost on the way."""
    rows = size_of(start, stop)
    ok = flags(array_of(start, rows).is_valid()) & flags(array_of(stop, rows).is_valid())
    parts = [None if p is None else int(p) for p in (months.as_py(), days.as_py(), micros.as_py())]
    if None in parts:
        return list_array(_stamps(np.empty(0, np.int64)), np.zeros(rows, np.int64), np.zeros(rows, np.bool_))
    by_month, by_day, by_micro = (p or 0 for p in parts)
    if min(by_month, by_day, by_micro) < 0 < max(by_month, by_day, by_micro):
        raise DataError("range: an INTERVAL of parts in both directions")
    low, high = integers(start, rows), integers(stop, rows)
    if by_month:
        packed, to = Interval(by_month, by_day, by_micro).packed, int(more.as_py())
        found = [
            _by_months(int(a), int(b), packed, by_month, to) if k else [] for a, b, k in zip(low, high, ok, strict=True)
        ]
        values = np.array([m for made in found for m in made], np.int64)
        return list_array(_stamps(values), np.array([len(made) for made in found], np.int64), ok)
    by = by_day * MICROS_PER_DAY + by_micro
    span = (high - low if by >= 0 else low - high) + int(more.as_py())
    lengths = np.where(ok & (span > 0), -(-span // max(abs(by), 1)), 0) if by else np.zeros(rows, np.int64)
    if int(lengths.sum()) > _MOST:
        raise OutOfRangeError("range: a list has at most 2^31 elements")
    room(8 * int(lengths.sum()))
    ends = np.cumsum(lengths)
    ordinals = np.arange(int(ends[-1]) if rows else 0) - np.repeat(ends - lengths, lengths)
    return list_array(_stamps(np.repeat(low, lengths) + ordinals * by), lengths, ok)


def _by_months(start: int, stop: int, packed: int, direction: int, more: int) -> list[int]:
    found: list[int] = []
    at = start
    while (at - stop if direction < 0 else stop - at) + more > 0:
        found.append(at)
        at = add_interval(at, packed)
    return found


def _stamps(micros: Any) -> pa.Array:
    return from_numpy(micros).cast(pa.timestamp("us"))
