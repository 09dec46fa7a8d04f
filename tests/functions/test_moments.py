"""Moments keep the digits that squares lose: of values that differ in their last digits alone, of none, one and alike values."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
import pytest

import gquery
from gquery.errors import OutOfRangeError
from tests.support.harness import assert_error, assert_same, connect

FAR = (1e9, -1e12, 1e15)


def one_row(sql: str, tables: dict[str, pa.Table], target: str) -> Sequence[float | None]:
    return connect(target, 1, tables).sql(sql).fetchall()[0]


@pytest.mark.parametrize("target", ["python", "cpu"])
@pytest.mark.parametrize("far", FAR)
def test_moments_of_values_far_from_zero(far: float, target: str) -> None:
    near = [0.0, 1.0, 2.0, 4.0, 8.0]
    tables = {"t": pa.table({"x": [far + v for v in near], "y": [far - 2 * v for v in near], "z": near})}
    got = one_row("SELECT stddev(x), var_pop(x), sem(x), covar_pop(x, y), corr(x, y), regr_slope(y, x), skewness(x), "
                  "kurtosis(x) FROM t", tables, target)  # fmt: skip
    want = one_row("SELECT stddev(z), var_pop(z), sem(z), -2 * var_pop(z), -1e0, -2e0, skewness(z), kurtosis(z) FROM t",
                   tables, target)  # fmt: skip
    assert got == pytest.approx(want, rel=1e-9)


def test_groups_of_different_magnitude() -> None:
    tables = {"t": pa.table({"k": [1, 1, 1, 2, 2, 2], "x": [1e9, 1e9 + 1, 1e9 + 2, 1e-9, 2e-9, 3e-9]})}
    rows = connect("python", 1, tables).sql("SELECT k, stddev(x) FROM t GROUP BY k ORDER BY k").fetchall()
    assert rows[0][1] == pytest.approx(1.0, rel=1e-9)
    assert rows[1][1] == pytest.approx(1e-9, rel=1e-9)


def test_exact_sums_of_large_integers() -> None:
    tables = {"t": pa.table({"x": pa.array([2**31 - 1, 2**31 - 2, -(2**31)], pa.int32())})}
    assert_same("SELECT stddev(x), var_pop(x), covar_pop(x, x), corr(x, -(x // 2)) FROM t", tables)
    shifted = {"t": pa.table({"x": pa.array([2**31 - 1, 2**31 - 2, 2**31 - 3], pa.int32())})}
    assert one_row("SELECT var_samp(x) FROM t", shifted, "python") == (1.0,)


@pytest.mark.parametrize("value", [0.1, 1e300, 1e-300, 1.7e308])
def test_values_alike_have_no_variance(value: float) -> None:
    tables = {"t": pa.table({"x": [value] * 7, "y": list(range(7))})}
    sql = "SELECT var_pop(x), stddev(x), corr(x, y), skewness(x), kurtosis(x), regr_slope(y, x), regr_r2(x, y) FROM t"
    got = one_row(sql, tables, "python")
    assert got[:2] == (0.0, 0.0) and got[4] is None and got[6] == 1.0
    assert all(v is not None and math.isnan(v) for v in (got[2], got[3], got[5]))


@pytest.mark.parametrize("rows", [4, 9, 20, 60])
def test_a_constant_has_no_kurtosis(rows: int) -> None:
    """DuckDB gives what is left of rounding for some numbers of rows, 1.4e16 for 9 of 99.9, and NULL for others."""
    tables = {"t": pa.table({"x": [99.9] * rows})}
    got = one_row(
        "SELECT kurtosis_pop(99.9), kurtosis(99.9e0), kurtosis(x), skewness(99.9), skewness(x) FROM t", tables, "python"
    )
    assert got[:3] == (None, None, None)
    assert all(v is not None and math.isnan(v) for v in got[3:])


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e200])
@pytest.mark.parametrize(
    "sql", ["stddev(x)", "var_pop(x)", "sem(x)", "corr(x, y)", "skewness(x)", "kurtosis(x)", "regr_sxx(y, x)"]
)
def test_what_is_no_number(sql: str, value: float) -> None:
    tables = {"t": pa.table({"x": [1.0, value, 3.0, 4.0], "y": [1.0, 2.0, 3.0, 4.0]})}
    assert_error(f"SELECT {sql} FROM t", tables, OutOfRangeError, "out of range", ["python"], [1])


def test_covariance_of_what_is_no_number() -> None:
    tables = {"t": pa.table({"x": [1.0, math.inf, 3.0], "y": [1.0, 2.0, 3.0]})}
    assert_same("SELECT covar_pop(x, y), covar_samp(y, x), regr_slope(x, y) FROM t", tables)


def test_error_names_what_was_typed() -> None:
    with pytest.raises(gquery.errors.BindError, match=r"stddev\(VARCHAR\)(.|\n)*candidate: stddev\(DOUBLE\)"):
        gquery.connect("python").sql("SELECT stddev('a')")
