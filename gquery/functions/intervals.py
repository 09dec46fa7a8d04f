# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Intervals in expressions: their parts, what is computed with them, how they are compared.

An interval is one value: a column, a branch of CASE, or ``_interval`` of three numbers that are computed (months and days are
INTEGERs, microseconds a BIGINT). Whatever computes with one takes it apart (`parts`). The parts of ``_interval`` are its
arguments, so that arithmetic that is fused costs what the numbers cost, and an interval that never lies in memory is never
packed. How the one value is made of three stands in `gquery.expression.interval`, the code for it in `kernels.interval_values`.
"""

from __future__ import annotations

from collections.abc import Callable

from gquery.expression.expr import Call, Cast, Expr, Literal
from gquery.expression.interval import DAY_DIGITS, LEAST_MONTHS, MICRO_DIGITS, MOST_PART, Interval, comparison_key
from gquery.expression.slots import derived
from gquery.expression.types import (
    BIGINT,
    DOUBLE,
    INT64,
    INTEGER,
    INTERVAL,
    TIMESTAMP,
    Bounds,
    DType,
    Kind,
    decimal,
)
from gquery.functions.calendar import DAY_MICROS, add_interval
from gquery.functions.casts import cast, fits
from gquery.functions.interval_texts import unit_parts
from gquery.functions.registry import ScalarFunction, call, declare, is_null_literal, make, resolver, scalar

Parts = tuple[Expr, Expr, Expr]
MAKE, KEY = "_interval", "_interval_key"
MONTHS, DAYS, MICROS = "_interval_months", "_interval_days", "_interval_micros"
KEY_TYPE = decimal(38, 0)
_MONTH_DAYS = 30  # of intervals that are compared


def part_bounds(interval: Bounds | None) -> tuple[Bounds, Bounds, Bounds]:
    """Where months, days and microseconds of intervals within bounds lie."""
    limits = Bounds(LEAST_MONTHS, MOST_PART), Bounds(-MOST_PART - 1, MOST_PART), INT64
    if interval is None:
        return limits
    low, high = Interval.of(interval.low), Interval.of(interval.high)
    months = Bounds(low.months, high.months)
    if low.months != high.months:
        return months, *limits[1:]
    days = Bounds(low.days, high.days)
    return months, days, Bounds(low.micros, high.micros) if low.days == high.days else INT64


def packed_bounds(months: Bounds | None, days: Bounds | None, micros: Bounds | None) -> Bounds | None:
    """Where intervals lie that are made of such parts."""
    if not (months and days and micros):
        return None
    low = max(months.low, LEAST_MONTHS)
    ends = Interval(min(low, MOST_PART), days.low, micros.low), Interval(max(low, months.high), days.high, micros.high)
    return Bounds(ends[0].packed, ends[1].packed)


declare(ScalarFunction(MAKE, bounds=packed_bounds, doc="An interval of months, days and microseconds."))
declare(ScalarFunction(MONTHS, bounds=lambda x: part_bounds(x)[0], doc="The months of an interval."))
declare(ScalarFunction(DAYS, bounds=lambda x: part_bounds(x)[1], doc="The days of an interval."))
declare(ScalarFunction(MICROS, bounds=lambda x: part_bounds(x)[2], doc="The microseconds of an interval."))
declare(ScalarFunction(KEY, doc="An integer that orders intervals as they are compared."))


def _months(packed: int) -> int:
    return Interval.of(packed).months


def _days(packed: int) -> int:
    return Interval.of(packed).days


def _micros(packed: int) -> int:
    return Interval.of(packed).micros


def _packed(months: int, days: int, micros: int) -> int:
    return Interval(months, days, micros).packed


def _negated(packed: int) -> int:
    value = Interval.of(packed)
    return Interval(-value.months, -value.days, -value.micros).packed


def parts(e: Expr) -> Parts:
    """The months, days and microseconds of an interval."""
    if isinstance(e, Literal) and e.is_null:
        return _null(INTEGER), _null(INTEGER), _null(BIGINT)
    if isinstance(e, Literal):
        return derived(_months, INTEGER, (e,)), derived(_days, INTEGER, (e,)), derived(_micros, BIGINT, (e,))
    if isinstance(e, Call) and e.function == MAKE:
        months, days, micros = e.args
        return months, days, micros
    return make(MONTHS, (e,), INTEGER), make(DAYS, (e,), INTEGER), make(MICROS, (e,), BIGINT)


def interval_of(months: Expr, days: Expr, micros: Expr) -> Expr:
    """The interval of three numbers of the types of its parts."""
    found = (months, days, micros)
    literals = tuple(p for p in found if isinstance(p, Literal))
    if any(p.is_null for p in literals):
        return Literal(None, INTERVAL)
    if len(literals) == 3:
        try:
            return derived(_packed, INTERVAL, literals)
        except OverflowError:  # it raises where the query gets to it
            pass
    return make(MAKE, found, INTERVAL)


def _null(dtype: DType) -> Literal:
    return Literal(None, dtype)


def _number(value: int, dtype: DType = BIGINT) -> Literal:
    return Literal(value, dtype)


_ZERO, _ZERO_MICROS = _number(0, INTEGER), _number(0)


def _is_zero(e: Expr) -> bool:
    """Whether a part is 0 for sure: of a constant that the text holds it is read, not of one that other texts share."""
    return type(e) is Literal and e.value == 0


def _product(x: int, factor: int) -> int:
    return x * factor


def _total(x: int, y: int) -> int:
    return x + y


def _times(x: Expr, factor: int) -> Expr:
    if factor == 1 or _is_zero(x):
        return x
    if factor == 0:
        return Literal(0, x.dtype)
    return _of_constants(_product, x, _number(factor, x.dtype)) or make(
        "multiply", (x, _number(factor, x.dtype)), x.dtype
    )


def _plus(a: Expr, b: Expr) -> Expr:
    if _is_zero(a) or _is_zero(b):
        return b if _is_zero(a) else a
    return _of_constants(_total, a, b) or make("add", (a, b), a.dtype)


def _of_constants(f: Callable[[int, int], int], a: Expr, b: Expr) -> Literal | None:
    """What is computed of two constants, if both are there and the result fits."""
    if not (isinstance(a, Literal) and isinstance(b, Literal)) or a.is_null or b.is_null:
        return None
    made = derived(f, a.dtype, (a, b))
    return made if fits(made, a.dtype) else None


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
    if micros:
        return interval_of(_ZERO, _ZERO, _times(cast(whole, BIGINT), micros))
    n = cast(whole, INTEGER)
    return interval_of(_times(n, months), _times(n, days), _ZERO_MICROS)


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
    months, days, micros = (_plus(x, y) for x, y in zip(parts(a), parts(b), strict=True))
    return interval_of(months, days, micros)


def minus(a: Expr) -> Expr:
    """An interval with the other sign."""
    if isinstance(a, Literal) and not a.is_null:
        try:
            return derived(_negated, INTERVAL, (a,))
        except OverflowError:
            pass
    months, days, micros = (p if _is_zero(p) else make("negate", (p,), p.dtype) for p in parts(a))
    return interval_of(months, days, micros)


def scaled(a: Expr, factor: Expr) -> Expr:
    """An interval some whole times over, part by part; NULL times a zero is NULL as well, so one part is always multiplied."""
    months, days, micros = parts(a)
    stays = [_is_zero(months), _is_zero(days), _is_zero(micros)]
    stays[2] &= not all(stays)
    made = (
        p if stay else make("multiply", (p, cast(factor, p.dtype)), p.dtype)
        for p, stay in zip((months, days, micros), stays, strict=True)
    )
    return interval_of(*made)


def between(a: Expr, b: Expr) -> Expr:
    """``a - b`` of two timestamps: days of 24 hours, and microseconds."""
    micros = make("subtract", tuple(micros_since_1970(x) for x in (a, b)), BIGINT)
    day = _number(DAY_MICROS)
    days = cast(_without_null(make("int_divide", (micros, day), BIGINT), micros), INTEGER)
    return interval_of(_ZERO, days, _without_null(make("modulo", (micros, day), BIGINT), micros))


def _without_null(e: Call, of: Expr) -> Call:
    """A quotient by a constant, which is NULL where the dividend is."""
    return Call(e.function, e.args, e.dtype, of.nullable)


def stamp(x: Expr) -> Expr:
    """A date or timestamp as a TIMESTAMP; of one with a zone the time of UTC."""
    return Cast(x, TIMESTAMP) if x.dtype.kind is Kind.TIMESTAMPTZ else cast(x, TIMESTAMP)


def micros_since_1970(x: Expr) -> Expr:
    """Microseconds from 1970-01-01 to a date or timestamp."""
    return make("_units", (stamp(x), _number(1)), BIGINT)


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
    months, days, micros = (cast(p, BIGINT) for p in parts(interval))
    since = micros_since_1970(x)
    if not _is_zero(months):
        day = make("_units", (stamp(x), _number(DAY_MICROS)), BIGINT)
        later = make("subtract", (make("_months_later", (day, months), BIGINT), day), BIGINT)
        since = _plus(since, _times(later, DAY_MICROS))
    return make("_from_micros", (_plus(_plus(since, _times(days, DAY_MICROS)), micros),), TIMESTAMP)


def is_time(e: Expr) -> bool:
    """Whether an interval can be added to an expression."""
    return e.dtype.is_temporal or e.dtype.kind is Kind.TIMESTAMPTZ


def plus(a: Expr, interval: Expr, sign: int) -> Expr:
    """A date or timestamp plus an interval, or minus it where ``sign`` is -1."""
    if a.dtype.kind is Kind.TIMESTAMPTZ:  # by the calendar of UTC, the session's zone
        return Cast(plus(Cast(a, TIMESTAMP), interval, sign), a.dtype)
    stamp = cast(a, TIMESTAMP)
    if isinstance(interval, Literal) and interval.is_null:
        return Literal(None, TIMESTAMP)
    value = interval if sign > 0 else minus(interval)
    if not isinstance(value, Literal):
        return shifted(a, value)
    if isinstance(stamp, Literal):
        if stamp.is_null:
            return Literal(None, TIMESTAMP)
        later = derived(add_interval, TIMESTAMP, (stamp, value))
        if fits(later, TIMESTAMP):  # else it raises where the query gets to it
            return later
    return make("add_interval", (stamp, value), TIMESTAMP)


# ---- how intervals are compared --------------------------------------------------------------------------------------


def key(e: Expr) -> Expr:
    """An integer that is equal, less or greater for intervals that are (see `expression.interval.comparison_key`)."""
    if isinstance(e, Literal):
        return Literal(None, KEY_TYPE) if e.is_null else derived(comparison_key, KEY_TYPE, (e,))
    return make(KEY, (e,), KEY_TYPE)


def comparable(e: Expr) -> Expr:
    """What is equal, less or greater where an expression is: that itself, but for an interval."""
    return key(e) if e.dtype == INTERVAL else e


def compared(name: str, a: Expr, b: Expr) -> Expr:
    """A comparison of two intervals."""
    return call(name, key(a), key(b))


def computed_key(e: Expr) -> Expr:
    """What a kernel computes for the key of an interval."""
    months, days, micros = parts(e)
    day = _number(DAY_MICROS)
    whole_days = make("add", (cast(days, BIGINT), make("int_divide", (micros, day), BIGINT)), BIGINT)
    of_day = make("modulo", (micros, day), BIGINT)
    month = _number(_MONTH_DAYS)
    whole_months = make("add", (cast(months, BIGINT), make("int_divide", (whole_days, month), BIGINT)), BIGINT)
    of_month = make("modulo", (whole_days, month), BIGINT)
    mixed = make("add", (make("multiply", (whole_months, _number(DAY_DIGITS)), BIGINT), of_month), BIGINT)
    high = make("multiply", (Cast(mixed, KEY_TYPE), _number(MICRO_DIGITS, KEY_TYPE)), KEY_TYPE)
    return make("add", (high, Cast(of_day, KEY_TYPE)), KEY_TYPE)
