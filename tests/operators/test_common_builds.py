"""What a query asks for in several places is run once: join tables, and rows of common subplans."""

from __future__ import annotations

import pytest

import gquery
from gquery import tuning
from gquery.planner.physical import Build, Group, Materialize, Pipeline, Probe, Program, ReadTable
from tests.support import programs
from tests.support.harness import assert_same
from tests.support.tables import joins
from tests.support.tuned import Tune

# each holds a join, or a whole subquery, more than once
QUERIES = (
    "SELECT count(*), sum(b.d) FROM l JOIN u a ON l.k = a.k JOIN u b ON l.v = b.k",
    "SELECT l.id, (SELECT max(r.v) FROM r JOIN u ON r.k = u.k WHERE r.k = l.k), "
    "(SELECT min(r.s) FROM r JOIN u ON r.k = u.k WHERE r.k = l.k) FROM l",
    "SELECT l.id, a.s, b.day FROM l LEFT JOIN (SELECT r.k, r.s, u.d FROM r JOIN u ON r.k = u.k) a ON l.k = a.k "
    "LEFT JOIN (SELECT r.k, r.day, u.v FROM r JOIN u ON r.k = u.k) b ON l.k = b.k AND b.v > l.v",
    "SELECT l.id FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.v <> l.v) "
    "AND EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.v <> l.v + 1)",
    "SELECT l.id FROM l WHERE k IN (SELECT k FROM r WHERE v > 0) AND k2 NOT IN (SELECT k2 FROM r WHERE v > 0)",
    "SELECT l.id FROM l WHERE k NOT IN (SELECT k FROM r) OR v IN (SELECT k FROM r)",
    "SELECT a.id, b.id FROM (SELECT l.* FROM l JOIN u ON l.k = u.k WHERE u.v > 0) a "
    "FULL JOIN (SELECT l.* FROM l JOIN u ON l.k = u.k WHERE u.v > 0) b ON a.v = b.v",
    "SELECT * FROM (SELECT l.k, u.v FROM l JOIN u ON l.k = u.k ORDER BY l.id, l.v LIMIT 7) "
    "UNION ALL SELECT * FROM (SELECT l.k, u.v FROM l JOIN u ON l.k = u.k ORDER BY l.id, l.v LIMIT 7)",
    "SELECT a.k, count(*) FROM (SELECT r.k, r.s FROM r JOIN u ON r.k = u.k) a JOIN e ON a.k = e.k GROUP BY a.k",
    "SELECT x.id, y.id FROM l x JOIN r a ON x.k = a.k JOIN l y ON y.v = a.v JOIN r b ON y.k = b.k AND b.id > a.id",
)


@pytest.mark.parametrize("sql", QUERIES)
def test_the_answer_is_the_same(sql: str) -> None:
    assert_same(sql, joins(), targets=("python",))


@pytest.mark.parametrize("sql", QUERIES[2:5])
def test_the_answer_is_the_same_compiled(sql: str) -> None:
    assert_same(sql, joins(), targets=("cpu",), ranks=(3,))


def _program(sql: str) -> Program:
    connection = gquery.connect(device="cpu")
    for name, table in joins().items():
        connection.register(name, table)
    return connection.program(sql, "cpu")


def _reads(program: Program, table: str, sink: type) -> int:
    works = [s.work for s in program.stages]
    found = [w for w in works if isinstance(w, Pipeline) and isinstance(w.sink, sink)]
    return sum(isinstance(w.source, ReadTable) and w.source.source.name == table for w in found)


def test_one_table_serves_two_joins() -> None:
    program = _program("SELECT count(*), sum(a.v), max(b.v) FROM l JOIN u a ON l.k = a.k JOIN u b ON l.v = b.k")
    assert _reads(program, "u", Build) == 1


def test_a_filter_makes_another_table() -> None:
    where = "SELECT count(*), sum(a.v), max(b.v) FROM l JOIN u a ON l.k = a.k JOIN u b ON l.v = b.k WHERE b.v > {}"
    assert _reads(_program(where.format(0)), "u", Build) == 2
    assert _reads(_program(where.format(0) + " AND a.v > 0"), "u", Build) == 1
    assert _reads(_program(where.format(0) + " AND a.v > 1"), "u", Build) == 2
    assert _reads(_program(where.format(0) + " AND a.v > '0'::DOUBLE"), "u", Build) == 2


def test_rows_are_collected_once_with_the_columns_of_both() -> None:
    side = "(SELECT r.k, r.{}, u.{} FROM r JOIN u ON r.k = u.k WHERE r.k2 > 0)"
    one, other = side.format("s", "s AS us"), side.format("v", "s AS us")
    sql = f"SELECT * FROM l LEFT JOIN {one} a ON l.k = a.k LEFT JOIN {other} b ON l.k = b.k"
    program = _program(sql)
    assert _reads(program, "r", Materialize) == 1
    assert _reads(program, "u", Build) == 1
    assert_same(sql, joins(), targets=("python",))


def test_a_table_that_holds_what_is_read_of_its_rows_serves_those_who_read_that() -> None:
    sql = "SELECT count(*), sum(a.v), max(b.{}) FROM l JOIN u a ON l.k = a.k JOIN u b ON l.v = b.k"
    assert _reads(_program(sql.format("v")), "u", Build) == 1
    assert _reads(_program(sql.format("d")), "u", Build) == 2


def test_another_order_of_keys_is_another_table() -> None:
    sql = (
        "SELECT l.id FROM l JOIN (SELECT k, v FROM u) a ON l.k = a.k AND l.v = a.v "
        "JOIN (SELECT v, k FROM u) b ON l.k = b.v AND l.v = b.k"
    )
    assert_same(sql, joins(), targets=("python",))


@pytest.mark.parametrize("kind", ["SEMI", "ANTI"])
def test_other_bounds_of_a_range_make_another_table(kind: str) -> None:
    """What a range join tests is no residual: two tables whose rows differ by it alone are two."""
    side = f"(SELECT x.id, x.k FROM l x {kind} JOIN r ON x.v {{}} r.v)"
    one, other = side.format(">"), side.format("<=")
    sql = f"SELECT count(*), sum(l.v) FROM l SEMI JOIN {one} a ON l.k = a.k SEMI JOIN {other} b ON l.k = b.k"
    program = _program(sql)
    assert any(
        isinstance(s.work, Pipeline) and any(isinstance(p, Probe) and p.bounds for p in s.work.steps)
        for s in program.stages
    )
    assert _reads(program, "l", Build) == 2
    assert_same(sql, joins(), targets=("python",))


def test_what_a_full_join_records_is_its_own() -> None:
    sql = "SELECT a.id, b.id, c.id FROM l a FULL JOIN r b ON a.k = b.k FULL JOIN r c ON a.v = c.k"
    assert _reads(_program(sql), "r", Build) == 2
    assert_same(sql, joins(), targets=("python",))


def test_nothing_is_shared_where_nothing_is_equal() -> None:
    program = programs.program("q05", "cpu")
    assert [s.number for s in program.stages] == list(range(len(program.stages)))
    assert not any(isinstance(s.work, Pipeline) and isinstance(s.work.sink, Group) for s in program.stages[:-2])


FEW = (
    "SELECT sum(l.v) FROM l, u WHERE l.k = u.k AND u.v > 30 AND l.v < (SELECT avg(v) FROM l x WHERE x.k = u.k)",
    "SELECT c.id, c.v, e.s, e.d FROM (SELECT l.id, l.v FROM l JOIN u ON l.k = u.k WHERE u.v > 20) c "
    "LEFT JOIN (SELECT l.id, l.s, u.d FROM l JOIN u ON l.k = u.k WHERE u.v > 20) e ON c.id = e.id",
    "SELECT c.id, c.s FROM (SELECT l.id, l.v, u.s FROM l JOIN u ON l.k = u.k WHERE u.v > 20) c "
    "WHERE v > (SELECT avg(l.v) FROM l JOIN u ON l.k = u.k WHERE u.v > 20)",
    "SELECT c.us, count(*), max(c.v) FROM (SELECT l.*, u.s us FROM l JOIN u ON l.k = u.k WHERE u.v > 20) c "
    "WHERE EXISTS (SELECT 1 FROM l x WHERE x.k2 = c.k2 AND x.v <> c.v) "
    "AND NOT EXISTS (SELECT 1 FROM l x WHERE x.k2 = c.k2 AND x.v <> c.v AND x.d > 0.1) GROUP BY c.us",
)


@pytest.mark.parametrize("sql", FEW)
def test_few_rows_are_found_once(sql: str, tune: Tune) -> None:
    tune(tuning.semi_joins, shared_least_rows=1, aggregate_least_rows=1, build_least_rows=1)
    tune(tuning.semi_joins, shared_selectivity=1.0, aggregate_selectivity=1.0, build_selectivity=1.0, build_reading=0.0)
    shared = [s.label for s in _program(sql).stages if s.label == "shared subplan"]
    assert len(shared) == 1
    tables = dict(joins())  # other connections: those at hand keep their plans
    assert_same(sql, tables, targets=("python", "cpu"), ranks=(3,))


REDUCED = (  # rows of unions, groups and partitions that a join drops are not made
    "SELECT count(*), sum(t.v), min(t.s) FROM (SELECT k, v, s FROM l UNION ALL SELECT k, NULL, s FROM r WHERE v > 0) t "
    "JOIN u ON t.k = u.k WHERE u.v > 0",
    "SELECT t.k, u.s FROM (SELECT * FROM (SELECT k, v FROM l UNION ALL SELECT l.k2, r.v FROM l LEFT JOIN r ON l.k = r.k) "
    "WHERE v IS NOT NULL) t JOIN u ON t.k = u.k AND u.v > 0",
    "SELECT count(*), count(k) FROM (SELECT k FROM l UNION ALL SELECT NULL UNION ALL SELECT id FROM r) t "
    "WHERE k IN (SELECT k FROM u WHERE v > 0)",
    "SELECT t.k, n, g FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY id) AS n, count(*) OVER (PARTITION BY k) AS g "
    "FROM l) t JOIN u ON t.k = u.k WHERE u.v > 0",
    "SELECT t.v, n FROM (SELECT k, v, row_number() OVER (PARTITION BY v ORDER BY id) AS n FROM l) t JOIN u ON t.k = u.k "
    "WHERE u.v > 0",
    "SELECT t.k, c FROM (SELECT k, count(*) AS c FROM (SELECT k FROM l UNION ALL SELECT k2 FROM r) GROUP BY k) t "
    "JOIN u ON t.k = u.k WHERE u.v > 0",
    "SELECT t.k, x.s FROM (SELECT k FROM l UNION ALL SELECT k FROM r) t JOIN r x ON t.k = x.k WHERE x.v > 0",
)


@pytest.mark.parametrize("sql", REDUCED)
def test_rows_that_a_join_drops_are_not_made(sql: str, tune: Tune) -> None:
    tune(tuning.semi_joins, aggregate_least_rows=0, aggregate_selectivity=1.1)
    tables = dict(joins())  # other connections: those at hand keep their plans
    assert_same(sql, tables, targets=("python", "cpu"), ranks=(1, 3))


def test_aggregates_of_one_table_read_it_once() -> None:
    sql = (
        "SELECT (SELECT count(*) FROM l WHERE v > 3), (SELECT sum(d) FROM l WHERE v > 3 AND k < 5), "
        "(SELECT min(day) FROM l), (SELECT avg(v) FROM l WHERE v < 0 AND v > 0), (SELECT count(k) FROM l WHERE v < -100)"
    )
    reads = [w.source for w in (s.work for s in _program(sql).stages) if isinstance(w, Pipeline)]
    assert sum(isinstance(r, ReadTable) for r in reads) == 1
    assert_same(sql, joins(), targets=("python", "cpu"), ranks=(1, 3))
    assert_same(sql, {**joins(), "l": joins()["l"].slice(0, 0)}, targets=("python",))
