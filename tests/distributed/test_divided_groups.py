"""Rows that go to ranks by the hash of their keys and are grouped once: DuckDB's answers, and when that is done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.execution import run_with_report
from gquery.planner.physical import Group, Pipeline, ReadStage
from tests.support.harness import assert_same, connect
from tests.support.tuned import Tune

RNG = np.random.default_rng(31)
ROWS = 900
VALUES = RNG.integers(0, 10**12, 800)[RNG.integers(0, 800, ROWS)]


def some_null(values: Any, every: int, kind: pa.DataType) -> pa.Array:
    return pa.array([None if n % every == 3 else int(v) for n, v in enumerate(values)], kind)


TABLES = {
    "t": pa.table(
        {
            "n": np.arange(ROWS),
            "k": VALUES,
            "j": some_null(VALUES, 11, pa.int64()),
            "a": some_null(RNG.integers(0, 40, ROWS), 13, pa.int8()),
            "b": RNG.integers(-5, 30, ROWS),
            "word": [f"word {v % 29}" for v in VALUES],  # a dictionary
            "money": some_null(VALUES % 10**6, 17, pa.decimal128(12, 2)),
            "d": VALUES % 50 / 4,
        }
    ),
    "none": pa.table({"k": pa.array([], pa.int64()), "b": pa.array([], pa.int64())}),
}
DIVIDED = (
    "SELECT k, count(*), sum(n), min(d), max(b) FROM t GROUP BY k",
    "SELECT j, count(*), avg(n) FROM t GROUP BY j",
    "SELECT word, a, b, k, count(*) FROM t GROUP BY word, a, b, k",
    "SELECT k + 1 AS x, sum(n) FROM t WHERE b > 3 GROUP BY k + 1",
    "SELECT a, b, count(DISTINCT k) FROM t GROUP BY a, b",
    "SELECT word, count(DISTINCT k), count(*) FROM t GROUP BY word",
    "SELECT a, count(*), sum(c) FROM (SELECT a, word, k, count(*) AS c FROM t GROUP BY a, word, k) GROUP BY a",
    "SELECT count(*), sum(s) FROM (SELECT b, k, sum(money) AS s FROM t GROUP BY b, k HAVING count(*) = 1)",
    "SELECT t.n, s.c FROM t JOIN (SELECT k, b, count(*) AS c FROM t GROUP BY k, b) s ON s.k = t.k AND s.b = t.b",
    "SELECT DISTINCT k, a FROM t",
    "SELECT k, min(word || d) FROM t GROUP BY k",
)


def divided(sql: str, db: gquery.Connection) -> list[int]:
    """The stages that group rows which ranks exchange by their hash."""
    prepared = db.sql(sql).prepared
    assert prepared is not None
    works = [s.work for s in db._program(prepared).stages]
    found = [(n, w.source) for n, w in enumerate(works) if isinstance(w, Pipeline) and isinstance(w.sink, Group)]
    return [n for n, source in found if isinstance(source, ReadStage) and source.by_hash is not None]


@pytest.mark.parametrize("ranks", [3, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sql", DIVIDED)
def test_answers(sql: str, ranks: int) -> None:
    assert_same(sql, TABLES, targets=("python",), ranks=(ranks,))
    assert divided(sql, connect("python", ranks, TABLES)), "rows are grouped, and groups merged"


@pytest.mark.parametrize("sql", DIVIDED[:3])
def test_compiled(sql: str) -> None:
    assert_same(sql, TABLES, targets=("cpu",), ranks=(3,))


@pytest.mark.cuda
@pytest.mark.parametrize("sql", DIVIDED)
def test_on_gpus(sql: str) -> None:
    assert_same(sql, TABLES, targets=("cuda",), ranks=(2,))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, b, count(*) FROM t GROUP BY a, b",  # few groups
        "SELECT k, b, count(*) FROM none GROUP BY k, b",
        "SELECT word || d, count(*) FROM t GROUP BY 1",  # text
    ],
)
def test_answers_of_other_groups(sql: str) -> None:
    assert_same(sql, TABLES, targets=("python",), ranks=(3,))
    assert not divided(sql, connect("python", 3, TABLES))


def test_what_groups_them_again_exchanges_nothing(tune: Tune) -> None:
    """Rows lie by the keys of the second grouping, where it has groups enough to spread them."""
    sql = "SELECT word, a, count(*) FROM (SELECT word, a, k FROM t GROUP BY word, a, k) GROUP BY word, a"
    for most, lie_together in ((1, True), (10**6, False)):
        tune(tuning.distribution, spread_groups=most)
        with gquery.connect(device="python", devices=3) as db:
            db.register("t", TABLES["t"])
            (grouped,) = divided(sql, db)
            prepared = db.sql(sql).prepared
            assert prepared is not None
            reports = run_with_report(db._program(prepared), db._context(), prepared.feedback)[1]
            received = [sum(r.received_bytes for r in s.of_ranks) for s in reports]
            assert received[grouped] > 0 and (received[grouped + 1] == 0) == lie_together, received


def test_the_cheaper_one_is_taken(tune: Tune) -> None:
    tune(tuning.distribution, hashed_most=1.0, hashed_us=0.0)
    with gquery.connect(device="python", devices=3) as db:
        db.register("t", TABLES["t"])
        assert divided(DIVIDED[0], db)
        tune(tuning.distribution, hashed_most=1.0, hashed_us=50.0)
        assert not divided(f"{DIVIDED[0]} HAVING count(*) > 0", db)
