"""Proofs of uniqueness, functional dependencies, estimates; and that walks over plans share what does not change."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gquery
from gquery.errors import InternalError
from gquery.expression.expr import Call, Column
from gquery.expression.traverse import conjunction
from gquery.planner import optimizer
from gquery.planner.logical.canonical import canonical
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import Aggregate, Filter, Join, JoinKind, Plan, Project, Query, Scan
from gquery.planner.logical.properties import (
    determined,
    is_unique,
    one_row_at_most,
    one_row_exactly,
    unique_keys,
)
from gquery.planner.logical.selectivity import distinct_counts
from gquery.planner.logical.tree import fresh_copy, map_expressions, remap, transform_up, walk
from gquery.planner.logical.verify import verify
from tests.support.plans import bound
from tpch import queries


def optimized(sql: str) -> Query:
    return optimizer.steps(bound(sql), check=True)[-1].query


def ids(plan: Plan, *names: str) -> frozenset[int]:
    return frozenset(c.id for c in plan.columns if c.name in names)


def test_keys_of_a_scan_and_a_group() -> None:
    plan = optimized("SELECT * FROM a").plan
    assert unique_keys(plan) == (ids(plan, "id"),)
    plan = optimized("SELECT k, x, count(*) AS c FROM a GROUP BY k, x").plan
    assert is_unique(plan, ids(plan, "k", "x"))
    assert not is_unique(plan, ids(plan, "k"))
    assert one_row_exactly(optimized("SELECT count(*) FROM a").plan)
    assert one_row_at_most(optimized("SELECT * FROM a WHERE id = 7").plan)
    assert not one_row_at_most(optimized("SELECT * FROM a WHERE k = 7").plan)


def test_keys_survive_joins_with_one_match() -> None:
    plan = optimized("SELECT a.id, b.y FROM a JOIN b ON a.k = b.k").plan
    assert is_unique(plan, ids(plan, "id"))
    plan = optimized("SELECT a.id, n.v FROM a JOIN n ON a.k = n.k").plan
    assert not is_unique(plan, ids(plan, "id"))


def test_a_key_determines_its_relation_and_what_equals_it() -> None:
    plan = optimized("SELECT a.id, a.k, b.t, b.k AS bk FROM a JOIN b ON a.k = b.k").plan
    assert isinstance(plan, Join)
    id_, k, t = (next(c for c in plan.columns if c.name == name) for name in ("id", "k", "t"))
    assert {k.id, t.id} <= determined(plan, frozenset((id_.id,)))
    assert t.id in determined(plan, frozenset((k.id,)))
    assert id_.id not in determined(plan, frozenset((k.id,)))


def test_a_full_join_carries_no_equality_on() -> None:
    plan = optimized("SELECT a.k, b.k AS bk, b.t FROM a FULL JOIN b ON a.k = b.k").plan
    assert isinstance(plan, Join)
    assert plan.kind is JoinKind.FULL
    key = next(c for c in plan.left.columns if c.name == "k")
    text = next(c for c in plan.columns if c.name == "t")
    assert text.id not in determined(plan, frozenset((key.id,)))


@pytest.mark.parametrize(
    ("sql", "low", "high"),
    [
        ("SELECT * FROM a WHERE x = 3", 5_000, 20_000),
        ("SELECT * FROM a WHERE x BETWEEN 10 AND 19", 80_000, 120_000),
        ("SELECT * FROM a WHERE d >= DATE '1995-01-01' AND d < DATE '1995-01-10'", 5_000, 20_000),
        ("SELECT * FROM a JOIN b ON a.k = b.k", 900_000, 1_100_000),
        ("SELECT * FROM a JOIN b ON a.k = b.k AND b.y = 5", 5_000, 20_000),
        ("SELECT k, count(*) FROM a GROUP BY k", 900, 1_100),
        ("SELECT * FROM n WHERE v IS NULL", 200, 300),
    ],
)
def test_estimates(sql: str, low: float, high: float) -> None:
    assert low <= Estimator().rows(optimized(sql).plan) <= high


def test_walks_hand_back_what_did_not_change() -> None:
    for number in queries.NUMBERS:
        plan = bound(queries.sql(number)).plan
        assert transform_up(plan, lambda n: map_expressions(n, lambda e: e)) is plan
        copy, names = fresh_copy(plan)
        assert canonical(copy) == canonical(plan)
        back = remap(copy, {new.id: old for old, new in _inverse(plan, names)})
        assert canonical(back) == canonical(plan)


def _inverse(plan: Plan, names: dict[int, Column]) -> list[tuple[Column, Column]]:
    made = {c.id: c for node in walk(plan) for c in node.columns}
    return [(made[i], new) for i, new in names.items() if i in made]


def test_a_finished_plan_stays() -> None:
    """A second run finds nothing that matters: the plan is the same up to names."""
    for number in (1, 3, 5, 6, 9, 10, 18):
        query = optimized(queries.sql(number))
        again = optimizer.steps(query, check=True)[-1].query
        assert Estimator().rows(again.plan) == pytest.approx(Estimator().rows(query.plan))


def test_verify_finds_broken_plans() -> None:
    query = bound("SELECT a.k FROM a JOIN b ON a.k = b.k")
    scans = [n for n in walk(query.plan) if isinstance(n, Scan)]
    a, b = scans[0], scans[1]
    with pytest.raises(InternalError, match="made nowhere"):
        verify(Query(Filter(b, Call("eq", (a.columns[1], a.columns[1]), query.outputs[0].dtype, False)), (), ()))
    with pytest.raises(InternalError, match="another node makes too"):
        verify(Query(Join(a, a, JoinKind.INNER, conjunction(())), (), ()))
    with pytest.raises(InternalError, match="not in the plan"):
        verify(Query(b, (a.columns[0],), ("k",)))
    with pytest.raises(InternalError, match=r"eq of BIGINT and INTEGER"):
        verify(Query(Filter(a, Call("eq", (a.columns[1], a.columns[2]), query.outputs[0].dtype, False)), (), ()))
    assert not any(isinstance(n, Aggregate | Project) for n in walk(a))


@pytest.mark.parametrize(
    ("where", "low", "high"),
    [("TRUE", 90_000, 110_000), ("year = 1998", 15_000, 30_000), ("id < 0", 0, 300), ("year > 1950", 90_000, 110_000)],
)
def test_sales_of_five_years_beside_a_calendar_of_a_century(where: str, low: float, high: float) -> None:
    days = {"id": range(36_500), "year": [1900 + d // 365 for d in range(36_500)]}
    sold = [None if n % 20 == 0 else 36_000 + n % 365 - 365 * (n % 5) for n in range(100_000)]
    with gquery.connect("python") as connection:
        connection.register("days", pa.table(days)).register("sales", pa.table({"day": pa.array(sold, pa.int32())}))
        sql = f"SELECT count(*) FROM sales JOIN days ON sales.day = id WHERE {where}"
        text = str(connection.explain(sql, "tree"))
    line = next(line for line in text.splitlines() if "Join inner" in line)
    assert low <= int(line.split("about ")[1].split(" row")[0].replace(",", "")) <= high, line


def test_an_outer_join_makes_nulls_where_nothing_matches() -> None:
    with gquery.connect("python") as connection:
        connection.register("a", pa.table({"i": range(10_000)})).register("b", pa.table({"k": range(0, 10_000, 10)}))
        sql = "SELECT * FROM (SELECT i, k FROM a LEFT JOIN b ON i = k) WHERE k IS NULL OR i + k < 0"
        text = str(connection.explain(sql, "tree"))
    line = next(line for line in text.splitlines() if "Filter" in line)
    assert 8_000 <= int(line.split("about ")[1].split(" row")[0].replace(",", "")) <= 10_000, line


@pytest.mark.parametrize(
    ("rows", "groups", "most"),
    [(150e6, 15e6, 1_000), (1e6, 1e6, 100), (10, 5, 2), (1e9, 100, 50), (1e6, 1e3, 500), (0, 0.1, 1)],
)
def test_counts_by_group_have_few_values(rows: float, groups: float, most: int) -> None:
    assert 1 <= distinct_counts(rows, groups) <= most


def test_groups_by_a_count_or_a_case_are_few() -> None:
    counts = "SELECT k, count(*) AS c FROM a GROUP BY k"
    for sql, more in (
        (f"SELECT c, count(*) FROM ({counts}) GROUP BY c", 0),
        (f"SELECT coalesce(c, 0), count(*) FROM a LEFT JOIN ({counts}) t ON a.id = t.k GROUP BY 1", 1),
    ):
        plan = optimized(sql).plan
        estimator = Estimator()
        estimator.rows(plan)
        top, below = [p for p in walk(plan) if isinstance(p, Aggregate)]
        rows = estimator.rows(below.source)
        assert estimator.rows(top) <= distinct_counts(rows, estimator.rows(below)) + more
    estimator = Estimator()
    plan = optimized(
        "SELECT CASE WHEN x > 3 THEN 'a' WHEN x > 1 THEN 'b' ELSE 'c' END AS v, count(*) FROM a GROUP BY v"
    ).plan
    top = next(p for p in walk(plan) if isinstance(p, Aggregate))
    assert estimator.rows(top) <= 3


UNITED = (
    "(SELECT k, x AS v, 'a' AS side FROM a UNION ALL SELECT k, y, 'b' FROM b UNION ALL SELECT NULL, v, 'n' FROM n) t"
)


@pytest.mark.parametrize(
    ("sql", "low", "high"),
    [
        (f"SELECT t.k FROM {UNITED} JOIN b ON t.k = b.k AND b.y = 5", 5_000, 20_000),
        (f"SELECT v, count(*) FROM {UNITED} GROUP BY v", 90, 110),
        (f"SELECT side, v, count(*) FROM {UNITED} GROUP BY side, v", 250, 350),
        (f"SELECT v FROM (SELECT * FROM {UNITED} LIMIT 1000000) WHERE k IS NULL", 4_000, 6_000),
        (
            "SELECT x FROM (SELECT x FROM a UNION ALL SELECT y + 100 FROM b LIMIT 9999999) WHERE x < 10",
            90_000,
            400_000,
        ),
        (
            "SELECT * FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY d) AS r FROM a) WHERE r <= 10",
            5_000,
            20_000,
        ),
        ("SELECT x, count(*) FROM (SELECT lag(x) OVER (ORDER BY d) AS x FROM a) GROUP BY x", 90, 110),
        ("SELECT m, count(*) FROM (SELECT k, max(x) AS m FROM a GROUP BY k) GROUP BY m", 90, 110),
        ("SELECT k, grouping(k), count(*) FROM a GROUP BY ROLLUP (k)", 900, 1_100),
        ("SELECT a.k FROM a ASOF JOIN b ON a.k = b.k AND a.x >= b.y", 900_000, 1_000_000),
        # of the values that a filter left there are few groups, and one of them is a large part of what is made of them
        ("SELECT x, count(*) FROM a WHERE x IN (1, 2) OR (x = 3 AND k > 5) GROUP BY x", 3, 3),
        (
            "SELECT * FROM (SELECT k, x, count(*) AS c FROM a WHERE x IN (1, 2) GROUP BY k, x LIMIT 9999999) WHERE x = 1",
            800,
            1_200,
        ),
    ],
)
def test_estimates_of_columns_that_are_made(sql: str, low: float, high: float) -> None:
    assert low <= Estimator().rows(optimized(sql).plan) <= high


def test_a_semi_join_asks_once() -> None:
    """Of rows that were reduced to those that a join asks for, the join drops none."""
    union = "(SELECT k, x FROM a UNION ALL SELECT k, y FROM b) t"
    plan = optimized(f"SELECT t.x FROM {union} JOIN b ON t.k = b.k WHERE b.y = 3").plan
    estimator = Estimator()
    join = next(p for p in walk(plan) if isinstance(p, Join))
    assert estimator.rows(join) == pytest.approx(estimator.rows(join.left), rel=0.2)
