"""Whether rows are those that a sqllogictest file expects."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from tests.slt.records import Record

Row = tuple[Any, ...]
_HASHED = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})")
_CLOSE = 1e-9  # relative: reals may differ in their last digits


def shown(value: Any, kind: str) -> str:
    """A value as files write it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return ("1" if value else "0") if kind == "I" else str(value).lower()
        case float() if kind == "I" and math.isfinite(value):
            return str(int(value))
        case float():
            return repr(value)
        case Decimal():
            return str(int(value)) if kind == "I" else f"{value:f}"
        case _:
            text = str(value)
            return text if text else "(empty)"


def difference(record: Record, rows: Sequence[Row]) -> str | None:
    """What is different from what a query's record expects; None where nothing is."""
    assert record.expected is not None
    width = len(record.types)
    if rows and len(rows[0]) != width:
        return f"{len(rows[0])} columns, {width} expected"
    texts = [[shown(v, t) for v, t in zip(row, record.types, strict=True)] for row in rows]
    if is_hashed(record):
        return _hash_difference(record, texts)
    found, expected = _sorted(texts, record.sort), _sorted(_as_rows(record, len(rows)), record.sort)
    if len(found) != len(expected):
        return f"{len(found)} rows, {len(expected)} expected: {_some(found)}, not {_some(expected)}"
    kinds = "T" if record.sort == "valuesort" else record.types
    for n, (a, b) in enumerate(zip(found, expected, strict=True)):
        if not all(_is_same(x, y, t) for x, y, t in zip(a, b, kinds, strict=True)):
            return f"row {n} is {a}, {b} expected"
    return None


def is_hashed(record: Record) -> bool:
    """Whether a record expects a hash in place of rows."""
    expected = record.expected or ()
    return len(expected) == 1 and _HASHED.fullmatch(expected[0].strip()) is not None


def written(record: Record, rows: Sequence[Row]) -> list[str]:
    """Rows as a file holds them, with tabs between values."""
    texts = [[shown(v, t) for v, t in zip(row, record.types, strict=True)] for row in rows]
    return ["\t".join(row) for row in _sorted(texts, record.sort)]


def _as_rows(record: Record, rows: int) -> list[list[str]]:
    """The expected rows: lines hold a row each, with tabs between, or a value each."""
    assert record.expected is not None
    lines, width = record.expected, len(record.types)
    if width > 1 and not any("\t" in line for line in lines) and len(lines) % width == 0:
        return [list(lines[n : n + width]) for n in range(0, len(lines), width)]
    return [line.split("\t") for line in lines]


def _sorted(rows: list[list[str]], sort: str) -> list[list[str]]:
    match sort:
        case "rowsort":
            return sorted(rows)
        case "valuesort":
            return sorted([v] for row in rows for v in row)
        case _:
            return rows


def _is_same(found: str, expected: str, kind: str) -> bool:
    if found == expected:
        return True
    try:
        a, b = float(found), float(expected)
    except ValueError:
        return False
    if kind == "T":
        return False
    return math.isclose(a, b, rel_tol=_CLOSE) or (math.isnan(a) and math.isnan(b))


def _hash_difference(record: Record, texts: list[list[str]]) -> str | None:
    hashed = _HASHED.fullmatch((record.expected or ("",))[0].strip())
    assert hashed is not None
    values = [v for row in _sorted(texts, record.sort) for v in row]
    if len(values) != int(hashed[1]):
        return f"{len(values)} values, {hashed[1]} expected"
    digest = hashlib.md5("".join(f"{v}\n" for v in values).encode(), usedforsecurity=False).hexdigest()
    return None if digest == hashed[2] else f"the values hash to {digest}, {hashed[2]} expected"


def _some(rows: list[list[str]]) -> str:
    return f"{rows[:3]}{'...' if len(rows) > 3 else ''}"
