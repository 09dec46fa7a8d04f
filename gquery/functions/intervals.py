# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Intervals that a query computes: differences of timestamps, amounts that are no constants, arithmetic with them.

Such an interval is a call of ``_interval`` over three BIGINTs, months, days and microseconds, as a literal has them. No kernel
computes the call: whatever takes an interval takes it apart (`parts`) and computes with the numbers, so that an interval costs
what its arithmetic costs. A column has no such type, so that an interval as a result is refused.
"""

from __future__ import annotations

from gquery.errors import NotSupportedError
from gquery.expression.expr import Call, Cast, Expr, Literal
from gquery.expression.slots import derived
from gquery.expression.types import BIGINT, DOUBLE, INTERVAL, TIMESTAMP, DType, Interval, Kind, decimal
from gquery.functions.calendar import DAY_MICROS, add_interval, unit_parts
from gquery.functions.casts import cast, fits, negated
from gquery.functions.registry import ScalarFunction, call, declare, is_null_literal, make, resolver, scalar

Parts = tuple[Expr, Expr, Expr]
_NAME = "_interval"
_WIDE = decimal(38, 0)
_MONTH_DAYS = 30  # of intervals that are compared
_ZERO = Literal(0, BIGINT)
declare(ScalarFunction(_NAME, doc="An interval of months, days and microseconds."))


def _months(value: Interval) -> int:
    return value.months


def _days(value: Interval) -> int:
    return value.days


def _micros(value: Interval) -> int:
    return value.micros


def is_computed(e: Expr) -> bool:
    """Whether an expression is an interval that is no constant."""
    return e.dtype == INTERVAL and not isinstance(e, Literal)


def parts(e: Expr) -> Parts:
    """The months, days and microseconds of an interval; NotSupportedError for one that a column or CASE holds."""
    if isinstance(e, Literal) and e.is_null:
        return _null(), _null(), _null()
    if isinstance(e, Literal):
        return derived(_months, BIGINT, (e,)), derived(_days, BIGINT, (e,)), derived(_micros, BIGINT, (e,))
    if isinstance(e, Call) and e.function == _NAME:
        months, days, micros = e.args
        return months, days, micros
    raise refused()


def refused() -> NotSupportedError:
    """The error for an interval where a value has to lie in memory."""
    return NotSupportedError(
        "not supported: an INTERVAL as a value; it can be added to dates and timestamps and compared, and epoch(x) is its seconds"
    )


def interval_of(months: Expr, days: Expr, micros: Expr) -> Expr:
    """The interval of three numbers, each a BIGINT."""
    found = (months, days, micros)
    literals = tuple(p for p in found if isinstance(p, Literal))
    if len(literals) == 3:
        return Literal(None, INTERVAL) if any(p.is_null for p in literals) else derived(Interval, INTERVAL, literals)
    return make(_NAME, found, INTERVAL)


def _null() -> Literal:
    return Literal(None, BIGINT)


def _number(value: int) -> Literal:
    return Literal(value, BIGINT)


def _is_zero(e: Expr) -> bool:
    """Whether a part is 0 for sure: of a constant that the text holds it is read, not of one that other texts share."""
    return type(e) is Literal and e.value == 0


def _times(x: Expr, factor: int) -> Expr:
    if factor == 1 or _is_zero(x):
        return x
    return _ZERO if factor == 0 else make("multiply", (x, _number(factor)), BIGINT)


def _plus(a: Expr, b: Expr) -> Expr:
    if _is_zero(a) or _is_zero(b):
        return b if _is_zero(a) else a
    return make("add", (a, b), BIGINT)


# ---- amounts ---------------------------------------------------------------------------------------------------------


def of_unit(amount: Expr, unit: str) -> Expr | None:
    """So many of a unit; fractions count for units below a minute, others are cut off. None where ``amount`` is no number."""
    scale = unit_parts(unit)
    if scale is None or not (amount.dtype.is_numeric or is_null_literal(amount)):
        return None
    months, days, micros = scale
    if 0 < micros <= 1_000_000 and not (amount.dtype.is_integer or is_null_literal(amount)):
        exact = call("multiply", cast(amount, DOUBLE), Literal(float(micros), DOUBLE))
        return interval_of(_ZERO, _ZERO, cast(exact, BIGINT))
    whole = amount if amount.dtype.is_integer or is_null_literal(amount) else call("trunc", amount)
    n = cast(whole, BIGINT)
    made = tuple(_times(n, factor) for factor in (months, days, micros))
    if isinstance(n, Literal) and n.is_null:
        return Literal(None, INTERVAL)
    return interval_of(*made)


def _declare_amount(name: str, unit: str, takes_fractions: bool) -> None:
    @resolver(name, f"$({'numeric' if takes_fractions else 'integer'}) -> INTERVAL")
    def resolve(x: Expr) -> Expr | None:
        if not (takes_fractions or x.dtype.is_integer or is_null_literal(x)):
            return None
        return of_unit(x, unit)

    resolve.__doc__ = f"So many {name.removeprefix('to_')} as an INTERVAL."


for _name, _unit in (
    ("to_years", "year"), ("to_months", "month"), ("to_days", "day"), ("to_weeks", "week"), ("to_quarters", "quarter"),
    ("to_decades", "decade"), ("to_centuries", "century"), ("to_millennia", "millennium"), ("to_hours", "hour"),
    ("to_minutes", "minute"), ("to_seconds", "second"), ("to_milliseconds", "millisecond"),
    ("to_microseconds", "microsecond"),
):  # fmt: skip
    _declare_amount(_name, _unit, _unit in ("second", "millisecond"))


# ---- arithmetic ------------------------------------------------------------------------------------------------------


def added(a: Expr, b: Expr) -> Expr:
    """The sum of two intervals, part by part."""
    return interval_of(*(_plus(x, y) for x, y in zip(parts(a), parts(b), strict=True)))


def scaled(a: Expr, factor: Expr) -> Expr:
    """An interval some whole times over, part by part."""
    n = cast(factor, BIGINT)
    return interval_of(*(_ZERO if _is_zero(p) else make("multiply", (p, n), BIGINT) for p in parts(a)))


def minus(a: Expr) -> Expr:
    """An interval with the other sign."""
    return interval_of(*(_ZERO if _is_zero(p) else make("negate", (p,), BIGINT) for p in parts(a)))


def between(a: Expr, b: Expr) -> Expr:
    """``a - b`` of two timestamps: days of 24 hours, and microseconds."""
    micros = make("subtract", tuple(_micros_since_1970(x) for x in (a, b)), BIGINT)
    day = _number(DAY_MICROS)
    return interval_of(_ZERO, make("int_divide", (micros, day), BIGINT), make("modulo", (micros, day), BIGINT))


def _stamp(x: Expr) -> Expr:
    """A date or timestamp as a TIMESTAMP; of one with a zone the time of UTC."""
    return Cast(x, TIMESTAMP) if x.dtype.kind is Kind.TIMESTAMPTZ else cast(x, TIMESTAMP)


def _micros_since_1970(x: Expr) -> Expr:
    return make("_units", (_stamp(x), _number(1)), BIGINT)


@scalar("_from_micros", ((BIGINT,), TIMESTAMP), bounds=lambda micros: micros)
def from_micros(micros: int) -> int:
    """The timestamp so many microseconds after 1970-01-01."""
    return micros


def is_far(days: int, months: int) -> bool:
    """Whether no timestamp lies so many months away."""
    return gt_i64(abs_i64(months), 9_000_000)


@scalar("_months_later", ((BIGINT, BIGINT), BIGINT), domain=((is_far, "timestamp out of range"),))
def months_later(days: int, months: int) -> int:
    """A day some months later, cut to the month's length."""
    return date_add_months(days, months)


def shifted(x: Expr, interval: Expr) -> Expr:
    """A date or timestamp plus an interval: months, of which the day is cut to the month's length, then days and
    microseconds."""
    months, days, micros = parts(interval)
    since = _micros_since_1970(x)
    if not _is_zero(months):
        day = make("_units", (_stamp(x), _number(DAY_MICROS)), BIGINT)
        later = make("subtract", (make("_months_later", (day, months), BIGINT), day), BIGINT)
        since = _plus(since, _times(later, DAY_MICROS))
    return make("_from_micros", (_plus(_plus(since, _times(days, DAY_MICROS)), micros),), TIMESTAMP)


def is_time(e: Expr) -> bool:
    """Whether an interval can be added to an expression."""
    return e.dtype.is_temporal or e.dtype.kind is Kind.TIMESTAMPTZ


def plus(a: Expr, interval: Expr, sign: int) -> Expr:
    """A date or timestamp plus an interval, or minus it where ``sign`` is -1."""
    if a.dtype.kind is Kind.TIMESTAMPTZ:  # by the calendar of UTC, as gquery has no zone of a session
        return Cast(plus(Cast(a, TIMESTAMP), interval, sign), a.dtype)
    if not isinstance(interval, Literal):
        return shifted(a, interval if sign > 0 else minus(interval))
    stamp = cast(a, TIMESTAMP)
    if interval.is_null or (isinstance(stamp, Literal) and stamp.is_null):
        return Literal(None, TIMESTAMP)
    value = interval if sign > 0 else derived(negated, INTERVAL, (interval,))
    if isinstance(stamp, Literal):
        later = derived(add_interval, TIMESTAMP, (stamp, value))
        if fits(later, TIMESTAMP):  # else it raises where the query gets to it
            return later
    return make("add_interval", (stamp, value), TIMESTAMP)


# ---- what is asked of an interval ------------------------------------------------------------------------------------


def compared(name: str, a: Expr, b: Expr) -> Expr:
    """A comparison of two intervals, for which a month has 30 days and a day 24 hours."""
    sides = (parts(a), parts(b))
    wide = not all(_is_zero(months) for months, _, _ in sides)
    return call(name, *(_total(side, _WIDE if wide else BIGINT) for side in sides))


def _total(of: Parts, dtype: DType) -> Expr:
    """The microseconds of an interval."""
    total: Expr | None = None
    for part, length in zip(of, (_MONTH_DAYS * DAY_MICROS, DAY_MICROS, 1), strict=True):
        if _is_zero(part):
            continue
        each = make("multiply", (cast(part, dtype), Literal(length, dtype)), dtype) if length > 1 else cast(part, dtype)
        total = each if total is None else make("add", (total, each), dtype)
    return Literal(0, dtype) if total is None else total


_OF_MONTHS = {
    "year": (12, None),
    "decade": (120, None),
    "century": (1200, None),
    "millennium": (12000, None),
    "month": (1, 12),
}
_OF_MICROS = {
    "hour": (3_600_000_000, None), "minute": (60_000_000, 60), "second": (1_000_000, 60), "millisecond": (1000, 60_000),
    "microsecond": (1, 60_000_000),
}  # fmt: skip


def part_of(name: str, e: Expr) -> Expr | None:
    """A part of an interval as `date_part` gives it; None for one that it has not."""
    months, days, micros = parts(e)
    if name == "day":
        return days
    if name == "quarter":
        month = make("modulo", (months, _number(12)), BIGINT)
        return _plus(make("int_divide", (month, _number(3)), BIGINT), _number(1))
    if name == "epoch" and _is_zero(months):
        seconds = call("divide", cast(micros, DOUBLE), Literal(1e6, DOUBLE))
        return make("add", (cast(_times(days, 86_400), DOUBLE), seconds), DOUBLE)
    of, units = (months, _OF_MONTHS) if name in _OF_MONTHS else (micros, _OF_MICROS)
    if name not in units:
        return None
    length, wrap = units[name]
    whole = of if length == 1 else make("int_divide", (of, _number(length)), BIGINT)
    return whole if wrap is None else make("modulo", (whole, _number(wrap)), BIGINT)


# ---- buckets ---------------------------------------------------------------------------------------------------------

_MONDAY = 946_857_600_000_000  # 2000-01-03, from which buckets of days and less are counted


def _width(value: Interval) -> int:
    return value.days * DAY_MICROS + value.micros


@resolver("time_bucket", "$(INTERVAL, DATE or TIMESTAMP)",
          example=("time_bucket(INTERVAL 5 MINUTE, TIMESTAMP '2020-01-01 00:07:00')", "2020-01-01 00:05:00"))  # fmt: skip
def _time_bucket(width: Expr, x: Expr) -> Expr | None:
    """The begin of the interval of that constant width in which x lies; widths of days and less begin at 2000-01-03."""
    if width.dtype != INTERVAL or not x.dtype.is_temporal:
        return None
    if not isinstance(width, Literal) or width.is_null:
        raise NotSupportedError("not supported: time_bucket of a width that is not constant")
    value = width.value
    assert isinstance(value, Interval)
    if value.months or _width(value) <= 0:
        raise NotSupportedError("not supported: time_bucket of months; date_trunc cuts to months, quarters and years")
    since = make("subtract", (_micros_since_1970(x), _number(_MONDAY)), BIGINT)
    number = make("_floored", (since, derived(_width, BIGINT, (width,))), BIGINT)
    return cast(make("_from_micros", (_plus(number, _number(_MONDAY)),), TIMESTAMP), x.dtype)


@scalar("_floored", ((BIGINT, BIGINT), BIGINT))
def floored(x: int, unit: int) -> int:
    """The last multiple of a unit."""
    return sub_i64(x, floor_mod_i64(x, unit))
