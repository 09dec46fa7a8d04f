"""All parts of days and moments on both sides of the year 1, beside DuckDB."""

from __future__ import annotations

import random

import duckdb
import pytest

import gquery
from tests.support.marks import and_slow

PARTS = (
    "year", "month", "day", "decade", "century", "millennium", "quarter", "week", "dow", "isodow", "doy", "isoyear", "yearweek",
    "era", "julian", "epoch", "hour", "minute", "second",
)  # fmt: skip
UNITS = (
    "year", "month", "day", "decade", "century", "millennium", "quarter", "week", "isoyear", "hour", "minute", "second",
)  # fmt: skip
FUNCTIONS = ("dayname", "monthname", "last_day", "epoch_ms", "epoch_us", "dayofyear", "weekofyear")
LACKING = {("date_diff", "isoyear"), ("date_sub", "isoyear")}  # of moments these end DuckDB


def literal(r: random.Random, type_: str) -> str:
    year = r.choice((r.randint(-4713, 2500), r.randint(-110, 110), r.randint(-11, 11)))
    month, day = r.randint(1, 12), r.randint(1, 28)
    written = f"{year:04d}-{month:02d}-{day:02d}" if year > 0 else f"{1 - year:04d}-{month:02d}-{day:02d} (BC)"
    clock = f" {r.randint(0, 23):02d}:{r.randint(0, 59):02d}:{r.randint(0, 59):02d}.{r.randint(0, 999_999):06d}"
    return f"'{written}{'' if type_ == 'DATE' else clock}'::{type_}"


@pytest.mark.parametrize("type_", and_slow(["DATE", "TIMESTAMP", "TIMESTAMPTZ"], "DATE"))
def test_parts_are_those_of_duckdb(type_: str) -> None:
    r = random.Random(11)
    rows = ", ".join(f"({literal(r, type_)}, {literal(r, type_)})" for _ in range(120))
    last = type_ == "TIMESTAMPTZ"  # DuckDB adds a moment's milliseconds and microseconds as doubles, whose last digit differs
    asked = [f"{'floor' * (last and p == 'epoch')}(date_part('{p}', x))" for p in PARTS] + [f"{f}(x)" for f in FUNCTIONS]
    asked += [f"date_trunc('{u}', x)::VARCHAR" for u in UNITS] + ["(x + INTERVAL 1 MONTH)::VARCHAR", "x::VARCHAR"]
    asked += [
        f"{f}('{u}', x, y)"
        for f in ("date_diff", "date_sub")
        for u in UNITS
        if type_ != "TIMESTAMPTZ" or (f, u) not in LACKING
    ]
    oracle = duckdb.connect()
    oracle.execute("SET TimeZone = 'UTC'")
    with gquery.connect(device="python") as connection:
        for e in asked:
            sql = f"SELECT ({e})::VARCHAR, x::VARCHAR, y::VARCHAR FROM (VALUES {rows}) t(x, y)"
            assert connection.sql(sql).fetchall() == oracle.execute(sql).fetchall(), e
