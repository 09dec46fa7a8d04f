# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""TIME plus and minus, which every ``+`` and ``-`` asks for; what else there is of TIME is in `gquery.functions.day_times`."""

from __future__ import annotations

from gquery.expression.expr import Cast, Expr
from gquery.expression.types import BIGINT, TIME, TIMESTAMP, Kind
from gquery.functions import intervals
from gquery.functions.casts import cast
from gquery.functions.registry import call, make, resolver, scalar


@scalar("_later_in_the_day", ((TIME, BIGINT), TIME))
def later_in_the_day(time: int, micros: int) -> int:
    """A time some microseconds later or earlier, on a clock of 24 hours."""
    return floor_mod_i64(add_i64(time, floor_mod_i64(micros, 86_400_000_000)), 86_400_000_000)


def stamp(x: Expr) -> Expr:
    """A time as the timestamp of that time on 1970-01-01."""
    return Cast(x, TIMESTAMP)


def is_time(x: Expr) -> bool:
    return x.dtype.kind is Kind.TIME


def _moved(time: Expr, interval: Expr, sign: int) -> Expr:
    """A time plus the hours and less of an interval, or minus them; its days and months change nothing."""
    micros = cast(intervals.parts(interval)[2], BIGINT)
    return make("_later_in_the_day", (time, micros if sign > 0 else make("negate", (micros,), BIGINT)), TIME)


@resolver("add", "$(DATE, TIME) -> TIMESTAMP", "$(TIME, INTERVAL) -> TIME",
          example=("DATE '2024-01-31' + make_time(10, 0, 0)", "2024-01-31 10:00:00"))  # fmt: skip
def _add(a: Expr, b: Expr) -> Expr | None:
    """A time on a day, or a time so much later on a clock of 24 hours."""
    other, time = (b, a) if is_time(a) else (a, b)
    if not is_time(time):
        return None
    if other.dtype.kind is Kind.INTERVAL:
        return _moved(time, other, 1)
    if other.dtype.kind is not Kind.DATE:
        return None
    micros = make("add", tuple(call("epoch_us", x) for x in (cast(other, TIMESTAMP), stamp(time))), BIGINT)
    return call("make_timestamp", micros)


@resolver("subtract", "$(TIME, INTERVAL) -> TIME")
def _subtract(a: Expr, b: Expr) -> Expr | None:
    """A time so much earlier on a clock of 24 hours."""
    return _moved(a, b, -1) if is_time(a) and b.dtype.kind is Kind.INTERVAL else None
