"""Lists that are written out are computed by kernels, value by value: the answers are those of lists in memory, and DuckDB's."""

from __future__ import annotations

import math

import duckdb
import pyarrow as pa
import pytest

from gquery.errors import Error
from tests.support.harness import assert_error, assert_same, connect, expect

N = 60
TABLES = {
    "t": pa.table({
        "i": pa.array(range(N)),
        "k": pa.array([None if n % 7 == 3 else n % 5 - 2 for n in range(N)], pa.int32()),
        "s": pa.array([None if n % 11 == 5 else n % 4 - 1 for n in range(N)], pa.int8()),
        "b": pa.array([None if n % 5 == 1 else (n % 3) * 2**40 for n in range(N)], pa.int64()),
        "x": pa.array([None if n % 5 == 0 else [1.5, -0.0, 0.0, math.inf, 2.0][n % 5] for n in range(N)]),
        "w": pa.array([None if n % 6 == 2 else ["", "a", "ä", "b%", "NULL"][n % 5] for n in range(N)]),
        "d": pa.array([None if n % 9 == 2 else n % 4 for n in range(N)], pa.int32()).cast(pa.date32()),
        "q": pa.array([None if n % 8 == 1 else n % 3 == 0 for n in range(N)]),
        "nothing": pa.nulls(N, pa.int32()),
        "l": pa.array([None if n % 5 == 0 else [n % 3, None][: n % 3] for n in range(N)], pa.list_(pa.int32())),
    })
}  # fmt: skip
_WHOLE = TABLES["t"].drop_columns(["nothing", "l"]).drop_null()
WITHOUT_NULLS = {
    "t": _WHOLE.append_column("nothing", pa.nulls(_WHOLE.num_rows, pa.int32())).append_column(
        "l", pa.array([[n % 3] for n in range(_WHOLE.num_rows)], pa.list_(pa.int32()))
    )
}
EXPRESSIONS = (
    "list_transform([k, k + 1], v -> v * 2)", "list_transform([k, s, NULL, 7], (v, n) -> v * n)",
    "list_transform([k], lambda v: v + b)", "list_transform([w, 'x', NULL], v -> v || w)",
    "list_transform([x, k], v -> CASE WHEN v > 1 THEN v ELSE -v END)", "list_transform([1, 2, 3], v -> v + k)",
    "list_transform([1, 2, 3], v -> v * v)", "list_transform([d, d + 1], v -> year(v))",
    "list_transform([q, NOT q], v -> v IS NULL)",
    "list_transform([l, [k]], v -> len(v))",
    "list_transform([k, s], v -> [v, v])", "list_transform([nothing, 1], v -> v + 1)", "list_transform([k, s], v -> NULL)",
    "list_transform([k, s], v -> {'a': v})", "list_transform(list_filter([k, s, b], v -> v > 0), v -> v + 1)",
    "list_filter([k, s, b], v -> v > 0)", "list_filter([k, s, b], (v, n) -> n > 1 AND v IS NOT NULL)",
    "list_filter([w, 'a', NULL, 'ä'], v -> v > w)", "list_filter([x, 0.0, 1.5], v -> v = x)", "list_filter([q, true], v -> v)",
    "list_filter([l, [k]], v -> len(v) = 1)", "list_filter([d, DATE '1970-01-02'], v -> v <> d)", "list_filter([k], v -> false)",
    "list_filter([1, 2, 3], v -> v > k)", "list_filter([k, s], v -> NULL)", "list_filter([nothing], v -> v IS NULL)",
    "[v * 2 FOR v IN [k, s, 3] IF v > 0]", "len(list_filter([k, s, b], v -> v > 0))",
    "len([k, s])", "len([k, s + 1])", "len([w])", "len([l])", "len(list_transform([k, s], v -> v + 1))",
    "list_contains([k, s, b], 1)", "list_contains([k, s], k)", "list_contains([k, s], NULL)", "list_contains([k, NULL], 0)",
    "list_contains([w, 'a'], w)", "list_contains([x, 0.0], -0.0)", "list_contains(['nan'::DOUBLE, x], 'nan'::DOUBLE)",
    "list_contains([d], DATE '1970-01-01')", "list_contains([l], l)", "list_contains([q], true)",
    "list_contains([nothing], nothing)",
    "list_contains([k, s], b)", "list_contains([1, 2], k)", "list_contains([k, s], 1.5)", "list_contains([k, s], '1')",
    "list_position([k, s, b], 1)", "list_position([k, s], NULL)", "list_position([w, 'a', w], w)", "list_position([k, s + 1], s)",
    "list_position([q], q)", "list_position([x, 'nan'::DOUBLE], 'nan'::DOUBLE)", "list_position([l], l)",
    "list_min([k, s, b])", "list_max([k, s, b])", "list_max([w, 'a'])", "list_min([d])",
    "list_max([x, 1.0])", "list_min([q, true])",
    "list_max([nothing, k])", "list_min([nothing])", "list_max([l, [1]])", "list_sum([k, s])", "list_sum([b, b])",
    "list_avg([k, s])",
    "list_concat([k], [s, b])", "[k] || [s]", "[k] || l", "list_concat([k], NULL)", "list_concat(l, [k])", "list_append([k], s)",
    "CAST([k, s] AS BIGINT[])", "CAST([w] AS VARCHAR[])", "CAST([k, s] AS VARCHAR[])", "TRY_CAST([w, '1'] AS INTEGER[])",
    "CAST([1, NULL] AS DOUBLE[])", "[k, s][1]", "[k, s][-1]", "[k, s][3]", "[k, s][0]", "[k, s][-3]", "[k, s][NULL]", "[k, s][i]",
    "[k, s] = [s, k]", "list_sort([k, s, b])",
    "list_has_any([k, s], [1, 2])", "list_distinct([k, k])", "[k, s, b][2:3]",
    "CASE WHEN k > 0 THEN list_transform([10 // k], v -> v) END",
)  # fmt: skip


@pytest.mark.parametrize("e", EXPRESSIONS)
def test_values_are_duckdbs(e: str) -> None:
    assert_same(f"SELECT i, {e} AS e FROM t", TABLES)


@pytest.mark.parametrize("e", [e for e in EXPRESSIONS if e.startswith(("list_con", "list_pos", "len(", "list_m"))])
def test_as_conditions_of_few_and_no_rows(e: str) -> None:
    assert_same(f"SELECT i FROM t WHERE ({e}) IS NOT NULL", TABLES)
    assert_same(f"SELECT i, {e} AS e FROM t WHERE i < 0", TABLES)


@pytest.mark.parametrize("e", [e for e in EXPRESSIONS if "random" not in e])
def test_as_keys_of_rows_without_nulls(e: str) -> None:
    """What takes the place of a function is NULL where the function may be: keys of groups say whether they are."""
    assert_same(f"SELECT {e} AS e, count(*) FROM t WHERE i >= 0 GROUP BY 1", WITHOUT_NULLS)


def test_in_other_places() -> None:
    for sql in (
        "SELECT k, list_transform([1, 2], v -> v + k) AS e FROM t GROUP BY k",
        "SELECT list_transform([sum(k), min(s)], v -> v + 1)::VARCHAR AS e FROM t",
        "SELECT k FROM t GROUP BY k HAVING list_contains([1, 2], k)",
        "SELECT a, a[1] FROM (SELECT list_transform([k, s], v -> v + 1) AS a FROM t)",
        "SELECT i FROM t WHERE list_contains(list_transform([k, s], v -> v + 1), 1)",
        "SELECT i, list_transform([(SELECT max(k) FROM t), s], v -> v + k) AS e FROM t",
        "SELECT t.i, (SELECT list_transform([t.k, u.s], v -> v + t.i) FROM t u WHERE u.i = t.i) AS e FROM t",
        "SELECT t.i FROM t JOIN t u ON list_contains([t.i, t.i + 1], u.i) WHERE t.i < 5",
        "SELECT i, row_number() OVER (ORDER BY list_max([i, k]), i) AS e FROM t",
        "SELECT sum(len(list_filter([k, s, b], v -> v > 0)))::BIGINT AS e FROM t",
        "SELECT list_transform([1, 2], v -> v + 1), list_filter([1, 2], v -> v > 1), len([1, 2]), list_contains([1, NULL], 2)",
    ):
        assert_same(sql, TABLES)


@pytest.mark.parametrize("e", [
    "len([1 // 1, CAST(w AS INTEGER)])", "list_position([0, CAST(w AS INTEGER)], 0)", "list_contains([k, CAST(w AS INTEGER)], k)",
    "list_transform([2147483647, k], v -> v + 1)", "list_filter([w], v -> CAST(v AS INTEGER) > 1)",
    "len([k, 2147483647 + k * k])", "[k, CAST(w AS INTEGER)][1]",
])  # fmt: skip
def test_values_that_are_not_asked_for_raise(e: str) -> None:
    with pytest.raises(duckdb.Error):
        expect(f"SELECT i, {e} FROM t", TABLES)
    assert_error(f"SELECT i, {e} FROM t", TABLES, Error)


def test_chance_differs_by_value() -> None:
    for sql in ("list_transform([1, 2, 3, 4], v -> random())", "list_transform([random(), random()], v -> v + v)"):
        (values,) = connect("cpu", 1, TABLES).sql(f"SELECT {sql}").fetchall()[0]
        assert len({*values}) == len(values)


def test_subqueries_of_values() -> None:
    sql = "SELECT k, list_transform([k, 1], v -> (SELECT count(*) FROM t u WHERE u.k = v)) FROM t"
    counts = {k: TABLES["t"]["k"].to_pylist().count(k) for k in (-2, -1, 0, 1, 2)}
    for k, found in connect("cpu", 1, TABLES).sql(sql).fetchall():
        assert found == [counts.get(k, 0), counts[1]]
