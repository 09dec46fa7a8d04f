# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Functions of dates that are made of others: ISO years, eras, lengths of months, timestamps of numbers."""

from __future__ import annotations

from gquery.expression.expr import Case, Cast, Expr, Literal
from gquery.expression.types import BIGINT, DATE, DOUBLE, TIMESTAMP, TIMESTAMPTZ
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
