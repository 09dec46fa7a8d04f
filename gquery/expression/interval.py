"""Intervals: three numbers, and the one integer that stands for them.

Months, days and microseconds are kept apart, as months and days vary in length. The physical value of an INTERVAL is
``months * 2**96 + days * 2**64 + microseconds``: one number that is added, negated and put in order part by part, that loses
nothing, and that is a small integer where there are microseconds alone. So it lies in memory as other exact values do, in as few
bytes as its bounds ask for. The order of these integers, by months first, is that of GREATEST and LEAST alone. Everything else
compares *normalised* intervals (`comparison_key`), for which 24 hours are a day and 30 days a month.
"""

from __future__ import annotations

from typing import Any

from gquery.expression.facts import DAYS_PER_MONTH, MICROS_PER_DAY, UINT32_MAX
from gquery.runtime.records import dataclass

MONTH_SHIFT, DAY_SHIFT = 96, 64
MOST_PART = 2**31 - 1  # months and days
LEAST_MONTHS, LEAST_DAYS, LEAST_MICROS = -MOST_PART, -MOST_PART - 1, -(2**63)
LEAST = (LEAST_MONTHS << MONTH_SHIFT) + (LEAST_DAYS << DAY_SHIFT) + LEAST_MICROS
GREATEST = (MOST_PART << MONTH_SHIFT) + (MOST_PART << DAY_SHIFT) + 2**63 - 1
DAY_DIGITS = 2 * DAYS_PER_MONTH  # days of a normalised interval are above -30 and below 30
MICRO_DIGITS = 2 * MICROS_PER_DAY


@dataclass(frozen=True, slots=True)
class Interval:
    """The parts of an INTERVAL."""

    months: int = 0
    days: int = 0
    micros: int = 0

    @property
    def packed(self) -> int:
        """The physical value; OverflowError where a part is too large.

        >>> Interval(0, 0, -5).packed, Interval.of(Interval(1, -2, 3).packed)
        (-5, Interval(months=1, days=-2, micros=3))
        """
        fits = LEAST_MONTHS <= self.months <= MOST_PART and LEAST_DAYS <= self.days <= MOST_PART
        if not (fits and LEAST_MICROS <= self.micros < 2**63):
            raise OverflowError("interval out of range")
        return (self.months << MONTH_SHIFT) + (self.days << DAY_SHIFT) + self.micros

    @staticmethod
    def of(packed: int) -> Interval:
        """The parts of a physical value."""
        rest, micros = _signed_parts(packed, 64)
        months, days = _signed_parts(rest, 32)
        return Interval(months, days, micros)

    @property
    def total(self) -> int:
        """Microseconds, a month being 30 days."""
        return (self.months * DAYS_PER_MONTH + self.days) * MICROS_PER_DAY + self.micros


def _signed_parts(number: int, bits: int) -> tuple[int, int]:
    """What a number is made of: so many times 2**bits, and a signed number of that many bits."""
    low = (number + (1 << bits - 1) & (1 << bits) - 1) - (1 << bits - 1)
    return number - low >> bits, low


def split_words(words: Any) -> tuple[Any, Any, Any]:
    """Months, days and microseconds of an array of physical values, each of two words of 64 bits, the low one first."""
    micros = words[:, 0]
    rest = words[:, 1] - (micros >> 63)
    days = ((rest + 2**31) & UINT32_MAX) - 2**31
    return (rest - days) >> 32, days, micros


def comparison_key(packed: int) -> int:
    """An integer that orders intervals as DuckDB compares them: whole days of the microseconds count as days, whole months of
    those as months, and then months, days and microseconds are compared in turn. (So a month less a day is more than 29 days.)

    >>> comparison_key(Interval(1, 0, 0).packed) == comparison_key(Interval(0, 30, 0).packed)
    True
    >>> comparison_key(Interval(1, -1, 0).packed) > comparison_key(Interval(0, 29, 0).packed)
    True
    """
    value = Interval.of(packed)
    more_days, micros = _cut(value.micros, MICROS_PER_DAY)
    more_months, days = _cut(value.days + more_days, DAYS_PER_MONTH)
    return ((value.months + more_months) * DAY_DIGITS + days) * MICRO_DIGITS + micros


def _cut(number: int, by: int) -> tuple[int, int]:
    """Quotient and remainder, cut towards zero."""
    size = abs(number)
    return (size // by, size % by) if number >= 0 else (-(size // by), -(size % by))


def interval_text(packed: int) -> str:
    """An interval as DuckDB prints it.

    >>> interval_text(Interval(14, -3, 4_005_000_000).packed), interval_text(0)
    ('1 year 2 months -3 days 01:06:45', '00:00:00')
    """
    value = Interval.of(packed)
    years, months = _cut(value.months, 12)
    counted = ((years, "year"), (months, "month"), (value.days, "day"))
    words = [f"{n} {unit}{'' if abs(n) == 1 else 's'}" for n, unit in counted if n]
    if value.micros or not words:
        seconds, fraction = divmod(abs(value.micros), 1_000_000)
        tail = f".{fraction:06d}".rstrip("0") if fraction else ""
        sign = "-" if value.micros < 0 else ""
        words.append(f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}")
    return " ".join(words)
