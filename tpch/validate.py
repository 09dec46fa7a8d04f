"""Is an answer right? Compares a result with an expected answer, value by value.

Integers, decimals, dates and strings must be equal, DOUBLE within 1e-9 relative. The order must be one that ORDER BY
allows: the rows' ORDER BY values agree place by place, and rows that tie may stand in any order among themselves.

Expected answers are text files: a line of column names, then a line a row, values separated by ``|``, NULL as ``NULL``.
Those of SF1 agree with the published ones (README.md says how that was checked); at other scale factors DuckDB answers
over the same files, once, and its answers are kept beside the data.
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

from tpch import queries
from tpch.generate import files, scale_text

Row = tuple[Any, ...]
SHIPPED = Path(__file__).resolve().parent / "answers"
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


def difference(got: Sequence[Row], want: Sequence[Row], order: tuple[int, ...]) -> str | None:
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
                if not same(a, b):
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


def expected(number: int, sf: float, folder: Path, types: Sequence[str]) -> list[Row]:
    """The right answer of a query at a scale factor over the data in ``folder``."""
    shipped = SHIPPED / f"sf{scale_text(sf)}" / f"q{number:02d}.csv"
    if shipped.exists():
        return read_answer(shipped, types)
    return read_answer(folder / "answers" / f"q{number:02d}.csv", types)


def prepare_answers(sf: float, folder: Path) -> None:
    """Have `expected` answers for this scale factor: those that no file holds are DuckDB's, made here once."""
    shipped, made = SHIPPED / f"sf{scale_text(sf)}", folder / "answers"
    if not shipped.exists() and not all((made / f"q{n:02d}.csv").exists() for n in queries.NUMBERS):
        answer_with_duckdb(folder)


def answer_with_duckdb(folder: Path, into: Path | None = None) -> None:
    """Write DuckDB's answers of all 22 queries over the tables of a folder (to ``folder/answers``, unless told)."""
    import duckdb

    with duckdb.connect() as connection:
        for table, path in files(folder).items():
            connection.execute(f"CREATE VIEW {table} AS FROM read_parquet('{path}')")
        for number in queries.NUMBERS:
            cursor = connection.execute(queries.sql(number))
            names = [column[0] for column in cursor.description or ()]
            write_answer((into or folder / "answers") / f"q{number:02d}.csv", names, cursor.fetchall())
