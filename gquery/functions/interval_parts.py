# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""What is asked of intervals, and made of them: their parts, truncation, ages, factors with a fraction, buckets of time."""

from __future__ import annotations

from gquery.expression.expr import Case, Expr, Literal
from gquery.expression.facts import DAYS_PER_MONTH
from gquery.expression.interval import Interval
from gquery.expression.slots import decided
from gquery.expression.types import BIGINT, DATE, DOUBLE, INTEGER, INTERVAL, TIMESTAMP, Bounds
from gquery.functions.calendar import DAY_MICROS
from gquery.functions.casts import cast
from gquery.functions.intervals import interval_of, is_time, micros_since_1970, parts, stamp
from gquery.functions.registry import call, is_null_literal, make, resolver, scalar

_MONTHS_IN = {"month": 1, "quarter": 3, "year": 12, "isoyear": 12, "decade": 120, "century": 1200, "millennium": 12000}
_MICROS_IN = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "millisecond": 1000, "microsecond": 1}
_WRAP = {"minute": 60, "second": 60_000_000, "millisecond": 60_000_000, "microsecond": 60_000_000}
_YEAR_SECONDS, _DAY_SECONDS = 31_557_600, 86_400


def _number(value: int) -> Literal:
    return Literal(value, BIGINT)


def _by(name: str, x: Expr, by: int) -> Expr:
    return make(name, (x, _number(by)), BIGINT)


def _floats(x: Expr, factor: float) -> Expr:
    return make("multiply", (cast(x, DOUBLE), Literal(factor, DOUBLE)), DOUBLE)


# ---- parts -----------------------------------------------------------------------------------------------------------


def part_of(name: str, e: Expr) -> Expr | None:
    """A part of an interval as `date_part` gives it; None for one that it has not."""
    months, days, micros = (cast(p, BIGINT) for p in parts(e))
    match name:
        case "day":
            return days
        case "month":
            return _by("modulo", months, 12)
        case "quarter":
            return make("add", (_by("int_divide", _by("modulo", months, 12), 3), _number(1)), BIGINT)
        case "epoch":
            return _epoch(months, days, micros)
        case "epoch_us":
            return _total(months, days, micros)
        case "epoch_ms":
            return _total(months, days, _by("int_divide", micros, 1000), DAY_MICROS // 1000)
        case "hour" | "minute":
            whole = _by("int_divide", micros, _MICROS_IN[name])
            return _by("modulo", whole, _WRAP[name]) if name in _WRAP else whole
        case "second" | "millisecond" | "microsecond":
            return _by("int_divide", _by("modulo", micros, _WRAP[name]), _MICROS_IN[name])
        case _:
            return _by("int_divide", months, _MONTHS_IN[name]) if name in _MONTHS_IN else None


def _epoch(months: Expr, days: Expr, micros: Expr) -> Expr:
    """Seconds: a year has 365.25 days, a month of no whole year 30."""
    years, rest = _by("int_divide", months, 12), _by("modulo", months, 12)
    terms = (_by("multiply", years, _YEAR_SECONDS), _by("multiply", rest, DAYS_PER_MONTH * _DAY_SECONDS))
    whole = make("add", (make("add", terms, BIGINT), _by("multiply", days, _DAY_SECONDS)), BIGINT)
    seconds = make("divide", (cast(micros, DOUBLE), Literal(1e6, DOUBLE)), DOUBLE)
    return make("add", (cast(whole, DOUBLE), seconds), DOUBLE)


def _total(months: Expr, days: Expr, rest: Expr, of_day: int = DAY_MICROS) -> Expr:
    """Microseconds, or another unit of which a day has ``of_day``: those of months, of 30 days, of days and the rest."""
    whole = make("add", (_by("multiply", months, DAYS_PER_MONTH), days), BIGINT)
    return make("add", (_by("multiply", whole, of_day), rest), BIGINT)


def truncated(name: str, e: Expr) -> Expr:
    """An interval without what is less than a unit; units that count within a week or a year stand for days."""
    months, days, micros = parts(e)
    zero, none = Literal(0, INTEGER), _number(0)
    if name in _MONTHS_IN:
        count = Literal(_MONTHS_IN[name], INTEGER)
        whole = make("int_divide", (months, count), INTEGER)
        return interval_of(make("multiply", (whole, count), INTEGER), zero, none)
    if name == "week":
        week = Literal(7, INTEGER)
        return interval_of(months, make("multiply", (make("int_divide", (days, week), INTEGER), week), INTEGER), none)
    length = _MICROS_IN.get("second" if name == "epoch" else name.replace("epoch_ms", "millisecond"))
    if length is None:
        return interval_of(months, days, micros if name == "epoch_us" else none)
    return interval_of(months, days, _by("multiply", _by("int_divide", micros, length), length))


@resolver("normalized_interval", "$(INTERVAL) -> INTERVAL")
def _normalized(e: Expr) -> Expr | None:
    """The interval with 24 hours as a day and 30 days as a month."""
    if e.dtype != INTERVAL:
        return None
    months, days, micros = parts(e)
    whole = make("add", (cast(days, BIGINT), _by("int_divide", micros, DAY_MICROS)), BIGINT)
    month = make("add", (cast(months, BIGINT), _by("int_divide", whole, DAYS_PER_MONTH)), BIGINT)
    rest = _by("modulo", whole, DAYS_PER_MONTH)
    return interval_of(cast(month, INTEGER), cast(rest, INTEGER), _by("modulo", micros, DAY_MICROS))


# ---- factors ---------------------------------------------------------------------------------------------------------


@scalar("_interval_rounded", ((DOUBLE,), DOUBLE))
def interval_rounded(x: float) -> float:
    """A number with six places behind the point."""
    return div_f64(round_f64(mul_f64(x, 1e6)), 1e6)


def scaled_by_fraction(e: Expr, factor: Expr, name: str) -> Expr:
    """An interval times or by a DOUBLE: what is left of a month becomes days of which it has 30, what is left of a day time."""
    months, days, micros = (make(name, (cast(p, DOUBLE), factor), DOUBLE) for p in parts(e))
    whole_months, whole_days = call("trunc", months), call("trunc", days)
    month_rest = make("_interval_rounded", (_floats(_minus(months, whole_months), DAYS_PER_MONTH),), DOUBLE)
    rest_days = call("trunc", month_rest)
    day_rest = _plus(_minus(days, whole_days), _minus(month_rest, rest_days))
    seconds = make("_interval_rounded", (_floats(day_rest, _DAY_SECONDS),), DOUBLE)
    more_days = call("trunc", make("divide", (seconds, Literal(float(_DAY_SECONDS), DOUBLE)), DOUBLE))
    of_day = _floats(_minus(seconds, _floats(more_days, _DAY_SECONDS)), 1e6)
    made = interval_of(
        cast(whole_months, INTEGER),
        cast(_plus(_plus(whole_days, rest_days), more_days), INTEGER),
        cast(_plus(micros, of_day), BIGINT),
    )
    if name == "multiply":
        return made
    return Case(((call("eq", factor, Literal(0.0, DOUBLE)), Literal(None, INTERVAL)),), made)


def _minus(a: Expr, b: Expr) -> Expr:
    return make("subtract", (a, b), DOUBLE)


def _plus(a: Expr, b: Expr) -> Expr:
    return make("add", (a, b), DOUBLE)


# ---- ages ------------------------------------------------------------------------------------------------------------


@scalar("_age_months", ((TIMESTAMP, TIMESTAMP), BIGINT), bounds=lambda a, b: Bounds(-(2**31) + 1, 2**31 - 1))
def age_months(a: int, b: int) -> int:
    """Whole months from b to a, counted from the earlier one."""
    later, earlier = max_i64(a, b), min_i64(a, b)
    high, low = floor_div_i64(later, 86_400_000_000), floor_div_i64(earlier, 86_400_000_000)
    years = sub_i64(date_year(high), date_year(low))
    months = add_i64(mul_i64(years, 12), sub_i64(date_month(high), date_month(low)))
    days = sub_i64(date_day(high), date_day(low))
    if lt_i64(floor_mod_i64(later, 86_400_000_000), floor_mod_i64(earlier, 86_400_000_000)):
        days = sub_i64(days, 1)
    if lt_i64(days, 0):
        months = sub_i64(months, 1)
    if lt_i64(a, b):
        months = neg_i64(months)
    return months


@scalar("_age_days", ((TIMESTAMP, TIMESTAMP), BIGINT), bounds=lambda a, b: Bounds(-31, 31))
def age_days(a: int, b: int) -> int:
    """The days beyond those months; a month that was begun has the length of the earlier one."""
    later, earlier = max_i64(a, b), min_i64(a, b)
    high, low = floor_div_i64(later, 86_400_000_000), floor_div_i64(earlier, 86_400_000_000)
    days = sub_i64(date_day(high), date_day(low))
    if lt_i64(floor_mod_i64(later, 86_400_000_000), floor_mod_i64(earlier, 86_400_000_000)):
        days = sub_i64(days, 1)
    if lt_i64(days, 0):
        days = add_i64(days, date_day(date_last_day(low)))
    if lt_i64(a, b):
        days = neg_i64(days)
    return days


@scalar("_age_micros", ((TIMESTAMP, TIMESTAMP), BIGINT), bounds=lambda a, b: Bounds(1 - DAY_MICROS, DAY_MICROS - 1))
def age_micros(a: int, b: int) -> int:
    """The time of day beyond those days."""
    later, earlier = max_i64(a, b), min_i64(a, b)
    micros = floor_mod_i64(sub_i64(later, earlier), 86_400_000_000)
    if lt_i64(a, b):
        micros = neg_i64(micros)
    return micros


@resolver("age", "$(DATE or TIMESTAMP, DATE or TIMESTAMP) -> INTERVAL", "$(DATE or TIMESTAMP) -> INTERVAL",
          example=("epoch(age(TIMESTAMP '2001-04-10', TIMESTAMP '2001-03-09'))", "2678400.0"))  # fmt: skip
def _age(a: Expr, b: Expr | None = None) -> Expr | None:
    """From b to a in months, days and time as a calendar counts them; from a to the begin of today where b is not there."""
    if b is None:
        a, b = call("current_date"), a
    if not all(is_time(x) or is_null_literal(x) for x in (a, b)):
        return None
    ends = tuple(stamp(x) if is_time(x) else cast(x, TIMESTAMP) for x in (a, b))
    months, days = (cast(make(f"_age_{part}", ends, BIGINT), INTEGER) for part in ("months", "days"))
    return interval_of(months, days, make("_age_micros", ends, BIGINT))


# ---- buckets ---------------------------------------------------------------------------------------------------------

_MONDAY = 946_857_600_000_000  # 2000-01-03, from which buckets of days and less are counted
_MILLENNIUM = 360  # months from 1970-01 to 2000-01, from which those of months are


def is_no_width(x: int, unit: int) -> bool:
    """Whether nothing is that wide."""
    return le_i64(unit, 0)


_WIDTH = ((is_no_width, "time_bucket: the width has to be greater than 0"),)


@scalar("_floored", ((BIGINT, BIGINT), BIGINT), domain=_WIDTH)
def floored(x: int, unit: int) -> int:
    """The last multiple of a unit."""
    return sub_i64(x, floor_mod_i64(x, max_i64(unit, 1)))


@scalar("_month_number", ((DATE,), BIGINT))
def month_number(days: int) -> int:
    """Months since 1970-01."""
    return add_i64(mul_i64(sub_i64(date_year(days), 1970), 12), sub_i64(date_month(days), 1))


@scalar("_first_of_month", ((BIGINT,), DATE))
def first_of_month(months: int) -> int:
    """The first day of the month so many months after 1970-01."""
    return date_add_months(0, months)


def has_other(months: int, micros: int) -> bool:
    """Whether a width of months has something beside them."""
    return ne_i64(micros, 0)


@scalar(
    "_month_width",
    ((BIGINT, BIGINT), BIGINT),
    domain=((has_other, "time_bucket: a width of months has no days or time"),),
)
def month_width(months: int, micros: int) -> int:
    """The months of a width that has nothing else."""
    return months


def _has_months(packed: int) -> bool:
    return Interval.of(packed).months != 0


@resolver("time_bucket", "$(INTERVAL, DATE or TIMESTAMP)", "$(INTERVAL, DATE or TIMESTAMP, INTERVAL)",
          "$(INTERVAL, DATE or TIMESTAMP, DATE or TIMESTAMP)",
          example=("time_bucket(INTERVAL 5 MINUTE, TIMESTAMP '2020-01-01 00:07:00')", "2020-01-01 00:05:00"))  # fmt: skip
def _time_bucket(width: Expr, x: Expr, begin: Expr | None = None) -> Expr | None:
    """The begin of the interval of that width in which x lies. Widths of days and less are counted from 2000-01-03, those of
    months from 2000-01-01; from an origin where one is given, and so much later where an interval is."""
    if width.dtype != INTERVAL or not x.dtype.is_temporal:
        return None
    if begin is None:
        return cast(_bucket(width, x, _number(_MONDAY), _number(_MILLENNIUM)), x.dtype)
    if begin.dtype == INTERVAL:
        moved = call("time_bucket", width, call("subtract", cast(x, TIMESTAMP), begin))
        return cast(call("add", moved, begin), x.dtype)
    if not begin.dtype.is_temporal:
        return None
    month = make("_month_number", (cast(begin, DATE),), BIGINT)
    return cast(_bucket(width, x, micros_since_1970(begin), month), x.dtype if begin.dtype == DATE else TIMESTAMP)


def _bucket(width: Expr, x: Expr, micros: Expr, month: Expr) -> Expr:
    """A timestamp; counted from a time for widths of days and less, from a month for those of months."""
    months, days, rest = (cast(p, BIGINT) for p in parts(width))
    length = make("add", (_by("multiply", days, DAY_MICROS), rest), BIGINT)
    if isinstance(width, Literal):
        has_months = not width.is_null and decided(_has_months, (width,))
        return _of_months(x, months, length, month) if has_months else _of_micros(x, length, micros)
    is_time = call("eq", months, _number(0))
    return Case(((is_time, _of_micros(x, length, micros)),), _of_months(x, months, length, month))


def _of_micros(x: Expr, length: Expr, origin: Expr) -> Expr:
    since = make("subtract", (micros_since_1970(x), origin), BIGINT)
    begin = make("add", (make("_floored", (since, length), BIGINT), origin), BIGINT)
    return make("_from_micros", (begin,), TIMESTAMP)


def _of_months(x: Expr, months: Expr, length: Expr, origin: Expr) -> Expr:
    since = make("subtract", (make("_month_number", (cast(x, DATE),), BIGINT), origin), BIGINT)
    width = make("_month_width", (months, length), BIGINT)
    begin = make("add", (make("_floored", (since, width), BIGINT), origin), BIGINT)
    return cast(make("_first_of_month", (begin,), DATE), TIMESTAMP)
