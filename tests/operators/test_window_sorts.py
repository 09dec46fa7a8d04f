"""Windows that share a sort: which ones do, that answers are those of sorts of their own, that ties keep the input's order."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery.expression.expr import Column, SortKey
from gquery.expression.types import BIGINT
from gquery.kernels.builtin import order
from gquery.planner.window_sorts import Over, shared_sorts

A, B, C, D = (Column(n, name, BIGINT, True) for n, name in enumerate("abcd"))


def _over(partition: str, order: str, sees_ties: bool = False) -> Over:
    names = {c.name: c for c in (A, B, C, D)}
    keys = [SortKey(names[k.strip("-")], k.startswith("-")) for k in order.split()]
    return Over(tuple(names[k] for k in partition.split()), tuple(keys), sees_ties)


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([("a", "b"), ("a", "b c")], {"a b c": [1, 0]}),  # a prefix
        ([("a b", "c"), ("b", "a c")], {"b a c": [0, 1]}),  # partition keys are a set, in any order
        ([("a b", "-c"), ("b", "-a -c")], {"b -a -c": [0, 1]}),  # and in any direction
        ([("a b c", ""), ("c", "b"), ("c", "")], {"c b a": [0, 1, 2]}),
        ([("a", "-b"), ("a", "b c")], {"": [0, 1]}),  # another direction
        ([("a", "b"), ("b", "a")], {"": [0, 1]}),  # as long, and different
        ([("a", "a b"), ("", "a b c")], {"a b c": [1, 0]}),  # a partition's key does not order it
        ([("", ""), ("a", "b")], {"": [0, 1]}),  # no keys, no sort
        ([("a", "b"), ("c", "d"), ("c d", ""), ("a", "")], {"a b": [0, 3], "c d": [1, 2]}),
    ],
)
def test_which_share(windows: list[tuple[str, str]], expected: dict[str, list[int]]) -> None:
    found: dict[str, list[int]] = {}
    for n, keys in shared_sorts([_over(*w) for w in windows]):
        found.setdefault(" ".join(f"{'-' * k.descending}{_name(k)}" for k in keys), []).append(n)
    assert found == expected


def _name(key: SortKey) -> str:
    assert isinstance(key.expr, Column)
    return key.expr.name


def test_who_sees_ties_shares_sorts_of_equal_keys_alone() -> None:
    ranks, numbers, same = _over("a", "b c"), _over("a", "b", sees_ties=True), _over("b a", "c", sees_ties=True)
    assert dict(shared_sorts([ranks, numbers])) == {0: (), 1: ()}
    assert {n for n, keys in shared_sorts([ranks, numbers, same]) if keys} == {0, 2}


TABLES = {
    "t": pa.table(
        {
            "id": range(60),
            "a": [None if n % 7 == 0 else n * 5 % 4 for n in range(60)],
            "b": [None if n % 11 == 0 else n * 3 % 5 for n in range(60)],
            "c": [n * 17 % 3 for n in range(60)],
        }
    )
}
SHARED = (
    "SELECT id, rank() OVER (PARTITION BY a ORDER BY b), sum(c) OVER (PARTITION BY a ORDER BY b, c, id),"
    " row_number() OVER (PARTITION BY b, a ORDER BY c, id), min(c) OVER (PARTITION BY a ORDER BY b DESC NULLS LAST) FROM t"
)


def test_one_sort_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    sorts: list[str] = []

    def counted(name: str) -> Callable[..., Any]:
        original = getattr(order, name)

        def sort(*args: Any, **named: Any) -> Any:
            sorts.append(name)
            return original(*args, **named)

        return sort

    for name in ("sort_order", "sort_partitions"):
        monkeypatch.setattr(order, name, counted(name))
    connection = gquery.connect("python")
    connection.register("t", TABLES["t"])
    connection.sql(SHARED).fetchall()
    assert len(sorts) == 2  # of three windows whose keys begin alike, and of one in another direction
    sorts.clear()
    sql = "SELECT id, sum(c) OVER (ORDER BY a, b ROWS 2 PRECEDING) FROM (SELECT * FROM t ORDER BY a, b, c)"
    connection.sql(sql).fetchall()
    assert sorts == ["sort_order"]  # that of the source


def test_ties_come_as_in_the_source() -> None:
    connection = gquery.connect("python")
    connection.register("t", TABLES["t"])
    alone = "row_number() OVER (PARTITION BY a ORDER BY b)"
    others = "rank() OVER (PARTITION BY a ORDER BY b, c DESC), sum(id) OVER (PARTITION BY a, b ORDER BY c DESC)"
    rows = connection.sql(f"SELECT id, {alone} FROM t ORDER BY id").fetchall()
    assert [row[:2] for row in connection.sql(f"SELECT id, {alone}, {others} FROM t ORDER BY id").fetchall()] == rows


def test_generated() -> None:
    connection, oracle = gquery.connect("python"), duckdb.connect()
    connection.register("t", TABLES["t"])
    oracle.register("t", TABLES["t"])
    for seed in range(12):
        r = random.Random(seed)
        calls = [_call(r) for _ in range(r.randrange(2, 5))]
        sql = f"SELECT id, {', '.join(calls)} FROM {r.choice(('t', '(SELECT * FROM t ORDER BY a, b)'))} ORDER BY id"
        assert connection.sql(sql).fetchall() == oracle.sql(sql).fetchall(), sql


def _call(r: random.Random) -> str:
    partition = r.sample("abc", r.choice((0, 1, 1, 2)))
    order = [k + r.choice(("", "", " DESC", " NULLS FIRST")) for k in r.sample("abc", r.choice((1, 1, 2)))]
    calls = ("rank()", "dense_rank()", "cume_dist()", "sum(c)", "count(b)", "max(b)", "count(DISTINCT c)", "bit_xor(b)")
    call = r.choice(calls)
    if r.random() < 0.4:
        order, call = [*order, "id"], r.choice(("row_number()", "lag(c)", "list(c)", "first_value(id)"))
    first = f"PARTITION BY {', '.join(partition)} " if partition else ""
    return f"{call} OVER ({first}ORDER BY {', '.join(order)})"
