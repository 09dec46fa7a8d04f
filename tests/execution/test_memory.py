"""Memory that runs out, wherever: one error that names the stage and what to do, and a connection that goes on."""

from __future__ import annotations

import gc
import os
from typing import Any

import numpy as np
import pytest

import gquery
from gquery import errors
from gquery.execution import less_memory
from gquery.kernels.builtin import order

SORT = "SELECT a FROM t ORDER BY b"
DEVICES = ["python", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


alone = pytest.mark.skipif("PYTEST_XDIST_WORKER" in os.environ, reason="fills the card: not beside other tests")


def connect(device: str, memory_limit: int | None = None) -> gquery.Connection:
    """A connection; under a limit it has a pool of its own on a GPU."""
    connection = gquery.connect(device=device, memory_limit=memory_limit)
    connection.sql("SET interpret_limit = 0")
    return connection.register("t", {"a": np.arange(5000), "b": -np.arange(5000)})


def failing(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Sorting fails for so many times, as it does where its own arrays find no room."""
    assert less_memory is not None  # imported before anything is patched, or what it imports would keep what it finds
    left, whole = [times], order.sort_order

    def sort_order(*arguments: Any, **named: Any) -> Any:
        if left[0] > 0:
            left[0] -= 1
            raise MemoryError("Unable to allocate 1.00 TiB")
        return whole(*arguments, **named)

    monkeypatch.setattr(order, "sort_order", sort_order)
    return left


@pytest.mark.parametrize("device", DEVICES)
def test_an_array_function_runs_out_of_memory(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = connect(device)
    failing(monkeypatch, 2)
    with pytest.raises(errors.OutOfMemoryError, match=r"in sort: Unable to allocate 1\.00 TiB.*Remedies") as raised:
        connection.sql(SORT).fetchall()
    assert raised.value.__context__ is None, "a traceback would hold the arrays of the failed stage"
    assert connection.sql(SORT).fetchone() == (4999,)


@pytest.mark.parametrize("device", DEVICES)
def test_a_stage_runs_again_with_all_room_that_can_be_made(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left = failing(monkeypatch, 1)
    assert connect(device).sql(SORT).fetchone() == (4999,)
    assert left == [0]


LARGE = {
    "a table of groups": "SELECT range, count(*) FROM range(3000000) GROUP BY range",
    "a result": "SELECT range * 2 AS a FROM range(10000000)",
    "a join table": "SELECT count(*) FROM range(3000000) AS a JOIN range(3000000) AS b ON a.range * 3 = b.range * 5",
    "a sort": "SELECT range % 1000 AS a FROM range(4000000) ORDER BY a, range",
}


@pytest.mark.parametrize(
    ("device", "name"),
    [
        *[("cpu", name) for name in LARGE if name != "a result"],  # which lies in a file there: see test_spilling
        *[pytest.param("cuda", name, marks=pytest.mark.cuda) for name in LARGE],
    ],
)
def test_a_memory_limit(device: str, name: str) -> None:
    connection = connect(device, 20_000_000)
    connection.sql("SET spill_limit = '1MB'")  # else it is made in parts: see test_parts, test_tiers
    if device == "cuda":
        connection.sql("SET host_memory_limit = '1MB'")
    with pytest.raises(errors.OutOfMemoryError, match="limit") as raised:
        connection.sql(LARGE[name]).fetchall()
    assert "a query" not in str(raised.value), "the stage is named"
    assert connection.sql(SORT).fetchone() == (4999,)
    connection.sql("SET memory_limit = 'none'")
    assert len(connection.sql("SELECT range FROM range(100000)").fetchall()) == 100_000


@pytest.mark.cuda
def test_what_cupy_takes_for_itself_counts() -> None:
    """A sort's own arrays come from CuPy's pool, not from the engine."""
    import cupy

    connection = connect("cuda", 64_000_000)
    with connection.device.activate():
        cupy.zeros(1_000_000)
        with pytest.raises(errors.OutOfMemoryError, match="memory_limit"):
            cupy.arange(20_000_000)
    cupy.arange(20_000_000)


@pytest.mark.cuda
def test_a_limit_is_not_for_blocks_that_nobody_uses() -> None:
    connection = connect("cuda", 200_000_000)
    for rows in (1_000_000, 2_000_000, 3_000_000, 1_500_000, 2_500_000):
        found = connection.sql(f"SELECT range % 7 AS a FROM range({rows}) ORDER BY a LIMIT 1").fetchall()
        assert found == [(0,)]


@alone
@pytest.mark.cuda
@pytest.mark.parametrize("partitions", [1, 3])
def test_more_than_the_card_has(partitions: int) -> None:
    connection = gquery.connect(device="cuda", partitions=partitions)
    connection.sql("SET interpret_limit = 0")
    for sql in (
        "SELECT range, count(*) FROM range(40000000000) GROUP BY range",
        "SELECT range FROM range(40000000000)",
    ):
        with pytest.raises(errors.OutOfMemoryError, match="cuda:0"):
            connection.sql(sql).to_arrow_table()
        assert connection.sql("SELECT count(*) FROM range(1000000)").fetchall() == [(1000000,)]


@alone
@pytest.mark.cuda
def test_a_full_card() -> None:
    """The column fits, of which a copy is kept; what a sort of it takes does not."""
    import cupy

    gc.collect()
    pool, memory = cupy.get_default_memory_pool(), cupy.cuda.runtime.memGetInfo
    pool.free_all_blocks()
    rows = int(memory()[0] * 0.3) // 8
    connection = gquery.connect(device="cuda").register("t", {"a": cupy.zeros(rows, cupy.int64)})
    pool.free_all_blocks()
    ballast = cupy.empty(int(memory()[0] * 0.9), cupy.uint8)
    try:
        with pytest.raises(errors.OutOfMemoryError, match="Remedies"):
            connection.sql("SELECT a FROM t ORDER BY a + 1").to_arrow_table()
        assert connection.sql("SELECT count(*) FROM range(1000000)").fetchall() == [(1000000,)]
        assert connection.sql("SELECT count(*), sum(a) FROM t").fetchall() == [(rows, 0)]
    finally:
        del ballast, connection
        pool.free_all_blocks()
