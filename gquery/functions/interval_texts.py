"""Texts of intervals: what DuckDB 1.5.5 takes and prints, one value at a time and for all rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gquery.expression.interval import Interval, split_words
from gquery.functions.calendar import DAY_MICROS
from gquery.functions.vectors import flags, from_numpy, joined_texts, scalar_text, value_array, with_nulls_of
from gquery.runtime.arrow_compute import pc
from gquery.runtime.pattern import pattern

_UNITS = {
    "microsecond": (0, 0, 1), "us": (0, 0, 1), "usec": (0, 0, 1), "millisecond": (0, 0, 1000), "ms": (0, 0, 1000),
    "msec": (0, 0, 1000), "second": (0, 0, 1_000_000), "sec": (0, 0, 1_000_000), "s": (0, 0, 1_000_000),
    "minute": (0, 0, 60_000_000), "min": (0, 0, 60_000_000), "m": (0, 0, 60_000_000), "hour": (0, 0, 3_600_000_000),
    "hr": (0, 0, 3_600_000_000), "h": (0, 0, 3_600_000_000), "day": (0, 1, 0), "d": (0, 1, 0), "week": (0, 7, 0),
    "w": (0, 7, 0), "month": (1, 0, 0), "mon": (1, 0, 0), "quarter": (3, 0, 0), "year": (12, 0, 0), "yr": (12, 0, 0),
    "y": (12, 0, 0), "decade": (120, 0, 0), "dec": (120, 0, 0), "century": (1200, 0, 0), "cent": (1200, 0, 0),
    "c": (1200, 0, 0), "millennium": (12000, 0, 0), "mil": (12000, 0, 0),
}  # fmt: skip
_PLURALS = {"centuries": "century", "millennia": "millennium", "millenium": "millennium"}
_WITHOUT_PLURAL = ("c", "w", "d", "h", "m", "s", "us", "ms", "y")
_AMOUNT = pattern(r"\s*(-?)(\d+)(?:\.(\d*))?\s*([A-Za-z]+)\s*")
_TIME = pattern(r"\s*(-?)(\d+):(\d*)(?::(\d*)(?:\.(\d*))?)?\s*")
_SECONDS = pattern(r"\s*@?\s*-?\d+(?:\.\d*)?\s*")
_FRACTION = 1_000_000
_MONTH_DAYS = 30


def unit_parts(name: str) -> tuple[int, int, int] | None:
    """Months, days and microseconds of a unit; None for a name that is none."""
    low = name.lower()
    if low in _UNITS:
        return _UNITS[low]
    low = _PLURALS.get(low, low.removesuffix("s"))
    return None if low in _WITHOUT_PLURAL else _UNITS.get(low)


def parse_interval(text: str, unit: str | None = None) -> Interval | None:
    """An interval such as ``1 year 2 days``, ``2 days 10:30``, ``3 days ago``, or ``90`` with a unit; a number alone is seconds.
    None for what is none.

    >>> parse_interval("1 year 2 days"), parse_interval("-1.5 days")
    (Interval(months=12, days=2, micros=0), Interval(months=0, days=-1, micros=-43200000000))
    """
    if unit is not None:
        text = f"{text} {unit}"
    elif _SECONDS.fullmatch(text):
        text += "s"
    rest = text.lstrip()
    position = len(text) - len(rest) + rest.startswith("@")
    months = days = micros = found = 0
    while position < len(text):
        amount = _AMOUNT.match(text, position)
        if amount is None:
            break
        scale = unit_parts(amount[4])
        if scale is None:
            return None
        part = _scaled(int(amount[2]), amount[3] or "", scale)
        sign = -1 if amount[1] else 1
        months, days, micros = months + sign * part[0], days + sign * part[1], micros + sign * part[2]
        position, found = amount.end(), found + 1
    if found and text[position:].strip().lower() == "ago":
        return Interval(-months, -days, -micros)
    if position < len(text):
        time = _time_at(text, position)
        return None if time is None else Interval(months, days, micros + time)
    return Interval(months, days, micros) if found else None


def _time_at(text: str, position: int) -> int | None:
    """The microseconds of hours, minutes and seconds, which end a text."""
    match = _TIME.fullmatch(text, position)
    if match is None:
        return None
    hour, minute, second = (int(match[k] or 0) for k in (2, 3, 4))
    if minute > 59 or second > 59:
        return None
    micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + int((match[5] or "").ljust(6, "0")[:6])
    return -micros if match[1] else micros


def _scaled(whole: int, digits: str, scale: tuple[int, int, int]) -> tuple[int, int, int]:
    """So many of a unit, of a fraction the first six digits. What is left of a month or quarter is whole days, of a year nothing,
    of a day time."""
    fraction = int(digits.ljust(6, "0")[:6])
    months, days, micros = scale
    if micros == 1:
        return 0, 0, whole + (2 * fraction >= _FRACTION)
    if micros:
        return 0, 0, whole * micros + fraction * micros // _FRACTION
    if days:
        more, rest = divmod(fraction * days, _FRACTION)
        return 0, whole * days + more, rest * DAY_MICROS // _FRACTION
    more, rest = divmod(fraction * months, _FRACTION)
    return whole * months + more, rest * _MONTH_DAYS // _FRACTION if months <= 3 else 0, 0


# ---- for all rows ----------------------------------------------------------------------------------------------------


def from_texts(texts: pa.Array) -> pa.Array:
    """The physical values that texts stand for, as decimals; NULL where one stands for none. Equal texts are read once."""
    encoded = texts.dictionary_encode()
    words = np.zeros((len(encoded.dictionary), 2), np.int64)
    ok = np.zeros(len(words), np.bool_)
    for n, text in enumerate(encoded.dictionary.to_pylist()):
        value = None if text is None else parse_interval(text)
        try:
            packed = None if value is None else value.packed
        except OverflowError:
            packed = None
        if packed is not None:
            ok[n] = True
            words[n] = (packed + 2**63 & 2**64 - 1) - 2**63, packed >> 64
    bitmap = pa.py_buffer(np.packbits(ok, bitorder="little"))
    known = pa.Array.from_buffers(pa.decimal128(38, 0), len(words), [bitmap, pa.py_buffer(words.reshape(-1))])
    return known.take(encoded.indices)


def to_texts(values: pa.Array) -> pa.Array:
    """What physical values, as decimals, are printed as."""
    if not len(values):
        return pa.nulls(0, pa.string())
    words = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)[values.offset : values.offset + len(values)]
    if values.null_count:
        words = np.where(flags(values.is_valid())[:, None], words, 0)
    months, days, micros = split_words(words)
    years = np.sign(months) * (np.abs(months) // 12)
    counted = [_counted(years, "year"), _counted(months - years * 12, "month"), _counted(days, "day")]
    is_zero = (months == 0) & (days == 0) & (micros == 0)
    made = pc.ascii_rtrim(joined_texts(*counted, _clock(micros, is_zero)), " ")
    return with_nulls_of(made, values)


def _counted(numbers: Any, unit: str) -> pa.Array:
    """So many of a unit and a space; nothing for 0."""
    if not numbers.any():
        return value_array([""], pa.string()).take(from_numpy(np.zeros(len(numbers), np.int64)))
    plural = pc.if_else(from_numpy(np.abs(numbers) == 1), scalar_text(f" {unit} "), scalar_text(f" {unit}s "))
    texts = joined_texts(from_numpy(numbers).cast(pa.string()), plural)
    return pc.if_else(from_numpy(numbers != 0), texts, scalar_text(""))


def _clock(micros: Any, is_zero: Any) -> pa.Array:
    """Hours, minutes, seconds and what is left; nothing for 0, unless nothing else is there."""
    size = micros.view(np.uint64)
    size = np.where(micros < 0, np.uint64(0) - size, size)
    seconds, fraction = size // np.uint64(1_000_000), size % np.uint64(1_000_000)
    hours = from_numpy((seconds // np.uint64(3600)).astype(np.int64)).cast(pa.string())
    of_hour = (seconds % np.uint64(3600)).astype(np.int64)
    parts = [
        pc.if_else(from_numpy(micros < 0), scalar_text("-"), scalar_text("")),
        pc.ascii_lpad(hours, 2, "0"),
        _two_digits(of_hour // 60),
        _two_digits(of_hour % 60),
    ]
    made = joined_texts(parts[0], parts[1], scalar_text(":"), parts[2], scalar_text(":"), parts[3])
    if fraction.any():
        digits = pc.ascii_lpad(from_numpy(fraction.astype(np.int64)).cast(pa.string()), 6, "0")
        tail = joined_texts(scalar_text("."), pc.ascii_rtrim(digits, "0"))
        made = joined_texts(made, pc.if_else(from_numpy(fraction != 0), tail, scalar_text("")))
    return pc.if_else(from_numpy((micros != 0) | is_zero), made, scalar_text(""))


def _two_digits(numbers: Any) -> pa.Array:
    return pc.ascii_lpad(from_numpy(numbers).cast(pa.string()), 2, "0")
