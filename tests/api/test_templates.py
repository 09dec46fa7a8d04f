"""Plans outlive their constants: a text of the same shape gets the same program, and the answer that its own plan would give."""

from __future__ import annotations

import datetime
import os
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery import tuning
from gquery.planner import rebind
from tests.fuzzing.data import SETS, tables
from tests.fuzzing.grammar import Grammar
from tests.fuzzing.tape import Tape
from tests.support.marks import and_slow, one_in
from tests.support.queries import Generator, random_tables
from tests.support.templates import answer, fresh, hits, varied
from tests.support.tuned import Tune
from tpch import parameters, queries
from tpch.engines import GQueryEngine, Options
from tpch.generate import generate

COUNT = int(os.environ.get("GQUERY_FUZZ", "120")) // 20
TABLE = pa.table(
    {
        "i": pa.array([1, 2, 3, 4, 5, 6, 7, None, -3, 100], pa.int32()),
        "k": pa.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], pa.int8()),
        "d": pa.array([Decimal(f"{n}.25") for n in range(9)] + [None], pa.decimal128(9, 2)),
        "f": pa.array([0.5 * n for n in range(10)]),
        "s": ["a", "b", "ab", "", None, "a%", "it's", "zz", "b", "a"],
        "t": [datetime.date(1995, 3, n + 1) for n in range(9)] + [datetime.date(1969, 12, 31)],
    }
)


def pair(target: str, **tables: pa.Table) -> tuple[gquery.Connection, gquery.Connection]:
    """Two connections over the same tables."""
    made = gquery.connect(device=target), gquery.connect(device=target)
    for connection in made:
        if target != "python":
            connection.sql("SET interpret_limit = 0")
        for name, table in tables.items():
            connection.register(name, table)
    return made


SERVED = {
    "a comparison": ("SELECT i FROM t WHERE i > {}", ("2", "5", "2147483647", "0")),
    "between": ("SELECT i FROM t WHERE i BETWEEN {} AND {}", ("1|3", "5|2", "4|4")),
    "a narrow column": ("SELECT k FROM t WHERE k >= {}", ("3", "9", "0")),
    "decimals": ("SELECT d FROM t WHERE d < {}", ("3.25", "0.00", "9.99")),
    "doubles": ("SELECT f FROM t WHERE f <> {}", ("1e0", "25e-1", "1e300")),
    "texts": ("SELECT s FROM t WHERE s = {}", ("'a'", "'not there'", "''", "'it''s'")),
    "the order of texts": ("SELECT s FROM t WHERE s < {}", ("'a'", "''", "'ab'", "'zzz'")),
    "dates": ("SELECT t FROM t WHERE t <= DATE {}", ("'1995-03-04'", "'1960-01-01'", "'9999-12-31'")),
    "dates and intervals": (
        "SELECT t FROM t WHERE t >= DATE {} AND t < DATE {} + INTERVAL {} DAY",
        ("'1995-03-02'|'1995-03-02'|'3'", "'1969-01-01'|'1969-01-01'|'400'"),
    ),
    "constants that are computed": ("SELECT d FROM t WHERE d >= {} - {}", ("3.25|1.00", "5.25|5.25", "9.99|0.01")),
    "having": ("SELECT s, count(*) c FROM t GROUP BY s HAVING sum(i) > {}", ("1", "3", "100")),
    "a subquery": ("SELECT i FROM t WHERE i > (SELECT avg(k) FROM t WHERE k < {})", ("5", "9", "1")),
    "a named column": ("SELECT CASE WHEN i > {} THEN 'x' ELSE 'y' END c FROM t", ("2", "6")),
    "joins": ("SELECT a.i, b.k FROM t a JOIN t b ON a.i = b.k AND b.k > {} WHERE a.k < {}", ("2|5", "1|9", "6|2")),
}


@pytest.mark.parametrize("target", ["python", "cpu"])
@pytest.mark.parametrize("name", SERVED)
def test_served(name: str, target: str, tune: Tune) -> None:
    """The first text is planned; all others are served, in whatever order, however many rows they keep."""
    tune(tuning.cardinality, served_selectivities=1e300)
    text, given = SERVED[name]
    texts = [text.format(*g.split("|")) for g in given]
    served, alone = pair(target, t=TABLE)
    assert hits(served, alone, texts) == len(texts) - 1
    served._plans.clear()
    assert hits(served, alone, texts) == len(texts)


def test_another_magnitude_of_rows() -> None:
    """A plan that was made for a few rows serves no text that asks for a thousand times as many."""
    served, alone = pair("python", t=pa.table({"x": range(100_000)}))
    text = "SELECT count(*) c FROM t WHERE x >= {} AND x < {}"
    assert (
        hits(served, alone, [text.format(*ends) for ends in ((40_000, 40_030), (70_000, 70_025), (50_000, 50_012))])
        == 2
    )
    assert hits(served, alone, [text.format(5, 90_000)]) == 0
    assert hits(served, alone, [text.format(*ends) for ends in ((5, 95_000), (60_077, 60_088))]) == 2


def test_rare_constants_do_not_put_a_template_before_the_one_that_most_use(tune: Tune) -> None:
    """Those that both would serve stay with the first one, whose kernels and recordings are there; unless the other comes to
    serve more. What serves least goes first."""
    tune(tuning.memory, templates=2)
    table = pa.table({"k": range(100_000)})
    with gquery.connect("cpu") as connection:
        connection.register("t", table)

        def template(most: int) -> str:
            sql = f"SELECT sum(k) FROM t WHERE k < {most}"
            assert connection.sql(sql).fetchall() == [(most * (most - 1) // 2,)]
            found = connection._plans.find(sql, None, connection.settings)
            assert found is not None
            return found.template

        def kept() -> list[str]:
            (templates,) = connection._templates._found.values()
            return [t.slots.shape.constants[0] for t in templates]

        assert template(40_000) != "hit" and template(41_000) == "hit" and template(42_000) == "hit"
        assert template(4_000) != "hit" and kept() == ["40000", "4000"]
        assert template(12_000) == "hit" and kept() == ["40000", "4000"], "which both serve"
        assert [template(4_000 + n) for n in range(1, 5)] == ["hit"] * 4
        assert kept() == ["4000", "40000"], "which serves more now"
        assert template(40) != "hit" and kept() == ["4000", "40"]


@pytest.mark.parametrize("days", [20, 31, 80, 92, 180, 350, 366, 700])
def test_a_few_rows_more_or_less(days: int) -> None:
    """Whatever the first text keeps, a plan for it serves those that keep a little more or less."""
    text, table = "SELECT count(*) c FROM t WHERE x >= {} AND x < {}", pa.table({"x": range(2_557)})
    for more in (-1, 1, 3, -days // 2, days // 2):
        served, alone = pair("python", t=table)
        ends = [(100, 100 + days), (300, 300 + days + more)]
        assert hits(served, alone, [text.format(*given) for given in ends]) == 1


NOT_SERVED = {
    "LIMIT": "SELECT i FROM t ORDER BY i LIMIT {}",
    "OFFSET": "SELECT i FROM t ORDER BY i LIMIT 3 OFFSET {}",
    "an ordinal": "SELECT i, k FROM t ORDER BY {}",
    "the name of a column": "SELECT i + {} FROM t WHERE i = 1",
    "a type": "SELECT i::DECIMAL(9,{}) x FROM t",
    "a key of groups": "SELECT k % {} m, count(*) FROM t GROUP BY 1 ORDER BY 1",
    "arithmetic": "SELECT i + {} AS x FROM t",
}


@pytest.mark.parametrize("name", NOT_SERVED)
def test_what_a_plan_rests_on(name: str) -> None:
    """Another constant in such a place has a plan of its own, and says so."""
    served, alone = pair("python", t=TABLE)
    assert hits(served, alone, [NOT_SERVED[name].format(n) for n in (1, 2)]) == 0
    assert answer(served, NOT_SERVED[name].format(0))[0] != "hit"


ADVERSARIES = [
    ["SELECT i FROM t WHERE k = 5", "SELECT i FROM t WHERE k = 500", "SELECT i FROM t WHERE k = 3000000000"],
    ["SELECT i FROM t WHERE i = 1", "SELECT i FROM t WHERE i = 1.0", "SELECT i FROM t WHERE i = '1'"],
    ["SELECT i FROM t WHERE d = 1.25", "SELECT i FROM t WHERE d = 1.2", "SELECT i FROM t WHERE d = 1.250"],
    ["SELECT i // 2 x FROM t", "SELECT i // 0 x FROM t", "SELECT i // 7 x FROM t"],
    ["SELECT i FROM t WHERE i % 2 = 0", "SELECT i FROM t WHERE i % 0 = 0", "SELECT i FROM t WHERE i % 2 = 1"],
    ["SELECT i FROM t WHERE i + 1 > 2", "SELECT i FROM t WHERE i + 2147483647 > 2", "SELECT i FROM t WHERE i + 2 > 2"],
    ["SELECT i FROM t WHERE i IN (1, 2)", "SELECT i FROM t WHERE i IN (2, 2)", "SELECT i FROM t WHERE i IN (3, 100)"],
    ["SELECT i FROM t WHERE s IN ('a', 'b')", "SELECT i FROM t WHERE s IN ('a', 'x')", "SELECT i FROM t WHERE s IN ('', '')"],
    ["SELECT i FROM t WHERE i = 1 OR i = 2", "SELECT i FROM t WHERE i = 2 OR i = 2", "SELECT i FROM t WHERE i = 5 OR i = 9"],
    ["SELECT i FROM t WHERE i > 1 AND i > 1", "SELECT i FROM t WHERE i > 1 AND i > 4", "SELECT i FROM t WHERE i > 7 AND i > 3"],
    [f"SELECT s FROM t WHERE s LIKE '{p}'" for p in ("a%", "b%", "%", "%%", "", "_", "a", "%a", "%a%", "%a%b%", "a%b", "it''s")],
    [f"SELECT s FROM t WHERE s LIKE '{p}' ESCAPE '!'" for p in ("a!%", "b!%", "a%", "!!%")],
    ["SELECT i FROM t WHERE t > '1995-03-02'", "SELECT i FROM t WHERE t > '1895-03-02'", "SELECT i FROM t WHERE t > 'no date'"],
    ["SELECT i FROM t WHERE t > DATE '1995-03-02' + 3", "SELECT i FROM t WHERE t > DATE '1995-03-02' + 2147483647"],
    ["SELECT i FROM t WHERE 1 < 2", "SELECT i FROM t WHERE 2 < 1", "SELECT i FROM t WHERE 3 < 4"],
    ["SELECT i FROM t WHERE i < 2 AND 1 = 1", "SELECT i FROM t WHERE i < 3 AND 1 = 2", "SELECT i FROM t WHERE i < 3 AND 2 = 2"],
    ["SELECT i x FROM t WHERE i > -1", "SELECT i x FROM t WHERE i > -5"],
    ["SELECT CASE i WHEN 1 THEN 2 ELSE 3 END x FROM t", "SELECT CASE i WHEN 2 THEN 2 ELSE 4 END x FROM t"],
    ["SELECT coalesce(i, 1) x FROM t", "SELECT coalesce(i, 2) x FROM t"],
    ["SELECT nullif(i, 1) x FROM t", "SELECT nullif(i, 2) x FROM t"],
    ["SELECT substring(s, 1, 1) x FROM t WHERE k > 1", "SELECT substring(s, 2, 1) x FROM t WHERE k > 2"],
    ["SELECT i FROM t WHERE f / 2 > 1", "SELECT i FROM t WHERE f / 0 > 1"],
    ["SELECT i FROM t WHERE i > 1 ORDER BY i LIMIT 2", "SELECT i FROM t WHERE i > 2 ORDER BY i LIMIT 0"],
    [f"SELECT x, count(*) c FROM (SELECT i + {n} x FROM t) GROUP BY x ORDER BY x" for n in (1, 2)],
    [f"SELECT i + {a} x FROM t GROUP BY i + {b} ORDER BY 1" for a, b in ((1, 1), (2, 2), (1, "01"))],
    [f"SELECT i FROM t WHERE (i > 1 AND k > 1) OR (i > {n} AND k > 2)" for n in (1, 2)],
    ["SELECT sum(CASE WHEN i > 1 THEN 1 ELSE 0 END) a FROM t", "SELECT sum(CASE WHEN i > 2 THEN 2 ELSE 0 END) a FROM t"],
    [f"SELECT i FROM t WHERE s = '{s}' AND i > 0 UNION ALL SELECT k FROM t WHERE s = 'a'" for s in "ab"],
    ["SELECT i FROM t WHERE d > 1.00 * 2.00", "SELECT i FROM t WHERE d > 9.99 * 9.99"],
    ["SELECT i FROM t WHERE TRY_CAST('1' AS INTEGER) = i", "SELECT i FROM t WHERE TRY_CAST('x' AS INTEGER) = i"],
    ["SELECT i FROM t WHERE s || 'x' = 'ax'", "SELECT i FROM t WHERE s || 'y' = 'by'"],
    ["SELECT i FROM t WHERE i > 1e0", "SELECT i FROM t WHERE i > 1e300", "SELECT i FROM t WHERE i > 1e-300"],
]  # fmt: skip


@pytest.mark.parametrize("target", ["python", "cpu"])
@pytest.mark.parametrize("texts", ADVERSARIES, ids=lambda texts: texts[0][7:60])
def test_adversaries(texts: list[str], target: str) -> None:
    served, alone = pair(target, t=TABLE)
    known: dict[str, object] = {}
    for order in (texts, texts[::-1]):
        hits(served, alone, order, known)
        served._plans.clear()
        hits(served, alone, order, known)
        served._templates.clear()


def test_no_table_and_an_empty_one() -> None:
    served, alone = pair("python", t=TABLE.slice(0, 0))
    hits(served, alone, [f"SELECT i, s FROM t WHERE i > {n} AND s <> '{n}'" for n in range(3)])
    hits(served, alone, [f"SELECT {n} AS x, '{n}' AS y WHERE 1 < {n}" for n in range(4)])


@pytest.mark.parametrize("target", ["python", "cpu"])
def test_plans_that_wait_for_each_other(target: str) -> None:
    """Relations run when their rows are asked for: kernels are written for the values of the one that runs first."""
    served, alone = pair(target, t=TABLE)
    text = "SELECT i + {0} AS x, s FROM t WHERE k > {1} AND s LIKE '{2}%' ORDER BY 1, 2"
    given = [(1, 2, "a"), (1, 3, "b"), (2, 1, ""), (1, 0, "a"), (7, 4, "zz")]
    served.sql(text.format(*given[0])).fetchall()
    relations = [served.sql(text.format(*g)) for g in given[1:]]
    for relation, g in list(zip(relations, given[1:], strict=True))[::-1]:
        assert (relation.columns, [str(t) for t in relation.types], relation.fetchall()) == fresh(
            alone, text.format(*g)
        )


def test_what_is_made_of_a_relation() -> None:
    """A plan that is made of another one's has that one's constants, served or not."""
    served, alone = pair("python", t=TABLE)
    for n in (2, 4, 6, 4):
        made = served.sql(f"SELECT i, k FROM t WHERE k > {n}")
        want = alone.sql(f"SELECT i, k FROM t WHERE k > {n}").fetchall()
        assert made.filter("k < 9").fetchall() == [row for row in want if row[1] < 9]
        assert made.limit(2).fetchall() == want[:2]
        assert repr(made) == repr(alone.sql(f"SELECT i, k FROM t WHERE k > {n}"))
        assert f"> {n}" in made.explain("optimized") and f"> {n}" in made.explain("bound")
        assert made.fetchall() == want


def test_explained_before_it_runs() -> None:
    served, alone = pair("python", t=TABLE)
    for n in (2, 4, 6):
        for level in ("bound", "optimized", "physical", "pipelines", "code", "tree"):
            served.sql(f"SELECT i FROM t WHERE i > {n} AND i > {n}").explain(level)
        assert hits(served, alone, [f"SELECT i FROM t WHERE i > {n} AND i > {m}" for m in (n, n + 1)]) >= 0


def test_row_groups_that_are_skipped(tmp_path: Path) -> None:
    """What of a file is read depends on constants: those of filters, and all below a LIMIT."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": range(1000), "s": [f"{n % 97:02}" for n in range(1000)]}), path, row_group_size=50)
    served, alone = pair("python")
    hits(served, alone, [f"SELECT x FROM '{path}' WHERE x BETWEEN {n} AND {n} + 60" for n in (10, 500, 940, 2000)])
    hits(served, alone, [f"SELECT x FROM '{path}' WHERE s LIKE '%{n}' LIMIT 3" for n in (1, 0, 96, "x", 7)])
    hits(served, alone, [f"SELECT x FROM '{path}' WHERE x IN ({n}, {n + 1}) OR x > {n + 900}" for n in (1, 50, 99)])


def test_changed_tables() -> None:
    """Templates, as plans, are of the tables that they were made over."""
    served, alone = pair("python", t=TABLE)
    texts = [f"SELECT s FROM t WHERE s >= '{s}'" for s in ("a", "b")]
    assert hits(served, alone, texts) == 1
    for connection in (served, alone):
        connection.register("t", pa.table({"s": ["c", None, "a"]}))
    assert hits(served, alone, [t.replace("'b'", "'aa'") for t in texts]) == 1
    for connection in (served, alone):
        connection.register("t", pa.table({"s": [1, 2, 3]}))
    assert hits(served, alone, texts) == 0


def test_parameters() -> None:
    """They are slots, too; types and what is no value of many (NULL, a truth) are part of the plan."""
    served, alone = pair("python", t=TABLE)
    text = "SELECT i, s FROM t WHERE i > ? AND s <> ? ORDER BY i LIMIT 5"
    given = [
        (1, "a"),
        (3, "b"),
        (2, ""),
        (None, "a"),
        (1.5, "a"),
        (True, "a"),
        (2**40, "a"),
        (-1, "x"),
        (Decimal("1.5"), "a"),
    ]
    for params in [*given, *given[::-1]]:
        alone._plans.clear()
        alone._templates.clear()
        assert served.sql(text, params).fetchall() == alone.sql(text, params).fetchall(), params
    served._plans.clear()
    assert [served.sql(text, p).prepared.template for p in ((9, "q"), (-9, "z"))] == ["hit", "hit"]  # type: ignore[union-attr]
    for named in ({"x": 1}, {"x": 5}, {"x": 0}):
        assert served.sql("SELECT i FROM t WHERE i = $x", named).fetchall() == [r for r in [(named["x"],)] if r[0]]
    for limit in (1, 2, 0):
        assert len(served.sql("SELECT i FROM t LIMIT ?", (limit,)).fetchall()) == limit


def test_a_variable_of_the_caller() -> None:
    connection = gquery.connect(device="python")
    for values in ([1, 2, 3], [3, 4, 5]):
        frame = pa.table({"x": values})
        assert connection.sql(f"SELECT x FROM frame WHERE x > {values[0]}").fetchall() == [(v,) for v in values[1:]]
        del frame


def test_explain_analyze_tells() -> None:
    """Whether the plan came of a template, and what was in the way where it did not."""
    connection = pair("python", t=TABLE)[0]
    text = "EXPLAIN ANALYZE SELECT i + {} AS x FROM t WHERE i > {}"

    def said(*constants: int) -> str:
        lines = str(connection.sql(text.format(*constants))).splitlines()
        return next(line for line in lines if line.startswith("template: "))

    assert said(1, 2) == "template: miss (none of this shape)"
    connection.sql("SELECT i + 1 AS x FROM t WHERE i > 2").fetchall()
    assert said(1, 5) == "template: hit"
    assert said(3, 5) == "template: miss (the plan rests on 1)"
    assert "template: hit" in connection.explain("SELECT i + 1 AS x FROM t WHERE i > 7", "analyze")


def test_errors_are_told_of_the_text() -> None:
    served, _ = pair("python", t=TABLE)
    served.sql("SELECT i FROM t WHERE t > DATE '1995-01-01'").fetchall()
    with pytest.raises(gquery.ConversionError, match=r"'1995-13-01'[^^]*\^"):
        served.sql("SELECT i FROM t WHERE t > DATE '1995-13-01'").fetchall()
    with pytest.raises(gquery.BindError, match="LINE 1"):
        served.sql("SELECT i FROM t WHERE nothing > 5")


@cache
def tpch(device: str) -> tuple[gquery.Connection, gquery.Connection]:
    """For all queries, whose columns are encoded once."""
    served, alone = (GQueryEngine(generate(0.01), Options(device)).connection for _ in range(2))
    return served, alone


@pytest.mark.parametrize("device", and_slow(("python", "cpu"), "python"))
@pytest.mark.parametrize("number", queries.NUMBERS)
def test_tpch(number: int, device: str) -> None:
    """Random parameters: rows are those of a plan of their own."""
    texts = [parameters.sql(number, seed, 0.01) for seed in range(3)]
    hits(*tpch(device), texts)


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_queries(seed: int) -> None:
    random = Random(seed)
    served, alone = pair("python" if seed % 8 else "cpu", **random_tables(seed))
    for k in range(2):
        sql = Generator(1000 * seed + k).query()
        hits(served, alone, [sql, *(varied(sql, random, 0.7) for _ in range(3))])


@pytest.mark.parametrize("seed", one_in(2, range(COUNT)))
def test_random_expressions(seed: int) -> None:
    random = Random(seed)
    served, alone = pair("python", **tables(seed % SETS))
    for k in range(2):
        sql = Grammar(Tape(1000 * seed + k)).statement()
        hits(served, alone, [sql, *(varied(sql, random, 0.7) for _ in range(3))])


def test_a_file_that_is_gone_is_an_error_for_who_asks_for_it(tmp_path: Path) -> None:
    """The first text's plan is looked at for the second one, whose file is another."""
    with gquery.connect(device="python") as connection:
        for n in range(3):
            path = tmp_path / f"{n}.csv"
            path.write_text(f"a\n{n}\n")
            sql = f"SELECT a FROM read_csv('{path}') WHERE a < 100"
            assert connection.sql(sql).fetchall() == [(n,)]
            path.unlink()
            with pytest.raises(gquery.FileError):
                connection.sql(sql).fetchall()


def test_runs_and_fetches_make_no_plan_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """For its types or sequences: that walks all of the plan, for whoever asks something new."""

    def never(tree: object) -> object:
        raise AssertionError("a plan without slots is made")

    monkeypatch.setattr(rebind, "without_slots", never)
    db = gquery.connect("python")
    db.sql("CREATE TABLE made_once AS SELECT range AS x FROM range(5)")
    for n in (1, 2, 3):
        sql = f"SELECT x * {n} AS y FROM made_once WHERE x > {n}"
        assert db.sql(sql).fetchall() == db.sql(sql).rows() == [(x * n,) for x in range(n + 1, 5)]
        assert db.sql(sql).fetchone() == ((n + 1) * n,) and db.sql(sql).to_arrow_table().num_rows == 4 - n
