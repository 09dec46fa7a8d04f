"""Valid statements to mutate, with small tables that they run over: TPC-H, TPC-DS, ClickBench, the documentation's
functions, the differential tests, and one of each construct (``mutants/statements.sql``).

The tables are tiny: a mutant may be a cross join of six of them.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from gquery.functions import EXAMPLES
from tests.support.cases import read_cases
from tests.support.paths import ROOT, TESTS
from tests.support.tables import Tables
from tpch.generate import files, generate

FOLDER = TESTS / "mutants"


@dataclass(frozen=True)
class Pool:
    """Statements over the same tables."""

    name: str
    statements: tuple[str, ...]
    tables: Callable[[], Tables]


@cache
def pools() -> tuple[Pool, ...]:
    """All of them."""
    differential: dict[Any, list[str]] = {}
    for case in read_cases():
        differential.setdefault(case.tables, []).append(case.sql)
    few = [Pool(f"differential {m.__name__}", tuple(s), _few_rows(m)) for m, s in differential.items()]
    tpch = tuple(p.read_text() for p in sorted((ROOT / "tpch" / "queries").glob("*.sql")))
    functions = tuple(f"SELECT {sql}" for _, sql, _ in EXAMPLES) + _function_cases()
    made = [
        Pool("tpch", tpch, tpch_tables),
        Pool("tpcds", _split(FOLDER / "tpcds.sql"), tpcds_tables),
        Pool("clickbench", _split(FOLDER / "clickbench.sql"), hits),
        Pool("statements", _split(FOLDER / "statements.sql"), plain_tables),
        Pool("functions", functions, dict),
        *few,
    ]
    return tuple(made)


def _split(path: Path) -> tuple[str, ...]:
    return tuple(s.strip() for s in path.read_text().split(";\n") if s.strip())


def _function_cases() -> tuple[str, ...]:
    found: list[str] = []
    for path in sorted((TESTS / "functions").glob("*.case")):
        for line in path.read_text().splitlines():
            if line and not line.startswith("#") and " => " in line and path.stem != "types":
                found.append(f"SELECT {line.split(': ', 1)[1].rsplit(' => ', 1)[0]}")
    return tuple(found)


def _few_rows(make: Callable[[], Tables]) -> Callable[[], Tables]:
    """The tables of the differential tests, with 12 rows at most."""

    @cache
    def made() -> Tables:
        return {name: t.slice(0, 12) for name, t in make().items()}

    return made


@cache
def tpch_tables() -> Tables:
    """Rows of TPC-H that belong together: 8 orders with their lines, customers, parts and suppliers."""
    connection = duckdb.connect(config={"threads": 1})
    for name, path in files(generate(0.01, echo=False)).items():
        connection.execute(f"CREATE VIEW {name} AS FROM '{path}'")
    connection.execute("CREATE TABLE o AS FROM orders ORDER BY hash(o_orderkey) LIMIT 8")
    connection.execute("CREATE TABLE l AS FROM lineitem WHERE l_orderkey IN (SELECT o_orderkey FROM o) LIMIT 24")
    connection.execute("CREATE TABLE p AS FROM part WHERE p_partkey IN (SELECT l_partkey FROM l) LIMIT 12")
    wanted = {
        "orders": "FROM o",
        "lineitem": "FROM l",
        "part": "FROM p",
        "customer": "FROM customer WHERE c_custkey IN (SELECT o_custkey FROM o) OR c_custkey < 4",
        "partsupp": "FROM partsupp WHERE ps_partkey IN (SELECT p_partkey FROM p) LIMIT 24",
        "supplier": "FROM supplier LIMIT 8",
        "nation": "FROM nation",
        "region": "FROM region",
    }
    return {name: connection.execute(sql).to_arrow_table() for name, sql in wanted.items()}


def _column(rng: random.Random, rows: int, values: list[Any], nulls: float = 0.15) -> list[Any]:
    return [None if rng.random() < nulls else rng.choice(values) for _ in range(rows)]


@cache
def tpcds_tables() -> Tables:
    """A few columns of a few tables of TPC-DS."""
    rng = random.Random(1)
    days = [datetime.date(2000, 1, 1) + datetime.timedelta(30 * i) for i in range(12)]
    money = pa.decimal128(7, 2)

    def amounts(rows: int) -> pa.Array:
        return pa.array([v if v is None else v / 100 for v in _column(rng, rows, list(range(100, 9000, 37)))]).cast(
            money
        )

    def keys(rows: int, most: int) -> pa.Array:
        return pa.array(_column(rng, rows, list(range(1, most + 1))), pa.int32())

    def texts(rows: int, *values: str) -> pa.Array:
        return pa.array(_column(rng, rows, list(values)), pa.string())

    return {
        "date_dim": pa.table({
            "d_date_sk": pa.array(range(1, 13), pa.int32()), "d_date": pa.array(days, pa.date32()),
            "d_year": pa.array([d.year for d in days], pa.int32()), "d_moy": pa.array([d.month for d in days], pa.int32()),
            "d_dom": pa.array([d.day for d in days], pa.int32()), "d_day_name": [f"{d:%A}" for d in days],
        }),
        "item": pa.table({
            "i_item_sk": pa.array(range(1, 9), pa.int32()), "i_item_id": [f"AAAA{i}" for i in range(8)],
            "i_brand_id": keys(8, 3), "i_brand": texts(8, "amalg", "import", "exporti"),
            "i_manufact_id": pa.array(_column(rng, 8, [128, 129]), pa.int32()),
            "i_category": texts(8, "Books", "Music", "Sports"), "i_class": texts(8, "pop", "rock"),
            "i_current_price": amounts(8),
        }),
        "store": pa.table({
            "s_store_sk": pa.array(range(1, 5), pa.int32()), "s_store_id": [f"S{i}" for i in range(4)],
            "s_store_name": ["ought", "able", "ese", None], "s_state": ["TN", "TN", "GA", None],
            "s_market_id": keys(4, 6),
        }),
        "customer": pa.table({
            "c_customer_sk": pa.array(range(1, 9), pa.int32()), "c_customer_id": [f"C{i}" for i in range(8)],
            "c_current_cdemo_sk": keys(8, 4), "c_first_name": texts(8, "Ann", "Bob", "Eve"),
            "c_last_name": texts(8, "Lee", "Ray"),
        }),
        "customer_demographics": pa.table({
            "cd_demo_sk": pa.array(range(1, 5), pa.int32()), "cd_gender": ["M", "F", "M", None],
            "cd_marital_status": texts(4, "S", "M", "D"),
        }),
        "store_sales": pa.table({
            "ss_sold_date_sk": keys(20, 12), "ss_item_sk": keys(20, 8), "ss_customer_sk": keys(20, 8),
            "ss_store_sk": keys(20, 4), "ss_ticket_number": pa.array(range(20), pa.int64()), "ss_quantity": keys(20, 20),
            "ss_list_price": amounts(20), "ss_sales_price": amounts(20), "ss_ext_sales_price": amounts(20),
            "ss_coupon_amt": amounts(20), "ss_net_paid": amounts(20), "ss_net_profit": amounts(20),
        }),
        "store_returns": pa.table({
            "sr_returned_date_sk": keys(10, 12), "sr_customer_sk": keys(10, 8), "sr_store_sk": keys(10, 4),
            "sr_return_amt": amounts(10), "sr_net_loss": amounts(10),
        }),
    }  # fmt: skip


@cache
def hits() -> Tables:
    """The columns of ClickBench's table that its queries use."""
    rng = random.Random(2)
    rows = 24
    start = datetime.datetime(2013, 7, 14, 20)
    times = [start + datetime.timedelta(seconds=rng.randint(0, 90_000)) for _ in range(rows)]
    urls = ["http://google.com/a", "https://www.example.org/b/c", "http://maps.google.ru/", "", "http://x.y/z"]
    columns: dict[str, Any] = {
        "EventTime": pa.array(times, pa.timestamp("us")),
        "EventDate": pa.array([t.date() for t in times], pa.date32()),
        "UserID": pa.array(_column(rng, rows, [435090932899640449, 7, 8, 9], 0), pa.int64()),
        "URL": _column(rng, rows, urls, 0),
        "Referer": _column(rng, rows, urls, 0),
        "Title": _column(rng, rows, ["Google it", "Home", ""], 0),
        "SearchPhrase": _column(rng, rows, ["", "", "cats", "weather"], 0),
        "MobilePhoneModel": _column(rng, rows, ["", "iPad", "X1"], 0),
        "ClientIP": pa.array(_column(rng, rows, [1, -5, 1611957945], 0), pa.int32()),
        "CounterID": pa.array(_column(rng, rows, [62, 62, 34], 0), pa.int32()),
        "RegionID": pa.array(_column(rng, rows, [1, 229], 0), pa.int32()),
    }
    for name in (
        "AdvEngineID", "ResolutionWidth", "SearchEngineID", "MobilePhone", "IsRefresh", "IsLink", "TraficSourceID",
        "DontCountHits",
    ):  # fmt: skip
        columns[name] = pa.array(_column(rng, rows, [0, 0, 1, 2, 1920], 0), pa.int16())
    return {"hits": pa.table(columns)}


@cache
def plain_tables() -> Tables:
    """Two tables with names of one letter."""
    days = [datetime.date(2024, 1, 31), None, datetime.date(1999, 12, 31), datetime.date(2024, 2, 29)]
    return {
        "t": pa.table({
            "k": pa.array([1, 2, 2, None, 3, 1, 5, 2], pa.int32()), "a": pa.array([1, 2, None, 4, -5, 6, 2, 1], pa.int32()),
            "b": pa.array([3, 3, 1, None, 2, 5, 4, 0], pa.int64()),
            "s": ["abc", "a", "B", None, "", "it's", "12", "ab"], "d": pa.array(days * 2, pa.date32()),
            "f": [True, False, None, True, True, False, False, None],
        }),
        "u": pa.table({"k": pa.array([1, 2, 2, None, 4], pa.int32()), "v": pa.array([1, 2, 3, 4, None], pa.int32())}),
    }  # fmt: skip
