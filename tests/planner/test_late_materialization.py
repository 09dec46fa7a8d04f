"""Columns that a group's key determines through a join are looked up behind the groups, and behind a sort that keeps few rows;
groups by text or floats of a build side are made by the join's key first."""

from __future__ import annotations

import random
from functools import cache

import pyarrow as pa
import pytest

import gquery
from tests.support.harness import TARGETS, assert_same

RNG = random.Random(11)


@cache
def tables() -> dict[str, pa.Table]:
    orders = {
        "id": pa.array(range(100, 160)),
        "client": pa.array([RNG.choice([*range(12), None]) for _ in range(60)], pa.int32()),
        "day": pa.array([RNG.choice([*range(5), None]) for _ in range(60)], pa.int16()),
        "note": pa.array([RNG.choice(["", "late", "paid twice", None]) for _ in range(60)]),
    }
    clients = {
        "id": pa.array(range(10), pa.int32()),
        "name": pa.array([f"client {n % 4}" if n % 5 else None for n in range(10)]),
        "town": pa.array([n % 3 for n in range(10)]),
        "rate": pa.array([n % 4 / 8 if n != 6 else None for n in range(10)]),
    }
    towns = {"id": pa.array(range(3)), "town": pa.array(["Aachen", "Bern", "Bern"])}
    items = {
        "of": pa.array([RNG.randrange(95, 165) for _ in range(500)]),
        "price": pa.array([RNG.randrange(1, 400) for _ in range(500)]),
        "units": pa.array([RNG.choice([1, 2, 3, None]) for _ in range(500)], pa.int32()),
    }
    return {name: pa.table(t) for name, t in
            {"orders": orders, "clients": clients, "towns": towns, "items": items}.items()}  # fmt: skip


@cache
def empty() -> dict[str, pa.Table]:
    return {name: table.slice(0, 0) for name, table in tables().items()}


JOIN = "items JOIN orders ON items.of = orders.id"
ALL = f"{JOIN} JOIN clients ON orders.client = clients.id JOIN towns ON clients.town = towns.id"
TWO = "items JOIN orders ON items.of = orders.id JOIN clients ON items.units = clients.id"
QUERIES = [
    f"SELECT of, day, note, sum(price) FROM {JOIN} GROUP BY of, day, note",
    f"SELECT orders.id, note, count(units), sum(units) FROM {JOIN} GROUP BY orders.id, note HAVING sum(price) > 900",
    f"SELECT of, day, note, sum(price) AS s FROM {JOIN} GROUP BY of, day, note ORDER BY s DESC, of LIMIT 5",
    f"SELECT of, day, sum(price) AS s FROM {JOIN} GROUP BY of, day ORDER BY day NULLS LAST, s DESC, of LIMIT 7 OFFSET 2",
    f"SELECT of, name, towns.town, sum(price) AS s FROM {ALL} GROUP BY of, name, towns.town ORDER BY s DESC, of LIMIT 6",
    f"SELECT orders.id, name, max(price) FROM {ALL} GROUP BY orders.id, name",
    f"SELECT name, count(*) FROM {ALL} GROUP BY name",
    f"SELECT name, count(units), sum(price), min(price), max(units) FROM {ALL} GROUP BY name",
    f"SELECT rate, count(*), sum(price) FROM {ALL} GROUP BY rate",
    f"SELECT rate, max(units), count(units) FROM {ALL} GROUP BY rate HAVING count(*) > 3",
    f"SELECT note, count(*) AS n FROM {JOIN} GROUP BY note ORDER BY n DESC, note LIMIT 2",
    f"SELECT note, avg(price), count(DISTINCT units) FROM {JOIN} GROUP BY note",
    f"SELECT towns.town, sum(price) FILTER (price > 100), count(*) FROM {ALL} GROUP BY towns.town",
    f"SELECT of, day + 1, upper(note), sum(price) FROM {JOIN} GROUP BY of, day, note",
    "SELECT of, note, sum(price) FROM items LEFT JOIN orders ON items.of = orders.id GROUP BY of, note",
    f"SELECT name, day, sum(price), count(units) FROM {ALL} GROUP BY name, day",
    f"SELECT name, units, count(*), max(price) FROM {ALL} GROUP BY name, units",
    f"SELECT rate, towns.town, note, day, sum(price), min(units) FROM {ALL} GROUP BY rate, towns.town, note, day",
    f"SELECT name || towns.town AS pair, rate, units % 2 AS odd, count(*) FROM {ALL} GROUP BY pair, rate, odd",
    f"SELECT rate * 2 AS twice, client + 1 AS next, sum(price) FROM {ALL} GROUP BY twice, next HAVING sum(units) > 9",
    f"SELECT rate, price, count(*) FROM {ALL} GROUP BY rate, price",
    f"SELECT rate, name, sum(price) FILTER (day > 1), count(units) FILTER (price > 300) FROM {ALL} GROUP BY rate, name",
    f"SELECT rate + units AS mixed, sum(price) FROM {ALL} GROUP BY mixed",
    f"SELECT rate, day, note, sum(price), count(*) FROM {TWO} GROUP BY rate, day, note",
    f"SELECT rate, name, of % 2 AS odd, max(price) FROM {TWO} GROUP BY rate, name, odd",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_answers(sql: str) -> None:
    assert_same(sql, tables(), ordered="ORDER BY" in sql)


@pytest.mark.parametrize("sql", QUERIES)
def test_answers_of_no_rows(sql: str) -> None:
    assert_same(sql, empty(), ordered="ORDER BY" in sql, targets=TARGETS[:1])


def _stages(sql: str) -> list[str]:
    with gquery.connect(device="cpu") as connection:
        for name, table in tables().items():
            connection.register(name, table)
        return str(connection.explain(sql, "pipelines")).split("\nstage ")


def test_what_the_key_determines_is_no_state() -> None:
    group, behind = _stages(QUERIES[0])[-2:]
    assert "group by" in group and "(sum)" in group, "the sum alone is folded"
    assert "probe" in behind and "note" in behind


def test_a_sort_with_a_limit_looks_up_what_it_kept() -> None:
    sort, behind = _stages(QUERIES[2])[-2:]
    assert "first 5" in sort and "probe" in behind and "note" in behind


def test_what_the_sort_needs_is_looked_up_before() -> None:
    stages = _stages(QUERIES[3])
    at = next(n for n, s in enumerate(stages) if "first 9" in s)
    assert "probe" in stages[at - 1] and "day" in stages[at - 1]


def test_what_is_not_encoded_as_one_key_is_grouped_by_the_key_of_its_join_first() -> None:
    text = "\n".join(_stages(QUERIES[8]))
    assert "group by key" in text and "row-id hash table" in text


def test_columns_of_several_build_sides_are_grouped_by_the_keys_of_their_joins_first() -> None:
    sql = next(q for q in QUERIES if q.endswith(f"FROM {TWO} GROUP BY rate, day, note"))
    text = "\n".join(_stages(sql))
    first = next(line for line in text.splitlines() if "group by key = " in line)
    assert "direct-address" in first and "key = units, key#2 = day, key#3 = note" in first, first
    assert text.count("row-id hash table") == 1


def test_keys_that_tell_most_rows_apart_are_not_grouped_twice() -> None:
    sql = f"SELECT rate, price * 1000 + of AS many, count(*) FROM {TWO} GROUP BY rate, many"
    assert "group by key = " not in "\n".join(_stages(sql))
