"""Dates and timestamps as names and formatted text, over Arrow arrays, and dates of their parts."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.errors import ConversionError
from gquery.expression.types import BIGINT, DATE, TIMESTAMP, VARCHAR
from gquery.functions.date_formats import MINUTE_PARTS, TIME_PARTS, parsed
from gquery.functions.registry import host_scalar
from gquery.functions.vectors import (
    Vector,
    array_of,
    by_parameters,
    from_numpy,
    integers,
    joined_texts,
    null,
    scalar_text,
    size_of,
    strings,
    with_nulls_of,
)
from gquery.runtime.arrow_compute import pc

_DAY_MICROS = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -(2**31) + 2, 2**31 - 2
_LAST_MOMENT = 2**63 - 2
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_ROWS_A_DAY = 2  # a table of all days between the first and the last pays where it is that much shorter


@host_scalar("dayname", ((DATE,), VARCHAR), ((TIMESTAMP,), VARCHAR), nullable=True,
        example=("dayname(DATE '1995-01-01')", "Sunday"))  # fmt: skip
def dayname(x: Vector) -> Vector:
    """The English name of the day."""
    return _with_infinite(with_nulls_of(_table(_DAYS, _Moments.of(x).weekday), x), x, None, None)


@host_scalar("monthname", ((DATE,), VARCHAR), ((TIMESTAMP,), VARCHAR), nullable=True,
        example=("monthname(DATE '1995-01-01')", "January"))  # fmt: skip
def monthname(x: Vector) -> Vector:
    """The English name of the month."""
    return _with_infinite(with_nulls_of(_table(_MONTHS, _by_day(_Moments.of(x), "month") - 1), x), x, None, None)


@host_scalar("strftime", ((DATE, VARCHAR), VARCHAR), ((TIMESTAMP, VARCHAR), VARCHAR),
        ((VARCHAR, DATE), VARCHAR), ((VARCHAR, TIMESTAMP), VARCHAR),
        example=("strftime(DATE '1995-03-17', '%d.%m.%Y')", "17.03.1995"))  # fmt: skip
def strftime(x: Vector, pattern: Vector) -> Vector:
    """A date as text in a format of strftime."""
    if pa.types.is_string(x.type) or pa.types.is_large_string(x.type):
        x, pattern = pattern, x
    return by_parameters(_formatted, x, pattern, gives=pa.string())


@host_scalar("make_date", ((BIGINT, BIGINT, BIGINT), DATE), fails=(ConversionError, "date out of range"),
        example=("make_date(1996, 2, 29)", "1996-02-29"))  # fmt: skip
def make_date(y: Vector, m: Vector, d: Vector) -> Vector:
    """The date of a year, month and day."""
    rows = size_of(y, m, d)
    year, month, day = (integers(x, rows) for x in (y, m, d))
    ok = (np.abs(year) < 10_000_000) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    months = np.where(ok, (year - 1970) * 12 + month - 1, 0)
    first = _days_of(months)
    days = first + day - 1
    ok &= (days < _days_of(months + 1)) & (days >= _FIRST_DAY) & (days <= _LAST_DAY)
    made = from_numpy(np.where(ok, days, 0).astype(np.int32), ok).view(pa.date32())
    return with_nulls_of(made, *(array_of(x, rows) for x in (y, m, d)))


def _days_of(months: Any) -> Any:
    """The first days of months, both counted from 1970."""
    return months.astype("M8[M]").astype("M8[D]").astype(np.int64)


class _Moments:
    """The parts of dates or timestamps, each found when it is asked for."""

    def __init__(self, days: Any, micros: Any | None) -> None:
        self.days, self.micros = days, micros

    @staticmethod
    def of(x: pa.Array) -> _Moments:
        values = integers(x, len(x))
        if pa.types.is_date(x.type):
            return _Moments(values, None)
        days = values // _DAY_MICROS
        return _Moments(days, values - days * _DAY_MICROS)

    def __getattr__(self, name: str) -> Any:
        found = _PARTS[name](self)
        setattr(self, name, found)
        return found


def _by_day(moments: _Moments, part: str) -> Any:
    """A part that the day decides, found once a day where there are few."""
    days = moments.days
    if len(days):
        first, last = int(days.min()), int(days.max())
        if last - first < len(days) // _ROWS_A_DAY:
            return getattr(_Moments(np.arange(first, last + 1), None), part)[days - first]
    return getattr(moments, part)


def _of_day(m: _Moments, unit: int, most: int) -> Any:
    return np.zeros(len(m.days), np.int64) if m.micros is None else m.micros // unit % most


_PARTS: dict[str, Callable[[_Moments], Any]] = {
    "months": lambda m: m.days.astype("M8[D]").astype("M8[M]").astype(np.int64),
    "year": lambda m: m.months // 12 + 1970,
    "month": lambda m: m.months % 12 + 1,
    "day": lambda m: m.days - _days_of(m.months) + 1,
    "weekday": lambda m: (m.days + 4) % 7,  # Sunday is 0
    "yearday": lambda m: m.days - _days_of((m.year - 1970) * 12),  # from 0
    "thursday": lambda m: m.days - (m.days + 3) % 7 + 3,
    "week_year": lambda m: m.thursday.astype("M8[D]").astype("M8[Y]").astype(np.int64) + 1970,
    "week": lambda m: (m.thursday - _days_of((m.week_year - 1970) * 12)) // 7 + 1,
    "hour": lambda m: _of_day(m, 3_600_000_000, 24),
    "minute": lambda m: _of_day(m, 60_000_000, 60),
    "second": lambda m: _of_day(m, 1_000_000, 60),
    "fraction": lambda m: _of_day(m, 1, 1_000_000),
}


@lru_cache(32)
def _texts(texts: tuple[str, ...]) -> pa.Array:
    return strings(texts)


def _table(texts: tuple[str, ...], places: Any) -> pa.Array:
    return _texts(texts).take(from_numpy(places))


def _two(numbers: Any) -> pa.Array:
    return _table(tuple(f"{n:02d}" for n in range(100)), numbers)


def _plain(numbers: Any) -> pa.Array:
    return from_numpy(numbers).cast(pa.string())


def _padded(numbers: Any, width: int) -> pa.Array:
    """Digits filled up with zeros; a number below 0 or of more digits stays as it is."""
    text = _plain(numbers)
    return pc.if_else(from_numpy(numbers < 0), text, pc.ascii_lpad(text, width, "0"))


_SHORT_DAYS, _SHORT_MONTHS = tuple(d[:3] for d in _DAYS), tuple(m[:3] for m in _MONTHS)
_SPECIFIERS: dict[str, Callable[[_Moments], Any]] = {
    "a": lambda m: _table(_SHORT_DAYS, m.weekday),
    "A": lambda m: _table(_DAYS, m.weekday),
    "w": lambda m: _plain(m.weekday),
    "u": lambda m: _plain((m.weekday + 6) % 7 + 1),
    "d": lambda m: _two(m.day),
    "-d": lambda m: _plain(m.day),
    "b": lambda m: _table(_SHORT_MONTHS, m.month - 1),
    "h": lambda m: _table(_SHORT_MONTHS, m.month - 1),
    "B": lambda m: _table(_MONTHS, m.month - 1),
    "m": lambda m: _two(m.month),
    "-m": lambda m: _plain(m.month),
    "y": lambda m: _two(np.abs(m.year) % 100),
    "-y": lambda m: _plain(np.abs(m.year) % 100),
    "Y": lambda m: _padded(m.year, 4),
    "G": lambda m: _padded((m.week_year & 0xFFFFFFFF) % 10_000, 4),
    "V": lambda m: _two(m.week),
    "H": lambda m: _two(m.hour),
    "-H": lambda m: _plain(m.hour),
    "I": lambda m: _two((m.hour + 11) % 12 + 1),
    "-I": lambda m: _plain((m.hour + 11) % 12 + 1),
    "p": lambda m: _table(("AM", "PM"), m.hour // 12),
    "M": lambda m: _two(m.minute),
    "-M": lambda m: _plain(m.minute),
    "S": lambda m: _two(m.second),
    "-S": lambda m: _plain(m.second),
    "f": lambda m: _padded(m.fraction, 6),
    "g": lambda m: _padded(m.fraction // 1000, 3),
    "n": lambda m: _padded(m.fraction * 1000, 9),
    "j": lambda m: _padded(m.yearday + 1, 3),
    "-j": lambda m: _plain(m.yearday + 1),
    "U": lambda m: _two((m.yearday + 7 - m.weekday) // 7),
    "W": lambda m: _two((m.yearday + 7 - (m.weekday + 6) % 7) // 7),
}
def _formatted(x: pa.Array, pattern: str) -> pa.Array:
    """Dates or timestamps in a format. Neighbouring parts that the day alone decides, or the minute of the day, come from one
    table."""
    if pattern is None:
        return pa.nulls(len(x), pa.string())
    moments = _Moments.of(x)
    groups = [(of, tuple(parts)) for of, parts in groupby(parsed(pattern), _decided_by)]
    made = [_group(of, parts, moments) for of, parts in groups]
    whole = made[0] if len(made) == 1 else joined_texts(*made)
    return _with_infinite(with_nulls_of(array_of(whole, len(x)), x), x, "-infinity", "infinity")


def _with_infinite(made: pa.Array, x: pa.Array, before: str | None, behind: str | None) -> pa.Array:
    """Texts of dates or timestamps with others where these are infinite, as those of files may be."""
    values, last = integers(x, len(x)), _LAST_DAY if pa.types.is_date(x.type) else _LAST_MOMENT
    if not len(values) or (values.min() >= -last and values.max() <= last):
        return made
    for found, text in ((values < -last, before), (values > last, behind)):
        made = pc.if_else(from_numpy(found), null(made.type) if text is None else pa.scalar(text, made.type), made)
    return made


def _decided_by(part: tuple[bool, str]) -> str:
    """What decides a part's text: the day, the minute of the day, or the moment."""
    is_specifier, name = part
    letter = name[-1] if is_specifier else ""
    return "minute" if letter in MINUTE_PARTS else "moment" if letter in TIME_PARTS else "day"


def _group(of: str, parts: tuple[tuple[bool, str], ...], moments: _Moments) -> Any:
    """The text of parts that follow one another, by a table where one is short."""
    rows = len(moments.days)
    if not any(is_specifier for is_specifier, _ in parts):
        return scalar_text("".join(text for _, text in parts))
    if of == "day" and rows:
        first, last = int(moments.days.min()), int(moments.days.max())
        if last - first < rows // _ROWS_A_DAY:
            every = _Moments(np.arange(first, last + 1), None)
            return _joined(every, parts).take(from_numpy(moments.days - first))
    if of == "minute" and rows > _ROWS_A_DAY * 1440:
        every = _Moments(np.zeros(1440, np.int64), np.arange(1440) * 60_000_000)
        return _joined(every, parts).take(from_numpy(_of_day(moments, 60_000_000, 1440)))
    return _joined(moments, parts)


def _joined(moments: _Moments, parts: tuple[tuple[bool, str], ...]) -> pa.Array:
    made = [_SPECIFIERS[text](moments) if is_part else scalar_text(text) for is_part, text in parts]
    return made[0] if len(made) == 1 else joined_texts(*made)
