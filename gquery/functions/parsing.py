"""Timestamps from text by a pattern: strptime. A pattern becomes one regular expression, whose groups are the parts."""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa

from gquery.errors import ConversionError, NotSupportedError
from gquery.expression.expr import Call, Expr, Literal
from gquery.expression.types import TIMESTAMP, VARCHAR
from gquery.functions import digit_formats
from gquery.functions.calendar import DAY_MICROS, days_from_civil, month_length
from gquery.functions.casts import cast
from gquery.functions.digit_formats import LONGER
from gquery.functions.registry import host_scalar, is_null_literal, make, resolver
from gquery.functions.vectors import Vector, by_parameters, null, value_array
from gquery.runtime.arrow_compute import pc

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")  # fmt: skip
_LONGEST_YEAR = 366
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_PARTS = {
    "Y": r"(\d{1,4}+)", "y": r"(\d{1,2}+)", "m": r"(\d{1,2}+)", "d": r"(\d{1,2}+)", "H": r"(\d{1,2}+)", "I": r"(\d{1,2}+)",
    "M": r"(\d{1,2}+)", "S": r"(\d{1,2}+)", "f": r"(\d{1,6}+)", "g": r"(\d{1,3}+)", "j": r"(\d{1,3}+)", "p": r"((?i:[ap]m))",
    "B": f"((?i:{'|'.join(_MONTHS)}))", "b": f"((?i:{'|'.join(m[:3] for m in _MONTHS)}))",
    "A": f"((?i:{'|'.join(_DAYS)}))", "a": f"((?i:{'|'.join(d[:3] for d in _DAYS)}))",
}  # fmt: skip


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> tuple[re.Pattern[str], str]:
    """The expression of a pattern, and what its groups are."""
    made, groups = "", ""
    at = 0
    while at < len(pattern):
        if pattern[at] != "%":
            made += r"\s+" if pattern[at].isspace() else re.escape(pattern[at])
            at += 1
            continue
        letter = pattern[at + 1 : at + 2]
        if letter == "-":
            at += 1
            letter = pattern[at + 1 : at + 2]
        if letter == "%":
            made += "%"
        elif letter in LONGER:
            pattern = pattern[: at + 2] + LONGER[letter] + pattern[at + 2 :]
        elif letter not in _PARTS:
            raise NotSupportedError(f"not supported: strptime with %{letter} in its format")
        else:
            made += _PARTS[letter]
            groups += letter
        at += 2
    return re.compile(rf"\s*{made}\s*", re.ASCII), groups


def _parsed(text: str, pattern: str) -> int | None:
    """Microseconds since 1970; None where the text is no such timestamp."""
    expression, groups = _compiled(pattern)
    match = expression.fullmatch(text)
    if match is None:
        return None
    parts = dict(zip(groups, match.groups(), strict=True))
    year = int(parts["Y"]) if "Y" in parts else 1900
    if groups.rfind("y") > groups.rfind("Y"):  # of parts that say the same the last one counts
        year = int(parts["y"]) + (2000 if int(parts["y"]) < 69 else 1900)
    month = int(parts.get("m", 1))
    for letter, names in (("B", _MONTHS), ("b", tuple(m[:3] for m in _MONTHS))):
        if letter in parts:
            month = names.index(parts[letter].lower()) + 1
    day = int(parts.get("d", 1))
    hour = _hour(parts, groups)
    if hour is None:
        return None
    minute, second = int(parts.get("M", 0)), int(parts.get("S", 0))
    if not (1 <= month <= 12 and 1 <= day <= month_length(year, month) and hour < 24 and minute < 60 and second < 60):
        return None
    days = days_from_civil(year, month, day)
    if "j" in parts and not 1 <= int(parts["j"]) <= _LONGEST_YEAR:
        return None
    if "j" in parts and not parts.keys() & {"m", "d"}:
        days = days_from_civil(year, 1, 1) + int(parts["j"]) - 1
    micros = (
        int(parts["f"].ljust(6, "0")) if "f" in parts else int(parts["g"].ljust(3, "0")) * 1000 if "g" in parts else 0
    )
    return days * DAY_MICROS + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros


def _hour(parts: dict[str, str], groups: str) -> int | None:
    """The hour from 0 to 23; None where there is none such."""
    hour = int(parts.get("H", 0))
    if groups.rfind("I") > groups.rfind("H"):
        hour = int(parts["I"])
        if not 1 <= hour <= 12:
            return None
    if "p" not in parts:
        return hour
    return hour % 12 + 12 * (parts["p"].lower() == "pm") if hour <= 12 else None


def _stamps(texts: pa.Array, pattern: str) -> pa.Array:
    steps = digit_formats.steps_of(pattern)
    if steps is not None:
        return digit_formats.parsed(texts, steps).view(pa.timestamp("us"))
    made = [None if text is None else _parsed(text, pattern) for text in texts.to_pylist()]
    return value_array(made, pa.int64()).view(pa.timestamp("us"))


@host_scalar("strptime", ((VARCHAR, VARCHAR), TIMESTAMP), fails=(ConversionError, "strptime: a text is not of its format"),
        example=("strptime('2/3/2020', '%d/%m/%Y')", "2020-03-02 00:00:00"))  # fmt: skip
def strptime(text: Vector, pattern: Vector) -> Vector:
    """The timestamp that a text of a format of strptime says."""
    return by_parameters(_stamps, text, pattern, gives=pa.timestamp("us"))


@host_scalar(
    "try_strptime", ((VARCHAR, VARCHAR), TIMESTAMP), nullable=True, example=("try_strptime('x', '%Y')", "None")
)
def try_strptime(text: Vector, pattern: Vector) -> Vector:
    """As strptime, and NULL where the text is not of the format."""
    return by_parameters(_stamps, text, pattern, gives=pa.timestamp("us"))


# ---- several formats -------------------------------------------------------------------------------------------------


def _first_of(text: Vector, *patterns: Vector) -> Vector:
    """By the first of some formats that a text is of."""

    made = by_parameters(_stamps, text, patterns[0], gives=pa.timestamp("us"))
    for pattern in patterns[1:]:
        left = pc.if_else(made.is_null(), text, null(text.type))
        made = pc.coalesce(made, by_parameters(_stamps, left, pattern, gives=pa.timestamp("us")))
    return made


_SEVERAL = ((VARCHAR, VARCHAR), TIMESTAMP)


@host_scalar("_strptime_any", _SEVERAL, fails=(ConversionError, "strptime: a text is of none of its formats"))
def strptime_any(text: Vector, *patterns: Vector) -> Vector:
    """`strptime` with a list of formats."""
    return _first_of(text, *patterns)


@host_scalar("_try_strptime_any", _SEVERAL, nullable=True)
def try_strptime_any(text: Vector, *patterns: Vector) -> Vector:
    """`try_strptime` with a list of formats."""
    return _first_of(text, *patterns)


def _of_formats(name: str, example: tuple[str, str]) -> None:
    @resolver(name, "$(VARCHAR, VARCHAR[]) -> TIMESTAMP", example=example)
    def resolve(text: Expr, patterns: Expr) -> Expr | None:
        if not (isinstance(patterns, Call) and patterns.function == "list_value" and patterns.dtype.element == VARCHAR):
            return None
        formats = [p for p in patterns.args if not (isinstance(p, Literal) and p.is_null)]
        if not all(isinstance(p, Literal) for p in formats):
            return None
        if text.dtype != VARCHAR and not is_null_literal(text):
            return None
        if not formats:
            return Literal(None, TIMESTAMP)
        return make(f"_{name}_any", (cast(text, VARCHAR), *(cast(p, VARCHAR) for p in formats)), TIMESTAMP)


_of_formats("strptime", ("strptime('2020', ['%d', '%Y'])", "2020-01-01 00:00:00"))
_of_formats("try_strptime", ("try_strptime('x', ['%d', '%Y'])", "None"))
