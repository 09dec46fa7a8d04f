# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Functions of dates and timestamps.

Bodies work on days or microseconds since 1970-01-01 (``i64`` registers) and call primitives by name. Parts of a date
take a DATE; a TIMESTAMP is cast to one first.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery.errors import BindError, NotSupportedError, did_you_mean
from gquery.expression.expr import Expr, Literal
from gquery.expression.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTERVAL, TIMESTAMP, VARCHAR, Bounds
from gquery.functions import interval_parts
from gquery.functions.calendar import civil_from_days
from gquery.functions.casts import cast
from gquery.functions.registry import LIST_RESOLVERS, BoundsRule, call, make, resolver, scalar

_DAYS = (((DATE,), BIGINT),)
_MICROS = (((TIMESTAMP,), BIGINT),)


def _between(low: int, high: int) -> BoundsRule:
    return lambda *args: Bounds(low, high)


def _year_bounds(days: Bounds | None) -> Bounds | None:
    return (
        Bounds(civil_from_days(days.low)[0], civil_from_days(days.high)[0]) if days else Bounds(-5_900_000, 5_900_000)
    )


@scalar("_year", *_DAYS, bounds=_year_bounds)
def year(days: int) -> int:
    """The year."""
    return date_year(days)


@scalar("_month", *_DAYS, bounds=_between(1, 12))
def month(days: int) -> int:
    """The month, 1 to 12."""
    return date_month(days)


@scalar("_day", *_DAYS, bounds=_between(1, 31))
def day(days: int) -> int:
    """The day of the month, 1 to 31."""
    return date_day(days)


@scalar("_quarter", *_DAYS, bounds=_between(1, 4))
def quarter(days: int) -> int:
    """The quarter, 1 to 4."""
    return date_quarter(days)


@scalar("_week", *_DAYS, bounds=_between(1, 53))
def week(days: int) -> int:
    """The ISO week, 1 to 53."""
    return date_week(days)


@scalar("_dayofweek", *_DAYS, bounds=_between(0, 6))
def dayofweek(days: int) -> int:
    """The day of the week, Sunday 0 to Saturday 6."""
    return date_dow(days)


@scalar("_isodow", *_DAYS, bounds=_between(1, 7))
def isodow(days: int) -> int:
    """The day of the week, Monday 1 to Sunday 7."""
    return date_isodow(days)


@scalar("_dayofyear", *_DAYS, bounds=_between(1, 366))
def dayofyear(days: int) -> int:
    """The day of the year, 1 to 366."""
    return date_doy(days)


@scalar("_hour", *_MICROS, bounds=_between(0, 23))
def hour(micros: int) -> int:
    """The hour, 0 to 23."""
    return div_i64(floor_mod_i64(micros, 86_400_000_000), 3_600_000_000)


@scalar("_minute", *_MICROS, bounds=_between(0, 59))
def minute(micros: int) -> int:
    """The minute, 0 to 59."""
    return div_i64(floor_mod_i64(micros, 3_600_000_000), 60_000_000)


@scalar("_second", *_MICROS, bounds=_between(0, 59))
def second(micros: int) -> int:
    """The second, 0 to 59."""
    return div_i64(floor_mod_i64(micros, 60_000_000), 1_000_000)


@scalar("_millisecond", *_MICROS, bounds=_between(0, 59_999))
def millisecond(micros: int) -> int:
    """Milliseconds since the minute began."""
    return div_i64(floor_mod_i64(micros, 60_000_000), 1000)


@scalar("_microsecond", *_MICROS, bounds=_between(0, 59_999_999))
def microsecond(micros: int) -> int:
    """Microseconds since the minute began."""
    return floor_mod_i64(micros, 60_000_000)


@scalar("_epoch", ((TIMESTAMP,), DOUBLE))
def epoch(micros: int) -> float:
    """Seconds since 1970-01-01."""
    return div_f64(f64(micros), 1_000_000.0)


@scalar("_epoch_ms", *_MICROS)
def epoch_ms(micros: int) -> int:
    """Milliseconds since 1970-01-01, cut towards zero."""
    return div_i64(micros, 1000)


@scalar("_epoch_us", *_MICROS)
def epoch_us(micros: int) -> int:
    """Microseconds since 1970-01-01."""
    return micros


@scalar("_decade", *_DAYS)
def decade(days: int) -> int:
    """The year by ten."""
    return div_i64(date_year(days), 10)


@scalar("_century", *_DAYS)
def century(days: int) -> int:
    """The century: 1901 to 2000 are the 20th."""
    y = date_year(days)
    if gt_i64(y, 0):
        return add_i64(div_i64(sub_i64(y, 1), 100), 1)
    return sub_i64(div_i64(y, 100), 1)


@scalar("_millennium", *_DAYS)
def millennium(days: int) -> int:
    """The millennium: 1001 to 2000 are the 2nd."""
    y = date_year(days)
    if gt_i64(y, 0):
        return add_i64(div_i64(sub_i64(y, 1), 1000), 1)
    return sub_i64(div_i64(y, 1000), 1)


_DATE_PARTS = (
    "year", "month", "day", "quarter", "week", "dayofweek", "isodow", "dayofyear", "decade", "century", "millennium",
)  # fmt: skip
_TIME_PARTS = ("hour", "minute", "second", "millisecond", "microsecond", "epoch", "epoch_ms", "epoch_us")
_FUNCTIONS = ("isoyear", "yearweek", "era", "julian", "timezone", "timezone_hour", "timezone_minute")  # that are calls
_PARTS = (*_DATE_PARTS, *_TIME_PARTS, *_FUNCTIONS)
_PART_ALIASES = {
    "years": "year", "y": "year", "yr": "year", "yrs": "year", "months": "month", "mon": "month", "mons": "month",
    "days": "day", "d": "day", "dayofmonth": "day", "quarters": "quarter", "weeks": "week", "w": "week",
    "weekofyear": "week", "dow": "dayofweek", "weekday": "dayofweek", "dayofweekiso": "isodow", "doy": "dayofyear",
    "decades": "decade", "dec": "decade", "decs": "decade", "centuries": "century", "cent": "century", "c": "century",
    "millennia": "millennium", "mil": "millennium", "millenium": "millennium", "hours": "hour", "h": "hour",
    "hr": "hour", "minutes": "minute", "min": "minute", "mins": "minute", "m": "minute", "seconds": "second",
    "sec": "second", "secs": "second", "s": "second", "milliseconds": "millisecond", "ms": "millisecond",
    "microseconds": "microsecond", "us": "microsecond", "usec": "microsecond", "msec": "millisecond",
}  # fmt: skip


def part_name(name: str) -> str:
    """The date part that a specifier names; BindError for an unknown one."""
    part = _PART_ALIASES.get(name.lower(), name.lower())
    if part not in _PARTS:
        raise BindError(f"{name!r} is no part of a date.{did_you_mean(name, _PARTS)}")
    return part


def _part(part: str, x: Expr) -> Expr | None:
    if x.dtype == INTERVAL:
        return interval_parts.part_of(part, x)
    if not (x.dtype.is_temporal or (isinstance(x, Literal) and x.value is None)):
        return None
    if part in _FUNCTIONS:
        return call(part, x if x.dtype.is_temporal else cast(x, TIMESTAMP))
    if part in _DATE_PARTS:
        return make(f"_{part}", (cast(x, DATE),), BIGINT)
    if x.dtype == DATE:  # dates reach further than timestamps
        return _part_of_day(part, x)
    return make(f"_{part}", (cast(x, TIMESTAMP),), DOUBLE if part == "epoch" else BIGINT)


_EPOCH_UNITS = {"epoch": 86_400, "epoch_ms": 86_400_000, "epoch_us": 86_400_000_000}


def _part_of_day(part: str, x: Expr) -> Expr:
    days = make("days_between", (x, Literal(0, DATE)), BIGINT)
    units = make("multiply", (days, Literal(_EPOCH_UNITS.get(part, 0), BIGINT)), BIGINT)
    return cast(units, DOUBLE) if part == "epoch" else units


def _declare_part(part: str, names: str, example: tuple[str, str]) -> None:
    result = "DOUBLE" if part == "epoch" else "BIGINT"

    @resolver(names, f"$(DATE) -> {result}", f"$(TIMESTAMP) -> {result}", example=example)
    def resolve(x: Expr) -> Expr | None:
        return _part(part, x)


for _name, _names, _example in (
    ("year", "year", ("year(DATE '1995-03-17')", "1995")),
    ("month", "month", ("month(DATE '1995-03-17')", "3")),
    ("day", "day dayofmonth", ("day(DATE '1995-03-17')", "17")),
    ("quarter", "quarter", ("quarter(DATE '1995-04-01')", "2")),
    ("week", "week weekofyear", ("week(DATE '1995-01-01')", "52")),
    ("dayofweek", "dayofweek weekday", ("dayofweek(DATE '1995-01-01')", "0")),
    ("isodow", "isodow", ("isodow(DATE '1995-01-01')", "7")),
    ("dayofyear", "dayofyear", ("dayofyear(DATE '1996-12-31')", "366")),
    ("decade", "decade", ("decade(DATE '1995-01-01')", "199")),
    ("century", "century", ("century(DATE '2000-12-31')", "20")),
    ("millennium", "millennium", ("millennium(DATE '2001-01-01')", "3")),
    ("hour", "hour", ("hour(TIMESTAMP '1969-12-31 23:59:59')", "23")),
    ("minute", "minute", ("minute(TIMESTAMP '1969-12-31 23:58:59')", "58")),
    ("second", "second", ("second(TIMESTAMP '1995-01-01 10:00:59.5')", "59")),
    ("millisecond", "millisecond", ("millisecond(TIMESTAMP '1995-01-01 10:00:59.5')", "59500")),
    ("microsecond", "microsecond", ("microsecond(TIMESTAMP '1995-01-01 10:00:00.000007')", "7")),
    ("epoch", "epoch", ("epoch(TIMESTAMP '1969-12-31 23:59:59.5')", "-0.5")),
    ("epoch_ms", "epoch_ms", ("epoch_ms(TIMESTAMP '1970-01-01 00:00:01')", "1000")),
    ("epoch_us", "epoch_us", ("epoch_us(TIMESTAMP '1970-01-01 00:00:01')", "1000000")),
):
    _declare_part(_name, _names, _example)


def _date_part_text(e: Expr) -> str:
    if isinstance(e, Literal) and e.dtype == VARCHAR and e.value is not None:
        return str(e.value)
    raise NotSupportedError("a date part that is not a constant string")


_SAME_UNIT = {"dayofweek": "day", "isodow": "day", "dayofyear": "day", "julian": "day", "yearweek": "week",
              "epoch": "second"}  # fmt: skip


def constant_unit(part: Expr) -> str:
    """The unit of time that a constant names; one that tells where in another a date lies is that one."""
    text = _date_part_text(part)
    unit = _SAME_UNIT.get(text.lower()) or part_name(text)
    if unit in _FUNCTIONS and unit != "isoyear":
        raise NotSupportedError(f"not supported: {unit!r} as a unit of time")
    return _SAME_UNIT.get(unit, unit)


def constant_part(part: Expr) -> str:
    """The part of a date that a constant names."""
    return part_name(_date_part_text(part))


@resolver(
    "date_part datepart", "$('part', DATE or TIMESTAMP)", example=("date_part('year', DATE '1995-03-17')", "1995")
)
def _date_part(part: Expr, x: Expr) -> Expr | None:
    """A named part of a date; also ``EXTRACT(part FROM x)``. Of a list of names a struct of these parts."""
    return _part(constant_part(part), x)


def _date_parts(args: Sequence[Expr]) -> Expr | None:
    """The parts that a list of constants names, as a struct."""
    from gquery.functions.structs import constant_names, struct_or_null

    if len(args) != 2 or not args[0].dtype.is_list or args[1].dtype.is_opaque:
        return None
    names = constant_names(args[0], "parts of a date")
    return struct_or_null(args[1], [(n, call("date_part", Literal(n, VARCHAR), args[1])) for n in names])


LIST_RESOLVERS["date_part"] = LIST_RESOLVERS["datepart"] = [_date_parts]


# ---- truncation ------------------------------------------------------------------------------------------------------


@scalar("_trunc_year", ((DATE,), DATE), bounds=lambda days: days and Bounds(days.low - 365, days.high))
def trunc_year(days: int) -> int:
    """The first day of the year."""
    return date_from_ymd(date_year(days), 1, 1)


@scalar("_trunc_quarter", ((DATE,), DATE), bounds=lambda days: days and Bounds(days.low - 91, days.high))
def trunc_quarter(days: int) -> int:
    """The first day of the quarter."""
    return date_from_ymd(date_year(days), sub_i64(mul_i64(date_quarter(days), 3), 2), 1)


@scalar("_trunc_month", ((DATE,), DATE), bounds=lambda days: days and Bounds(days.low - 30, days.high))
def trunc_month(days: int) -> int:
    """The first day of the month."""
    return date_from_ymd(date_year(days), date_month(days), 1)


@scalar("_trunc_week", ((DATE,), DATE), bounds=lambda days: days and Bounds(days.low - 6, days.high))
def trunc_week(days: int) -> int:
    """The Monday of the week."""
    return sub_i64(days, sub_i64(date_isodow(days), 1))


@scalar("_trunc_isoyear", ((DATE,), DATE), bounds=lambda days: days and Bounds(days.low - 370, days.high))
def trunc_isoyear(days: int) -> int:
    """The Monday of the first week of the ISO year."""
    return sub_i64(sub_i64(days, sub_i64(date_isodow(days), 1)), mul_i64(sub_i64(date_week(days), 1), 7))


@scalar("_trunc_years", ((DATE, BIGINT), DATE))
def trunc_years(days: int, count: int) -> int:
    """The first day of the last year that is a multiple of a count, towards year 0."""
    return date_from_ymd(mul_i64(div_i64(date_year(days), count), count), 1, 1)


@scalar("_trunc_micros", ((TIMESTAMP, BIGINT), TIMESTAMP))
def trunc_micros(micros: int, unit: int) -> int:
    """The last multiple of a unit of time."""
    return sub_i64(micros, floor_mod_i64(micros, unit))


YEAR_UNITS = {"year": 1, "decade": 10, "century": 100, "millennium": 1000}
MICRO_UNITS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "millisecond": 1000, "microsecond": 1}


@resolver("date_trunc datetrunc", "$('part', DATE or TIMESTAMP) -> TIMESTAMP", "$('part', INTERVAL) -> INTERVAL",
          example=("date_trunc('month', DATE '1995-03-17')", "1995-03-01 00:00:00"))  # fmt: skip
def _date_trunc(part: Expr, x: Expr) -> Expr | None:
    """The begin of the year, quarter, month, week, day, hour, ... that x lies in."""
    unit = constant_unit(part)
    if not x.dtype.is_temporal:
        return interval_parts.truncated(unit, x) if x.dtype == INTERVAL else None
    if unit == "day":
        return cast(cast(x, DATE), TIMESTAMP)
    if unit in ("year", "isoyear", "quarter", "month", "week"):
        return cast(make(f"_trunc_{unit}", (cast(x, DATE),), DATE), TIMESTAMP)
    if unit in YEAR_UNITS:
        return cast(make("_trunc_years", (cast(x, DATE), Literal(YEAR_UNITS[unit], BIGINT)), DATE), TIMESTAMP)
    if unit not in MICRO_UNITS:
        raise NotSupportedError(f"date_trunc to {unit!r}")
    return make("_trunc_micros", (cast(x, TIMESTAMP), Literal(MICRO_UNITS[unit], BIGINT)), TIMESTAMP)


@scalar("_last_day", ((DATE,), DATE), bounds=lambda days: days and Bounds(days.low, days.high + 30))
def last_day(days: int) -> int:
    """The last day of the month."""
    return date_last_day(days)


@resolver("last_day", "$(DATE or TIMESTAMP) -> DATE", example=("last_day(DATE '1996-02-03')", "1996-02-29"))
def _last_day(x: Expr) -> Expr | None:
    """The last day of the month."""
    return make("_last_day", (cast(x, DATE),), DATE) if x.dtype.is_temporal else None


@scalar("_isfinite_date", ((DATE, BIGINT), BOOLEAN), ((TIMESTAMP, BIGINT), BOOLEAN))
def isfinite_date(x: int, end: int) -> bool:
    """Whether a date or timestamp is not the last or first that its physical type holds, which Arrow data may have."""
    return lt_i64(x, end) and lt_i64(neg_i64(x), end)


@resolver("isfinite", "$(DATE or TIMESTAMP) -> BOOLEAN", example=("isfinite(DATE '1995-01-01')", "True"))
def _isfinite(x: Expr) -> Expr | None:
    """Whether a date or timestamp is not infinite."""
    end = Literal(2**31 - 1 if x.dtype == DATE else 2**63 - 1, BIGINT)
    return make("_isfinite_date", (x, end), BOOLEAN) if x.dtype.is_temporal else None


@resolver("date_add", "$(DATE or TIMESTAMP, INTERVAL) -> TIMESTAMP",
          example=("date_add(DATE '1995-01-31', INTERVAL 1 DAY)", "1995-02-01 00:00:00"))  # fmt: skip
def _date_add(x: Expr, interval: Expr) -> Expr:
    """The same as ``x + interval``."""
    return call("add", x, interval)
