"""Groups by what the host makes: DuckDB's answers with moments cut to each part, what cannot be a key of the first groups, and
when the second pass pays."""

from __future__ import annotations

import datetime as dt
import inspect
import random
from decimal import Decimal

import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.errors import ConversionError, OutOfRangeError
from gquery.expression.expr import Call, new_column
from gquery.expression.types import BIGINT
from gquery.functions import FUNCTIONS
from gquery.functions.date_formats import SPECIFIERS, deciding_part
from gquery.functions.date_names import _SPECIFIERS
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.rules.group_by_arguments import _bounds
from tests.support.harness import assert_error, assert_same
from tests.support.tuned import Tune

ROWS = 400


def _table(seed: int, nulls: float = 0.15) -> pa.Table:
    rng = random.Random(seed)

    def maybe(value: object) -> object:
        return None if rng.random() < nulls else value

    first = dt.datetime(rng.choice((1, 1899, 1999)), 1, 1)
    moments = [first + dt.timedelta(minutes=rng.randrange(3_000_000)) for _ in range(ROWS)]
    return pa.table(
        {
            "n": pa.array([maybe(rng.randrange(-9, 9)) for _ in range(ROWS)], pa.int64()),
            "h": pa.array([maybe(rng.randrange(3)) for _ in range(ROWS)], pa.int8()),
            "b": pa.array([maybe(rng.random() < 0.5) for _ in range(ROWS)], pa.bool_()),
            "s": pa.array([maybe(rng.choice(("a", "B", "", "ab"))) for _ in range(ROWS)], pa.string()),
            "d": pa.array([maybe(m.date()) for m in moments], pa.date32()),
            "t": pa.array([maybe(m) for m in moments], pa.timestamp("us")),
            "x": pa.array([maybe(rng.choice((0.0, -0.0, 1.5, float("nan")))) for _ in range(ROWS)], pa.float64()),
            "m": pa.array([maybe(rng.choice(("5", "17", "-3"))) for _ in range(ROWS)], pa.string()),
        }
    )


KEYS = [
    "strftime(t, '%Y')", "strftime(t, '%Y-%m')", "strftime(t, '%d.%m.%y')", "strftime(t, '%a %H:%M')", "strftime(t, '%H')",
    "strftime(t, '%Y-%m-%d %H:%M:%S')", "strftime(d, '%b %Y')", "strftime(d, '%j')", "strftime(d, '%H:%M')", "strftime(t, 'x')",
    "dayname(t)", "monthname(t)", "dayname(d)", "monthname(d)", "dayname(d) || strftime(t, '-%m')",
    "CAST(n AS VARCHAR)", "CAST(d AS VARCHAR)", "CAST(b AS VARCHAR)", "CAST(t AS VARCHAR)", "s || '-' || h",
    "concat_ws('/', h, b, s)",
    "year(t) || '-' || month(t)", "CASE WHEN n > 2 THEN 'high ' || h ELSE 'low' END", "upper(s) || CAST(n AS VARCHAR)",
    "CASE WHEN h > 0 THEN CAST(n // h AS VARCHAR) ELSE s END", "CAST(x AS VARCHAR)", "CAST(m AS INTEGER) + n", "lower(s)",
    "substr(s || n, 1, 2)", "length(CAST(n AS VARCHAR))", "CAST(n AS VARCHAR) = '5'", "strftime(t + INTERVAL 1 DAY, '%Y-%m')",
    "CAST(n + 9 << h AS VARCHAR)", "CAST(h << 2 AS VARCHAR)", "CAST(abs(n) AS VARCHAR)", "CAST(n & h AS VARCHAR)",
    "hour(t) || ':'",
]  # fmt: skip
CALLS = (
    "count(*), sum(n), avg(n), min(s), max(d), count(x), bool_or(b)",
    "count(*) FILTER (h = 1), sum(n) FILTER (b), avg(h) FILTER (n > 100), max(t)",
)


@pytest.fixture(autouse=True)
def few(tune: Tune) -> None:
    """Few rows are grouped twice, as many are."""
    tune(tuning.rewrites, argument_rows=0.0, rows_an_argument=0.0)


@pytest.mark.parametrize("days", [0.0, 1e18], ids=["days", "months"])
@pytest.mark.parametrize("key", KEYS)
def test_answers(key: str, days: float, tune: Tune) -> None:
    tune(tuning.rewrites, rows_a_day=days)
    seed = KEYS.index(key)
    tables = {"t": _table(seed, (0.15, 0.0, 1.0)[seed % 3])}
    calls = CALLS[seed % 2]
    targets, ranks = (("python",), (1, 3)) if seed % 4 else (("python", "cpu"), (1,))
    for sql in (
        f"SELECT {key} AS k, {calls} FROM t GROUP BY k",
        f"SELECT DISTINCT {key} AS k FROM t",
        f"SELECT {key} AS k, b, {calls} FROM t WHERE n <> 3 GROUP BY k, b HAVING count(*) > 1",
        f"SELECT count(DISTINCT {key}) FROM t",
    ):
        assert_same(sql, tables, targets=targets, ranks=ranks)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT strftime(t, '%Y') AS k, s, n, median(n) FROM t GROUP BY ALL",
        "SELECT CAST(h AS VARCHAR) AS k, list(n ORDER BY n), count(*) FROM t GROUP BY k",
        "SELECT CAST(h AS VARCHAR) AS k, count(DISTINCT n) FROM t GROUP BY k",
        "SELECT k, h, count(*) FROM (SELECT CAST(h AS VARCHAR) || 'x' AS k, h FROM t) GROUP BY k, h",
        "SELECT k, max(k), count(*) FROM (SELECT CAST(h AS VARCHAR) || 'x' AS k FROM t) GROUP BY k",
        "SELECT k, sum(n) FROM (SELECT h || 'x' AS k, n + 1 AS n FROM t) GROUP BY k",
        "SELECT h, h + 1 AS i, CAST(h AS VARCHAR) AS k, h || '-' || s AS l, s, count(*) FROM t GROUP BY ALL",
        "SELECT CAST(h AS VARCHAR) AS k, b, grouping(k, b), count(*) FROM t GROUP BY CUBE (k, b)",
        "SELECT TRY_CAST(h AS VARCHAR) AS k, TIMESTAMPTZ '2001-01-01 00:00:00+02' AS m, min(n) FROM t GROUP BY 1, 2",
        "SELECT strftime(t, '%Y') AS k, 7 AS m, sum(n), first(b) IS NULL AND false FROM t GROUP BY k, m",
        "SELECT a.h || 'x' AS k, count(*), sum(c.n) FROM t a JOIN t c USING (n) GROUP BY k",
        "SELECT (SELECT count(*) FROM (SELECT DISTINCT h || s FROM t WHERE n = a.n)) FROM t a",
        "SELECT k, count(*) FROM (SELECT strftime(t, '%m') AS k FROM t UNION ALL SELECT h::VARCHAR FROM t) GROUP BY k",
    ],
)
def test_answers_of_other_queries(sql: str) -> None:
    assert_same(sql, {"t": _table(5)}, targets=("python", "cpu"), ranks=(1, 3))


def test_a_text_that_is_no_number_is_the_same_error() -> None:
    tables = {"t": _table(1)}
    for sql in (
        "SELECT CAST(s AS INTEGER) + n AS k FROM t GROUP BY k",
        "SELECT CAST(s AS INTEGER) AS k, n FROM t GROUP BY ALL",
    ):
        assert (
            "could not convert" in assert_error(sql, tables, ConversionError, targets=("python",), ranks=(1,)).lower()
        )


def test_infinite_moments_keep_their_texts(tune: Tune) -> None:
    """Such ones come from files; a part of time of one is an error, its text is none."""
    end, day = 2**63 - 1, 2**31 - 1
    table = pa.table(
        {
            "t": pa.array([0, end, -end, None, 1, end], pa.int64()).cast(pa.timestamp("us")),
            "d": pa.array([0, day, -day, None, 1, day], pa.int32()).cast(pa.date32()),
        }
    )
    texts = [
        "strftime(t, '%Y-%m')",
        "strftime(d, '%Y')",
        "strftime(t, '%d')",
        "strftime(t, '%H')",
        "dayname(t)",
        "monthname(d)",
    ]
    for days in (0.0, 1e18):
        tune(tuning.rewrites, rows_a_day=days)
        for text in texts:
            sql = f"SELECT {text} AS k, count(*) FROM q GROUP BY k ORDER BY k NULLS FIRST"
            found = []
            for off in ("", "group_by_arguments"):
                with gquery.connect() as db:
                    db.register("q", table)
                    db.sql(f"SET disabled_rules = '{off}'")
                    found.append(db.sql(sql).fetchall())
            assert found[0] == found[1], text


def _plans(db: gquery.Connection, sql: str) -> int:
    """How many aggregates there are once what the columns hold is known."""
    db.sql(sql).fetchall()
    return db.sql(sql).explain("optimized").count("Aggregate")


@pytest.mark.parametrize(
    ("key", "aggregates"),
    [
        ("strftime(t, '%Y-%m')", 2),
        ("strftime(t, '%Y-%m-%d %H:%M:%S')", 1),  # as many moments as rows
        ("CAST(few AS VARCHAR)", 2),
        ("CAST(many AS VARCHAR)", 1),
        ("few || '-' || s", 2),
        ("upper(s)", 1),  # looked up by its code
        ("CAST(x AS VARCHAR)", 1),  # 0.0 and -0.0
        ("CASE WHEN few > 0 THEN CAST(7 // few AS VARCHAR) ELSE '' END", 1),  # nobody divides by 0
        ("CASE WHEN few > 0 THEN CAST(few AS VARCHAR) ELSE '' END", 2),
    ],
)
def test_where_it_pays(key: str, aggregates: int, tune: Tune) -> None:
    tune(tuning.rewrites, argument_rows=1000.0, rows_an_argument=8.0)
    with gquery.connect() as db:
        db.sql(
            "CREATE TABLE q AS SELECT range AS many, range % 7 AS few, 's' || range % 5 AS s, (range % 3)::DOUBLE AS x, "
            "TIMESTAMP '2001-01-01' + INTERVAL (range * 7) SECOND AS t FROM range(20_000)"
        ).fetchall()
        db.sql("SELECT max(many), max(few), max(s), max(x), max(t) FROM q").fetchall()
        assert _plans(db, f"SELECT {key} AS k, count(*), avg(few) FROM q GROUP BY k") == aggregates
        tune(tuning.rewrites, argument_rows=30_000.0)
        assert _plans(db, f"SELECT {key} AS k, count(*), max(few) FROM q GROUP BY k") == 1


def test_another_format_gets_another_plan(tune: Tune) -> None:
    """Formats of one template that other parts of a moment decide."""
    tune(tuning.rewrites, rows_a_day=1e18)
    tables = {"t": _table(4)}
    for text in ("%Y", "%m", "%d", "%H", "%M", "%S", "%Y-%m", "", "%f", "%Y %H", "%"):
        if text in ("", "%"):
            assert_error(
                f"SELECT strftime(t, '{text}') AS k, count(*) FROM t GROUP BY k",
                tables,
                gquery.Error,
                targets=("python",),
                ranks=(1,),
            )
        else:
            assert_same(
                f"SELECT strftime(t, '{text}') AS k, count(*) FROM t GROUP BY k",
                tables,
                targets=("python",),
                ranks=(1,),
            )


@pytest.mark.parametrize("name", sorted(name for name, f in FUNCTIONS.items() if f.bounds is not None))
def test_ranges_of_functions_of_unknown_values_are_unknown(name: str) -> None:
    """Rules of bounds may count on those of the arguments."""
    rule = FUNCTIONS[name].bounds
    assert rule is not None
    columns = [new_column("x", BIGINT, True) for _ in inspect.signature(rule).parameters]
    assert not columns or _bounds(Call(name, tuple(columns), BIGINT, True), Estimator()) is None


def test_each_specifier_has_a_function() -> None:
    assert _SPECIFIERS.keys() == SPECIFIERS


@pytest.mark.parametrize("name", sorted(SPECIFIERS))
def test_the_part_that_decides_a_specifier(name: str) -> None:
    """Moments of one such part have one text."""
    part = deciding_part(f"%{name}")
    if part is None:
        return
    cuts = {"hour_of_day": "hour(t)", "minute_of_day": "(hour(t), minute(t))"}
    cut = cuts.get(part, f"date_trunc('{part}', t)")
    rows = ", ".join(
        f"('{dt.datetime(1996, 2, 29, 23, 59, 59) + dt.timedelta(hours=h * 7.3)}'::TIMESTAMP)" for h in range(2000)
    )
    several = f"HAVING count(DISTINCT strftime(t, '%{name}')) > 1"
    sql = f"SELECT count(*) FROM (SELECT {cut} AS c FROM (VALUES {rows}) v(t) GROUP BY c {several})"
    with gquery.connect() as db:
        db.sql("SET disabled_rules = 'group_by_arguments'")
        assert db.sql(sql).fetchall() == [(0,)]


@pytest.mark.parametrize("text", ["length(CAST(g AS VARCHAR))", "CAST(g > 0 AS VARCHAR)"])
def test_totals_of_parts_need_not_fit(text: str) -> None:
    """Where that of a group does; where it does not, that is the error."""
    big, wide = 2**63 - 1, 10**38 - 1
    numbers = {"g": [1, 1, 2, 2, 3], "k": pa.array([big, big, -big, -big, 5], pa.int64())}
    decimals = pa.array([Decimal(n) for n in (wide, wide, -wide, -wide, 5)], pa.decimal128(38, 0))
    tables = {"t": pa.table(numbers | {"w": decimals})}
    for calls in ("sum(k), avg(k), count(k)", "sum(k) FILTER (g < 9)", "max(k)"):
        assert_same(f"SELECT {text} AS l, {calls} FROM t GROUP BY l", tables, targets=("python", "cpu"), ranks=(1, 3))
    with gquery.connect("python") as db:  # DuckDB's own sum is too large before its end
        whole = db.register("t", tables["t"]).sql(f"SELECT {text} AS l, sum(w) FROM t GROUP BY l")
        assert [n for _, n in whole.fetchall()] == [5]
    failing = f"SELECT {text} AS l, sum(k) FROM t WHERE k > 0 GROUP BY l"
    assert_error(failing, tables, OutOfRangeError, targets=("python",), ranks=(1, 3))
