"""Groups that are read as they lie in their arrays, and bitmaps that are made from any stream: right answers on every
target, and the mechanisms at work where they should be."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from tests.support import harness
from tests.support.tuned import Tune

RNG = random.Random(7)
ROWS = 400
DAY = datetime.date(1969, 12, 20)  # days before and after 1970


def _tables(rows: int) -> dict[str, pa.Table]:
    def some(value: object) -> object:
        return None if RNG.random() < 0.1 else value

    sales = {
        "item": pa.array([RNG.randrange(-20, 60) for _ in range(rows)], pa.int32()),
        "day": pa.array([DAY + datetime.timedelta(RNG.randrange(40)) for _ in range(rows)], pa.date32()),
        "kind": pa.array([RNG.choice("abcdefgh") for _ in range(rows)], pa.string()),
        "maybe": pa.array([some(RNG.randrange(30)) for _ in range(rows)], pa.int16()),
        "amount": pa.array([some(RNG.randrange(-500, 500)) for _ in range(rows)], pa.int32()),
        "price": pa.array([RNG.randrange(1000) / 8 for _ in range(rows)], pa.float64()),
        "units": pa.array([RNG.randrange(9) for _ in range(rows)], pa.int64()),
    }
    items = {
        "id": pa.array(range(-25, 65), pa.int32()),
        "name": pa.array([f"item {n % 7}" for n in range(90)], pa.string()),
    }
    return {"sales": pa.table(sales), "items": pa.table(items)}


TABLES = _tables(ROWS)
EMPTY = {name: table.slice(0, 0) for name, table in TABLES.items()}

QUERIES = [
    "SELECT item, sum(units) FROM sales GROUP BY item HAVING sum(units) > 20",
    "SELECT item, count(*) FROM sales GROUP BY item",
    "SELECT item FROM sales GROUP BY item",
    "SELECT day, min(units), max(units), count(*) FROM sales GROUP BY day ORDER BY day",
    "SELECT kind, sum(price), sum(units) FROM sales GROUP BY kind HAVING count(*) > 3",
    "SELECT n, count(*) FROM (SELECT item, count(*) AS n FROM sales GROUP BY item) GROUP BY n",
    "SELECT count(*) FROM sales WHERE item IN (SELECT item FROM sales GROUP BY item HAVING sum(units) > 20)",
    "SELECT count(*) FROM sales WHERE item NOT IN (SELECT item FROM sales GROUP BY item HAVING count(*) > 6)",
    "SELECT id, t FROM items JOIN (SELECT item, sum(units) AS t FROM sales GROUP BY item) ON id = item",
    "SELECT id, t FROM items LEFT JOIN (SELECT item, count(*) AS t FROM sales GROUP BY item) ON id = item",
    "SELECT item, sum(amount), avg(units) FROM sales GROUP BY item",
    "SELECT maybe, count(*) FROM sales GROUP BY maybe HAVING count(*) > 5",
    "SELECT item, day, sum(units) FROM sales GROUP BY item, day HAVING sum(units) > 6",
    "SELECT item, sum(units) AS s FROM sales WHERE units > 100 GROUP BY item",
    "SELECT item, max(units) FROM sales GROUP BY item ORDER BY max(units) DESC, item LIMIT 5",
    "SELECT count(*) FROM items WHERE EXISTS (SELECT 1 FROM sales s JOIN items i ON s.item = i.id WHERE s.item = items.id "
    "AND i.name = 'item 3')",
    "SELECT count(*) FROM items WHERE id + 1 IN (SELECT item * 2 FROM sales JOIN items ON item = id WHERE units > 5)",
    "SELECT count(*) FROM sales WHERE NOT EXISTS (SELECT 1 FROM items JOIN sales b ON id = b.item WHERE b.day = sales.day "
    "AND b.units = 8)",
]


@pytest.fixture
def small_limits(tune: Tune) -> Iterator[None]:
    """Arrays of any size are read in place; plans that other tests made are not used again."""
    tune(tuning.group_layouts, sparse_slots=1, sparse_slots_a_group=10**6)
    harness._connections.clear()
    yield
    harness._connections.clear()


@pytest.mark.parametrize("sql", QUERIES)
def test_groups_in_place(small_limits: None, sql: str) -> None:
    harness.assert_same(sql, TABLES, ordered="ORDER BY" in sql)


@pytest.mark.parametrize("sql", QUERIES)
def test_groups_of_no_rows_in_place(small_limits: None, sql: str) -> None:
    harness.assert_same(sql, EMPTY, ordered="ORDER BY" in sql)


def _pipelines(sql: str) -> str:
    with gquery.connect(device="cpu") as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        return str(connection.explain(sql, "pipelines"))


def test_having_reads_the_arrays_of_its_groups(small_limits: None) -> None:
    text = _pipelines("SELECT item FROM sales GROUP BY item HAVING sum(units) > 20")
    assert "read stage 0 (item#2 by position" in text and "select there" in text


def test_small_and_sparse_groups_are_packed() -> None:
    assert "sparse" not in _pipelines("SELECT item FROM sales GROUP BY item HAVING sum(units) > 20")


def test_what_only_asks_for_a_match_is_not_collected() -> None:
    text = _pipelines("SELECT count(*) FROM sales WHERE item IN (SELECT id FROM items JOIN sales b ON id = b.units)")
    assert any("direct-address bitmap" in stage and "probe" in stage for stage in text.split("\nstage "))
