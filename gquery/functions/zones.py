"""Moments and local times: what is asked of a TIMESTAMP WITH TIME ZONE by the clock of the session's zone, which is UTC, and AT
TIME ZONE of any zone.

A moment is the TIMESTAMP of UTC, so that a cast between them moves no bit, and functions of a moment are those of that. The
clock of another zone is asked of Arrow's time zones, on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from gquery.errors import BindError, ConversionError, DataError, NotSupportedError
from gquery.expression.expr import Expr, Literal
from gquery.expression.types import TIMESTAMP, TIMESTAMPTZ, VARCHAR, Kind
from gquery.functions.cast_to_text import to_text
from gquery.functions.casts import cast
from gquery.functions.registry import call, host_scalar, is_null_literal, make, resolver
from gquery.functions.text_casts import from_text
from gquery.functions.vectors import (
    Vector,
    array_of,
    by_parameters,
    each_value,
    flags,
    from_numpy,
    piecewise,
    size_of,
)
from gquery.runtime.arrow_compute import pc
from gquery.runtime.pattern import pattern

_MICROS = pa.timestamp("us")
_ZONE = pattern(r"((?:^|[^%])(?:%%)*)%Z")  # of a format
_START = datetime(1970, 1, 1)
_DAY = 86_400_000_000
_LAST = (datetime(2037, 1, 1) - _START) // timedelta(microseconds=1)
_CYCLE = 146_097 * _DAY  # 400 years
_INFINITE = 2**63 - 1


# ---- casts, which `functions.casts` calls by name ----------------------------------------------------------------------


@host_scalar("_moment_of_text", ((VARCHAR,), TIMESTAMP),
             fails=(ConversionError, "could not convert string {} to TIMESTAMP WITH TIME ZONE"))  # fmt: skip
def moment_of_text(texts: Vector) -> Vector:
    """The moments of texts with an offset, or of the session's zone."""
    return _moments(texts)


@host_scalar("_moment_or_null", ((VARCHAR,), TIMESTAMP), nullable=True)
def moment_or_null(texts: Vector) -> Vector:
    """The same; NULL for what is none."""
    return _moments(texts)


def _moments(texts: Vector) -> pa.Array:
    return from_text(array_of(texts, size_of(texts)).cast(pa.string()), TIMESTAMPTZ, _MICROS)


@host_scalar("_text_of_moment", ((TIMESTAMP,), VARCHAR))
def text_of_moment(moments: Vector) -> Vector:
    """Moments as DuckDB prints them in UTC."""
    return to_text(array_of(moments, size_of(moments)), TIMESTAMPTZ)


# ---- AT TIME ZONE ------------------------------------------------------------------------------------------------------


@host_scalar("_local_time", ((TIMESTAMP, VARCHAR), TIMESTAMP))
def local_time(moments: Vector, zone: Vector) -> Vector:
    """What a zone's clock shows at moments."""
    return by_parameters(_local, moments, zone, gives=_MICROS)


@host_scalar("_moment_of_clock", ((TIMESTAMP, VARCHAR), TIMESTAMP))
def moment_of_clock(times: Vector, zone: Vector) -> Vector:
    """When a zone's clock shows times. Of two moments it is the later one; a time that the clock leaves out is counted on from
    before the gap."""
    return by_parameters(_moment, times, zone, gives=_MICROS)


def _local(moments: pa.Array, zone: str) -> pa.Array:
    def known(moments: pa.Array) -> pa.Array:
        return pc.local_timestamp(moments.view(pa.int64()).view(pa.timestamp("us", zone))).cast(_MICROS)

    return _by_years(moments, zone, known, _on_clock)


def _moment(times: pa.Array, zone: str) -> pa.Array:
    def known(times: pa.Array) -> pa.Array:
        near = pc.assume_timezone(times, zone, ambiguous="latest", nonexistent="earliest")
        shown = pc.local_timestamp(near).cast(_MICROS).view(pa.int64())
        ahead = pc.subtract(shown, near.view(pa.int64()))
        return pc.subtract(times.view(pa.int64()), ahead).view(_MICROS)

    def late(micros: int, of: tzinfo) -> int:
        before, after = (_on_clock(near, of) - near for near in (micros - _DAY, micros + _DAY))
        moments = [micros - ahead for ahead in (before, after) if _on_clock(micros - ahead, of) == micros]
        return max(moments, default=micros - before)

    return _by_years(times, zone, known, late)


def _by_years(
    times: pa.Array, zone: str, known: Callable[[pa.Array], pa.Array], late: Callable[[int, tzinfo], int]
) -> pa.Array:
    """Arrow knows zones up to 2037, and no rule for the years behind: Python does, value by value."""
    try:
        of = ZoneInfo(zone)
        is_late = flags(pc.fill_null(pc.greater_equal(times.view(pa.int64()), _LAST), False))
        if not is_late.any():
            return known(times)
        made = known(pc.if_else(from_numpy(is_late), pa.scalar(None, _MICROS), times))
        parse = partial(_each_late, of=of, late=late)
        return pc.coalesce(made, piecewise(times, is_late, parse, _MICROS))
    except (pa.ArrowInvalid, ZoneInfoNotFoundError, ValueError, OSError):
        raise BindError(f"there is no time zone {zone!r}") from None


def _each_late(times: pa.Array, of: tzinfo, late: Callable[[int, tzinfo], int]) -> pa.Array:
    """What ``late`` gives for times that are not infinite: a zone's rules come again after 400 years, which are whole weeks."""

    def one(micros: int) -> int:
        if micros == _INFINITE:
            return micros
        cycles = (micros - _LAST) // _CYCLE
        return late(micros - cycles * _CYCLE, of) + cycles * _CYCLE

    try:
        return each_value(times.view(pa.int64()), one, pa.int64()).view(_MICROS)
    except OverflowError:
        raise DataError("AT TIME ZONE of a time whose value there is beyond the last TIMESTAMP") from None


def _on_clock(moment: int, of: tzinfo) -> int:
    """What a zone's clock shows at a moment, as microseconds since 1970."""
    shown = (_START.replace(tzinfo=UTC) + timedelta(microseconds=moment)).astimezone(of)
    return (shown.replace(tzinfo=None) - _START) // timedelta(microseconds=1)


def at_zone(e: Expr, zone: Expr) -> Expr | None:
    """``e AT TIME ZONE zone``: what the clock there shows at a moment, or the moment at which it shows a time."""
    if e.dtype.kind is not Kind.TIMESTAMPTZ and not e.dtype.is_temporal and not is_null_literal(e):
        return None
    if not (isinstance(zone, Literal) and isinstance(zone.value, str)):
        raise NotSupportedError("not supported: AT TIME ZONE of a zone that is no constant text")
    is_moment = e.dtype.kind is Kind.TIMESTAMPTZ
    if zone.value.upper() == "UTC":
        return cast(e, TIMESTAMP) if is_moment else cast(cast(e, TIMESTAMP), TIMESTAMPTZ)
    _local(from_numpy(np.zeros(1, np.int64)).view(_MICROS), zone.value)  # whether there is one
    stamp = cast(e, TIMESTAMP)
    if is_moment:
        return make("_local_time", (stamp, zone), TIMESTAMP)
    return cast(make("_moment_of_clock", (stamp, zone), TIMESTAMP), TIMESTAMPTZ)


@resolver("timezone", "$('zone', TIMESTAMP) -> TIMESTAMP WITH TIME ZONE", "$('zone', TIMESTAMP WITH TIME ZONE) -> TIMESTAMP",
          example=("timezone('Europe/Berlin', TIMESTAMPTZ '2024-07-01 10:00:00+00')", "2024-07-01 12:00:00"))  # fmt: skip
def _timezone(zone: Expr, x: Expr) -> Expr | None:
    """The same as ``x AT TIME ZONE zone``."""
    return at_zone(x, zone)


# ---- functions of moments ------------------------------------------------------------------------------------------------


_NAMES = (
    "year", "month", "day", "hour", "minute", "second", "millisecond", "microsecond", "nanosecond", "quarter", "week",
    "weekofyear", "dayofweek", "weekday", "isodow", "dayofyear", "dayofmonth", "decade", "century", "millennium", "isoyear",
    "yearweek", "era", "dayname", "monthname", "last_day", "date_part", "datepart", "julian", "date_diff", "datediff",
    "date_trunc", "datetrunc", "time_bucket",
)  # fmt: skip


def _of_moments(name: str) -> None:
    """The function of a moment is that of the time of UTC, and what it gives for a moment is one."""

    @resolver(name, "$(TIMESTAMP WITH TIME ZONE)")
    def resolve(*args: Expr) -> Expr | None:
        moment = next((a for a in args if a.dtype.kind is Kind.TIMESTAMPTZ), None)
        if moment is None:
            return None
        from gquery.functions.eras import of_era  # few queries have moments

        by_era = of_era(name, args, moment)
        if by_era is not None:
            return by_era
        made = call(name, *(cast(a, TIMESTAMP) if a.dtype.kind is Kind.TIMESTAMPTZ else a for a in args))
        return cast(made, TIMESTAMPTZ) if made.dtype == TIMESTAMP else made


for _name in _NAMES:
    _of_moments(_name)


@resolver("strftime", "$(TIMESTAMP WITH TIME ZONE, 'format') -> VARCHAR",
          example=("strftime(TIMESTAMPTZ '2024-01-01 10:00:00+02', '%H:%M %z')", "08:00 +00"))  # fmt: skip
def _strftime(x: Expr, form: Expr) -> Expr | None:
    """A moment as text, by the clock of UTC."""
    x, form = (form, x) if form.dtype.kind is Kind.TIMESTAMPTZ else (x, form)
    if x.dtype.kind is not Kind.TIMESTAMPTZ:
        return None
    if not (isinstance(form, Literal) and isinstance(form.value, str)):
        raise NotSupportedError("not supported: strftime of a moment in a format that is no constant")
    return call("strftime", cast(x, TIMESTAMP), Literal(_ZONE.sub(r"\1UTC", form.value), VARCHAR))
