"""The DataFrame API: each method against the SQL that it stands for, its errors, and tables by variable name."""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gquery
from gquery import Connection, col, fn, lit, when
from gquery.api.dataframe.connect import variables_of
from gquery.api.relation import Relation
from gquery.errors import BindError, CatalogError, InterfaceError, ParseError

pl = pytest.importorskip("polars")

TABLE = pa.table(
    {
        "a": [3, 1, None, 2, 1],
        "b": [1.5, -2.0, 0.25, None, 4.0],
        "s": ["x", "y", None, "x", "z"],
        "d": pa.array([datetime.date(2020, 1, n) for n in (1, 2, 3, 4, 5)]),
        "m": pa.array([Decimal("1.10"), Decimal("2.20"), None, Decimal("4.40"), Decimal("5.50")]),
    }
)
OTHER = pa.table({"a": [1, 2, 4], "t": ["one", "two", "four"], "s": ["p", "q", "r"]})
GLOBAL = pa.table({"g": [7, 8]})


@pytest.fixture
def db() -> Iterator[Connection]:
    with gquery.connect(device="python") as connection:
        yield connection.register("t", TABLE).register("o", OTHER)


CASES: list[tuple[str, Callable[[Relation, Relation], Relation]]] = [
    ("SELECT * FROM t WHERE a > 1 AND s = 'x'", lambda t, o: t.filter(col("a") > 1, col("s") == "x")),
    ("SELECT * FROM t WHERE a > 1 AND s = 'x'", lambda t, o: t.filter((col("a") > 1) & (col("s") == "x"))),
    ("SELECT * FROM t WHERE a > 1 OR b < 0", lambda t, o: t.filter("a > 1 OR b < 0")),
    ("SELECT * FROM t WHERE NOT (a = 1)", lambda t, o: t.filter(~(col("a") == 1))),
    ("SELECT * FROM t WHERE a IS NULL", lambda t, o: t.filter(col("a") == None)),  # noqa: E711
    ("SELECT * FROM t WHERE a IS NOT NULL", lambda t, o: t.filter(col("a").is_not_null())),
    ("SELECT * FROM t WHERE a IN (1, 2)", lambda t, o: t.filter(col("a").is_in([1, 2]))),
    ("SELECT * FROM t WHERE a IN (SELECT a FROM o)", lambda t, o: t.filter(col("a").is_in(o.select("a")))),
    ("SELECT * FROM t WHERE a = (SELECT max(a) - 2 FROM o)", lambda t, o: t.filter(col("a") == lit(o.agg("max(a) - 2")))),
    ("SELECT * FROM t WHERE a = (SELECT max(a) FROM t)", lambda t, o: t.filter("a = (SELECT max(a) FROM self)")),
    ("SELECT * FROM t WHERE d BETWEEN DATE '2020-01-02' AND DATE '2020-01-04'",
     lambda t, o: t.filter(col("d").between(datetime.date(2020, 1, 2), datetime.date(2020, 1, 4)))),
    ("SELECT a + 1, 2 - a, a * 2, a / 2, a // 2, a % 2, -a, a ** 2 FROM t",
     lambda t, o: t.select(col("a") + 1, 2 - col("a"), col("a") * 2, col("a") / 2, col("a") // 2, col("a") % 2, -col("a"),
                           col("a") ** 2)),
    ("SELECT s LIKE 'x%', s ILIKE 'X', upper(s), abs(b) FROM t",
     lambda t, o: t.select(col("s").like("x%"), col("s").ilike("X"), col("s").upper(), abs(col("b")))),
    ("SELECT a AS x, m * 1.5 AS y, b * 0.5e0 AS z FROM t",
     lambda t, o: t.select(x="a", y=col("m") * Decimal("1.5"), z=col("b") * 0.5)),
    ("SELECT CAST(a AS VARCHAR), TRY_CAST(s AS INTEGER), year(d), d + 2 FROM t",
     lambda t, o: t.select(col("a").cast("VARCHAR"), col("s").cast("INTEGER", try_=True), col("d").year(), col("d") + 2)),
    ("SELECT CASE WHEN a = 1 THEN 'one' WHEN a = 2 THEN 'two' ELSE 'many' END AS c FROM t",
     lambda t, o: t.select(c=when(col("a") == 1).then("one").when(col("a") == 2).then("two").otherwise("many"))),
    ("SELECT CASE WHEN a = 1 THEN 1 END AS c FROM t", lambda t, o: t.select(c=when(col("a") == 1).then(1))),
    ("SELECT coalesce(a, 0) AS a, b, s, d, m, 1 AS n FROM t", lambda t, o: t.with_columns(col("a").coalesce(0).alias("a"), n=1)),
    ("SELECT a AS x, b, s AS y, d, m FROM t", lambda t, o: t.rename({"a": "x"}, S="y")),
    ("SELECT a, s FROM t", lambda t, o: t.drop("b", ["d", "M"])),
    ("SELECT s, sum(a), count(*) AS n FROM t GROUP BY s", lambda t, o: t.group_by("s").agg(col("a").sum(), n=fn.count())),
    ("SELECT s, count(*) AS count FROM t GROUP BY s", lambda t, o: t.group_by("s").count()),
    ("SELECT a % 2 AS k, max(b) - min(b) AS r FROM t GROUP BY a % 2",
     lambda t, o: t.group_by(k=col("a") % 2).agg(r=col("b").max() - col("b").min())),
    ("SELECT count(DISTINCT a), sum(a) FILTER (WHERE b > 0) FROM t",
     lambda t, o: t.agg(col("a").count(distinct=True), col("a").sum().where(col("b") > 0))),
    ("SELECT * FROM t ORDER BY a, b DESC", lambda t, o: t.sort("a", col("b").desc())),
    ("SELECT * FROM t ORDER BY a DESC NULLS FIRST, b", lambda t, o: t.sort("a desc nulls first, b")),
    ("SELECT * FROM t ORDER BY a DESC NULLS FIRST, b DESC NULLS FIRST",
     lambda t, o: t.sort("a", "b", descending=True, nulls_first=True)),
    ("SELECT * FROM t ORDER BY b LIMIT 2 OFFSET 1", lambda t, o: t.sort("b").limit(2, offset=1)),
    ("SELECT * FROM t ORDER BY b LIMIT 5", lambda t, o: t.sort("b").head()),
    ("SELECT DISTINCT s FROM t", lambda t, o: t.select("s").distinct()),
    ("SELECT a FROM t UNION ALL SELECT a FROM o", lambda t, o: t.select("a").union(o.select("a"))),
    ("SELECT a FROM t INTERSECT SELECT a FROM o", lambda t, o: t.select("a").intersect(o.select("a"))),
    ("SELECT a FROM t INTERSECT ALL SELECT a FROM o", lambda t, o: t.select("a").intersect(o.select("a"), distinct=False)),
    ("SELECT a FROM t EXCEPT SELECT a FROM o", lambda t, o: t.select("a").except_(o.select("a"))),
    ("SELECT a FROM t EXCEPT ALL SELECT a FROM o", lambda t, o: t.select("a").except_(o.select("a"), distinct=False)),
    ("SELECT a FROM t UNION SELECT a FROM o", lambda t, o: t.select("a").union(o.select("a"), distinct=True)),
    ("SELECT a, b, t.s, d, m, t, o.s AS s_right FROM t JOIN o USING (a)", lambda t, o: t.join(o, on="a")),
    ("SELECT a, b, s, d, m, t FROM t JOIN o USING (a, s)", lambda t, o: t.join(o, on=["a", "s"])),
    ("SELECT a, b, t.s, d, m, t, o.s AS s2 FROM t LEFT JOIN o USING (a)", lambda t, o: t.join(o, on="a", how="left", suffix="2")),
    ("SELECT a, t, o.s AS s_right FROM t RIGHT JOIN o USING (a)",
     lambda t, o: t.join(o, on="a", how="right").select("a", "t", "s_right")),
    ("SELECT a, t, t.s FROM t FULL JOIN o USING (a)", lambda t, o: t.join(o, on="a", how="full").select("a", "t", "s")),
    ("SELECT t.* FROM t SEMI JOIN o USING (a)", lambda t, o: t.join(o, on="a", how="semi")),
    ("SELECT t.* FROM t ANTI JOIN o ON t.a = o.a", lambda t, o: t.join(o, left_on="a", right_on="a", how="anti")),
    ("SELECT a, b, s, d, m, t FROM t ASOF JOIN (SELECT a, max(t) AS t FROM o GROUP BY a) o USING (a)",
     lambda t, o: t.join(o.group_by("a").agg(t=col("t").max()), on="a", how="asof")),
    ("SELECT x.a, x.s, y.n FROM t x ASOF LEFT JOIN (SELECT a, count(*) n FROM t GROUP BY a) y ON x.a >= y.a",
     lambda t, o: t.select("a", "s").join_asof(t.group_by("a").agg(n=fn.count()), on="a")),
    ("SELECT x.a, x.s, k, n FROM t x ASOF JOIN (SELECT s, a AS k, count(*) n FROM t GROUP BY s, a) y ON x.s = y.s AND x.a <= k",
     lambda t, o: t.select("a", "s").join_asof(
         t.group_by("s", k="a").agg(n=fn.count()), ("a", "k"), by="s", strategy="forward", how="inner")),
    ("SELECT t.a, t.s, o.a AS a_right FROM t, o", lambda t, o: t.join(o, how="cross").select("a", "s", "a_right")),
    ("SELECT t.a, o.a AS a_right FROM t JOIN o ON t.a < o.a",
     lambda t, o: t.join(o, on=col("a", of="self") < col("a", of="other")).select("a", "a_right")),
    ("SELECT t.a, o.a AS a_right FROM t JOIN o ON t.a < o.a AND t.s <> o.s",
     lambda t, o: t.join(o, on="self.a < other.a AND self.s <> other.s").select("a", "a_right")),
    ("SELECT x.a, x.s FROM t x JOIN t y ON x.a = y.a", lambda t, o: t.join(t, left_on="a", right_on="a").select("a", "s")),
    ("SELECT s, count(*) AS n FROM t WHERE a > 0 GROUP BY s",
     lambda t, o: t.filter("a > 0").sql("SELECT s, count(*) AS n FROM self GROUP BY s")),
    ("SELECT a FROM t WHERE b > 0", lambda t, o: t.filter("b > 0").query("kept", "SELECT a FROM kept")),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "method"), CASES, ids=[str(i) for i in range(len(CASES))])
def test_methods_are_sql(db: Connection, sql: str, method: Callable[[Relation, Relation], Relation]) -> None:
    want, have = db.sql(sql), method(db.table("t"), db.table("o"))
    assert have.columns == want.columns
    assert have.types == want.types
    rows = (lambda r: r.fetchall()) if "ORDER BY" in sql else (lambda r: sorted(r.fetchall(), key=repr))
    assert rows(have) == rows(want)


def test_constants(db: Connection) -> None:
    values = [None, True, 5, -5, 2.5, -1e300, float("inf"), Decimal("-1.50"), "it's", datetime.date(2020, 2, 3),
              datetime.datetime(2020, 2, 3, 4, 5, 6, 7), np.int32(3)]  # fmt: skip
    made = db.sql("SELECT 1 AS one").select(**{f"v{i}": lit(v) for i, v in enumerate(values)})
    assert made.fetchall() == [tuple(values)]
    assert made.types == db.sql("SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?", values).types
    moved = db.table("t").select(d=col("d") + datetime.timedelta(days=1, hours=2)).fetchone()
    assert moved == (datetime.datetime(2020, 1, 2, 2),)


def test_order_is_kept(db: Connection) -> None:
    rows = db.table("t").sort("b").filter("a IS NOT NULL").select("a").fetchall()
    assert rows == db.sql("SELECT a FROM t WHERE a IS NOT NULL ORDER BY b").fetchall()


def test_describe(db: Connection) -> None:
    rows = {r[0]: r[1:] for r in db.table("t").describe().fetchall()}
    assert rows["a"] == ("BIGINT", 4, 1, 3, "1", "3", 1.75)
    assert rows["s"] == ("VARCHAR", 4, 1, 3, "x", "z", None)


def test_nothing_runs_before_rows_are_asked_for(db: Connection) -> None:
    relation = db.table("t").select(x=col("s").cast("INTEGER"))
    assert relation.columns == ["x"]
    with pytest.raises(gquery.DataError):
        relation.fetchall()


@pytest.mark.parametrize(
    ("method", "error", "text"),
    [
        (lambda t: t.filter(col("aa") > 1), BindError, 'Did you mean "a"'),
        (lambda t: t.select("a", "b, bb + 1"), BindError, "LINE 1: b, bb + 1\n           ^"),
        (lambda t: t.filter("a >"), ParseError, "LINE 1"),
        (lambda t: t.filter("a > 1 GROUP BY a"), ParseError, "an expression is expected"),
        (lambda t: t.filter("a FROM t"), ParseError, "an expression is expected"),
        (lambda t: t.drop("sx"), BindError, 'no column \'sx\'. Did you mean "s"'),
        (lambda t: t.rename(zz="y"), BindError, "no column 'zz'"),
        (lambda t: t.drop("a", "b", "s", "d", "m"), BindError, "at least one column"),
        (lambda t: t.agg(col("a")), BindError, "agg takes aggregates"),
        (lambda t: t.group_by("s").agg(col("a") + 1), BindError, "must be in GROUP BY"),
        (lambda t: t.group_by(), InterfaceError, "a key"),
        (lambda t: t.sort(), InterfaceError, "at least one key"),
        (lambda t: t.limit(-1), BindError, "negative"),
        (lambda t: t.join(t), InterfaceError, "a join takes on"),
        (lambda t: t.join(t, on="a", how="lefft"), InterfaceError, 'Did you mean "left"'),
        (lambda t: t.join(t, left_on="a"), InterfaceError, "left_on and right_on"),
        (lambda t: t.filter(col("a").summ() > 1), AttributeError, 'Did you mean "sum"'),
        (lambda t: t.filter(fn.uper("x") == "X"), AttributeError, 'Did you mean "upper"'),
        (lambda t: t.filter(col("a") > 1 and col("b") > 1), InterfaceError, "no truth value"),
        (lambda t: t.filter(col("a") > [1]), InterfaceError, "list"),
        (lambda t: t.select(col("s").upper(distinct=True)), BindError, "no aggregate"),
        (lambda t: t.select(col("s").sqrt()), BindError, "sqrt(VARCHAR)"),
    ],
)  # fmt: skip
def test_errors(db: Connection, method: Callable[[Relation], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        method(db.table("t"))
    assert text in str(raised.value)


def test_tables_that_change(db: Connection) -> None:
    relation = db.table("t").filter("a = 1")
    assert len(db.table("t").filter("a = 1")) == 2
    db.sql("CREATE OR REPLACE TABLE t AS SELECT 1 AS a")
    assert len(relation) == 2  # as the table was when the relation was made
    assert db.table("t").filter("a = 1").fetchall() == [(1,)]


# ---- variables by name -----------------------------------------------------------------------------------------------


def test_variables(db: Connection) -> None:
    frame = pd.DataFrame({"x": [1, 2]})
    polars = pl.DataFrame({"x": [3]})
    arrow = pa.table({"x": [4]})  # noqa: F841
    arrays = {"x": np.array([5, 6])}
    relation = db.sql("SELECT 7 AS x").filter("x > 0")
    elsewhere = gquery.connect(device="python").sql("SELECT 8 AS x")
    for name, want in (("frame", 3), ("polars", 3), ("arrow", 4), ("arrays", 11), ("relation", 7), ("elsewhere", 8)):
        assert db.sql(f"SELECT sum(x) FROM {name}").fetchall() == [(want,)]
    assert db.sql("SELECT sum(g) FROM GLOBAL").fetchall() == [(15,)]
    assert [db.sql("SELECT max(x) FROM frame").fetchall()[0][0] for _ in range(2)] == [2, 2]
    assert db.cursor().execute("SELECT max(x) FROM arrow").fetchall() == [(4,)]
    assert db.table("arrow").filter("x IN (SELECT x FROM arrow)").fetchall() == [(4,)]
    frame = pd.DataFrame({"x": [10]})  # noqa: F841
    assert db.sql("SELECT sum(x) FROM frame").fetchall() == [(10,)]  # no plan of the old one is kept
    t = pa.table({"other": [1]})
    assert db.sql("SELECT * FROM t").columns == TABLE.column_names  # the catalog comes first
    assert (elsewhere, polars, arrays, relation, t) is not None


def test_variables_have_limits(db: Connection) -> None:
    frame, number = pd.DataFrame({"x": [1, 2]}), 3
    with pytest.raises(CatalogError, match="the Python variable of that name is a int"):
        db.sql("SELECT * FROM number")
    with pytest.raises(CatalogError, match="'frame' does not exist"):
        db.sql("CREATE VIEW v AS SELECT * FROM frame")
    db.sql("SET python_scan = false")
    with pytest.raises(CatalogError, match="'frame' does not exist"):
        db.sql("SELECT * FROM frame")
    db.sql("SET python_scan = true")
    with variables_of({"other": frame}), pytest.raises(CatalogError, match="'frame' does not exist"):
        db.sql("SELECT * FROM frame")
    with variables_of({"other": frame}):
        assert len(db.sql("SELECT * FROM other")) == 2
    assert number == 3


def test_import_stays_light() -> None:
    code = "import sys, gquery; print([m for m in ('sqlglot', 'numpy', 'pyarrow') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_long_chains(db: Connection) -> None:
    relation = db.table("t")
    for i in range(80):
        relation = relation.filter(col("b") != i + 100).with_columns(b=col("b") + 0)
    assert len(relation) == 4
    for word, test, want in (("AND", "a <> ", 4), ("OR", "a = -", 0)):
        many = f" {word} ".join(f"{test}{i + 10}" for i in range(300))
        assert len(db.table("t").filter(many)) == want
    for count in (16, 17, 32, 33, 150):
        branches = "".join(f" WHEN n = {i} THEN {i * i}" for i in range(count))
        squares = db.sql(f"SELECT CASE{branches} ELSE -1 END FROM range(200) r(n)").fetchall()
        assert squares == [(n * n if n < count else -1,) for n in range(200)]
        squares = db.sql(f"SELECT CASE{branches} END FROM range(200) r(n)").fetchall()
        assert squares == [(n * n if n < count else None,) for n in range(200)]


def test_relations_over_one_another(db: Connection) -> None:
    t = db.table("t").filter("a = 1")
    names = t.join(t, on="a").join(t, on="a").columns
    assert names[-4:] == ["b_right_right", "s_right_right", "d_right_right", "m_right_right"]
    assert len(t.join(t, on="a").join(t.filter("b > 0"), on="a")) == 4
    elsewhere = gquery.connect(device="python").sql("SELECT 1 AS k")
    assert len(t.join(elsewhere, left_on="a", right_on="k")) == len(t.filter(col("a").is_in(elsewhere))) == 2
    assert len(t.select("a").union(pa.table({"x": [5]}))) == 3
    assert db.sql("SHOW TABLES").filter("name = 'o'").fetchall() == [("o",)]
