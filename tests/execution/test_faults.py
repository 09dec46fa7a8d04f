"""Failed allocations and interrupts at every turn: the answer is right or one clear error, and the next answer is right.

``GQUERY_FAULTS=500 make faults`` injects more of each.
"""

from __future__ import annotations

import ast
import os
import random
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from tests.support.faults import failing_allocations, interrupted
from tests.support.harness import Row

COUNT = int(os.environ.get("GQUERY_FAULTS", "30"))
ROWS = 400
QUERIES = (
    "SELECT * FROM t ORDER BY id",
    "SELECT k, sum(d), count(DISTINCT s), min(s) FROM t GROUP BY k ORDER BY k",
    "SELECT s, count(*), avg(f) FROM t WHERE k IN (1, 2, 3) OR s LIKE '%b%' GROUP BY s ORDER BY s",
    "SELECT a.id, b.s FROM t a JOIN u b ON a.k = b.k AND a.id > b.id ORDER BY 1, 2",
    "SELECT a.s, b.id FROM t a FULL JOIN u b ON a.s = b.s ORDER BY 1, 2",
    "SELECT DISTINCT upper(s) || k::VARCHAR FROM t ORDER BY 1",
    "SELECT id FROM t WHERE d > (SELECT avg(d) FROM u WHERE u.k = t.k) ORDER BY id",
    "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id) ORDER BY s DESC, id LIMIT 7",
    "WITH c AS (SELECT k, sum(id) AS n FROM t GROUP BY k) SELECT x.k, y.n FROM c x, c y WHERE x.n < y.n ORDER BY 1, 2",
    "SELECT k, n FROM 'p.parquet' WHERE s <> 'b' ORDER BY n, k",
    "SELECT id FROM t UNION ALL SELECT id FROM u ORDER BY 1",
    "CREATE OR REPLACE TABLE made AS SELECT k, s, id FROM t WHERE id % 3 = 0; SELECT * FROM made ORDER BY id",
)


@cache
def tables() -> dict[str, pa.Table]:
    rng = random.Random(3)

    def table(rows: int) -> pa.Table:
        return pa.table(
            {
                "id": pa.array(range(rows), pa.int64()),
                "k": pa.array([rng.choice((None, *range(9))) for _ in range(rows)], pa.int32()),
                "d": pa.array([Decimal(rng.randint(-999, 999)).scaleb(-2) for _ in range(rows)], pa.decimal128(9, 2)),
                "f": pa.array([rng.randint(-20, 20) / 4 for _ in range(rows)]),
                "s": pa.array(
                    [rng.choice((None, "a", "ab", "b", "grün", "x" * rng.randint(0, 30))) for _ in range(rows)]
                ),
            }
        )

    return {"t": table(ROWS), "u": table(50)}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = tables()["t"]
    pq.write_table(table.append_column("n", table.column("id")), "p.parquet", row_group_size=100)


def connect(target: str) -> gquery.Connection:
    db = gquery.connect(device=target)
    if target != "python":
        db.set("interpret_limit", 0)
    for name, table in tables().items():
        db.register(name, table)
    return db


def answer(db: gquery.Connection, sql: str) -> list[Row]:
    return db.sql(sql).fetchall()


def turns(total: int, most: int, rng: random.Random) -> list[int]:
    """Turns to fail at: all of them, or as many as there may be, the first and the last among them."""
    if total <= most:
        return list(range(1, total + 1))
    return sorted({1, total, *rng.sample(range(1, total + 1), max(most - 2, 0))})


def survives(fault: Callable[[int], Any], target: str, sql: str, error: type[Exception], most: int) -> tuple[int, int]:
    """Run a query under a fault at so many turns, on a new connection each; how many failed, and how many were tried that the
    run came to: one that finds its kernels at hand has fewer."""
    want = answer(connect(target), sql)
    with fault(0) as count:
        assert answer(connect(target), sql) == want
    failed, tried, reached = 0, turns(count.seen, most, random.Random(sql)), 0
    for at in tried:
        with fault(at) as count:
            try:
                db = connect(target)
            except error:
                failed, reached = failed + 1, reached + 1
                continue
            try:
                assert answer(db, sql) == want, f"turn {at} of {count.seen}: a wrong answer"
            except error:
                failed += 1
            reached += count.seen >= at
        assert answer(db, sql) == want, f"behind turn {at} of {count.seen}"
    return failed, reached


@pytest.mark.parametrize("target", ["python", "cpu"])
@pytest.mark.parametrize("sql", QUERIES, ids=range(len(QUERIES)))
def test_failed_allocations(sql: str, target: str) -> None:
    failed, tried = survives(failing_allocations, target, sql, gquery.OutOfMemoryError, COUNT // 10)
    assert failed or tried < 3, "faults were met"


@pytest.mark.parametrize("target", ["python", "cpu"])
@pytest.mark.parametrize("sql", QUERIES, ids=range(len(QUERIES)))
def test_interrupts(sql: str, target: str) -> None:
    failed, tried = survives(interrupted, target, sql, gquery.InterruptError, COUNT // 10)
    assert failed == tried > 0, "nobody looks without minding"


SHAPES = ("sum({})", "min({})", "count({})", "avg({})", "max({} + 1)", "sum({} % 7)", "count(DISTINCT {})")


def fresh(rng: random.Random) -> str:
    """A query whose kernels were most likely never compiled."""
    items = ", ".join(
        rng.choice(SHAPES).format(rng.choice(("id", "k", "t.id - k", "abs(k)", "id * k"))) for _ in range(3)
    )
    keys = rng.choice(("k", "s", "k, s", "id % 5"))
    return f"SELECT {keys}, {items} FROM t WHERE {rng.choice(('k', 'id', 'd', 'f'))} < {rng.randint(1, 300)} GROUP BY {keys}"


def test_interrupts_at_any_time() -> None:
    """From another thread, while planning, compiling, reading and running."""
    rng = random.Random(11)
    ended = told = 0
    for _ in range(max(COUNT // 6, 4)):
        db, sql, delay = connect("cpu"), fresh(rng), rng.choice((0, 0.002, 0.01, 0.05, 0.2)) * rng.random()
        timer = threading.Timer(delay, db.interrupt)
        start = time.perf_counter()
        timer.start()
        try:
            answer(db, sql)
            ended += 1
        except gquery.InterruptError:
            told += 1
        finally:
            timer.join()
        assert time.perf_counter() - start < 30
        assert sorted(answer(db, sql), key=repr) == sorted(answer(connect("python"), sql), key=repr)
    assert told, "some come in time"


def test_no_handler_takes_a_lack_of_memory_for_damaged_data() -> None:
    """Arrow's MemoryError is an ArrowException too: whoever handles those has a handler of the other before."""
    for file in sorted(Path(gquery.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Try):
                caught = [ast.unparse(h.type) if h.type else "" for h in node.handlers]
                wide = [n for n, name in enumerate(caught) if "ArrowException" in name]
                assert not wide or "MemoryError" in caught[: wide[0]], f"{file.name}, line {node.lineno}"
