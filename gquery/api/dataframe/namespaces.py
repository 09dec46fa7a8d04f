"""``col("s").str`` and ``col("d").dt``: Polars' methods of text and of dates, written with SQL's functions."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING, Any

from gquery.errors import InterfaceError
from gquery.runtime.arguments import checked

if TYPE_CHECKING:
    from gquery.api.dataframe.expression import Expression

_BLANKS = " \t\n\r\f\v"
_UNITS = {"y": "year", "q": "quarter", "mo": "month", "w": "week", "d": "day", "h": "hour", "m": "minute", "s": "second",
          "ms": "millisecond", "us": "microsecond"}  # fmt: skip
_LONG = ("week", "month", "quarter", "year")
_EVERY = re.compile(r"(-?\d+)([a-z]+)")


class _Of:
    """Methods of one expression."""

    def __init__(self, of: Expression) -> None:
        self._of = of

    def _call(self, name: str, *args: Any) -> Expression:
        from gquery.api.dataframe.expression import call

        return call(name, self._of, *args)


@checked
class TextMethods(_Of):
    """Methods of text. Patterns are regular expressions unless ``literal`` says otherwise; places count from 0."""

    def to_uppercase(self) -> Expression:
        """``upper``"""
        return self._call("upper")

    def to_lowercase(self) -> Expression:
        """``lower``"""
        return self._call("lower")

    def len_chars(self) -> Expression:
        """How many characters there are."""
        return self._call("length")

    def len_bytes(self) -> Expression:
        """How many bytes of UTF-8 there are."""
        return self._call("strlen")

    def starts_with(self, prefix: Any) -> Expression:
        """Whether it begins so."""
        return self._call("starts_with", prefix)

    def ends_with(self, suffix: Any) -> Expression:
        """Whether it ends so."""
        return self._call("ends_with", suffix)

    def contains(self, pattern: Any, literal: bool = False) -> Expression:
        """Whether a pattern, or a text, is in it."""
        return self._call("contains" if literal else "regexp_matches", pattern)

    def slice(self, offset: int, length: int | None = None) -> Expression:
        """The characters from ``offset`` on (from the end, where it is negative), ``length`` at most."""
        start = offset + 1 if offset >= 0 else offset
        return self._call("substring", start) if length is None else self._call("substring", start, length)

    def head(self, n: int) -> Expression:
        """The first ``n`` characters; all but the last ones, where it is negative."""
        return self._call("left", n)

    def tail(self, n: int) -> Expression:
        """The last ``n`` characters; all but the first ones, where it is negative."""
        return self._call("right", n)

    def strip_chars(self, characters: str = _BLANKS) -> Expression:
        """Without these characters at both ends."""
        return self._call("trim", characters)

    def strip_chars_start(self, characters: str = _BLANKS) -> Expression:
        """Without these characters at the beginning."""
        return self._call("ltrim", characters)

    def strip_chars_end(self, characters: str = _BLANKS) -> Expression:
        """Without these characters at the end."""
        return self._call("rtrim", characters)

    def replace(self, pattern: str, value: str, literal: bool = False) -> Expression:
        """The first match of a pattern, or place of a text, replaced."""
        if literal:  # a backslash of the new text is one, and no group's number
            return self._call("regexp_replace", re.escape(pattern), value.replace("\\", "\\\\"))
        return self._call("regexp_replace", pattern, value)

    def replace_all(self, pattern: str, value: str, literal: bool = False) -> Expression:
        """All of them replaced."""
        return self._call("replace", pattern, value) if literal else self._call("regexp_replace", pattern, value, "g")

    def extract(self, pattern: str, group_index: int = 1) -> Expression:
        """What a group of a pattern matches; NULL where nothing does."""
        from gquery.api.dataframe.expression import when

        return when(self._call("regexp_matches", pattern)).then(self._call("regexp_extract", pattern, group_index))

    def pad_start(self, length: int, fill_char: str = " ") -> Expression:
        """At least so many characters, filled up on the left."""
        return self._padded("lpad", length, fill_char)

    def pad_end(self, length: int, fill_char: str = " ") -> Expression:
        """At least so many characters, filled up on the right."""
        return self._padded("rpad", length, fill_char)

    def split(self, by: str) -> Expression:
        """A list of the parts between texts."""
        return self._call("string_split", by)

    def reverse(self) -> Expression:
        """The characters from the last one on."""
        return self._call("reverse")

    def to_integer(self, strict: bool = True) -> Expression:
        """As a BIGINT; an error, or NULL where it is not ``strict``, for what is none."""
        return self._of.cast("BIGINT", try_=not strict)

    def to_date(self, format: str | None = None, strict: bool = True) -> Expression:  # noqa: A002  (Polars' name)
        """As a DATE, written as ISO does or as a format says."""
        return (
            self.to_datetime(format, strict).cast("DATE") if format is not None else self._of.cast("DATE", not strict)
        )

    def to_datetime(self, format: str | None = None, strict: bool = True) -> Expression:  # noqa: A002  (Polars' name)
        """As a TIMESTAMP, written as ISO does or as a format says."""
        if format is None:
            return self._of.cast("TIMESTAMP", not strict)
        return self._call("strptime" if strict else "try_strptime", format)

    def _padded(self, name: str, length: int, fill: str) -> Expression:
        from gquery.api.dataframe.expression import when

        return when(self.len_chars() < length).then(self._call(name, length, fill)).otherwise(self._of)


@checked
class DateMethods(_Of):
    """Methods of dates, timestamps and intervals."""

    def year(self) -> Expression:
        """The year."""
        return self._call("year")

    def quarter(self) -> Expression:
        """The quarter, 1 to 4."""
        return self._call("quarter")

    def month(self) -> Expression:
        """The month, 1 to 12."""
        return self._call("month")

    def week(self) -> Expression:
        """The week of the ISO year."""
        return self._call("week")

    def day(self) -> Expression:
        """The day of the month."""
        return self._call("day")

    def ordinal_day(self) -> Expression:
        """The day of the year."""
        return self._call("dayofyear")

    def weekday(self) -> Expression:
        """The day of the week, Monday 1 to Sunday 7."""
        return self._call("isodow")

    def hour(self) -> Expression:
        """The hour."""
        return self._call("hour")

    def minute(self) -> Expression:
        """The minute."""
        return self._call("minute")

    def second(self) -> Expression:
        """The second."""
        return self._call("second")

    def date(self) -> Expression:
        """The day of a timestamp."""
        return self._of.cast("DATE")

    def month_start(self) -> Expression:
        """The first day of the month, at the same time."""
        from gquery.api.dataframe.expression import call

        return self._call("_offset", call("to_days", 1 - self.day()))

    def month_end(self) -> Expression:
        """The last day of the month, at the same time."""
        return self._call("_month_end")

    def truncate(self, every: str) -> Expression:
        """The beginning of the year, month, day, ... that it is in: ``"1y"``, ``"1q"``, ``"1mo"``, ``"1w"``, ``"1d"``, ``"1h"``,
        ``"1m"``, ``"1s"``; of days and less several, too: ``"15m"``. A date stays a date."""
        from gquery.api.dataframe.expression import call

        number, unit = _span(every)
        if number != 1 and (number < 1 or unit in _LONG):
            raise InterfaceError(f"truncate takes one week, month, quarter or year, as in '1mo', not {every!r}")
        if number != 1:
            return call("time_bucket", _interval(number, unit), self._of, datetime.date(1970, 1, 1))
        return call("_date_trunc", unit, self._of)

    def offset_by(self, by: str) -> Expression:
        """So much later: ``"3d"``, ``"-1mo"``. A date stays a date."""
        number, unit = _span(by)
        return self._call("_offset", _interval(number, unit))

    def total_days(self) -> Expression:
        """The whole days of an interval, a month being 30 of them."""
        return self._call("epoch_us") // 86_400_000_000

    def total_hours(self) -> Expression:
        """The whole hours of an interval."""
        return self._call("epoch_us") // 3_600_000_000

    def total_minutes(self) -> Expression:
        """The whole minutes of an interval."""
        return self._call("epoch_us") // 60_000_000

    def total_seconds(self) -> Expression:
        """The whole seconds of an interval."""
        return self._call("epoch_us") // 1_000_000

    def total_milliseconds(self) -> Expression:
        """The whole milliseconds of an interval."""
        return self._call("epoch_us") // 1000

    def total_microseconds(self) -> Expression:
        """The microseconds of an interval."""
        return self._call("epoch_us")

    def strftime(self, format: str) -> Expression:  # noqa: A002  (Polars' name)
        """As text by a format."""
        return self._call("strftime", format)

    to_string = strftime


def _span(text: str) -> tuple[int, str]:
    """A number and a unit of SQL."""
    found = _EVERY.fullmatch(text)
    if found is None or found[2] not in _UNITS:
        raise InterfaceError(f"a span of time is a number and one of {', '.join(_UNITS)}, as in '1mo', not {text!r}")
    return int(found[1]), _UNITS[found[2]]


def _interval(number: int, unit: str) -> Expression:
    from sqlglot import exp

    from gquery.api.dataframe.expression import Expression

    return Expression(exp.Interval(this=exp.Literal.string(f"{number} {unit}")))
