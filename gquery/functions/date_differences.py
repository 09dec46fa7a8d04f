# Bodies call primitives by names that each target resolves: the kernels, whose they are, lie above this room.
# ruff: noqa: F821
# mypy: disable-error-code="name-defined, no-any-return"
"""Units between dates: `date_diff` counts the boundaries between them, `date_sub` whole units that have passed."""

from __future__ import annotations

from gquery.errors import NotSupportedError
from gquery.expression.expr import Expr, Literal
from gquery.expression.types import BIGINT, DATE, TIMESTAMP, Bounds, Kind
from gquery.functions.casts import cast
from gquery.functions.dates import MICRO_UNITS, YEAR_UNITS, constant_unit
from gquery.functions.registry import call, is_null_literal, make, resolver, scalar

_MONTHS = {"month": 1, "quarter": 3, "isoyear": 12} | {unit: 12 * years for unit, years in YEAR_UNITS.items()}
_MICROS = {"week": 7 * 86_400_000_000, "day": 86_400_000_000} | MICRO_UNITS


# ---- boundaries ------------------------------------------------------------------------------------------------------


@scalar("_months_between", ((DATE, DATE), BIGINT))
def months_between(a: int, b: int) -> int:
    """Month boundaries from a to b."""
    years = sub_i64(date_year(b), date_year(a))
    return add_i64(mul_i64(years, 12), sub_i64(date_month(b), date_month(a)))


@scalar("_quarters_between", ((DATE, DATE), BIGINT))
def quarters_between(a: int, b: int) -> int:
    """Quarter boundaries from a to b."""
    first = add_i64(mul_i64(date_year(a), 12), sub_i64(date_month(a), 1))
    last = add_i64(mul_i64(date_year(b), 12), sub_i64(date_month(b), 1))
    return sub_i64(div_i64(last, 3), div_i64(first, 3))


@scalar("_years_between", ((DATE, DATE, BIGINT), BIGINT))
def years_between(a: int, b: int, count: int) -> int:
    """Boundaries of some years from a to b."""
    return sub_i64(div_i64(date_year(b), count), div_i64(date_year(a), count))


@scalar("_weeks_between", ((DATE, DATE), BIGINT))
def weeks_between(a: int, b: int) -> int:
    """Whole weeks from a to b (for weeks DuckDB counts distance, not boundaries)."""
    return div_i64(sub_i64(b, a), 7)


def _floor_bounds(x: Bounds | None, unit: Bounds | None) -> Bounds | None:
    return Bounds(x.low // unit.low, x.high // unit.low) if x and unit and unit.low == unit.high else None


@scalar("_units", ((TIMESTAMP, BIGINT), BIGINT), bounds=_floor_bounds)
def units(micros: int, unit: int) -> int:
    """Whole units of time since 1970-01-01, rounded down."""
    return floor_div_i64(micros, unit)


@resolver("date_diff datediff", "$('part', DATE or TIMESTAMP, DATE or TIMESTAMP) -> BIGINT",
          example=("date_diff('month', DATE '1995-01-31', DATE '1995-02-01')", "1"))  # fmt: skip
def _date_diff(part: Expr, a: Expr, b: Expr) -> Expr | None:
    """How many boundaries of a unit lie between two dates."""
    unit = constant_unit(part)
    if not (a.dtype.is_temporal and b.dtype.is_temporal):
        return None
    if a.dtype != b.dtype:
        a, b = cast(a, TIMESTAMP), cast(b, TIMESTAMP)
    if unit in YEAR_UNITS:
        return make("_years_between", (cast(a, DATE), cast(b, DATE), Literal(YEAR_UNITS[unit], BIGINT)), BIGINT)
    if unit == "isoyear":
        return call("subtract", call("isoyear", b), call("isoyear", a))
    if unit in ("quarter", "month", "week"):
        return make(f"_{unit}s_between", (cast(a, DATE), cast(b, DATE)), BIGINT)
    if unit == "day" or (a.dtype == DATE and unit in MICRO_UNITS):
        days = make("days_between", (cast(b, DATE), cast(a, DATE)), BIGINT)
        each = Literal(1 if unit == "day" else 86_400_000_000 // MICRO_UNITS[unit], BIGINT)
        return days if unit == "day" else make("multiply", (days, each), BIGINT)
    if unit not in MICRO_UNITS:
        raise NotSupportedError(f"date_diff in {unit!r}")
    length = Literal(MICRO_UNITS[unit], BIGINT)  # the difference is checked: that of the ends does not fit
    first, last = (make("_units", (x, length), BIGINT) for x in (a, b))
    return make("subtract", (last, first), BIGINT)


# ---- whole units -------------------------------------------------------------------------------------------------------


@scalar("_months_passed", ((TIMESTAMP, TIMESTAMP), BIGINT))
def months_passed(a: int, b: int) -> int:
    """Whole months from a to b. A month that is shorter than the day of the earlier one ends with its last day."""
    low, high, sign = a, b, i64(1)
    if lt_i64(b, a):
        low, high, sign = b, a, i64(-1)
    first, last = floor_div_i64(low, 86_400_000_000), floor_div_i64(high, 86_400_000_000)
    day, end = date_day(first), date_day(last)
    if eq_i64(last, date_last_day(last)):
        day = min_i64(day, end)
    years = sub_i64(date_year(last), date_year(first))
    months = add_i64(mul_i64(years, 12), sub_i64(date_month(last), date_month(first)))
    early = lt_i64(floor_mod_i64(high, 86_400_000_000), floor_mod_i64(low, 86_400_000_000))
    if lt_i64(end, day) or (eq_i64(end, day) and early):
        months = sub_i64(months, 1)
    return mul_i64(sign, months)


@scalar("_months_passed_of_moments", ((TIMESTAMP, TIMESTAMP), BIGINT))
def months_passed_of_moments(a: int, b: int) -> int:
    """Whole months from a to b: how often one can be added to a, or taken from it, without going beyond b. So it is a's day that
    a shorter month cuts, whichever is the later one, as ICU has it."""
    first, last = floor_div_i64(a, 86_400_000_000), floor_div_i64(b, 86_400_000_000)
    years = sub_i64(date_year(last), date_year(first))
    months = add_i64(mul_i64(years, 12), sub_i64(date_month(last), date_month(first)))
    day, end = min_i64(date_day(first), date_day(date_last_day(last))), date_day(last)
    at, to = floor_mod_i64(a, 86_400_000_000), floor_mod_i64(b, 86_400_000_000)
    if lt_i64(b, a):
        if lt_i64(day, end) or (eq_i64(day, end) and lt_i64(at, to)):
            months = add_i64(months, 1)
    elif lt_i64(end, day) or (eq_i64(end, day) and lt_i64(to, at)):
        months = sub_i64(months, 1)
    return months


@scalar("_times_passed", ((BIGINT, BIGINT), BIGINT))
def times_passed(count: int, unit: int) -> int:
    """Whole units of a count, cut towards zero."""
    return div_i64(count, unit)


@resolver("date_sub datesub", "$('part', DATE or TIMESTAMP, DATE or TIMESTAMP) -> BIGINT",
          example=("date_sub('month', DATE '1995-01-31', DATE '1995-02-28')", "1"))  # fmt: skip
def _date_sub(part: Expr, a: Expr, b: Expr) -> Expr | None:
    """How many whole units have passed from one date to another."""
    of_moments = any(e.dtype.kind is Kind.TIMESTAMPTZ for e in (a, b))
    dated = [e.dtype.is_temporal or e.dtype.kind is Kind.TIMESTAMPTZ for e in (a, b)]
    if not any(dated) or not all(is_dated or is_null_literal(e) for e, is_dated in zip((a, b), dated, strict=True)):
        return None
    unit = constant_unit(part)
    first, last = cast(a, TIMESTAMP), cast(b, TIMESTAMP)
    if unit in _MONTHS:
        months = make("_months_passed" + "_of_moments" * of_moments, (first, last), BIGINT)
        return months if unit == "month" else make("_times_passed", (months, Literal(_MONTHS[unit], BIGINT)), BIGINT)
    if unit not in _MICROS:
        raise NotSupportedError(f"date_sub in {unit!r}")
    micros = call("subtract", call("epoch_us", last), call("epoch_us", first))
    return make("_times_passed", (micros, Literal(_MICROS[unit], BIGINT)), BIGINT)
