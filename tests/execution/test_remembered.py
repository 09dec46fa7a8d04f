"""What planning remembers so as not to find it out twice: it must be right, and belong to one thing alone."""

from __future__ import annotations

import datetime
import inspect
import pickle
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.expression.exact import exact
from gquery.expression.expr import Call, Expr, In, Literal, ScalarSubquery, new_column
from gquery.expression.traverse import conjunction, transform, walk
from gquery.expression.types import BOOLEAN, DOUBLE, INTEGER
from gquery.functions import FUNCTIONS
from gquery.kernels.code import Code
from gquery.kernels.host import evaluate
from gquery.kernels.kernel import function_source
from gquery.kernels.render import describe
from gquery.kernels.targets import get_target
from gquery.kernels.values import value_properties
from gquery.planner.logical.tree import has_subquery, own_subqueries, subqueries, used_columns
from gquery.planner.logical.tree import walk as walk_plan
from tests.support import plans
from tests.support.harness import assert_same, connect


def _equal(a: Expr, b: Expr) -> Call:
    return Call("eq", (a, b), BOOLEAN, True)


def test_a_copy_with_other_parts_knows_nothing_of_the_first() -> None:
    a, b = new_column("a", INTEGER), new_column("b", INTEGER)
    first = _equal(a, Literal(1, INTEGER))
    assert (used_columns(first), hash(first)) == (frozenset({a.id}), hash(_equal(a, Literal(1, INTEGER))))
    second = replace(first, args=(b, a))
    assert used_columns(second) == frozenset({a.id, b.id})
    assert hash(second) == hash(_equal(b, a)) != hash(first)
    third = transform(first, lambda e: b if e is a else e)
    assert used_columns(third) == frozenset({b.id})
    assert used_columns(first) == frozenset({a.id})


def test_nothing_remembered_goes_into_another_process() -> None:
    e = _equal(new_column("a", INTEGER), Literal("text", INTEGER))
    hash(e), used_columns(e), subqueries(e)
    other = pickle.loads(pickle.dumps(e))
    assert all(getattr(other, name) is None for name in type(other).REMEMBERED)
    assert other == e


def test_subqueries_outermost_first_and_what_they_read() -> None:
    query = plans.bound("SELECT id FROM a WHERE x > (SELECT max(y) FROM b WHERE b.k = a.k AND y IN (SELECT v FROM n))")
    (held,) = [s for node in walk_plan(query.plan) for s in own_subqueries(node)]
    assert isinstance(held, ScalarSubquery)
    (inner,) = [s for node in walk_plan(held.plan) for s in own_subqueries(node)]
    both = conjunction((_equal(held, Literal(1, INTEGER)), inner))
    assert subqueries(both) == (held, inner)
    assert has_subquery(both)
    assert not has_subquery(_equal(Literal(1, INTEGER), Literal(1, INTEGER)))
    outer = {c.id for node in walk_plan(query.plan) for c in node.columns if c.name == "k"}
    assert len(used_columns(held)) == 1
    assert used_columns(held) <= outer


def test_walk_goes_parents_first_and_from_the_left() -> None:
    a, b, c = (new_column(n, INTEGER) for n in "abc")
    left, right = _equal(a, b), _equal(b, c)
    both = conjunction((left, right))
    assert list(walk(both)) == [both, left, a, b, right, b, c]


def test_constants_of_one_form_share_a_kernel() -> None:
    def plus(x: int, y: int) -> Call:
        return Call("add", (Literal(x, INTEGER), Literal(y, INTEGER)), INTEGER, False)

    held = get_target("python").held
    assert evaluate(plus(1, 2)) == Literal(3, INTEGER)
    before = len(held())
    assert [evaluate(plus(n, 10 * n)) for n in range(2, 5)] == [Literal(11 * n, INTEGER) for n in range(2, 5)]
    assert len(held()) == before


def test_a_constant_that_raises_does_not_spoil_the_next() -> None:
    def plus(x: int) -> Call:
        return Call("add", (Literal(x, INTEGER), Literal(1, INTEGER)), INTEGER, False)

    assert evaluate(plus(2**31 - 1)) is None
    assert evaluate(plus(1)) == Literal(2, INTEGER)


def test_the_text_of_a_function_is_what_inspect_gives() -> None:
    bodies = [f.body for f in FUNCTIONS.values() if f.body is not None]
    assert len(bodies) > 50
    assert all(function_source(body) == inspect.getsource(body) for body in bodies)


def test_describing_leaves_the_columns_alone() -> None:
    a = new_column("a", INTEGER, False)
    columns = {a.id: value_properties(INTEGER, None, False)}
    known = describe(_equal(a, Literal(3, INTEGER)), columns)
    assert known.dtype == BOOLEAN
    assert columns == {a.id: value_properties(INTEGER, None, False)}
    assert Code("cpu").known == {}


def test_a_kept_plan_is_neither_parsed_nor_lowered_again() -> None:
    with gquery.connect(device="python") as connection:
        connection.register("t", {"x": [1, 2, 3]})
        text = "SELECT sum(x) AS s FROM t WHERE x > 1"
        assert connection.sql(text).fetchall() == [(5,)]
        (kept,) = connection._plans.values()
        program = kept.program
        assert connection.sql(text).fetchall() == [(5,)]
        assert list(connection._plans.values()) == [kept]
        assert kept.program is program is not None
        connection.register("t", {"x": [4]})
        assert connection.sql(text).fetchall() == [(4,)]


ALIKE: tuple[object, ...] = (
    True, 1, 1.0, "1", Decimal("1"), Decimal("1.0"), Decimal("1.00"), np.float64(1), np.float32(1), np.int8(1), np.int64(1),
    np.True_, 0.0, -0.0, Decimal("0"), Decimal("-0.0"), np.float32(-0.0), False, 0, float("nan"),
    datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1),
)  # fmt: skip
AWARE = (
    datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    datetime.datetime(2020, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
)


@pytest.mark.parametrize("target", ["python", "cpu"])
def test_values_that_python_takes_for_equal(target: str) -> None:
    """They are other values to SQL: a plan that was kept for one is not the other's."""
    kept, fresh = gquery.connect(device=target), gquery.connect(device=target)
    for value in (*ALIKE, *reversed(ALIKE)):
        for sql, params in (("SELECT $1::VARCHAR, $1", [value]), ("SELECT $x::VARCHAR, $x", {"x": value})):
            fresh._plans.clear()
            got, want = kept.sql(sql, params), fresh.sql(sql, params)
            assert [str(t) for t in got.types] == [str(t) for t in want.types]
            assert repr(got.fetchall()) == repr(want.fetchall())


def test_keys_of_values() -> None:
    keys = [exact(v) for v in (*ALIKE, *AWARE)]
    assert len(set(keys)) == len(ALIKE) + len(AWARE)
    assert [exact(v) for v in (*ALIKE, *AWARE)] == keys, "a NaN has the key of a NaN"
    assert exact([1, (2.0,)]) != exact([1, (2,)])
    assert exact({"a": 1}) != exact({"a": True})
    with pytest.raises(TypeError):
        exact([object.__new__(bytearray)])


def test_constants_of_a_plan_are_told_apart() -> None:
    assert Literal(0.0, DOUBLE) != Literal(-0.0, DOUBLE)
    assert Literal(float("nan"), DOUBLE) == Literal(float("nan"), DOUBLE)
    assert (
        len({Literal(0.0, DOUBLE), Literal(-0.0, DOUBLE), Literal(float("nan"), DOUBLE), Literal(float("nan"), DOUBLE)})
        == 3
    )
    column = new_column("x", DOUBLE)
    one = Literal(1.0, DOUBLE)
    assert In(column, (Literal(0.0, DOUBLE), one)) != In(column, (Literal(-0.0, DOUBLE), one))


@pytest.mark.parametrize("target", ["python", "cpu"])
def test_zeros_of_both_signs_in_one_query(target: str) -> None:
    """DuckDB computes such expressions once for both, so it is no oracle here."""
    inf = float("inf")
    db = connect(target, 1, {"t": pa.table({"x": [1.5, 0.0, -0.0, None], "k": [1, 1, 2, 2]})})
    assert db.sql("SELECT 1 / (x * 0.0e0), 1 / (x * -0.0e0) FROM t WHERE x = 1.5").fetchall() == [(inf, -inf)]


def test_groups_of_nan() -> None:
    tables = {"t": pa.table({"x": [1.5, 0.0, -0.0, None], "k": [1, 1, 2, 2]})}
    assert_same("SELECT x + 'nan'::DOUBLE AS n, count(*) FROM t GROUP BY x + 'nan'::DOUBLE", tables)
