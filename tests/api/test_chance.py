"""random(), setseed and hash: a number a row, another in each run unless a seed says which, the same on every device."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gquery
from gquery.errors import BindError, NotSupportedError, OutOfRangeError
from gquery.planner.optimizer import RULES
from tests.support.harness import TARGETS, connect

_TABLES = {
    "t": pa.table({
        "s": pa.array(["a", "bb", None, "", "a long text of more than eight bytes"] * 4),
        "code": pa.array(["a", "bb", None, "", "a long text of more than eight bytes"] * 4).dictionary_encode(),
        "f": pa.array([0.0, -0.0, float("nan"), None, 1.5] * 4),
        "n": pa.array([1, 2, None, -1, 2**62] * 4),
        "d": pa.array([1, 2, None, -1, 3] * 4, pa.int8()),
    })
}  # fmt: skip
_SEEDED = (
    "SELECT random(), random() FROM range(5)",
    "SELECT i FROM range(40) t(i) WHERE random() < 0.5",
    "SELECT random() AS r, count(*) FROM range(9) t(i) GROUP BY i % 3, r ORDER BY r",
    "SELECT a.i, b.i FROM range(8) a(i), range(8) b(i) WHERE random() < 0.3",
    "SELECT i FROM range(20) t(i) ORDER BY random() LIMIT 4",
    "WITH RECURSIVE r(n, x) AS (SELECT 1, 0.5 UNION ALL SELECT n + 1, random() FROM r WHERE n < 6) SELECT * FROM r",
)
_OWN = (  # each is a number that holds whatever chance gives
    ("SELECT count(*) FROM (SELECT random() AS r FROM range(500)) WHERE r = r AND r >= 0 AND r < 1", 500),
    ("SELECT count(DISTINCT r) FROM (SELECT random() AS r FROM range(500))", 500),
    ("SELECT count(*) FROM (SELECT r AS x, r AS y FROM (SELECT random() AS r FROM range(50))) WHERE x = y", 50),
    ("SELECT count(*) FROM (SELECT random() AS x, random() AS y FROM range(50)) WHERE x <> y", 50),
    ("WITH c AS (SELECT random() AS r FROM range(50)) SELECT count(*) FROM c a JOIN c b ON a.r = b.r", 50),
    ("WITH c AS MATERIALIZED (SELECT random() AS r) SELECT count(*) FROM c a, c b WHERE a.r = b.r", 1),
    ("SELECT count(*) FROM (SELECT random() AS r FROM range(50)) WHERE r < 0.5 AND r > 0.5", 0),
    ("SELECT (SELECT random())::INTEGER - (SELECT random())::INTEGER BETWEEN -1 AND 1", True),
    ("SELECT count(*) FROM (VALUES (random()), (random())) v(r), (SELECT random() AS q) WHERE r <> q", 2),
    ("SELECT count(*) FROM (SELECT * FROM range(9) UNION ALL SELECT random() FROM range(9))", 18),
    ("SELECT count(*) FROM range(9) t(i) WHERE EXISTS (SELECT 1 FROM range(3) u(j) WHERE j = i AND random() < 2)", 3),
    ("SELECT count(*) FROM (SELECT random() AS r FROM range(100) LIMIT 7) WHERE r < 2", 7),
    ("SELECT sum(n) FROM (SELECT count(*) AS n FROM range(100) GROUP BY random() < 0.5)", 100),
    ("SELECT count(*) FROM (SELECT sum(random()) OVER (ORDER BY i) AS s FROM range(9) t(i)) WHERE s > 0", 9),
    ("SELECT count(*) FROM range(10) a(i) JOIN range(10) b(i) ON a.i = b.i AND random() < 2", 10),
    ("SELECT count(random()) FROM range(0)", 0),
)  # fmt: skip


@pytest.mark.parametrize("sql,value", _OWN)
def test_a_number_stays_with_its_row(sql: str, value: object) -> None:
    assert connect("python", 3, _TABLES).sql(sql).fetchall() == [(value,)]


def test_without_the_rules_that_may_be_left_out() -> None:
    connection = gquery.connect(device="python")
    off = ", ".join(rule.name for rule in RULES if not rule.required)
    connection.sql(f"SET disabled_rules = '{off}'")
    for sql, value in _OWN:
        assert connection.sql(sql).fetchall() == [(value,)], sql


def test_numbers_are_spread_evenly() -> None:
    sql = "SELECT setseed(0.25); SELECT floor(random() * 8), count(*), avg(random()) FROM range(40000) GROUP BY 1 ORDER BY 1"
    rows = gquery.connect(device="cpu").sql(sql).fetchall()
    assert len(rows) == 8
    assert all(abs(n - 5000) < 300 and abs(mean - 0.5) < 0.02 for _, n, mean in rows)


def test_runs_differ_and_seeds_repeat_them() -> None:
    """On every target and number of ranks the same."""
    found: dict[str, set[tuple[object, ...]]] = {}
    for target, ranks in ((TARGETS[0], 1), (TARGETS[0], 3), (TARGETS[-1], 1)):
        connection = connect(target, ranks, _TABLES)
        for seed, sql in ((0.5, _SEEDED[0]), *((-1, sql) for sql in _SEEDED)):
            connection.sql(f"SELECT setseed({seed})").fetchall()
            first, second = connection.sql(sql).fetchall(), connection.sql(sql).fetchall()
            assert first != second
            found.setdefault(f"{seed} {sql}", set()).add((*first, *second))
    assert all(len(values) == 1 for values in found.values())
    assert len(set(map(str, found.values()))) == len(found)


def test_a_sample_is_another_in_each_run() -> None:
    connection = gquery.connect(device="python")
    for sample in ("20 ROWS", "10%", "reservoir(20%)", "bernoulli(20%)"):
        sql = f"SELECT sum(i * i) FROM range(1000) t(i) USING SAMPLE {sample}"
        assert len({connection.sql(sql).fetchall()[0] for _ in range(3)}) > 1
    sql = "SELECT sum(i * i) FROM range(1000) t(i) USING SAMPLE 20% (bernoulli, 7)"
    assert len({connection.sql(sql).fetchall()[0] for _ in range(3)}) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_a_hash_is_of_values_and_not_of_their_representation(target: str) -> None:
    connection = connect(target, 1, _TABLES)
    sql = "SELECT hash(s) = hash(code), hash(n) = hash(n::DECIMAL(38, 0)), hash(d) = hash(d::BIGINT), hash(s, n, f) FROM t"
    rows = connection.sql(sql).fetchall()
    assert {row[:3] for row in rows} == {(True, True, True)}
    assert rows[:5] == rows[5:10]
    assert len({row[3] for row in rows}) == 5
    constant = connection.sql(
        "SELECT hash('bb', 2, -0.0::DOUBLE), hash(NULL), hash(DATE '2020-01-02', true)"
    ).fetchall()
    assert rows[1][3] == constant[0][0]
    assert constant == [(15201618756759613952, 0, 14941850916548470668)]  # promised: over runs, devices and versions
    assert connection.sql("SELECT hash(0.0::DOUBLE) = hash(-0.0::DOUBLE), typeof(hash(1))").fetchall() == [
        (True, "UBIGINT")
    ]


@pytest.mark.parametrize(
    "sql,error",
    [
        ("SELECT setseed(2)", OutOfRangeError),
        ("SELECT setseed(i) FROM range(3) t(i)", NotSupportedError),
        ("SELECT a.i FROM range(3) a(i) LEFT JOIN range(3) b(j) ON random() < 0.5", NotSupportedError),
        ("SELECT random(1)", BindError),
        ("SELECT hash()", BindError),
    ],
)
def test_what_is_refused(sql: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        gquery.connect(device="python").sql(sql).fetchall()


def test_how_many_rows_a_sample_keeps_is_known() -> None:
    db = gquery.connect(device="python")
    db.register("t", {"i": range(100_000)})
    for sample in ("1%", "1% (bernoulli, 3)"):
        said = str(db.sql(f"EXPLAIN ANALYZE SELECT i FROM t USING SAMPLE {sample}").fetchall())
        assert "1,000 expected" in said or "[1,000 rows]" in said, sample  # one time in 80 there are as many as expected
    assert "Window" not in db.explain("SELECT * FROM t USING SAMPLE 3 ROWS (reservoir, 5)")
