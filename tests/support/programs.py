"""Programs to look at: some of the TPC-H queries over SF0.01, and small queries that show one operator each.

All are planned by one connection on the CPU; the programs for a GPU are made without one.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from functools import cache
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

import gquery
from gquery import tuning
from gquery.device.device import cpu_device
from gquery.execution import ExecutionContext
from gquery.planner.physical import Program
from gquery.profile.explain_program import explain_program
from tpch import queries
from tpch.generate import files, generate

Target = Literal["python", "cpu", "cuda"]
TPCH = (1, 3, 5, 6, 9)
SMALL = {
    "filter_nulls": "SELECT id, x + y FROM t WHERE x < y AND s <> 'b'",
    "project_only": "SELECT id * 2 AS twice, d FROM t",
    "left_join_residual": "SELECT t.id, u.w FROM t LEFT JOIN u ON t.k = u.k AND t.x < u.w",
    "inner_join_duplicates": "SELECT t.id, v.z FROM t JOIN v ON t.k = v.k",
    "semi_join_bitmap": "SELECT count(*) FROM t WHERE k IN (SELECT k FROM v WHERE z > 3)",
    "anti_join": "SELECT count(*) FROM t WHERE NOT EXISTS (SELECT 1 FROM v WHERE v.k = t.k)",
    "mark_join_nulls": "SELECT id, x IN (SELECT z FROM v) FROM t",
    "full_join": "SELECT t.id, u.w FROM t FULL JOIN u ON t.x = u.k",
    "range_join": "SELECT t.id, u.w FROM t LEFT JOIN u ON t.x BETWEEN u.k AND u.w AND t.y <> u.w",
    "band_join": "SELECT count(*) FROM t JOIN v ON v.z BETWEEN t.x AND t.x + 3",
    "asof_join": "SELECT t.id, v.z FROM t ASOF LEFT JOIN v ON t.k = v.k AND t.y >= v.z",
    "key_filter": "SELECT sum(m) FROM t JOIN wide ON t.far = wide.far WHERE k IN (SELECT k FROM v WHERE z < 2)",
    "hash_join": "SELECT count(*) FROM t JOIN wide ON t.far = wide.far",
    "group_direct": "SELECT s, count(*), sum(x), avg(f), min(d) FROM t GROUP BY s",
    "group_hash": "SELECT far, sum(x) FROM t GROUP BY far",
    "group_rows": "SELECT f, g, count(*) FROM t GROUP BY f, g",
    "reduce_batched": "SELECT sum(a * b), min(a), count(n) FROM big WHERE b > 5",
    "like_by_dictionary": "SELECT count(*) FROM t WHERE s LIKE '%a%' OR s LIKE 'b_'",
    "like_by_row": "SELECT count(*) FROM t WHERE note LIKE '%special%requests%'",
    "case_branches": "SELECT sum(CASE WHEN s = 'a' THEN x // y WHEN x IS NULL THEN 7 ELSE 0 END) FROM t",
    "checked_arithmetic": "SELECT sum(CASE WHEN x < 2 THEN far * x END), max(CAST(f AS BIGINT)) FROM t",
    "wide_decimals": "SELECT sum(m * 3), max(m) FROM wide",
    "sort_top": "SELECT id, note FROM t ORDER BY note DESC, id LIMIT 3",
    "scalar_subquery": "SELECT id FROM t WHERE x > (SELECT avg(z) FROM v)",
    "union_all": "SELECT k, x FROM t UNION ALL SELECT k, z FROM v",
    "common_subplan": "WITH c AS (SELECT k, sum(z) AS z FROM v GROUP BY k) SELECT * FROM c WHERE z = (SELECT max(z) FROM c)",
}
TUNED = {"key_filter": replace(tuning.key_filters, least_slots=1, least_probes=1, least_probes_gpu=1)}
"""Records that a query is shown with: its tables are small."""


@cache
def tables() -> dict[str, pa.Table]:
    """Small tables of fixed content: keys with and without duplicates, NULLs, and values too far apart for arrays."""
    rows = range(2_000)
    day = datetime.date(2020, 1, 1)
    some = [r * 7919 % 1009 for r in rows]
    t = pa.table(
        {
            "id": pa.array(rows, pa.int32()),
            "k": pa.array([n % 97 for n in some], pa.int32()),
            "x": pa.array([None if n % 10 == 0 else n for n in some], pa.int32()),
            "y": pa.array([n % 50 for n in some], pa.int32()),
            "s": pa.array([("a", "b", "ba", "c", None)[n % 5] for n in some]),
            "d": pa.array([day + datetime.timedelta(days=n) for n in some]),
            "f": pa.array([n / 8 for n in some]),
            "g": pa.array([n % 3 for n in some], pa.int64()),
            "far": pa.array([n * 2**52 for n in some], pa.int64()),
            "note": pa.array(
                [f"{r}: {'special requests' if n % 7 else 'nothing'}" for r, n in zip(rows, some, strict=True)]
            ),
        }
    )
    u = pa.table({"k": pa.array(range(97), pa.int32()), "w": pa.array([n * 11 % 500 for n in range(97)], pa.int32())})
    v = pa.table(
        {
            "k": pa.array([n % 60 for n in range(300)], pa.int32()),
            "z": pa.array([None if n % 30 == 0 else n for n in range(300)], pa.int32()),
        }
    )
    wide = pa.table(
        {
            "far": pa.array([n * 2**52 for n in range(300)], pa.int64()),
            "m": pa.array([n * 10**19 for n in range(300)], pa.decimal128(25, 2)),
        }
    )
    big = pa.table(
        {
            "a": pa.array([n % 251 for n in range(5_000)], pa.int32()),
            "b": pa.array([n % 101 for n in range(5_000)], pa.int32()),
            "n": pa.array([None if n % 13 == 0 else n % 5 for n in range(5_000)], pa.int32()),
        }
    )
    return {"t": t, "u": u, "v": v, "wide": wide, "big": big}


@cache
def small() -> gquery.Connection:
    """A connection with the small tables."""
    return _connection(tables())


@cache
def own(name: str) -> gquery.Connection:
    """The same for one query alone, which has been planned: what others have loaded is not known there."""
    connection = _connection(tables())
    connection.program(text(name), "cpu")
    return connection


@cache
def tpch() -> gquery.Connection:
    """A connection with TPC-H at SF0.01, in memory."""
    return _connection({name: pq.read_table(path) for name, path in files(generate(0.01)).items()})


def _connection(registered: dict[str, pa.Table]) -> gquery.Connection:
    connection = gquery.connect(device="cpu")
    connection.sql("SET interpret_limit = 0")
    for name, table in registered.items():
        connection.register(name, table)
    return connection


def names() -> list[str]:
    """The names of all queries of this module."""
    return [f"q{n:02d}" for n in TPCH] + list(SMALL)


def text(name: str) -> str:
    """The SQL of a query."""
    return SMALL[name] if name in SMALL else queries.sql(int(name[1:]))


def program(name: str, target: Target) -> Program:
    """The program of a query for a target."""
    return (own(name) if name in TUNED else small() if name in SMALL else tpch()).program(text(name), target)


def shown(name: str, target: Target, level: str) -> str:
    """A program as EXPLAIN shows it, without estimates of the work, which are pinned elsewhere."""
    settings = replace(small().settings, interpret_limit=0, threads=1)
    with tuning.using(*[TUNED[name]] if name in TUNED else []):
        made = explain_program(program(name, target), ExecutionContext(target, cpu_device(), settings), level)
    return re.sub(r": about [\d,]+ row-steps", "", made)
