"""No run that is recorded copies between a GPU and its host, or waits for it: found out without a GPU (`tests.support.meta_gpu`).

On a GPU such a copy is an error, after which the query is never replayed. Tables have as many rows as those of SF100, as that is
where some copies were made.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest

import gquery
from benchmarks.rules import workloads
from tests.support import meta_arrays
from tests.support.cases import read_cases
from tests.support.meta_arrays import MetaArray, copies
from tests.support.meta_gpu import copies_of, enlarged, meta_gpu, template_copies_of
from tests.support.packages import needs_package
from tests.support.queries import Generator, random_tables
from tests.support.window_cases import arrow_of, random_case, random_rows

FACTORS = (1, 10_000)
QUERIES = [
    "SELECT id, sum(w) OVER (PARTITION BY p ORDER BY id), avg(w) OVER (ORDER BY id) FROM t",
    "SELECT id, sum(total) OVER (PARTITION BY p ORDER BY id) FROM (SELECT p, id // 2 AS id, sum(x) AS total FROM t GROUP BY ALL)",
    "SELECT id, ntile(n + 1) OVER (ORDER BY id) FROM t",
    "SELECT id, sum(x) OVER (ORDER BY id ROWS BETWEEN n PRECEDING AND CURRENT ROW) FROM t",
    "SELECT id, sum(x) OVER (ORDER BY o GROUPS BETWEEN n PRECEDING AND CURRENT ROW) FROM t",
    "SELECT id, sum(x) OVER (ORDER BY o RANGE BETWEEN n PRECEDING AND CURRENT ROW) FROM t",
    "SELECT id, count(*) OVER (ORDER BY day RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) FROM t",
    "SELECT p, bit_and(n), bit_or(n), bit_xor(n), product(f) FROM t GROUP BY p",
    "SELECT id % 100000 AS k, min(name || q), sum(f) FROM t GROUP BY k",
    "SELECT p, median(f), mode(n), quantile_disc(x, 0.9) FROM t GROUP BY p",
    "SELECT p, mode(q), string_agg(name, ',' ORDER BY id), median(n), product(f) FROM t GROUP BY p",
    "SELECT median(n), mode(name), string_agg(q, '-') FROM t",
    "SELECT x, p, count(*), count(DISTINCT n) FROM t GROUP BY x, p",
    "SELECT id FROM t AS a WHERE NOT EXISTS (SELECT * FROM t AS b WHERE b.x = a.x OR b.o < a.o)",
    "SELECT count(*) FROM t AS a JOIN t AS b ON a.x = b.x OR a.o > 3",
    "SELECT id, q, w FROM t ORDER BY q, w DESC, f LIMIT 100",
    "SELECT DISTINCT q, x, f FROM t ORDER BY ALL",
]
COMMON = [
    "SELECT id, q, w FROM t ORDER BY q, w DESC, f LIMIT 100",
    "SELECT id, q, w, name FROM t ORDER BY w DESC, name, f",
    "SELECT DISTINCT q, x, f FROM t ORDER BY ALL",
    "SELECT id % 100000 AS k, sum(f), avg(w), sum(w) FROM t GROUP BY k ORDER BY sum(w), k LIMIT 10",
    "SELECT name, q FROM t UNION ALL SELECT q, name FROM t",
    "SELECT a.id, b.f FROM t AS a FULL JOIN t AS b ON a.x = b.n",
    "SELECT count(*) FROM t AS a JOIN t AS b ON a.x = b.x",
    "SELECT id, sum(x) OVER (PARTITION BY p ORDER BY id), rank() OVER (ORDER BY x) FROM t",
    "SELECT id, max(q) OVER (PARTITION BY p ORDER BY id) FROM t",
    "SELECT 'n' || q || name FROM t",
    "SELECT id FROM t AS a WHERE NOT EXISTS (SELECT * FROM t AS b WHERE b.x = a.x OR b.o < a.o)",
    "SELECT a.id FROM t AS a WHERE EXISTS (SELECT * FROM t AS b WHERE b.f < a.f AND b.w > a.w)",
    "SELECT a.id, b.id FROM t AS a ASOF JOIN t AS b ON a.x = b.x AND a.day >= b.day",
    "SELECT x, q, f, name, day FROM t WHERE n < 5 ORDER BY x DESC, q LIMIT 7 OFFSET 2",
]


@pytest.fixture(autouse=True)
def _gpu() -> Iterator[None]:
    with meta_gpu():
        yield


def _connection() -> gquery.Connection:
    table = arrow_of(random_rows(random.Random(2), 200))
    days = pa.array([datetime.date(2020, 1, 1) + datetime.timedelta(n % 90) for n in range(200)])
    names = pa.array([f"name {n}" if n % 7 else None for n in range(200)])
    made = gquery.connect(device="cpu")
    return made.register("t", table.append_column("day", days).append_column("name", names))


@pytest.mark.parametrize(
    "read",
    [
        lambda a: int(a[:1].sum()),
        lambda a: bool((a < 0).any()),
        lambda a: a[-1:].item(),
        lambda a: a[a > 0],
        lambda a: a.get(),
        lambda a: meta_arrays.asnumpy(a),
        lambda a: meta_arrays.asarray(np.zeros(3)),
    ],
)
def test_a_copy_is_noted(read: Callable[[MetaArray], object]) -> None:
    array = meta_arrays.empty(1000, np.int64)
    copies.noted.clear()
    read(array)
    assert not copies.noted, "nothing is recorded"
    with copies.recording():
        read(array)
    assert len(copies.noted) == 1


@pytest.mark.parametrize("sql", QUERIES)
def test_a_recorded_run_copies_nothing(sql: str) -> None:
    base = _connection()
    for factor in FACTORS:
        assert copies_of(enlarged(base, factor), sql) == []
        assert copies.compiled == []


def test_what_queries_often_do_has_cupy_compile_nothing() -> None:
    """Each function that it meets costs a tenth of a second in the first process of an installation. Left to it are sorts, and
    the least and the greatest of all values, which it brings as machine code."""
    connection = enlarged(_connection(), FACTORS[-1])
    for sql in COMMON:
        assert copies_of(connection, sql) == [], sql
        assert copies.compiled == [], sql
        template_copies_of(connection, sql)
        assert copies.compiled == [], sql


@pytest.mark.parametrize("most", [0, 1000])
def test_no_kernel_is_loaded_while_a_template_is_recorded(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """``most``: what kernels have counted, so that arrays have room for few more."""
    monkeypatch.setattr(meta_arrays, "SOME", most)
    connection, recorded = enlarged(_connection(), FACTORS[-1]), 0
    for sql in (*COMMON, "SELECT id, x FROM t WHERE n < 5", "SELECT id FROM t WHERE x > 3 ORDER BY f, q LIMIT 5"):
        found = template_copies_of(connection, sql)
        assert isinstance(found, str) or found == [], sql
        recorded += found == []
    assert recorded > len(COMMON) / 2


def test_windows_are_recorded_without_a_copy() -> None:
    _check_windows(range(60))


@pytest.mark.slow
def test_more_windows_are_recorded_without_a_copy() -> None:
    _check_windows(range(60, 600))


def _check_windows(seeds: range) -> None:
    connection = enlarged(_connection(), FACTORS[-1])
    for seed in seeds:
        sql = f"SELECT id, {random_case(random.Random(seed)).sql} FROM t"
        assert copies_of(connection, sql) == [], sql
        assert copies.compiled == [], sql


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, meta_arrays.SOME])
@pytest.mark.parametrize("name", ["tpch", "tpcds", "clickbench", "job"])
def test_workloads_are_recorded_without_a_copy(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """``most``: what kernels have counted, at most."""
    needs_package(name)
    monkeypatch.setattr(meta_arrays, "SOME", most)
    made = {
        "tpch": lambda: workloads.tpch(0.01),
        "tpcds": lambda: workloads.tpcds(0.01),
        "clickbench": lambda: workloads.clickbench(20_000),
        "job": workloads.job,
    }[name]()
    refused = {("clickbench", "Q29"): "the host has a part in it"}
    base = made.connect("cpu")
    for factor in (1, 10_000 if name != "job" else 1000):
        connection = enlarged(base, factor)
        for number, text in made.texts.items():
            sql = text.split(";")[0]
            assert copies_of(connection, sql) == refused.get((name, number), []), number
            assert copies.compiled == [], number
            assert template_copies_of(connection, sql) == ([] if (name, number) not in refused else "no template"), (
                number
            )


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1, 3000])
def test_other_queries_are_recorded_without_a_copy(factor: int) -> None:
    cases = [(c.sql, c.tables()) for c in read_cases() if "pivot" not in c.sql.lower()]  # which asks its tables first
    cases += [(Generator(seed).query(), random_tables(seed)) for seed in range(300)]
    made: dict[int, gquery.Connection] = {}
    recorded = 0
    for sql, tables in cases:
        if id(tables) not in made:
            base = gquery.connect(device="cpu")
            for name, table in tables.items():
                base.register(name, table)
            made[id(tables)] = enlarged(base, factor)
        found = copies_of(made[id(tables)], sql)
        recorded += found == []
        assert not isinstance(found, list) or found == [], sql
        assert isinstance(template_copies_of(made[id(tables)], sql), str) or copies.noted == [], sql
    assert recorded > len(cases) / 2
