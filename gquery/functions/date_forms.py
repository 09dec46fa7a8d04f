# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Functions of dates that are made of others: ISO years, eras, lengths of months, timestamps of numbers."""

from __future__ import annotations

from gquery.expression.expr import Case, Cast, Expr, Literal, Not
from gquery.expression.types import BIGINT, DATE, DOUBLE, TIMESTAMP, TIMESTAMPTZ, Kind
from gquery.functions.casts import cast
from gquery.functions.registry import call, is_null_literal, make, resolver, scalar


@scalar("_isoyear", ((DATE,), BIGINT))
def isoyear(days: int) -> int:
    """The year that the ISO week of a date belongs to."""
    return date_isoyear(days)


def _isoyear(x: Expr) -> Expr:
    return make("_isoyear", (cast(x, DATE),), BIGINT)


@resolver("isoyear", "$(DATE or TIMESTAMP) -> BIGINT", example=("isoyear(DATE '2021-01-01')", "2020"))
def _iso_year(x: Expr) -> Expr | None:
    """The year that the ISO week of a date belongs to."""
    return _isoyear(x) if x.dtype.is_temporal else None


@resolver("yearweek", "$(DATE or TIMESTAMP) -> BIGINT", example=("yearweek(DATE '2021-01-01')", "202053"))
def _yearweek(x: Expr) -> Expr | None:
    """The ISO year and week in one number."""
    if not x.dtype.is_temporal:
        return None
    year, week = _isoyear(x), call("week", x)
    hundreds = make("multiply", (year, Literal(100, BIGINT)), BIGINT)
    later = call("gt", year, Literal(0, BIGINT))
    return Case(((later, call("add", hundreds, week)),), call("subtract", hundreds, week))


@resolver("era", "$(DATE or TIMESTAMP) -> BIGINT", example=("era(DATE '2021-01-01')", "1"))
def _era(x: Expr) -> Expr | None:
    """1 for years of our era, 0 for those before."""
    if not x.dtype.is_temporal:
        return None
    ours = call("gt", call("year", x), Literal(0, BIGINT))
    return cast(ours, BIGINT)


@resolver("days_in_month", "$(DATE or TIMESTAMP) -> BIGINT", example=("days_in_month(DATE '2020-02-03')", "29"))
def _days_in_month(x: Expr) -> Expr | None:
    """How many days the month has."""
    return call("day", call("last_day", x)) if x.dtype.is_temporal else None


@resolver(
    "epoch_ns", "$(DATE or TIMESTAMP) -> BIGINT", example=("epoch_ns(TIMESTAMP '1970-01-01 00:00:01')", "1000000000")
)
def _epoch_ns(x: Expr) -> Expr | None:
    """Nanoseconds since 1970."""
    return call("multiply", call("epoch_us", x), Literal(1000, BIGINT)) if x.dtype.is_temporal else None


@resolver("make_timestamp", "$(BIGINT) -> TIMESTAMP", example=("make_timestamp(1500000)", "1970-01-01 00:00:01.500000"))
def _make_timestamp(micros: Expr) -> Expr | None:
    """The timestamp so many microseconds after 1970."""
    if not (micros.dtype.is_integer or is_null_literal(micros)):
        return None
    return make("_from_micros", (cast(micros, BIGINT),), TIMESTAMP)


@resolver("to_timestamp", "$(DOUBLE) -> TIMESTAMP WITH TIME ZONE")
def _to_timestamp(seconds: Expr) -> Expr | None:
    """The moment so many seconds after 1970."""
    if not (seconds.dtype.is_numeric or is_null_literal(seconds)):
        return None
    micros = call("multiply", cast(seconds, DOUBLE), Literal(1e6, DOUBLE))
    return Cast(make("_from_micros", (cast(micros, BIGINT),), TIMESTAMP), TIMESTAMPTZ)


# ---- moments with a zone, whose numbers do not depend on it -----------------------------------------------------------


def _of_moment(name: str, result: str) -> None:
    """The function of a moment is that of its time in UTC."""

    @resolver(name, f"$(TIMESTAMP WITH TIME ZONE) -> {result}")
    def resolve(x: Expr) -> Expr | None:
        return call(name, Cast(x, TIMESTAMP)) if x.dtype.kind is Kind.TIMESTAMPTZ else None


for _name in ("epoch", "epoch_ms", "epoch_us", "epoch_ns", "isfinite"):
    _of_moment(_name, {"epoch": "DOUBLE", "isfinite": "BOOLEAN"}.get(_name, "BIGINT"))


@resolver("isinf", "$(DATE or TIMESTAMP) -> BOOLEAN", example=("isinf(DATE '1995-01-01')", "False"))
def _isinf(x: Expr) -> Expr | None:
    """Whether a date or timestamp is infinite."""
    is_time = x.dtype.is_temporal or x.dtype.kind is Kind.TIMESTAMPTZ
    return Not(call("isfinite", x)) if is_time else None


# ---- numbers of dates --------------------------------------------------------------------------------------------------


@scalar("_julian_day", ((DATE,), DOUBLE))
def julian_day(days: int) -> float:
    """Days since noon of 24 November 4714 BC, as whole days."""
    return f64(add_i64(days, 2440588))


@scalar("_julian_time", ((TIMESTAMP,), DOUBLE))
def julian_time(micros: int) -> float:
    """As `julian_day`, and the share of the day."""
    share = div_f64(f64(floor_mod_i64(micros, 86_400_000_000)), 86_400_000_000.0)
    return add_f64(share, f64(add_i64(floor_div_i64(micros, 86_400_000_000), 2440588)))


@resolver("julian", "$(DATE or TIMESTAMP) -> DOUBLE", example=("julian(TIMESTAMP '2020-01-01 06:00:00')", "2458850.25"))
def _julian(x: Expr) -> Expr | None:
    """The day of Julian dates, and the share of it that has passed."""
    if not x.dtype.is_temporal:
        return None
    return make("_julian_day" if x.dtype == DATE else "_julian_time", (x,), DOUBLE)


@resolver("nanosecond", "$(DATE or TIMESTAMP) -> BIGINT",
          example=("nanosecond(TIMESTAMP '1995-01-01 10:00:00.000007')", "7000"))  # fmt: skip
def _nanosecond(x: Expr) -> Expr | None:
    """Nanoseconds since the minute began."""
    return call("multiply", call("microsecond", x), Literal(1000, BIGINT)) if x.dtype.is_temporal else None


@resolver("timezone timezone_hour timezone_minute", "$(TIMESTAMP or TIMESTAMP WITH TIME ZONE) -> BIGINT",
          example=("timezone_hour(TIMESTAMP '1995-01-01')", "0"))  # fmt: skip
def _timezone(x: Expr) -> Expr | None:
    """How far the zone of a timestamp, which has none, or of the session, which is UTC, is from UTC: 0."""
    if x.dtype.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return None
    return call("multiply", call("epoch_us", cast(x, TIMESTAMP)), Literal(0, BIGINT))


# ---- dates of numbers --------------------------------------------------------------------------------------------------


@resolver("make_timestamp_ms epoch_ms", "$(BIGINT) -> TIMESTAMP",
          example=("make_timestamp_ms(1500)", "1970-01-01 00:00:01.500000"))  # fmt: skip
def _make_timestamp_ms(millis: Expr) -> Expr | None:
    """The timestamp so many milliseconds after 1970."""
    if not (millis.dtype.is_integer or is_null_literal(millis)):
        return None
    return call("make_timestamp", call("multiply", cast(millis, BIGINT), Literal(1000, BIGINT)))


@resolver("make_timestamptz", "$(BIGINT) -> TIMESTAMP WITH TIME ZONE")
def _make_timestamptz(micros: Expr) -> Expr | None:
    """The moment so many microseconds after 1970."""
    return Cast(call("make_timestamp", micros), TIMESTAMPTZ) if micros.dtype.is_integer else None


@resolver("make_date", "$(INTEGER) -> DATE", example=("make_date(-1)", "1969-12-31"))
def _make_date(days: Expr) -> Expr | None:
    """The date so many days after 1970."""
    if days.dtype.kind not in (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.UTINYINT, Kind.USMALLINT):
        return None
    return call("add", Literal(0, DATE), days)


def is_no_time(hour: int, minute: int, second: float) -> bool:
    whole = trunc_f64(second)
    if lt_f64(whole, 0.0) or gt_f64(whole, 60.0) or lt_f64(second, 0.0):
        return True
    if lt_i64(minute, 0) or gt_i64(minute, 59) or lt_i64(hour, 0) or gt_i64(hour, 24):
        return True
    return eq_i64(hour, 24) and (gt_i64(minute, 0) or gt_f64(second, 0.0))


@scalar(
    "_micros_of_day", ((BIGINT, BIGINT, DOUBLE), BIGINT), domain=((is_no_time, "make_timestamp: a time out of range"),)
)
def micros_of_day(hour: int, minute: int, second: float) -> int:
    """Microseconds of an hour, a minute and a second with its fraction."""
    if not lt_f64(abs_f64(second), 61.0) or gt_i64(abs_i64(hour), 24) or gt_i64(abs_i64(minute), 59):
        return i64(0)
    whole = trunc_f64(second)
    micros = truncate_f64(round_f64(mul_f64(sub_f64(second, whole), 1_000_000.0)))
    seconds = add_i64(mul_i64(add_i64(mul_i64(hour, 60), minute), 60), truncate_f64(whole))
    return add_i64(mul_i64(seconds, 1_000_000), micros)


@resolver("make_timestamp", "$(year, month, day, hour, minute, DOUBLE) -> TIMESTAMP",
          example=("make_timestamp(1996, 2, 29, 4, 5, 6.5)", "1996-02-29 04:05:06.500000"))  # fmt: skip
def _timestamp_of_parts(y: Expr, m: Expr, d: Expr, hour: Expr, minute: Expr, second: Expr) -> Expr | None:
    """The timestamp of its parts; a second may be the 60th, and an hour the 24th where nothing follows."""
    numbers = (y, m, d, hour, minute)
    if not all(e.dtype.is_integer or is_null_literal(e) for e in numbers):
        return None
    if not (second.dtype.is_numeric or is_null_literal(second)):
        return None
    time = make("_micros_of_day", (cast(hour, BIGINT), cast(minute, BIGINT), cast(second, DOUBLE)), BIGINT)
    day = call("epoch_us", cast(call("make_date", y, m, d), TIMESTAMP))
    return call("make_timestamp", call("add", day, time))
