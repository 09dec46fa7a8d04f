"""Expressions of random queries over bytes, times of day and moments: TIMESTAMP WITH TIME ZONE, whose session's zone is UTC."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.fuzzing.data import BLOB, CLOCK, DATE, INT, SPAN, STR, TIME, ZONED

if TYPE_CHECKING:
    from tests.fuzzing.grammar import Grammar

LITERALS = {
    BLOB: (r"'\xAB\x00'::BLOB", "''::BLOB", "'a'::BLOB", "'ab'::BLOB", "encode('ä')", r"'\xFF'::BLOB"),
    CLOCK: ("TIME '00:00:00'", "TIME '23:59:59.999999'", "TIME '12:30:00'", "TIME '01:00:00.5'", "TIME '00:00:01'"),
    ZONED: (
        "TIMESTAMPTZ '2001-01-01 00:00:00+02'", "TIMESTAMPTZ '2001-01-01'", "TIMESTAMPTZ '1970-01-01 00:00:00.000001+00'",
        "TIMESTAMPTZ '2000-02-29 23:59:59.999999+00'", "TIMESTAMPTZ '2001-03-25 01:30:00-05:30'",
    ),
}  # fmt: skip
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland")
Sub = Callable[..., str]


def operation(g: Grammar, kind: str, sub: Sub) -> str:
    """An operator or a function with a value of a kind, over values that ``sub`` makes of the kind that it is given."""
    match kind:
        case "blob":
            return _bytes(g, sub)
        case "clock":
            return _clock(g, sub)
        case _:
            return _zoned(g, sub)


def _bytes(g: Grammar, sub: Sub) -> str:
    tape = g.tape
    shapes: list[Callable[[], str]] = [
        lambda: f"({sub()} || {sub()})",
        lambda: f"encode({sub(STR)})",
        lambda: f"unhex(hex({tape.one((sub(), sub(STR)))}))",
        lambda: f"from_base64(base64({sub()}))",
        lambda: f"encode(hex({sub()}))",
        lambda: f"CAST(CAST({sub()} AS VARCHAR) AS BLOB)",
    ]
    return tape.one(shapes)()


def _clock(g: Grammar, sub: Sub) -> str:
    tape = g.tape
    amount = f"INTERVAL {tape.count(1, 90)} {tape.one(('HOUR', 'MINUTE', 'SECOND', 'MONTH', 'DAY', 'MILLISECOND'))}"
    shapes: list[Callable[[], str]] = [
        lambda: f"({sub()} {tape.one('+-')} {amount})",
        lambda: f"({sub()} {tape.one('+-')} {g.literal(SPAN)})",
        lambda: f"({amount} + {sub()})",
        lambda: f"CAST({sub(TIME)} AS TIME)",
        lambda: f"make_time({tape.count(0, 23)}, CAST({sub(INT)} % 60 AS BIGINT), {tape.one(('0', '59.5', '1.25'))})",
        lambda: f"TRY_CAST(CAST({sub()} AS VARCHAR) AS TIME)",
    ]
    text = tape.one(shapes)()
    g.fails = g.fails or text.startswith("make_time")  # of a minute before 0
    return text


def _zoned(g: Grammar, sub: Sub) -> str:
    tape = g.tape
    g.fails = True  # a moment behind the last
    by = f"INTERVAL {tape.count(1, 40)} {tape.one(('DAY', 'HOUR', 'MONTH', 'YEAR', 'SECOND'))}"
    few = f"TRY_CAST({sub(INT)} AS TINYINT)"
    shapes: list[Callable[[], str]] = [
        lambda: f"({sub()} {tape.one('+-')} {by})",
        lambda: f"({sub()} {tape.one('+-')} {tape.one((g.literal(SPAN), f'to_days({few})', f'to_months({few})'))})",
        lambda: f"date_trunc('{tape.one(('hour', 'day', 'month', 'year', 'week', 'quarter'))}', {sub()})",
        lambda: f"time_bucket(INTERVAL {tape.count(1, 9)} {tape.one(('DAY', 'WEEK', 'HOUR'))}, {sub()})",
        lambda: f"({sub(TIME)} AT TIME ZONE '{tape.one(_ZONES)}')",
        lambda: f"CAST({tape.one((sub(TIME), sub(DATE)))} AS TIMESTAMPTZ)",
        lambda: f"to_timestamp({sub(INT)} % 100000)",
        lambda: f"TRY_CAST(CAST({sub()} AS VARCHAR) AS TIMESTAMPTZ)",
    ]
    return tape.one(shapes)()


def whole(g: Grammar, sub: Sub) -> str:
    """An integer that is asked of one of them."""
    tape = g.tape
    part = tape.one(("hour", "minute", "second", "microsecond", "millisecond"))
    date = tape.one(("year", "month", "day", "dow", "doy", "hour", "week", "quarter", "isodow", "timezone", "timezone_hour"))
    unit = tape.one(("month", "day", "hour", "year"))
    shapes: list[Callable[[], str]] = [
        lambda: f"octet_length({sub(BLOB)})",
        lambda: f"octet_length({sub(BLOB)} || {sub(BLOB)})",
        lambda: f"extract({part} FROM {sub(CLOCK)})",
        lambda: f"extract({date} FROM {sub(ZONED)})",
        lambda: f"date_diff('{unit}', {sub(ZONED)}, {sub(ZONED)})",
        # whole milliseconds: DuckDB counts no finer ones between two moments (docs/reference/values.md)
        lambda: f"date_sub('{unit}', date_trunc('second', {sub(ZONED)}), date_trunc('second', {sub(ZONED)}))",
        lambda: f"{tape.one(('date_diff', 'date_sub'))}('{tape.one(('hour', 'minute', 'second'))}', {sub(CLOCK)}, {sub(CLOCK)})",
        lambda: f"epoch_ms({tape.one((sub(ZONED), sub(TIME)))})",
        lambda: f"extract({tape.one(('day', 'hour', 'second'))} FROM {sub(ZONED)} - {sub(ZONED)})",
    ]
    return tape.one(shapes)()


def text(g: Grammar, sub: Sub) -> str:
    """A text of one of them."""
    tape = g.tape
    form = tape.one(("%Y-%m-%d %H:%M:%S", "%d.%m.%y %I %p", "%j %f", "%z", "%H"))
    shapes: list[Callable[[], str]] = [
        lambda: f"{tape.one(('hex', 'base64', 'md5', 'sha256'))}({sub(BLOB)})",
        lambda: f"CAST({sub(tape.one((BLOB, CLOCK, ZONED)))} AS VARCHAR)",
        lambda: f"strftime({sub(ZONED)}, '{form}')",
        lambda: f"({sub()} || {sub(tape.one((CLOCK, ZONED)))})",
        lambda: f"{tape.one(('dayname', 'monthname'))}({sub(ZONED)})",
    ]
    return tape.one(shapes)()


def local(g: Grammar, sub: Sub) -> str:
    """A TIMESTAMP of a moment, or of a day and a time."""
    tape = g.tape
    shapes: list[Callable[[], str]] = [
        lambda: f"({sub(ZONED)} AT TIME ZONE '{tape.one(_ZONES)}')",
        lambda: f"({sub(DATE)} + {sub(CLOCK)})",
        lambda: f"CAST({sub(ZONED)} AS TIMESTAMP)",
    ]
    return tape.one(shapes)()


def mixed(g: Grammar, sub: Sub) -> tuple[str, str]:
    """Two values of kinds that are compared in the type of one of them."""
    kinds = [g.tape.one((DATE, TIME, ZONED)) for _ in range(2)]
    return sub(kinds[0]), sub(kinds[1])
