"""Frames of which neither end moves back: gone through by tiles, beside DuckDB, at values that would spoil a difference."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from gquery import tuning
from tests.support.harness import assert_same
from tests.support.tuned import Tune

ROWS = 150
CALLS = ("sum(x)", "avg(x)", "avg(x) FILTER (WHERE k > 3)", "min(x)", "max(k)", "min(d)", "avg(near)", "bool_or(k > 8)")
FRAMES = (
    "ORDER BY i ROWS BETWEEN 7 PRECEDING AND CURRENT ROW",
    "ORDER BY i ROWS BETWEEN 2 PRECEDING AND 40 FOLLOWING",
    "ORDER BY i DESC ROWS BETWEEN 9 PRECEDING AND 3 PRECEDING",
    "PARTITION BY p ORDER BY i ROWS BETWEEN 3 FOLLOWING AND 5 FOLLOWING",
    "ORDER BY k GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "PARTITION BY p ORDER BY k NULLS FIRST RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "ORDER BY k DESC NULLS LAST RANGE BETWEEN 3 PRECEDING AND CURRENT ROW",
    "ORDER BY x RANGE BETWEEN 0.5 PRECEDING AND 2 FOLLOWING",
    "ORDER BY d RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND INTERVAL 3 DAY FOLLOWING",
    "ORDER BY CAST(d AS TIMESTAMP) + to_hours(i) RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND INTERVAL 4 HOUR PRECEDING",
)


def table() -> pa.Table:
    r = np.random.default_rng(14)
    x = np.round(r.normal(3, 2, ROWS), 2)
    x[r.integers(0, ROWS, 9)] = [math.inf, -math.inf, math.nan, 1e17, -1e17, -0.0, math.nan, 1e17, math.inf]
    return pa.table(
        {
            "i": np.arange(ROWS),
            "p": r.integers(0, 3, ROWS),
            "k": pa.array(r.integers(0, 12, ROWS).astype(np.int32), mask=r.random(ROWS) < 0.1),
            "x": pa.array(x, mask=r.random(ROWS) < 0.1),
            "near": r.normal(0, 1, ROWS).astype(np.float32),
            "d": pa.array(r.integers(0, 90, ROWS).astype(np.int32)).cast(pa.date32()),
        }
    )


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("tile", [16, pytest.param(2**17, marks=pytest.mark.slow)])
def test_beside_duckdb(frame: str, tile: int, tune: Tune) -> None:
    tune(tuning.window_functions, sliding_tile=tile)
    calls = ", ".join(f"{c} OVER w" for c in CALLS)
    sql = f"SELECT i, {calls} FROM t WINDOW w AS ({frame})"
    assert_same(sql, {"t": table()}, targets=("python",), ranks=(1,), settings={"threads": "3"})


def test_compiled(tune: Tune) -> None:
    tune(tuning.window_functions, sliding_tile=16)
    window = "PARTITION BY p ORDER BY k, i ROWS BETWEEN 5 PRECEDING AND 2 FOLLOWING"
    big = pa.concat_tables([table()] * 20)
    assert_same(
        f"SELECT k, i, avg(near) OVER ({window}), min(x) OVER ({window}) FROM t",
        {"t": big},
        targets=("cpu",),
        ranks=(1,),
    )
