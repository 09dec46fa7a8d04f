"""Speculation: later runs of a query give the right answer also where they misspeculate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gquery
from gquery.device.device import cpu_device
from gquery.errors import ConversionError, OutOfRangeError
from gquery.execution.feedback import RunFeedback
from gquery.execution.speculation import Speculation, raised
from gquery.execution.stage_feedback import ScalarSite
from gquery.kernels.bindings import ErrorSite

SITES = tuple(ErrorSite(OutOfRangeError, f"error {n}") for n in range(40))


def test_on_the_cpu_nothing_is_speculated() -> None:
    feedback = RunFeedback()
    feedback.scalars = {ScalarSite(0, 0): 5}
    speculation = Speculation(feedback, cpu_device(), waits=False)
    assert not speculation.speculates and speculation.abort_flag is None and speculation.status(SITES) is None
    assert speculation.read_scalar(np.array([7])) == 7
    speculation.validate()
    speculation.validate_all()


@pytest.mark.parametrize("bits", [(), (0,), (31,), (32,), (3, 39)])
def test_errors_of_status_words(bits: tuple[int, ...]) -> None:
    words = np.zeros(2, np.uint32)
    for bit in bits:
        words[bit >> 5] |= np.uint32(1 << (bit & 31))
    assert [site.message for site in raised(words, SITES)] == [f"error {bit}" for bit in bits]


QUERIES = [
    "SELECT v FROM t WHERE k < 300000",
    "SELECT a.v, b.v FROM t AS a JOIN t AS b ON a.k = b.k + 1 WHERE b.v < 1000",
    "SELECT k % 1000 AS g, sum(v) FROM t WHERE k < 400000 GROUP BY g",
    "SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) > 1",
    "SELECT s FROM t JOIN names ON t.k = names.id WHERE v < 5000",
    "SELECT DISTINCT k FROM t WHERE v < 5000",
    "SELECT count(*) FROM t WHERE k IN (SELECT v FROM t WHERE v < 10000)",
    "SELECT k FROM t ORDER BY v DESC, k LIMIT 7",
]


@pytest.fixture
def changing() -> Any:
    """A connection with a table whose column can be changed where it lies, behind the engine's back."""
    cupy = pytest.importorskip("cupy")
    rows = 500_000
    rng = np.random.default_rng(5)
    k, v = rng.permutation(rows), rng.integers(0, 20_000, rows)
    columns = {"k": cupy.asarray(k), "v": cupy.asarray(v)}
    with gquery.connect(device="cuda") as connection:
        connection.sql("SET interpret_limit = 0")
        connection.register("t", columns)
        connection.register("names", {"id": np.arange(1000), "s": np.array([f"name {n}" for n in range(1000)])})
        table: Any = connection.catalog.get("t")
        kept = table.load([0, 1]).columns  # the copies that the table holds
        yield connection, {name: c.data.on(connection.device) for name, c in zip(columns, kept, strict=True)}


def _rows(connection: gquery.Connection, sql: str) -> list[tuple[Any, ...]]:
    return sorted(connection.sql(sql).fetchall())


@pytest.mark.cuda
@pytest.mark.parametrize("sql", QUERIES)
def test_later_runs_give_the_same(changing: Any, sql: str) -> None:
    connection, _ = changing
    first = _rows(connection, sql)
    assert all(_rows(connection, sql) == first for _ in range(4))


@pytest.mark.cuda
@pytest.mark.parametrize("sql", QUERIES)
def test_rows_that_changed_in_place_are_noticed(changing: Any, sql: str) -> None:
    """No promise to users, but nothing may break: the bounds hold, the numbers do not."""
    connection, columns = changing
    for _ in range(3):
        _rows(connection, sql)
    for shift in (1, 7):
        columns["v"][:] = (columns["v"] * 3 + shift) % 20_000
        columns["k"][:] = columns["k"][::-1].copy()
        connection.device.synchronize()
        got = _rows(connection, sql)
        with gquery.connect(device="cpu") as fresh:
            fresh.register("t", {name: column.get() for name, column in columns.items()})
            fresh.register("names", {"id": np.arange(1000), "s": np.array([f"name {n}" for n in range(1000)])})
            assert got == _rows(fresh, sql)


@pytest.mark.cuda
def test_an_error_in_a_run_that_speculates_is_raised(changing: Any) -> None:
    connection, columns = changing
    sql = "SELECT max(CAST(v AS TINYINT)) FROM t WHERE k < 3"
    columns["v"][columns["k"] < 3] = 5
    assert [_rows(connection, sql) for _ in range(3)] == [[(5,)]] * 3
    columns["v"][columns["k"] < 3] = 15_000
    connection.device.synchronize()  # recorded runs have a stream of their own
    with pytest.raises(ConversionError):
        connection.sql(sql).fetchall()
    columns["v"][columns["k"] < 3] = 6
    connection.device.synchronize()
    assert _rows(connection, sql) == [(6,)]
