"""Dates as days since 1970-01-01, in the proleptic Gregorian calendar. Timestamps are floor-divided to days first.

The calendar arithmetic is that of Howard Hinnant's ``days_from_civil``: a year starts in March, so that the leap day is
its last, and 400 years are one era of 146,097 days.
"""

from __future__ import annotations

from gquery.kernels.primitives.checked import floor_div_i64, floor_mod_i64
from gquery.kernels.primitives.python.integers import (
    add_i64,
    ge_i64,
    le_i64,
    lt_i64,
    min_i64,
    mul_i64,
    quotient_i64,
    sub_i64,
)


def _shifted(days: int) -> int:
    """Days since 0000-03-01."""
    return add_i64(days, 719468)


def _year_of_era(day_of_era: int) -> int:
    leaps = sub_i64(
        sub_i64(day_of_era, quotient_i64(day_of_era, 1460)),
        sub_i64(quotient_i64(day_of_era, 146096), quotient_i64(day_of_era, 36524)),
    )
    return quotient_i64(leaps, 365)


def _day_of_march_year(day_of_era: int) -> int:
    year = _year_of_era(day_of_era)
    before = sub_i64(add_i64(mul_i64(year, 365), quotient_i64(year, 4)), quotient_i64(year, 100))
    return sub_i64(day_of_era, before)


def _march_month(day_of_march_year: int) -> int:
    """0 for March to 11 for February."""
    return quotient_i64(add_i64(mul_i64(day_of_march_year, 5), 2), 153)


def date_month(days: int) -> int:
    """The month of a date (days since 1970), 1 to 12."""
    month = _march_month(_day_of_march_year(floor_mod_i64(_shifted(days), 146097)))
    if lt_i64(month, 10):
        return add_i64(month, 3)
    return sub_i64(month, 9)


def date_year(days: int) -> int:
    """The year of a date (days since 1970); 0 is 1 BC."""
    z = _shifted(days)
    day_of_era = floor_mod_i64(z, 146097)
    year = add_i64(_year_of_era(day_of_era), mul_i64(floor_div_i64(z, 146097), 400))
    if ge_i64(_march_month(_day_of_march_year(day_of_era)), 10):
        return add_i64(year, 1)
    return year


def date_day(days: int) -> int:
    """The day of its month of a date (days since 1970), 1 to 31."""
    day = _day_of_march_year(floor_mod_i64(_shifted(days), 146097))
    before = quotient_i64(add_i64(mul_i64(_march_month(day), 153), 2), 5)
    return add_i64(sub_i64(day, before), 1)


def date_quarter(days: int) -> int:
    """The quarter of a date (days since 1970), 1 to 4."""
    return quotient_i64(add_i64(date_month(days), 2), 3)


def date_dow(days: int) -> int:
    """0 for Sunday to 6 for Saturday."""
    return floor_mod_i64(add_i64(days, 4), 7)


def date_isodow(days: int) -> int:
    """1 for Monday to 7 for Sunday."""
    return add_i64(floor_mod_i64(add_i64(days, 3), 7), 1)


def date_doy(days: int) -> int:
    """The day of its year of a date (days since 1970), 1 to 366."""
    return add_i64(sub_i64(days, date_from_ymd(date_year(days), 1, 1)), 1)


def date_isoyear(days: int) -> int:
    """The year that the week's Thursday lies in."""
    return date_year(add_i64(sub_i64(days, date_isodow(days)), 4))


def date_week(days: int) -> int:
    """The ISO week: week 1 holds the year's first Thursday."""
    thursday = add_i64(sub_i64(days, date_isodow(days)), 4)
    return add_i64(quotient_i64(sub_i64(date_doy(thursday), 1), 7), 1)


def date_epoch(days: int) -> int:
    """Seconds since 1970-01-01."""
    return mul_i64(days, 86400)


def date_from_ymd(year: int, month: int, day: int) -> int:
    """Days of a valid date."""
    march = sub_i64(month, 3)
    if le_i64(month, 2):
        year, march = sub_i64(year, 1), add_i64(month, 9)
    year_of_era = floor_mod_i64(year, 400)
    day_of_year = sub_i64(add_i64(quotient_i64(add_i64(mul_i64(march, 153), 2), 5), day), 1)
    before = sub_i64(add_i64(mul_i64(year_of_era, 365), quotient_i64(year_of_era, 4)), quotient_i64(year_of_era, 100))
    era = mul_i64(floor_div_i64(year, 400), 146097)
    return sub_i64(add_i64(add_i64(era, before), day_of_year), 719468)


def date_last_day(days: int) -> int:
    """The last day of the date's month: the one before the next month of its March year, or before the next such year."""
    day_of_era = floor_mod_i64(_shifted(days), 146097)
    day = _day_of_march_year(day_of_era)
    month = _march_month(day)
    if lt_i64(month, 11):
        return add_i64(days, sub_i64(quotient_i64(add_i64(mul_i64(month, 153), 150), 5), day))
    following = add_i64(_year_of_era(day_of_era), 1)
    before = sub_i64(add_i64(mul_i64(following, 365), quotient_i64(following, 4)), quotient_i64(following, 100))
    return add_i64(days, sub_i64(add_i64(before, quotient_i64(following, 400)), add_i64(day_of_era, 1)))


def _months(days: int) -> int:
    """Months since year 0."""
    return add_i64(mul_i64(date_year(days), 12), sub_i64(date_month(days), 1))


def date_from_year_month(months: int) -> int:
    """The first day of a month that is counted since year 0."""
    return date_from_ymd(floor_div_i64(months, 12), add_i64(floor_mod_i64(months, 12), 1), 1)


def date_add_months(days: int, months: int) -> int:
    """The same day of another month, or that month's last day."""
    target = add_i64(_months(days), months)
    first = date_from_year_month(target)
    length = sub_i64(date_from_year_month(add_i64(target, 1)), first)
    return add_i64(first, sub_i64(min_i64(date_day(days), length), 1))


def date_trunc_year(days: int) -> int:
    """The first day of a date's year, in days since 1970."""
    return date_from_ymd(date_year(days), 1, 1)


def date_trunc_quarter(days: int) -> int:
    """The first day of a date's quarter, in days since 1970."""
    months = _months(days)
    return date_from_year_month(sub_i64(months, floor_mod_i64(months, 3)))


def date_trunc_month(days: int) -> int:
    """The first day of a date's month, in days since 1970."""
    return add_i64(sub_i64(days, date_day(days)), 1)


def date_trunc_week(days: int) -> int:
    """The Monday of the week."""
    return add_i64(sub_i64(days, date_isodow(days)), 1)
