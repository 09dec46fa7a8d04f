"""Planning ends: what nests or is long is planned with work that grows no faster than the text.

Work is counted (expressions rendered, lines of kernels), because time depends on the machine. ``python -m
benchmarks.planning --long`` prints the times.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.errors import NotSupportedError
from gquery.expression.expr import Call, Expr, Literal, Not
from gquery.expression.traverse import transform, walk
from gquery.functions import call
from gquery.kernels import ir, render
from gquery.profile.explain import MOST_TEXT
from tests.support.harness import assert_same
from tests.support.tuned import Tune

TABLES = {
    "t": pa.table({
        "x": pa.array([1, None, 7, 30, 59, -4, 12], pa.int32()),
        "y": pa.array([0, 7, None, 31, 58, 90, 12], pa.int32()),
        "s": pa.array(["a", None, "b", "a1", "", "c", "ab"]),
    })
}  # fmt: skip


def nested(template: str, levels: int, inner: str = "x") -> str:
    """A template put into itself at its ``@``, with the number of the level for ``#``."""
    text = inner
    for n in range(levels):
        text = template.replace("@", text).replace("#", str(n))
    return text


NESTED = {
    "case": "CASE WHEN y > # THEN @ ELSE # END",
    "else": "CASE WHEN y = # THEN # ELSE @ END",
    "test": "CASE WHEN @ > # THEN y ELSE x END",
    "coalesce": "coalesce(@, y - #)",
    "coalesce_right": "coalesce(nullif(y, #), @)",
    "nullif": "nullif(@, #)",
    "greatest": "greatest(@, y - #)",
    "greatest_right": "greatest(y - #, x, @)",
    "least": "least(@, y + #)",
    "if": "if(y > #, @, x)",
    "between": "CASE WHEN @ BETWEEN # AND 50 THEN x ELSE y END",
}


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[Expr]:
    """The expressions that are written as text, also those of texts that are thrown away."""
    seen: list[Expr] = []
    plain = render._render

    def counted(e: Expr, code: Any) -> Any:
        seen.append(e)
        return plain(e, code)

    monkeypatch.setattr(render, "_render", counted)
    return seen


@pytest.mark.parametrize("template", NESTED.values(), ids=NESTED)
def test_nested_levels_take_linear_work(template: str, rendered: list[Expr]) -> None:
    work = []
    for levels in (15, 30, 60):
        connection = gquery.connect("python").register("t", TABLES["t"])
        rendered.clear()
        sql = f"SELECT {nested(template, levels)} AS v FROM t"
        (kernel,) = connection.kernels(sql)
        assert len(connection.sql(sql).fetchall()) == 7
        work.append((len(rendered), ir.line_count(kernel.body)))
    for small, large in ((work[0], work[1]), (work[1], work[2])):
        assert large[0] <= 2.2 * small[0]
        assert large[1] <= 2.2 * small[1]


@pytest.mark.parametrize("template", NESTED.values(), ids=NESTED)
def test_nested_levels_have_duckdbs_answer(template: str) -> None:
    assert_same(f"SELECT {nested(template, 9)} AS v FROM t", TABLES, targets=("python",))


def test_text_in_nested_branches() -> None:
    assert_same(
        f"SELECT {nested('coalesce(nullif(@, chr(#+97)), s)', 7, 's')} AS v FROM t", TABLES, targets=("python",)
    )


def test_greatest_is_linear_in_its_arguments(rendered: list[Expr]) -> None:
    connection = gquery.connect("python").register("t", TABLES["t"])
    values = ", ".join(f"y + {n}" for n in range(200))
    (kernel,) = connection.kernels(f"SELECT greatest(x, {values}) AS v FROM t")
    assert ir.line_count(kernel.body) < 200 * 8
    assert_same("SELECT greatest(x, y, 3, NULL), least(y, x), greatest(s, 'b'), least(x * 1.5, y) FROM t", TABLES)
    assert_same(
        "SELECT greatest(x::DOUBLE, 'nan'::DOUBLE), greatest(x > 1, y > 3), least(x::DECIMAL(38,0), y) FROM t", TABLES
    )


def doubled(levels: int) -> Expr:
    """A graph of that many nodes; as a tree it has 2 ** levels."""
    e: Expr = call("add", Literal(1, gquery.expression.types.BIGINT), Literal(2, gquery.expression.types.BIGINT))
    for _ in range(levels):
        e = call("add", e, e)
    return e


def test_a_graph_is_looked_at_node_by_node() -> None:
    one, two = doubled(80), doubled(80)
    assert one == two
    assert hash(one) == hash(two)
    assert one != doubled(79)
    assert not one.nullable
    assert sum(isinstance(x, Call) for x in walk(one)) == 81
    looked_at: list[Expr] = []

    def negate(e: Expr) -> Expr:
        looked_at.append(e)
        return Not(e) if e is one else e

    negated = transform(one, negate)
    assert isinstance(negated, Not)
    assert negated.arg is one
    assert sum(isinstance(x, Call) for x in looked_at) == 81


def test_explain_cuts_long_expressions_short() -> None:
    connection = gquery.connect("python").register("t", TABLES["t"])
    sql = f"SELECT {nested('coalesce(@, y - #)', 40)} AS v FROM t"
    for level in ("bound", "optimized", "physical", "pipelines", "tree"):
        assert len(connection.explain(sql, level)) < 5 * MOST_TEXT


DEEP: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "(" * n + "x" + ")" * n,
    "sums": lambda n: " + ".join(["x::DOUBLE"] + ["y"] * n),
    "sums to the right": lambda n: "(y + " * n + "x::DOUBLE" + ")" * n,
    "negations": lambda n: "NOT " * n + "(x > 1)",
    "signs": lambda n: "- " * n + "x",
    "casts": lambda n: "CAST(" * n + "x" + " AS BIGINT)" * n,
    "functions": lambda n: "abs(" * n + "x" + ")" * n,
}


@pytest.mark.long
@pytest.mark.parametrize("shape", DEEP.values(), ids=DEEP)
def test_deep_nesting_is_planned_or_refused(shape: Callable[[int], str]) -> None:
    limit = sys.getrecursionlimit()
    connection = gquery.connect("python").register("t", TABLES["t"])
    assert len(connection.sql(f"SELECT {shape(800)} AS v FROM t").fetchall()) == 7
    with pytest.raises(NotSupportedError, match="nested too deeply"):
        connection.sql(f"SELECT {shape(20_000)} AS v FROM t").fetchall()
    assert connection.sql("SELECT 1").fetchall() == [(1,)]
    assert sys.getrecursionlimit() == limit
    assert not any(t.name == "gquery-nested" for t in threading.enumerate())


def test_deep_plans() -> None:
    connection = gquery.connect("python").register("t", TABLES["t"])
    text = "SELECT x FROM t"
    for n in range(120):
        text = f"SELECT * FROM ({text}) q{n} WHERE x > {n - 100}"
    assert connection.sql(text).fetchall() == [(30,), (59,)]
    assert "Filter" in connection.explain(text)


# ---- long queries: kernels are cut into parts, repeated tests are loops --------------------------------------------------

LONG: dict[str, Callable[[int], str]] = {
    "and": lambda n: "SELECT count(*) FROM t WHERE " + " AND ".join(f"x + {k} <> y * {k}" for k in range(n)),
    "or": lambda n: "SELECT count(*) FROM t WHERE " + " OR ".join(f"(x = {k} AND y = {k + 1})" for k in range(n)),
    "not in": lambda n: "SELECT count(*) FROM t WHERE " + " AND ".join(f"x <> {k}" for k in range(n)),
    "in": lambda n: f"SELECT count(*) FROM t WHERE x IN ({', '.join(f'y - {k}' for k in range(n))})",
    "floats": lambda n: "SELECT count(*) FROM t WHERE " + " OR ".join(f"x / 7 < y - {k}.5::DOUBLE" for k in range(n)),
}


@pytest.mark.long
@pytest.mark.parametrize("query", LONG.values(), ids=LONG)
def test_repeated_tests_have_one_kernel(query: Callable[[int], str]) -> None:
    connection = gquery.connect("python").register("t", TABLES["t"])
    texts = [[k.text for k in connection.kernels(query(n), "cpu")] for n in (120, 360)]
    assert texts[0] == texts[1]
    assert all(text.count("\n") < 300 for text in texts[0])


@pytest.mark.parametrize("query", LONG.values(), ids=LONG)
def test_repeated_tests_have_duckdbs_answer(query: Callable[[int], str]) -> None:
    assert_same(query(60), TABLES)
    assert_same(query(60).replace("count(*) FROM t WHERE", "*,") + " AS v FROM t", TABLES, targets=("python",))


MANY: dict[str, Callable[[int], str]] = {
    "columns": lambda n: "SELECT " + ", ".join(f"x * {k} + coalesce(y, {k}) AS c{k}" for k in range(n)) + " FROM t",
    "sums": lambda n: "SELECT " + ", ".join(f"sum(x % {k + 2}) AS c{k}" for k in range(n)) + " FROM t",
    "groups": lambda n: "SELECT s, " + ", ".join(f"max(x + {k}) AS c{k}" for k in range(n)) + " FROM t GROUP BY s",
    "branches": lambda n: f"SELECT CASE {' '.join(f'WHEN y = {k} THEN x + {k}' for k in range(n))} END AS c FROM t",
    "terms": lambda n: (
        "SELECT count(*) FROM t WHERE " + " AND ".join(f"x + {k} {'<>' if k % 3 else '<'} y * {k}" for k in range(n))
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("query", MANY.values(), ids=MANY)
def test_functions_of_a_long_kernel_are_short(query: Callable[[int], str]) -> None:
    connection = gquery.connect("python").register("t", TABLES["t"])
    sizes = []
    for n in (150, 300):
        kernels = connection.kernels(query(n), "cpu")
        assert len(connection.sql(query(n)).fetchall()) > 0
        for kernel in kernels:
            assert ir.line_count(kernel.body) <= 400
            assert all(len(part.lines) <= 120 for part in kernel.parts)
            assert all(len(part.parameters) <= 80 for part in kernel.parts), "constants are an array"
            assert sum(not p.is_pointer for p in kernel.parameters) <= 80
        sizes.append(sum(k.text.count("\n") for k in kernels))
    assert sizes[1] <= 2.2 * sizes[0]


@pytest.mark.parametrize("query", MANY.values(), ids=MANY)
def test_planning_for_a_cpu_cuts_no_kernel(
    query: Callable[[int], str], tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only who compiles one does: it takes as long as all other planning, for kernels that may lie on disk."""
    tune(tuning.loops, marked_least_rows=1)
    tune(tuning.kernel_parts, lines=20)
    connection = gquery.connect("cpu").register("t", TABLES["t"])
    cut: list[ir.Block] = []

    def parted(body: ir.Block, outside: ir.Block) -> tuple[ir.Block, tuple[ir.Function, ...]]:
        cut.append(body)
        return body, ()

    monkeypatch.setattr("gquery.kernels.parts.parted", parted)
    kernels = connection.kernels(query(50), "cpu")
    assert any(kernel.is_long for kernel in kernels)
    assert [len(kernel.digest) for kernel in kernels] == [32] * len(kernels)
    assert not cut
    assert any(kernel.parts == () for kernel in kernels)
    assert cut


@pytest.fixture
def small_parts(tune: Tune) -> None:
    """Nearly every kernel is cut into parts, has its constants in an array and is given its arguments in one."""
    tune(tuning.kernel_parts, lines=8, depth=3, part_lines=6, part_depth=2, calls=3)
    tune(tuning.kernel_texts, own_constants=2)
    tune(tuning.compiling, arguments=5)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("targets", [("python",), ("cpu",)], ids=["python", "cpu"])
def test_parts_keep_the_meaning(targets: tuple[str, ...]) -> None:
    for query in MANY.values() if targets == ("python",) else (MANY["columns"], MANY["terms"]):
        assert_same(query(6), TABLES, targets=targets)
    passed = " AND ".join(f"x + {k} > y - {k + 20}.5" if k % 3 else f"x - {k} < y + {k + 20}" for k in range(14))
    assert_same(f"SELECT count(*), sum(x) FROM t WHERE {passed}", TABLES, targets=targets)
    for sql in (
        "SELECT a.x, b.y, a.s || b.s AS v FROM t a JOIN t b ON a.x > b.y WHERE a.s <> b.s OR a.x IS NULL",
        "SELECT a.x, count(*), sum(b.y * 2), min(b.s) FROM t a LEFT JOIN t b ON a.x = b.y GROUP BY a.x",
        "SELECT x, y FROM t WHERE x NOT IN (SELECT y FROM t WHERE y > 3) OR EXISTS (SELECT 1 FROM t u WHERE u.x = t.y)",
        "SELECT DISTINCT greatest(x, y, 5), CASE WHEN x > 3 THEN CASE WHEN y > 3 THEN 'a' ELSE s END END FROM t",
    ):
        assert_same(sql, TABLES, targets=targets)


def test_a_long_kernel_is_interpreted_for_more_rows() -> None:
    """It takes as much longer to compile; a long loop over a join's rows does not."""
    terms = " AND ".join(f"x + {k} <> y * {k}" if k % 2 else f"x - {k} < y + {k}" for k in range(300))
    places = {}
    with gquery.connect(device="cpu") as connection:
        connection.sql("CREATE TABLE t AS SELECT range AS x, range % 9 AS y FROM range(400)")
        connection.sql("CREATE TABLE u AS SELECT * FROM t, range(100)")
        for name, sql in {
            "long": f"SELECT count(*) FROM t WHERE {terms}",
            "long, many rows": f"SELECT count(*) FROM u WHERE {terms}",
            "short": "SELECT count(*) FROM t WHERE x > y",
            "join": "SELECT count(*) FROM t, u WHERE t.x < u.y",
        }.items():
            ((text,),) = connection.sql(f"EXPLAIN {sql}").fetchall()
            places[name] = text
    assert "too few for so long a kernel" in places["long"]
    assert "too few" not in places["long, many rows"]
    assert "fewer than interpret_limit" in places["short"]
    assert "too few" not in places["join"]
