"""Values of JSON in Python, and their texts as DuckDB writes them: without spaces, numbers with the digits that tell them apart.

`json` of Python reads them. Of a name that an object has twice the first value is found, and both are written. NaN and Infinity
are numbers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

_SPACES = " \t\r\n"
_SPACE = re.compile(rf"[{_SPACES}]+")
_ESCAPED = {ord('"'): '\\"', ord("\\"): "\\\\", 8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}
_ESCAPES = {n: f"\\u{n:04X}" for n in range(32)} | _ESCAPED


class _Object(dict[str, Any]):
    """An object, with the first value of each name; ``fields`` are all, where it has a name twice."""

    fields: Sequence[tuple[str, Any]] | None = None


class Digits(str):
    """A number that is written as it was."""


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) < len(pairs):
        made.update(reversed(pairs))
        made.fields = pairs
    return made


def fields_of(value: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """The names and values of an object, as often as they are written."""
    return (value.fields if isinstance(value, _Object) else None) or value.items()


def _real(text: str) -> Any:
    number = float(text)
    return Digits(text) if math.isinf(number) else number


_decoder = json.JSONDecoder(parse_float=_real, object_pairs_hook=_object)


def value_of(text: str) -> Any:
    """The value of a text that is JSON; ValueError for another."""
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def values_of(text: str) -> list[Any]:
    """The values of a text that has several, one behind the other; ValueError for another."""
    found, at, end = list[Any](), 0, len(text.rstrip(_SPACES))
    while at < end:
        begins = _SPACE.match(text, at)
        try:
            value, at = _decoder.raw_decode(text, at if begins is None else begins.end())
        except RecursionError:
            raise ValueError("nested too deep") from None
        found.append(value)
    return found


def is_json(text: str) -> bool:
    """Whether a text is JSON."""
    try:
        if "\\u" in text:
            written(value_of(text)).encode()  # half a surrogate is no character
        else:
            value_of(text)
    except ValueError:
        return False
    return True


def written(value: Any) -> str:
    """A value as JSON."""
    if isinstance(value, Digits):
        return value
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "{" + ",".join([f"{quoted(n)}:{written(v)}" for n, v in fields_of(value)]) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    if isinstance(value, float):
        return number_text(value)
    return {None: "null", True: "true", False: "false"}[value] if value is None or value is True or value is False else str(value)


def quoted(text: str) -> str:
    """A text as JSON."""
    return f'"{text.translate(_ESCAPES)}"'


def number_text(x: float) -> str:
    """A double as JSON.

    >>> number_text(1e20), number_text(1e-7), number_text(0.00001)
    ('100000000000000000000.0', '1e-7', '0.00001')
    """
    if math.isnan(x) or math.isinf(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
    text = repr(x)
    digits, sign, exponent = text.partition("e")
    if not sign:
        return text
    if not -7 < int(exponent) < 21:
        return f"{digits}e{int(exponent)}"
    text = f"{Decimal(text):f}"
    return text if "." in text else f"{text}.0"
