"""A rewrite that leaves a computation out keeps its errors: what is not NULL, or equal to itself, can still be no value."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import gquery
from tests.support.harness import assert_error, assert_same, expect

TABLES = {
    "r": pa.table(
        {
            "f": pa.array([1.0, float("nan"), 2.5], pa.float32()),
            "s": ["1", "x", "3"],
            "j": pa.array([2**31 - 1, 5, 7], pa.int32()),
        }
    )
}
FAILING = ("CAST(f AS DECIMAL(38,4))", "CAST(s AS INTEGER)", "CAST(j AS SMALLINT)", "sqrt(-j)", "ln(j - 5)", "chr(j)")
AROUND = (
    "{0} IS NULL",
    "{0} IS NOT NULL",
    "CASE WHEN {0} IS NULL THEN 1 ELSE 1 END",
    "count({0})",
    "{0} = {0}",
    "{0} IS DISTINCT FROM {0}",
    "nullif({0}, {0})",
)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("failing", FAILING)
def test_an_error_is_not_left_out(failing: str, around: str) -> None:
    sql = f"SELECT {around.format(failing)} FROM r"
    with pytest.raises(duckdb.Error):
        expect(sql, TABLES)
    assert_error(sql, TABLES, gquery.DataError, targets=("python",))


@pytest.mark.parametrize("around", AROUND)
def test_an_error_is_not_left_out_of_a_kernel(around: str) -> None:
    assert_error(f"SELECT {around.format(FAILING[2])} FROM r", TABLES, gquery.DataError)


@pytest.mark.parametrize("sql", ["j + j IS NULL", "count(j * j)", "count(-j)", "(j + j) IS NOT NULL"])
def test_arithmetic_is_not_computed_to_see_that_it_is_not_null(sql: str) -> None:
    assert_same(f"SELECT {sql} FROM r", TABLES)
