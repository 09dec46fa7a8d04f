"""Random tables for workloads whose data is not at hand: the right schema, plausible numbers of rows, and columns that hold
the constants which the queries compare them with, so that predicates keep some rows.

Keys are real keys: ``id`` counts the rows, and a column that refers to another table holds ids of it. Nothing is
correlated and nothing but the constants is skewed: estimates are better here, and joins smaller, than over the real data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import sqlglot
from numpy.random import Generator
from sqlglot import exp

PICKED = 0.3  # of the rows of a column that queries compare with constants hold one of them
ZEROS = 0.5  # of the rows of other numbers
ABSENT = 0.1  # of the rows of columns that may be NULL
DAYS = (15_887, 15_918)  # July 2013, from 1970
_REFERS = {  # where a column that refers to another table is not called after it
    "movie_id": "title", "linked_movie_id": "title", "episode_of_id": "title", "person_id": "name",
    "person_role_id": "char_name", "company_id": "company_name", "role_id": "role_type",
    "subject_id": "comp_cast_type", "status_id": "comp_cast_type", "kind_id": "kind_type",
}  # fmt: skip

Constants = dict[tuple[str, str], list[str]]


@dataclass(frozen=True)
class Described:
    """A table to make: its columns are SQL types by name."""

    name: str
    rows: int
    columns: dict[str, str]


def constants(texts: Iterable[str], tables: set[str]) -> Constants:
    """The constants that queries compare columns with, by table and column in lower case; patterns without their wildcards."""
    out: dict[tuple[str, str], dict[str, None]] = {}
    for text in texts:
        tree = sqlglot.parse_one(text, dialect="duckdb")
        alias = {t.alias_or_name.lower(): t.name.lower() for t in tree.find_all(exp.Table)}
        only = next(iter(tables)) if len(tables) == 1 else ""
        for test in tree.find_all(exp.EQ, exp.In, exp.Like, exp.GTE, exp.LTE, exp.GT, exp.LT):
            if not isinstance(test.this, exp.Column):
                continue
            table = alias.get(test.this.table.lower(), only)
            found = out.setdefault((table, test.this.name.lower()), {})
            found.update((x.name.replace("%", " ").strip(), None) for x in test.find_all(exp.Literal))
    return {key: list(found) for key, found in out.items()}


def random_tables(described: Iterable[Described], known: Constants) -> dict[str, pa.Table]:
    """Each table by name."""
    rng = np.random.default_rng(11)
    tables = list(described)
    rows = {t.name: t.rows for t in tables}
    return {
        t.name: pa.table({c: _column(rng, t, c, kind, rows, known) for c, kind in t.columns.items()}) for t in tables
    }


def _column(rng: Generator, table: Described, name: str, kind: str, rows: dict[str, int], known: Constants) -> pa.Array:
    picked = known.get((table.name, name), [])
    if name == "id":
        return pa.array(np.arange(1, table.rows + 1, dtype=np.int32))
    refers = _REFERS.get(name, name.removesuffix("_id"))
    if name.endswith("_id") and refers in rows:
        return pa.array(rng.integers(1, rows[refers] + 1, table.rows, dtype=np.int32))
    match kind.partition("(")[0]:
        case "date":
            return pa.array(rng.integers(*DAYS, table.rows).astype("datetime64[D]"))
        case "timestamp":
            return pa.array(rng.integers(DAYS[0] * 86_400, DAYS[1] * 86_400, table.rows).astype("datetime64[s]"))
        case "text" | "character varying" | "varchar" | "char":
            return _texts(rng, table, name, picked)
        case _:
            return _numbers(rng, table, name, kind, picked)


def _texts(rng: Generator, table: Described, name: str, picked: list[str]) -> pa.Array:
    distinct = max(min(table.rows // 3, 200_000), 1)
    pool = pa.array([*picked, *(f"{name} {n * 7919 % 1_000_003}" for n in range(distinct)), None])
    codes = rng.integers(len(picked), len(picked) + distinct, table.rows)
    if len(picked) > 0 and table.rows < 1_000:
        codes[: len(picked)] = np.arange(len(picked))[: table.rows]  # a small table holds each of them
    elif picked:
        chosen = rng.random(table.rows) < PICKED
        codes[chosen] = rng.integers(0, len(picked), int(chosen.sum()))
    if table.rows >= 1_000 and table.name != "hits":
        codes[rng.random(table.rows) < ABSENT] = len(picked) + distinct
    return pool.take(pa.array(codes))


def _numbers(rng: Generator, table: Described, name: str, kind: str, picked: list[str]) -> pa.Array:
    bits = {"smallint": 16, "integer": 32}.get(kind, 64)
    dtype = np.dtype(f"int{bits}")
    if name == "production_year":
        return pa.array((2019 - np.abs(rng.normal(0, 25, table.rows))).astype(np.int32))
    wide = kind == "bigint"
    values = rng.integers(0, max(table.rows // 5, 2) if wide else 100, table.rows).astype(dtype)
    if not wide:
        values[rng.random(table.rows) < ZEROS] = 0
    numbers = np.array([int(p) for p in picked if p.lstrip("-").isdigit()], dtype=np.int64)
    numbers = numbers[np.abs(numbers) < 2 ** (bits - 1)]
    if len(numbers):
        chosen = rng.random(table.rows) < PICKED
        values[chosen] = rng.choice(numbers, int(chosen.sum())).astype(dtype)
    return pa.array(values)
