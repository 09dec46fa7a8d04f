"""One subquery in several expressions stays one while flags of NULL and names change: two would make the same columns."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery.expression.expr import Literal, ScalarSubquery, new_column
from gquery.expression.types import INTEGER
from gquery.functions import call
from gquery.planner.logical.nodes import Project, UnionAll, Values
from gquery.planner.logical.separate import separate
from gquery.planner.logical.shared import every_node
from gquery.planner.logical.tree import fresh_copy, made_columns, own_subqueries
from tests.support.harness import assert_same

_LISTS = "SELECT k, list(k ORDER BY k) AS xs FROM '{path}' GROUP BY k"


def test_a_file_tells_that_a_subquery_has_no_nulls(tmp_path: Path) -> None:
    """The maximum of lists looks at each list several times."""
    path = tmp_path / "k.parquet"
    pq.write_table(pa.table({"k": [1, 2, 2]}), path)
    sql = f"SELECT max(list_transform(x.xs, lambda e: e - x.k)) FROM ({_LISTS.format(path=path)}) AS x"
    assert gquery.connect("python").sql(sql).fetchall() == [([0, 0],)]


def test_it_reads_a_definition_that_is_put_in_place() -> None:
    db = gquery.connect("python")
    values = "w AS (SELECT a AS k, a + 1 AS l FROM (VALUES (1), (2)) AS v(a))"
    once = f"WITH {values} SELECT max(list_transform([1, 2], lambda e: e - w.k)) FROM w"
    assert db.sql(once).fetchall() == [([0, 1],)]
    twice = f"WITH {values} SELECT max(list_transform([1, 2], lambda e: e - w.k)) FROM w JOIN w AS x ON w.k = x.l"
    assert db.sql(twice).fetchall() == [([-1, 0],)]


def test_a_definition_of_it_is_copied() -> None:
    values = "v AS (SELECT * FROM (VALUES (1), (2)) AS v(k))"
    most = "m AS NOT MATERIALIZED (SELECT max(list_transform([1, 2], lambda e: e - v.k)) AS xs FROM v)"
    sql = f"WITH {values}, {most} SELECT m.xs, x.xs FROM m JOIN m AS x ON m.xs = x.xs"
    assert gquery.connect("python").sql(sql).fetchall() == [([0, 1], [0, 1])]


@pytest.mark.parametrize("seed", range(8))
def test_lists_made_of_lists_made_of_lists(seed: int) -> None:
    """Each level stands in the next one several times, and so in several nodes of it."""
    rng = random.Random(seed)
    lists = pa.array([[3, None, 1], [], None, [2, 2], [None]], pa.list_(pa.int64()))
    tables = {"t": pa.table({"k": pa.array([1, 2, None, 2, 3], pa.int64()), "xs": lists})}

    def made(level: int) -> str:
        of, n = ("x.xs" if level == 0 else made(level - 1)), rng.randrange(4)
        return rng.choice(
            (
                f"[e FOR e IN {of} IF e >= {n}]",
                f"[e + y.k FOR e IN {of}]",
                f"list_filter({of}, lambda e: e IS NULL OR e < {n + 2})",
                f"list_transform({of}, lambda e, i: e * i + {n})",
            )
        )

    values = f"{made(1 + seed % 2)} AS a, {made(1)} AS b"
    source = rng.choice(
        (
            "t AS x JOIN t AS y ON x.k = y.k",
            "w AS x LEFT JOIN w AS y ON x.k = y.k + 1",
            "w AS x, LATERAL (SELECT x.k) AS y",
        )
    )
    first = made(0).replace("x.", "t.").replace("y.", "t.")
    sql = f"WITH w AS (SELECT k, {first} AS xs FROM t) SELECT {values}, x.k FROM {source}"
    if rng.random() < 0.4:
        sql += f" WHERE len({made(1)}) < 3"
    assert_same(sql, tables, targets=("python",), ranks=(1,))


def test_a_list_made_of_another_asks_once_for_it() -> None:
    """Whether it is NULL the innermost tells. It was made again to be asked: 4 to the power of levels."""
    made = "xs"
    for n in range(5):
        made = f"[e + {n} FOR e IN {made} IF e > {n}]"
    db = gquery.connect("python")
    db.sql("CREATE TABLE t AS FROM (VALUES ([1, 9]), ([]), (NULL)) AS v(xs)")
    assert str(db.sql(f"EXPLAIN SELECT {made} FROM t")).partition("stage 0")[0].count(" Unnest ") == 10
    assert db.sql(f"SELECT {made} FROM t").fetchall() == [([19],), ([],), (None,)]


def test_a_copy_keeps_what_stands_in_two_nodes() -> None:
    """A subquery of a node, and of another subquery of it: it stays one in a copy, and gets columns of its own where plans are
    told apart."""
    a, b, c = (new_column(n, INTEGER, True) for n in "abc")
    row = Values((), ((),))
    inner = ScalarSubquery(Project(row, ((a, Literal(1, INTEGER)),)))
    outer = ScalarSubquery(Project(row, ((b, inner),)))
    plan = Project(row, ((c, call("add", inner, outer)),))
    twice = UnionAll((plan, fresh_copy(plan)[0]), ((c,), (c,)), (new_column("d", INTEGER, True),))
    copy = twice.sources[1]
    first, second = own_subqueries(copy)
    assert own_subqueries(second.plan)[0].plan is first.plan
    made = [x.id for s in separate(twice).sources for n in every_node(s) for x in made_columns(n)]
    assert len(made) == len(set(made)) == 8


@pytest.mark.parametrize("kind", ["", "LEFT", "RIGHT", "SEMI", "ANTI"])
@pytest.mark.parametrize("low", ["1", "s.b", "r.a"])
@pytest.mark.parametrize("of", ["x.a = r.b", "x.a = s.b", "x.a = 1"])
def test_between_of_a_subquery_in_a_join(kind: str, low: str, of: str) -> None:
    """BETWEEN is two comparisons of one subquery; written as two, each has its own."""
    db = gquery.connect("python")
    db.execute("CREATE TABLE t (a INTEGER, b INTEGER)")
    db.execute("INSERT INTO t VALUES (1, 2), (1, 3), (2, 5), (2, 1), (NULL, 1)")
    once = f"(SELECT max(x.b) FROM t AS x WHERE {of})"
    sql = f"SELECT * FROM t AS r {kind} JOIN t AS s ON r.a = s.a AND {{}} ORDER BY ALL"
    found = db.sql(sql.format(f"{once} BETWEEN {low} AND 3")).fetchall()
    assert found == db.sql(sql.format(f"{once} >= {low} AND {once} <= 3")).fetchall()


def test_an_inner_join_computes_it_once() -> None:
    db = gquery.connect("python")
    db.set("disabled_rules", "common_subplans")  # which would find it, later
    db.execute("CREATE TABLE t (a INTEGER, b INTEGER)")
    once = "(SELECT max(x.b) FROM t AS x WHERE x.a = r.b)"
    plan = db.explain(f"SELECT count(*) FROM t AS r JOIN t AS s ON r.a = s.a AND {once} BETWEEN s.b AND 3", "optimized")
    assert plan.count("max(") == 1
