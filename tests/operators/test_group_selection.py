"""Quantiles of groups that are selected without a sort, beside DuckDB: by a kernel, by halving the range of values, by NumPy."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from gquery import tuning
from tests.support.harness import assert_same
from tests.support.tuned import Tune

ROWS = 240
CALLS = (
    "median(x), quantile_disc(x, 0.9), quantile_cont(x, 1.0)",
    "median(y), quantile_disc(big, 0.01), quantile_cont(dec, 0.3)",
    "median(x) FILTER (WHERE y > 2), quantile_disc(d, 0.5), quantile_cont(z, -0.25)",
    "median(ts), quantile_cont(y, [0.1, 0.9]), percentile_cont(0.3) WITHIN GROUP (ORDER BY x DESC)",
)


def table() -> pa.Table:
    r = np.random.default_rng(6)
    x = np.where(r.random(ROWS) < 0.5, np.arange(ROWS) % 5.0, np.round(r.normal(0, 9, ROWS), 1))
    x[r.integers(0, ROWS, 7)] = [math.nan, math.inf, -math.inf, -0.0, 1e300, -1e300, math.nan]
    k = np.where(r.random(ROWS) < 0.5, 0, r.integers(0, 9, ROWS))
    return pa.table(
        {
            "k": pa.array(k, mask=r.random(ROWS) < 0.1),
            "l": r.integers(-3, 0, ROWS).astype(np.int8),
            "far": k * 10**12,
            "x": pa.array(x, mask=r.random(ROWS) < 0.2),
            "y": r.integers(-9, 9, ROWS).astype(np.int16),
            "z": r.normal(0, 1, ROWS).astype(np.float32),
            "big": r.integers(-(2**62), 2**62, ROWS),
            "dec": pa.array([round(v, 2) for v in r.random(ROWS) * 100]).cast(pa.decimal128(9, 2)),
            "d": pa.array(r.integers(0, 2000, ROWS).astype(np.int32)).cast(pa.date32()),
            "ts": pa.array(r.integers(0, 10**14, ROWS)).cast(pa.timestamp("us")),
        }
    )


@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("how", [{}, {"selection_rounds": 0}, {"kernel_values": 3}])
def test_beside_duckdb(calls: str, how: dict[str, int], tune: Tune) -> None:
    tune(tuning.sorting, **how)
    for keys in ("", "k", "k, l", "far"):
        group = f"GROUP BY {keys}" if keys else ""
        sql = f"SELECT {keys + ',' if keys else ''} {calls} FROM t {group}"
        assert_same(sql, {"t": table()}, targets=("python",), ranks=(1,), settings={"threads": "3"})


def test_compiled() -> None:
    big = pa.concat_tables([table()] * 20)
    assert_same("SELECT k, l, median(x), median(y) FROM t GROUP BY k, l", {"t": big}, targets=("cpu",), ranks=(1,))
