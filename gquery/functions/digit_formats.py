"""Timestamps by a format of strptime whose parts are all digits, read for all texts at once by NumPy.

Each text has a place that is read next. A step of the format (some literal bytes, spaces, up to so many digits) looks at the
bytes at the places of all texts and moves these on, so that parts may have any number of digits. `functions.parsing` reads
other formats.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.functions.calendar import DAY_MICROS, days_from_civil
from gquery.functions.vectors import characters_of, flags, from_numpy, offsets_of

_WIDTHS = {"Y": 4, "y": 2, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "f": 6, "g": 3}
_RANGES = {"m": (1, 12), "d": (1, 31), "H": (0, 23), "M": (0, 59), "S": (0, 59)}
LONGER = {"c": "%Y-%m-%d %H:%M:%S", "x": "%Y-%m-%d", "X": "%H:%M:%S", "T": "%H:%M:%S"}
_SPACES = b" \t\n\v\f\r"
_IS_SPACE = np.isin(np.arange(256), list(_SPACES))
_FIRST_PIVOT_YEAR = 69  # of two digits that mean one before 2000
_MONTH_LENGTHS = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_POWERS = 10 ** np.arange(6, -1, -1)  # of the places of microseconds that are missing
_BLOCK = 1 << 14  # texts, so that what is known of them stays in a core's cache
Step = tuple[str, bytes]
"""A part's letter and nothing, or no letter and bytes; a space among these stands for a run of spaces."""


@lru_cache(256)
def steps_of(pattern: str) -> tuple[Step, ...] | None:
    """The steps of a format; None where it has parts that are not digits alone, or has none at all.

    >>> steps_of("%Y-%-m"), steps_of("%B %Y")
    ((('Y', b''), ('', b'-'), ('m', b'')), None)
    """
    steps: list[Step] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at + 1 : at + 2]
        if pattern[at] != "%":
            _add(steps, " " if pattern[at] in _SPACES.decode() else pattern[at])
            at += 1
            continue
        if letter == "-" and (letter := pattern[at + 2 : at + 3]) in ("y", "m", "d", "H", "M", "S"):
            at += 1
        if letter in LONGER:
            pattern = pattern[: at + 2] + LONGER[letter] + pattern[at + 2 :]
        elif letter == "%":
            _add(steps, "%")
        elif letter in _WIDTHS:
            steps.append((letter, b""))
        else:
            return None
        at += 2
    return tuple(steps) or None


def _add(steps: list[Step], literal: str) -> None:
    """A literal behind the steps so far; spaces beside one another are one."""
    if not steps or steps[-1][0]:
        steps.append(("", b""))
    before = steps[-1][1]
    if literal != " " or not before.endswith(b" "):
        steps[-1] = "", before + literal.encode()


class _Texts:
    """The bytes of texts, the place in each that is read next, and which texts are of the format so far."""

    def __init__(self, texts: pa.Array) -> None:
        offsets = offsets_of(texts)
        if not len(texts):
            offsets = np.zeros(1, np.int64)
        first = offsets[0]
        self.bytes = np.append(characters_of(texts)[first : offsets[-1]], np.uint8(0))  # one can be read behind the last
        self.at, self.ends = offsets[:-1] - first, offsets[1:] - first
        self.ok = flags(texts.is_valid())

    def skip_spaces(self) -> None:
        """Behind the spaces that stand here."""
        (rows,) = np.nonzero(_IS_SPACE[self.bytes[self.at]])
        while len(rows):
            rows = rows[self.at[rows] < self.ends[rows]]
            self.at[rows] += 1
            rows = rows[_IS_SPACE[self.bytes[self.at[rows]]]]

    def literal(self, literal: bytes) -> None:
        """Behind some bytes, which a text must have."""
        for byte in literal:
            here = self.bytes[self.at]
            found = (_IS_SPACE[here] if byte == ord(" ") else here == byte) & (self.at < self.ends)
            self.ok &= found
            self.at += found
            if byte == ord(" "):
                self.skip_spaces()

    def number(self, width: int) -> tuple[Any, Any]:
        """The number of up to so many digits, which a text must have at least one of, and how many it has."""
        value, count = np.zeros(len(self.at), np.int32), np.zeros(len(self.at), np.int8)
        going = self.ok
        for _ in range(width):
            digits = self.bytes[self.at] - np.uint8(ord("0"))  # bytes below "0" wrap around
            is_digit = (digits < 10) & (self.at < self.ends) & going
            if is_digit.all():
                value *= 10
                value += digits
            else:
                going = is_digit
                value = np.where(going, value * 10 + digits, value)
            count += is_digit
            self.at += is_digit
        self.ok &= count > 0
        return value, count


def parsed(texts: pa.Array, steps: tuple[Step, ...]) -> pa.Array:
    """int64 microseconds since 1970 of each text, NULL where it is NULL or not of the format. A part that comes twice is what it
    is the second time, as in DuckDB."""
    made, ok = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    for start in range(0, len(texts), _BLOCK):
        block = slice(start, start + _BLOCK)
        made[block], ok[block] = _read(_Texts(texts[block]), steps)
    return from_numpy(made, ok)


def _read(read: _Texts, steps: tuple[Step, ...]) -> tuple[Any, Any]:
    """The same of some texts: microseconds, and which there are."""
    parts: dict[str, Any] = {}
    read.skip_spaces()
    for letter, literal in steps:
        if not letter:
            read.literal(literal)
            continue
        value, count = read.number(_WIDTHS[letter])
        if letter in _RANGES:
            low, high = _RANGES[letter]
            read.ok &= (value >= low) & (value <= high)
        match letter:
            case "y":
                parts["Y"] = value + np.where(value < _FIRST_PIVOT_YEAR, 2000, 1900)
            case "f" | "g":
                parts["f"] = value * _POWERS[count]
            case _:
                parts[letter] = value
    read.skip_spaces()
    read.ok &= read.at == read.ends
    return _micros(parts, read), read.ok


def _micros(parts: dict[str, Any], read: _Texts) -> Any:
    year, month, day = (parts.get(letter, default) for letter, default in (("Y", 1900), ("m", 1), ("d", 1)))
    year, month = (np.where(read.ok, part, default) for part, default in ((year, 1900), (month, 1)))
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    read.ok &= day <= _MONTH_LENGTHS[month] - ((month == 2) & ~is_leap)
    hour, minute, second = (parts.get(letter, 0) for letter in "HMS")
    seconds = (hour * 60 + minute) * 60 + second
    days = np.asarray(_days(year, month, day), np.int64)
    return days * DAY_MICROS + np.asarray(seconds, np.int64) * 1_000_000 + parts.get("f", 0)


def _days(year: Any, month: Any, day: Any) -> Any:
    return days_from_civil(year, month, day)  # whose arithmetic NumPy's arrays have, too


__all__ = ["LONGER", "parsed", "steps_of"]
