"""Texts cast to lists, structs and maps: random ones are what DuckDB reads in them."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pytest

import gquery

_PIECES = ("[", "]", "{", "}", "(", ")", ",", ":", "=", '"', "'", "\\", " ", "a", "b", "null", "NULL", "1", ", ", "ä")
_KEYS = ("a", "b", "'a'", '"b"', " a ", "c", "")


def _text(rng: random.Random, kind: str) -> str:
    def body(most: int) -> str:
        return "".join(rng.choice(_PIECES) for _ in range(rng.randint(0, most)))

    between = "=" if kind == "map" else ":"
    pairs = ", ".join(f"{rng.choice(_KEYS)}{between}{body(4)}" for _ in range(rng.randint(0, 3)))
    shapes = {"list": f"[{body(7)}]", "struct": rng.choice((f"{{{pairs}}}", f"({body(5)})")), "map": f"{{{pairs}}}"}
    return rng.choice(("", "", "", " ", "x")) + shapes[kind] + rng.choice(("", "", "", " ", "y"))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("list", "VARCHAR[]"),
        ("list", "INTEGER[]"),
        ("list", "VARCHAR[][]"),
        ("list", "STRUCT(a VARCHAR)[]"),
        ("struct", "STRUCT(a VARCHAR, b VARCHAR)"),
        ("struct", "STRUCT(b INTEGER, a VARCHAR[])"),
    ],
)
def test_a_text_is_what_duckdb_reads_in_it(kind: str, dtype: str) -> None:
    rng = random.Random(f"{kind} {dtype}")
    texts = [_text(rng, kind) for _ in range(3000)]
    ask = f"SELECT s, try_cast(s AS {dtype}) FROM t"
    with gquery.connect("cpu") as ours, duckdb.connect() as theirs:
        theirs.execute("CREATE TABLE t AS SELECT unnest($1) AS s", [texts])
        ours.register("t", theirs.sql("FROM t").to_arrow_table())
        found, want = ours.sql(ask).fetchall(), theirs.sql(ask).fetchall()
    assert [pair for pair in zip(found, want, strict=True) if pair[0] != pair[1]] == []
    assert sum(value is not None for _, value in want) > 300


def test_maps_are_what_duckdb_reads_in_a_text() -> None:
    """Keys that come twice are an error in both, with TRY_CAST as well: texts are asked for one by one."""
    rng = random.Random(7)
    with gquery.connect("python") as ours, duckdb.connect() as theirs:
        for _ in range(200):
            text = _text(rng, "map")
            ask = "SELECT map_keys(m), map_values(m) FROM (SELECT try_cast($1 AS MAP(VARCHAR, VARCHAR)) AS m)"
            assert _answer(ours, gquery.DataError, ask, text) == _answer(theirs, duckdb.Error, ask, text), text


def _answer(db: Any, error: type[Exception], ask: str, text: str) -> Any:
    try:
        return db.execute(ask, [text]).fetchall()
    except error:
        return "an error"
