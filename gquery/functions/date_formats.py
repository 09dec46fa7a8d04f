"""Formats of dates and timestamps as strftime has them: their parts, and which part of a moment decides the text."""

from __future__ import annotations

from functools import lru_cache

from gquery.errors import DataError

SPECIFIERS = frozenset((
    "a", "A", "w", "u", "d", "-d", "b", "h", "B", "m", "-m", "y", "-y", "Y", "G", "V",
    "H", "-H", "I", "-I", "p", "M", "-M", "S", "-S", "f", "g", "n", "j", "-j", "U", "W",
))  # fmt: skip
"""What may stand behind a percent sign; a function of a moment each (`date_names`)."""
_TEXTS = {"%": "%", "z": "+00", "Z": ""}
_LONGER = {"c": "%Y-%m-%d %H:%M:%S", "x": "%Y-%m-%d", "X": "%H:%M:%S", "T": "%H:%M:%S"}
MINUTE_PARTS, TIME_PARTS = frozenset("HIpM"), frozenset("Sfgn")
_YEAR_PARTS, _MONTH_PARTS = frozenset("Yy"), frozenset("YymbBh")


@lru_cache(256)
def parsed(pattern: str) -> tuple[tuple[bool, str], ...]:
    """The parts of a format in order: whether it is a specifier, and which or what text."""
    if not pattern:
        raise DataError("strftime: the format is empty")
    parts: list[tuple[bool, str]] = []
    i = 0
    while i < len(pattern):
        c = pattern[i]
        i += 1
        if c == "%":
            length = 2 if pattern[i : i + 1] == "-" else 1
            name = pattern[i : i + length]
            i += length
            if name in _LONGER:
                parts += parsed(_LONGER[name])
                continue
            if name in SPECIFIERS:
                parts.append((True, name))
                continue
            if name not in _TEXTS:
                raise DataError(f"strftime: the format {pattern!r} has {'%' + name!r}, which stands for nothing")
            c = _TEXTS[name]
        if parts and not parts[-1][0]:
            c = parts.pop()[1] + c
        parts.append((False, c))
    return tuple(parts)


def deciding_part(pattern: str) -> str | None:
    """The coarsest part of a moment that decides its text in a format: year, month, day or minute, or the hour or minute of its
    day; None: all of it, or none as the format is none."""
    try:
        letters = {name[-1] for is_specifier, name in parsed(pattern) if is_specifier}
    except DataError:
        return None
    if letters & TIME_PARTS:
        return None
    if letters & MINUTE_PARTS:
        return "minute" if letters - MINUTE_PARTS else "minute_of_day" if "M" in letters else "hour_of_day"
    return "year" if letters <= _YEAR_PARTS else "month" if letters <= _MONTH_PARTS else "day"
