"""Is an answer right? Compares a result with an expected answer, value by value.

Integers, decimals, dates and strings must be equal, DOUBLE within 1e-9 relative. The order must be one that ORDER BY
allows: the rows' ORDER BY values agree place by place, and rows that tie may stand in any order among themselves.

An engine with other types than SQL's (a quotient of decimals that is rounded, not DOUBLE) is compared with `lenient`: a
decimal may then be off by one in its last digit.

Expected answers are text files: a line of column names, then a line a row, values separated by ``|``, NULL as ``NULL``.
`tpch.oracle` says where they come from.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

from tpch.engines.base import Row

RELATIVE = 1e-9


def order_columns(sql: str, names: Sequence[str]) -> tuple[int, ...]:
    """The positions of the result columns that ORDER BY names.

    >>> order_columns("select a, b as x from t order by x desc, a", ["a", "x"])
    (1, 0)
    """
    order = sqlglot.parse_one(sql, read="duckdb").args.get("order")
    found = []
    for term in order.expressions if order else ():
        key = term.this
        found.append(int(key.this) - 1 if isinstance(key, exp.Literal) else list(names).index(key.name))
    return tuple(found)


def difference(got: Sequence[Row], want: Sequence[Row], order: tuple[int, ...], lenient: bool = False) -> str | None:
    """What is wrong with the rows of an answer, in a line; None where they are right."""
    if len(got) != len(want):
        return f"{len(got)} rows, expected {len(want)}"
    start = 0
    while start < len(want):
        key = [want[start][c] for c in order]
        end = start + 1
        while end < len(want) and (not order or [want[end][c] for c in order] == key):
            end += 1
        pairs = zip(_canonical(got[start:end]), _canonical(want[start:end]))
        for number, (g, w) in enumerate(pairs, start + 1):
            if len(g) != len(w):
                return f"{len(g)} columns, expected {len(w)}"
            for column, (a, b) in enumerate(zip(g, w), 1):
                if not (same(a, b) or (lenient and _nearly(a, b))):
                    return f"row {number}, column {column}: {a!r}, expected {b!r}"
        start = end
    return None


def _canonical(rows: Sequence[Row]) -> list[Row]:
    """The rows of a tie in an order of their own: exact values decide, as inexact ones may differ in the last bits."""
    if len(rows) == 1:
        return list(rows)
    return sorted(rows, key=lambda row: (_exact(row), [f"{v:.6g}" for v in row if isinstance(v, float)]))


def _exact(row: Row) -> list[tuple[bool, str]]:
    return [(v is None, str(v)) for v in row if not isinstance(v, float)]


def same(a: Any, b: Any) -> bool:
    """Whether two values are the same: DOUBLE within 1e-9 relative, NaN equal to NaN, all else exactly.

    >>> same(1.0, 1.0 + 1e-12), same(1.0, 1.1), same(None, 0)
    (True, False, False)
    """
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= RELATIVE * max(abs(a), abs(b))
    return type(a) is type(b) and bool(a == b)


def _nearly(a: Any, b: Any) -> bool:
    """Whether two decimals differ by no more than the last digit of the first."""
    if not (isinstance(a, Decimal) and isinstance(b, Decimal)):
        return False
    return abs(a - b) <= Decimal(1).scaleb(int(a.as_tuple().exponent))


# ---- answers as text ---------------------------------------------------------------------------------------------


def write_answer(path: Path, names: Sequence[str], rows: Sequence[Row]) -> None:
    lines = ["|".join(names)] + ["|".join("NULL" if v is None else str(v) for v in row) for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_answer(path: Path, types: Sequence[str]) -> list[Row]:
    """The rows of an answer file, as values of the given SQL types (the file does not tell ``'13'`` from 13)."""
    readers = [_reader(t) for t in types]
    rows: list[Row] = []
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        texts = line.split("|")
        if len(texts) != len(readers):
            raise ValueError(f"{path.name} has {len(texts)} columns, the result {len(readers)}")
        rows.append(tuple(None if text == "NULL" else read(text) for text, read in zip(texts, readers)))
    return rows


def _reader(sql_type: str) -> Callable[[str], Any]:
    name = sql_type.upper().split("(")[0]
    if name == "DECIMAL":
        return Decimal
    if name in ("DOUBLE", "FLOAT", "REAL"):
        return float
    if name == "DATE":
        return datetime.date.fromisoformat
    if name.startswith("TIMESTAMP"):
        return datetime.datetime.fromisoformat
    return int if name.endswith("INT") or name == "INTEGER" else str
