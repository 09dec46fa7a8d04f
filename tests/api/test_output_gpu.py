"""Results on a GPU: arrays that are shared with CuPy, early stops, interrupts."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import errors

pytestmark = pytest.mark.cuda


@pytest.fixture
def db() -> Iterator[gquery.Connection]:
    with gquery.connect(device="cuda") as connection:
        yield connection


def large(rows: int = 3_000_000) -> pa.Table:
    return pa.table(
        {"x": np.linspace(0, 1, rows), "n": np.arange(rows, dtype=np.int64) << 30, "k": np.arange(rows) % 7}
    )


def test_columns_are_shared(db: gquery.Connection) -> None:
    import cupy

    db.register("t", large())
    result = db.sql("SELECT x + 1 AS x, n, k FROM t WHERE k < 6")
    column = result.column("x")
    assert column.device.is_cuda
    at = column.values.data.ptr
    assert cupy.asarray(column).data.ptr == at
    assert cupy.from_dlpack(column).data.ptr == at
    assert result.to_cupy()["x"].data.ptr == at
    arrays = result.to_cupy()
    assert [str(a.dtype) for a in arrays.values()] == ["float64", "int64", "int64"]
    assert float(arrays["x"].sum()) == pytest.approx(float(np.sum(result.fetchnumpy()["x"])))
    db.register("back", {"x": column, "n": arrays["n"]})
    assert db.sql("SELECT count(*), max(n) FROM back").fetchall() == [(result.shape[0], int(arrays["n"].max()))]
    with pytest.raises(errors.InterfaceError, match="NULLs"):
        db.sql("SELECT CASE WHEN k < 3 THEN x END AS x FROM t").to_cupy()


def test_a_result_is_no_column_of_the_table(db: gquery.Connection) -> None:
    db.register("t", large())
    db.sql("SELECT x FROM t").to_cupy()["x"][:] = 5.0
    assert db.sql("SELECT max(x) FROM t").fetchall() == [(1.0,)]


def test_repr_is_quick(db: gquery.Connection) -> None:
    db.register("t", large())
    for query in (
        "FROM range(600000000) t(i)",
        "SELECT i * 2 FROM range(600000000) t(i) WHERE i % 10 = 3",
        "SELECT x, k FROM t WHERE k = 3",
        "FROM t",
    ):
        repr(db.sql(query))
        start = time.perf_counter()
        assert "? rows" in repr(db.sql(query))
        assert time.perf_counter() - start < 1
    assert db.sql("SELECT k FROM t WHERE n > 2000000 * 1073741824::BIGINT LIMIT 3").fetchall() == [
        (k % 7,) for k in (2_000_001, 2_000_002, 2_000_003)
    ]


def test_interrupt(db: gquery.Connection) -> None:
    import cupy

    gc.collect()  # what other tests have left belongs to them
    before = cupy.get_default_memory_pool().used_bytes()
    query = "SELECT count(*) FROM range(3000000000) a(x), range(1000000) b(y) WHERE x * y % 7 = 3"
    for _ in range(2):
        stopped: list[float] = []

        def stop(stopped: list[Any] = stopped) -> None:
            stopped.append(time.perf_counter())
            db.interrupt()

        timer = threading.Timer(3, stop)
        timer.start()
        with pytest.raises(errors.InterruptError):
            db.sql(query).fetchall()
        assert time.perf_counter() - stopped[0] < 10  # one launch's work; other tests may share the card
    assert db.sql("SELECT sum(i) FROM range(10) t(i)").fetchall() == [(45,)]
    cupy.cuda.Device().synchronize()
    assert cupy.get_default_memory_pool().used_bytes() - before < 500_000_000
