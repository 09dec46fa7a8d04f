"""Dates, times and intervals as text and as physical values, in Python: for literals, parameters and host functions.

The proleptic Gregorian calendar without limits of `datetime` (years 1 to 9999): DuckDB's dates reach further.
"""

from __future__ import annotations

import re

from gquery.errors import NotSupportedError
from gquery.expression.interval import Interval
from gquery.runtime.pattern import pattern

DAY_MICROS = 86_400_000_000
_SPACE = r"[ \t\n\v\f\r]*"
_DATE = pattern(
    rf"{_SPACE}(-?)(\d{{1,9}})([-/ \\])(\d{{1,2}})\3(\d{{1,2}})([ \t\n\v\f\r]\([bB][cC]\))?+(?!\d)", re.ASCII
)
_SPECIAL = pattern(rf"{_SPACE}(-?)(epoch|infinity|inf){_SPACE}", re.IGNORECASE)
_ZONE = rf"(?:Z|[+-]\d\d(?::?\d\d(?::\d\d)?)?| [uU][tT][cC]| ){_SPACE}"
_CLOCK = pattern(rf"[ T]?{_SPACE}(\d{{1,9}}):(?:(\d{{1,2}})(?::(?:(\d{{1,2}})(?:\.(\d*))?(?:{_ZONE})?)?)?)?", re.ASCII)
_OFFSET = pattern(rf":\d{{1,2}}(?:\.\d*)?(?:Z| [uU][tT][cC]|([+-])(\d\d)(?::?(\d\d)(?::(\d\d))?)?){_SPACE}\Z")
_TIME_OF_DAY = pattern(
    rf"{_SPACE}(\d{{1,9}}):(?:(\d{{1,2}})(?::(?:(\d{{1,2}})(?:\.(\d*))?(?s:.*))?)?)?", re.ASCII
)
_FIRST_DAY, _LAST_DAY = -(2**31) + 2, 2**31 - 2  # what DuckDB takes; one more on both sides are its infinities
_FIRST_MICRO, _LAST_MICRO = -106_751_991 * DAY_MICROS, 2**63 - 2


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date of the proleptic Gregorian calendar.

    >>> days_from_civil(1970, 1, 1), days_from_civil(1969, 12, 31), days_from_civil(2000, 3, 1)
    (0, -1, 11017)
    """
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + day_of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """(year, month, day) of days since 1970-01-01; the inverse of `days_from_civil`.

    >>> civil_from_days(-1)
    (1969, 12, 31)
    """
    era, of_era = divmod(days + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    day_of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + year_of_era + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


def month_length(year: int, month: int) -> int:
    """How many days a month has."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def add_months(days: int, months: int) -> int:
    """A date some months later, the day cut to the month's length.

    >>> civil_from_days(add_months(days_from_civil(1995, 1, 31), 1))
    (1995, 2, 28)
    """
    year, month, day = civil_from_days(days)
    year, month = divmod(year * 12 + month - 1 + months, 12)
    return days_from_civil(year, month + 1, min(day, month_length(year, month + 1)))


def add_interval(micros: int, packed: int) -> int:
    """A timestamp plus an interval: months first, then days, then microseconds."""
    interval = Interval.of(packed)
    days, of_day = divmod(micros, DAY_MICROS)
    if interval.months:
        days = add_months(days, interval.months)
    return (days + interval.days) * DAY_MICROS + of_day + interval.micros


def parse_date(text: str) -> int | None:
    """Days since 1970-01-01, or None for what is no date. What stands behind the date is not looked at.

    >>> parse_date("1970-01-02 x"), parse_date("epoch"), parse_date("0001-01-01 (BC)"), parse_date("1970-02-30")
    (1, 0, -719528, None)
    """
    if (special := _SPECIAL.fullmatch(text)) is not None:
        if special[2].lower() != "epoch":
            raise NotSupportedError(f"{text!r}: gquery has no infinite dates and timestamps")
        return 0
    found = _date_at(text)
    return None if found is None else found[0]


def _date_at(text: str) -> tuple[int, int] | None:
    """The days of the date that a text begins with, and where it ends."""
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day = int(match[2]), int(match[4]), int(match[5])
    if match[6] and (match[1] or not year):
        return None
    year = -year if match[1] else 1 - year if match[6] else year
    if not (1 <= month <= 12 and 1 <= day <= month_length(year, month)):
        return None
    days = days_from_civil(year, month, day)
    return (days, match.end()) if _FIRST_DAY <= days <= _LAST_DAY else None


def parse_timestamp(text: str) -> int | None:
    """Microseconds since 1970-01-01, or None for what is no timestamp. The time is local: an offset is passed over.

    >>> parse_timestamp("1970-01-01T00:00:01.5+02"), parse_timestamp("1970-01-01 00:00:01 CET")
    (1500000, None)
    """
    if _SPECIAL.fullmatch(text) is not None:
        return parse_date(text)
    found = _date_at(text)
    if found is None:
        return None
    days, end = found
    micros = 0
    if end < len(text):
        match = _CLOCK.fullmatch(text, end)
        if match is None:
            return None
        hour, minute, second = (int(match[k] or 0) for k in (1, 2, 3))
        micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + int((match[4] or "").ljust(6, "0")[:6])
        if minute > 59 or second > 59 or micros > DAY_MICROS:
            return None
    stamp = days * DAY_MICROS + micros
    return stamp if _FIRST_MICRO <= stamp <= _LAST_MICRO else None


def parse_time(text: str) -> int | None:
    """Microseconds since midnight of a time of day, or of a timestamp's; None for what is neither. Anything may stand behind
    seconds, as in DuckDB.

    >>> parse_time(" 10:05"), parse_time("2024-01-01 00:00:01.5+02"), parse_time("24:00:00"), parse_time("00:00:01 h")
    (36300000000, 1500000, None, 1000000)
    """
    match = _TIME_OF_DAY.fullmatch(text)
    if match is None:
        stamp = parse_timestamp(text)
        return None if stamp is None else stamp % DAY_MICROS
    hour, minute, second = (int(match[k] or 0) for k in (1, 2, 3))
    if hour > 23 or minute > 59 or second > 59:
        return None
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + int((match[4] or "").ljust(6, "0")[:6])


def parse_moment(text: str) -> int | None:
    """Microseconds since 1970-01-01 UTC of a timestamp with an offset, or None for what is none. Without one it is a time of
    the session's zone, which is UTC.

    >>> parse_moment("1970-01-01 02:00:00+01:30") // 60_000_000, parse_moment("1970-01-01T00:00:00")
    (30, 0)
    """
    local = parse_timestamp(text)
    zone = None if local is None else _OFFSET.search(text)
    if local is None or zone is None:
        return local
    seconds = int(zone[2] or 0) * 3600 + int(zone[3] or 0) * 60 + int(zone[4] or 0)
    moment = local - (-seconds if zone[1] == "-" else seconds) * 1_000_000
    return moment if _FIRST_MICRO <= moment <= _LAST_MICRO else None


def date_text(days: int) -> str:
    """A date as DuckDB prints it.

    >>> date_text(0)
    '1970-01-01'
    """
    if not _FIRST_DAY <= days <= _LAST_DAY:
        return "infinity" if days > 0 else "-infinity"
    year, month, day = civil_from_days(days)
    return f"{year:04d}-{month:02d}-{day:02d}" if year > 0 else f"{1 - year:04d}-{month:02d}-{day:02d} (BC)"


def timestamp_text(micros: int) -> str:
    """A timestamp as DuckDB prints it: no fraction where it is zero, no trailing zeros.

    >>> timestamp_text(1_500_000)
    '1970-01-01 00:00:01.5'
    """
    if not -_LAST_MICRO <= micros <= _LAST_MICRO:
        return "infinity" if micros > 0 else "-infinity"
    days, of_day = divmod(micros, DAY_MICROS)
    seconds, fraction = divmod(of_day, 1_000_000)
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{date_text(days)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}"
