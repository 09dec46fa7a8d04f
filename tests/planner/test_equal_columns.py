"""Classes of equal columns, of ``=`` and of IS NOT DISTINCT FROM: what they hold, and joins over random graphs of both."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.expression.expr import Call, Column, new_column
from gquery.expression.types import BOOLEAN, INTEGER
from gquery.planner.logical.equal_columns import equal_columns
from tests.support.harness import assert_same, connect

a, b, c, d = (new_column(name, INTEGER, True) for name in "abcd")
one = new_column("one", INTEGER, False)
EQUAL, SAME = "eq", "is_not_distinct_from"


@pytest.mark.parametrize(
    ("terms", "null_safe"),
    [
        ([(EQUAL, a, b), (EQUAL, b, c)], False),
        ([(SAME, a, b), (SAME, c, b)], True),
        ([(SAME, a, b), (EQUAL, b, c)], False),
        ([(EQUAL, b, c), (SAME, a, b), (SAME, a, d)], False),
        ([(SAME, a, b), (SAME, one, a)], False),
    ],
)
def test_a_class_knows_whether_its_columns_may_be_null(
    terms: list[tuple[str, Column, Column]], null_safe: bool
) -> None:
    found = equal_columns([Call(f, (x, y), BOOLEAN, True) for f, x, y in terms])
    (same,) = {id(s): s for s in found.values()}.values()
    assert set(same.columns) == {x for _, *pair in terms for x in pair} and same.null_safe is null_safe


def _tables(rng: random.Random, nulls: float) -> dict[str, pa.Table]:
    def column(size: int) -> list[int | None]:
        return [None if rng.random() < nulls else rng.randrange(4) for _ in range(size)]

    return {
        name: pa.table({c: pa.array(column(size), pa.int32()) for c in "xyz"})
        for name, size in zip("pqrst", rng.sample((0, 1, 5, 9, 14, 20), 5), strict=True)
    }


def _joined(rng: random.Random) -> str:
    """Up to five relations, joined by both kinds of equality, with a predicate, under EXISTS at times."""
    count = rng.randrange(2, 6)
    names = "pqrst"[:count]
    terms = []
    for n in range(1, count):
        for _ in range(rng.choice((1, 1, 2))):
            op = rng.choice(("=", "IS NOT DISTINCT FROM", "IS NOT DISTINCT FROM"))
            terms.append(f"{names[rng.randrange(n)]}.{rng.choice('xyz')} {op} {names[n]}.{rng.choice('xyz')}")
    if rng.random() < 0.5:
        test = rng.choice(("< 3", "IS NULL", "IS NOT NULL", "IN (1, 2)"))
        terms.append(f"{rng.choice(names)}.{rng.choice('xyz')} {test}")
    if rng.random() < 0.4:
        sign, outer = rng.choice(("", "NOT ")), rng.choice(names)
        terms.append(
            f"{sign}EXISTS (FROM p AS i WHERE i.x IS NOT DISTINCT FROM {outer}.y AND i.y + {outer}.z > {rng.randrange(4)})"
        )
    keys = f"{names[0]}.x, {names[-1]}.y"
    return f"SELECT {keys}, count(*) AS n FROM {', '.join(names)} WHERE {' AND '.join(terms)} GROUP BY {keys}"


def _correlated(rng: random.Random) -> str:
    """A quantified comparison, or an aggregate, of a subquery that uses two relations around it."""
    test = rng.choice(("=", "=", "<>", "<", ">=")) + rng.choice((" ALL", " ALL", " ANY"))
    op = rng.choice(("=", "<=", "IS NOT DISTINCT FROM"))
    inner = f"(SELECT r.z FROM r WHERE r.x {op} p.x AND r.y {rng.choice(('<=', '>', '='))} q.y)"
    value = rng.choice((f"p.z {test} {inner}", f"(SELECT count(*) FROM r WHERE r.x > p.x AND r.y < q.y) {test[0]} 1"))
    where = f"WHERE {value}" if rng.random() < 0.7 else ""
    shown = "" if where else f", {value} AS holds"
    return f"SELECT p.x, q.y{shown} FROM p, q {where}"


@pytest.mark.parametrize("seed", range(40))
def test_joins_and_subqueries_over_nulls(seed: int) -> None:
    rng = random.Random(seed)
    tables = _tables(rng, rng.choice((0.0, 0.3, 0.3, 0.8)))
    sql = (_joined, _correlated)[seed % 2](rng)
    low = replace(tuning.semi_joins, aggregate_least_rows=1, build_least_rows=1, build_reading=0.0, build_selectivity=2.0)
    with tuning.using(low if seed % 4 < 2 else tuning.semi_joins):
        assert_same(sql, tables, targets=("python",), ranks=(1,))


def test_a_quantified_comparison_computes_its_subquery_once() -> None:
    db = connect("python", 1, _tables(random.Random(0), 0.3))
    plan = db.explain("SELECT p.x FROM p, q WHERE p.z = ALL (SELECT r.z FROM r WHERE r.x <= p.x AND r.y > q.y)", "optimized")
    assert plan.count("Scan r") == 1
    joins = re.findall(r"Join (?:inner|left).*IS NOT DISTINCT FROM.*", plan)
    assert joins, plan


def test_joins_by_keys_that_may_be_null_multiply_no_rows() -> None:
    """Each subquery is joined by both of its keys, whatever is joined before it: no row of p and q comes twice."""
    db = gquery.connect("python")
    rows = pa.table({"x": pa.array([None, *range(9)], pa.int32()), "y": pa.array([*range(9), None], pa.int32())})
    for name in "pqr":
        db.register(name, rows)
    counts = [f"(SELECT count(*) FROM r WHERE r.x >= p.x AND r.y + {n} > q.y) > 0" for n in range(4)]
    plan = db.explain(f"SELECT p.x, q.y FROM p, q WHERE {' AND '.join(counts)}", "optimized")
    domains = [line for line in plan.splitlines() if "Join inner" in line and "IS NOT DISTINCT FROM" in line]
    single = [line for line in domains if line.count("IS NOT DISTINCT FROM") < 2]
    assert len(domains) >= 4 and len(single) <= 2, plan  # p and q by one key each
