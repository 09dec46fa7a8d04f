"""WITH RECURSIVE: graphs, many rounds, limits, interrupts, plans."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.errors import BindError, InterruptError, NotSupportedError, OutOfMemoryError, OutOfRangeError, ParseError
from gquery.operators.base import JoinIndex
from gquery.operators.join_table import BuildRun
from tests.support.harness import Tables, assert_error, assert_same, compare, expect
from tests.support.tuned import Tune

REACHED = "WITH RECURSIVE t(n) AS (SELECT 0 UNION SELECT b FROM t JOIN g ON t.n = g.a) SELECT n FROM t"
COUNT = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 300) SELECT sum(n), count(*) FROM t"


def _graph(seed: int, nodes: int, edges: int) -> Tables:
    r = np.random.default_rng(seed)
    ends = r.integers(0, nodes, (2, edges))
    missing = r.random(edges) < 0.02
    return {"g": pa.table({"a": pa.array(ends[0], mask=missing), "b": pa.array(ends[1].astype(np.int32))})}


def _connection(tables: Tables, **settings: Any) -> gquery.Connection:
    connection = gquery.connect(**{"device": "python", **settings})
    for name, table in tables.items():
        connection.register(name, table)
    return connection


@pytest.mark.parametrize("seed", range(4))
def test_what_is_reached_in_a_random_graph(seed: int) -> None:
    assert_same(REACHED, _graph(seed, 300, 250 * (seed + 1)), targets=("python", "cpu"))


def _edges(*pairs: tuple[int | None, int | None]) -> Tables:
    return {
        "g": pa.table(
            {"a": pa.array([a for a, _ in pairs], pa.int64()), "b": pa.array([b for _, b in pairs], pa.int32())}
        )
    }


GRAPHS = {
    "a chain": _edges(*[(n, n + 1) for n in range(200)]),
    "a cycle": _edges(*[(n, (n + 1) % 97) for n in range(97)]),
    "a star": _edges(*[(0, n) for n in range(1, 300)], *[(n, 0) for n in range(1, 300)]),
    "many edges alike": _edges(*[(n // 30, n // 30 + 1) for n in range(3_000)]),
    "nulls": _edges((0, None), (None, 5), (0, 1), (1, None), (1, 2)),
    "none": _edges(),
    "out of reach": _edges((5, 6), (6, 5)),
}


@pytest.mark.parametrize("ratio", [1, 16])
@pytest.mark.parametrize("graph", GRAPHS)
def test_graphs(graph: str, ratio: int, tune: Tune) -> None:
    """Whatever the levels of rows seen are like: with a ratio of 1 most are in use."""
    tune(tuning.recursion, ratio=ratio)
    assert_same(REACHED, GRAPHS[graph], targets=("python",), ranks=(1, 3) if ratio == 1 else (1,))


@pytest.mark.parametrize("width", [1, 7])
def test_a_round_takes_what_is_new(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables over what no round changes are made once, and a row comes into few tables of rows seen, however many rounds there
    are; looking new rows up in a table of all rows, made anew in each round, would be 150 times as many."""
    built: Counter[str] = Counter()
    make = BuildRun.finalize

    def counted(self: BuildRun) -> JoinIndex:
        built["edges" if self.launch.rows == rounds * width else "seen"] += self.launch.rows
        return make(self)

    monkeypatch.setattr(BuildRun, "finalize", counted)
    rounds = 300
    starts = np.arange(rounds * width)
    connection = _connection({"g": pa.table({"a": starts, "b": starts + width})})
    first = f"SELECT a FROM g WHERE a < {width}"
    sql = f"WITH RECURSIVE t(n) AS ({first} UNION SELECT b FROM t JOIN g ON t.n = g.a) SELECT count(*) FROM t"
    assert connection.sql(sql).fetchall() == [((rounds + 1) * width,)]
    assert built["edges"] == rounds * width
    assert built["seen"] < 25 * rounds * width


def test_all_pairs_that_are_reached() -> None:
    sql = "WITH RECURSIVE t(a, b) AS (SELECT a, b FROM g UNION SELECT t.a, g.b FROM t JOIN g ON t.b = g.a) SELECT a, b FROM t"
    assert_same(sql, _graph(9, 40, 60), targets=("python",))


@pytest.mark.parametrize("target", ["python", "cpu"])
def test_many_rounds_again_and_with_other_constants(target: str) -> None:
    connection = _connection({}, device=target)
    for last in (300, 300, 20, 1):
        sql = COUNT.replace("300", str(last))
        types, want = expect(sql, {})
        assert compare(connection.sql(sql).fetchall(), want, False, types) is None


def test_the_limit_above_ends_it() -> None:
    connection = _connection({})
    sql = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n * 2 FROM t LIMIT 4 OFFSET 2"
    assert connection.sql(sql).fetchall() == [(6,), (8,), (10,), (12,)]


def test_it_can_be_interrupted() -> None:
    connection = _connection({})
    threading.Timer(0.3, connection.interrupt).start()
    start = time.monotonic()
    with pytest.raises(InterruptError):
        connection.sql(
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT 1 - n FROM t) SELECT count(*) FROM t"
        ).fetchall()
    assert time.monotonic() - start < 10
    assert connection.sql("SELECT 1").fetchall() == [(1,)]


def test_a_value_that_does_not_fit() -> None:
    sql = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n * 10 FROM t) SELECT count(*) FROM t"
    assert_error(sql, {}, OutOfRangeError, "integer", targets=("python", "cpu"), ranks=(1, 3))


def test_a_limit_of_memory_is_an_error() -> None:
    connection = _connection({}, device="cpu", memory_limit="2MB")
    sql = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT a.n FROM t a, range(3)) SELECT count(*) FROM t"
    with pytest.raises(OutOfMemoryError):
        connection.sql(sql).fetchall()
    assert connection.sql("SELECT 1").fetchall() == [(1,)]


def test_errors() -> None:
    expected: list[tuple[str, type[Exception], str]] = [
        ("SELECT n FROM t UNION ALL SELECT 1", BindError, "right side of one union"),
        ("SELECT n FROM t", BindError, "right side of one union"),
        ("SELECT 1 EXCEPT SELECT n FROM t", BindError, "right side of one union"),
        ("SELECT 1 UNION ALL SELECT n, n FROM t", BindError, "1 and 2 columns"),
        ("SELECT 1 UNION ALL SELECT n + 1 FROM t ORDER BY 1", ParseError, "order by"),
        ("SELECT 1 UNION ALL SELECT n + 1 FROM t LIMIT 3", ParseError, "limit"),
    ]
    for body, error, match in expected:
        assert_error(
            f"WITH RECURSIVE t(n) AS ({body}) SELECT * FROM t", {}, error, match, targets=("python",), ranks=(1,)
        )
    around = "SELECT (WITH RECURSIVE t(n) AS (SELECT a UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT max(n) FROM t) FROM g"
    assert_error(around, _graph(1, 5, 5), NotSupportedError, "around it", targets=("python",), ranks=(1,))


def test_every_level_of_explain() -> None:
    connection = _connection(_graph(1, 9, 9))
    assert "Fixpoint n" in connection.explain(REACHED, "bound")
    assert "Working rows" in connection.explain(REACHED, "optimized")
    assert "recursion from stage" in connection.explain(REACHED, "pipelines")
    for level in ("tree", "physical", "code", "analyze"):
        assert "recursion" in connection.explain(REACHED, level) or level == "code"


@pytest.mark.slow
def test_a_large_graph() -> None:
    assert_same(REACHED, _graph(5, 100_000, 200_000), targets=("cpu",), ranks=(1,))


@pytest.mark.cuda
def test_on_a_gpu() -> None:
    for seed in range(3):
        assert_same(REACHED, _graph(seed, 300, 600), targets=("cuda",), ranks=(1,))
    assert_same(COUNT, {}, targets=("cuda",), ranks=(1,))
