"""Methods of frames beyond what Polars gives the same answers to, and what is said of arguments that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import gquery
from gquery import Relation, col
from gquery.errors import BindError, Error, InterfaceError

Asked = Callable[[Any], Any]
g: Any = gquery


@pytest.fixture(scope="module")
def t() -> Iterator[Relation]:
    with gquery.connect("python") as db:
        yield db.from_data({"a": [1, None, 3, 9], "b": [4, 5, 6, 7], "k": ["x", "y", "x", "y"], "t": [True, False, None, True]})


ROWS: dict[str, tuple[Asked, Any]] = {
    "rows": (lambda t: t.select("a", "k").rows(), [(1, "x"), (None, "y"), (3, "x"), (9, "y")]),
    "named rows": (lambda t: t[["b"]].rows(named=True), [{"b": 4}, {"b": 5}, {"b": 6}, {"b": 7}]),
    "first row": (lambda t: t.row(0), (1, 4, "x", True)),
    "last row": (lambda t: t.row(-1, named=True), {"a": 9, "b": 7, "k": "y", "t": True}),
    "item": (lambda t: t["b"].sum().item(), 22),
    "item of a place": (lambda t: (t.item(3, "a"), t.item(-1, -2)), (9, "y")),
    "to_dict": (lambda t: t["a", "b"].to_dict(), {"a": [1, None, 3, 9], "b": [4, 5, 6, 7]}),
    "to_dicts of none": (lambda t: t.filter(k="z").to_dicts(), []),
    "a name twice": (lambda t: t.sql("SELECT b, b FROM self LIMIT 1").to_dict(), {"b": [4], "b_1": [4]}),
    "schema": (lambda t: {n: str(d) for n, d in t["a", "k"].schema.items()}, {"a": "BIGINT", "k": "VARCHAR"}),
    "sizes": (lambda t: (t.height, t.width, t.is_empty(), t.filter(k="z").is_empty()), (4, 4, False, True)),
    "pandas": (lambda t: t.to_pandas().shape, (4, 4)),
    "value_counts": (lambda t: t.filter(col("b") > 4).value_counts("k").rows(), [("y", 2), ("x", 1)]),
    "value_counts of all": (lambda t: t["k", "t"].value_counts(name="n").height, 4),
    "n_unique": (lambda t: t[["k"]].n_unique(), 2),
    "a step": (lambda t: t[1::2].to_dict()["b"], [5, 7]),
    "sample": (lambda t: t.sample(3, seed=5).height, 3),
    "the same sample": (lambda t: t.sample(2, seed=5).rows() == t.sample(2, seed=5).rows(), True),
    "all of a sample": (lambda t: sorted(r[1] for r in t.sample(fraction=1.0).rows()), [4, 5, 6, 7]),
    "no sample": (lambda t: t.sample(0).rows(), []),
    "text in a replacement": (lambda t: t.select(col("k").replace("x", "zz")).rows(), [("zz",), ("y",), ("zz",), ("y",)]),
    "aggregates of SQL text": (lambda t: t.with_columns("sum(b) AS s").select("s").rows(), [(22,)] * 4),
    "a name keeps what it was": (lambda t: t.with_columns(col("b").sum()).columns[-1], "sum(b)"),
    "sums of sums": (lambda t: t.group_by("k", maintain_order=True).agg(s=col("b").sum() / col("b").sum().sum()).rows(),
                     [("x", 0.5), ("y", 0.5)]),
    "a frame sum of text": (lambda t: t[["k"]].sum().rows(), [(None,)]),
    "no rows": (lambda t: t.filter(k="z").max().rows(), [(None,) * 4]),
    "names with ends of lines": (
        lambda t: [t.select(col("a").alias("x\ny"), "b").select(e).columns for e in (g.all(), g.exclude("b"), col("*"))],
        [["x\ny", "b"], ["x\ny"], ["x\ny", "b"]]),
    "a join on pairs": (lambda t: t.join(t, on=col("b", of="self") < col("b", of="other")).height, 6),
}  # fmt: skip

SAID: dict[str, tuple[Asked, type[Error], str]] = {
    "no such row": (lambda t: t.row(4), InterfaceError, "there is no row 4: the result has 4"),
    "item of many": (lambda t: t.item(), InterfaceError, "item takes a row and a column of a result of 4 rows and 4 columns"),
    "half a place": (lambda t: t.item(1), InterfaceError, "item takes a row and a column, or neither"),
    "no such column": (lambda t: t.item(0, "bb"), InterfaceError, 'There is no column "bb".'),
    "brackets": (lambda t: t[1], InterfaceError, "asked for columns by their names and for rows by a slice, not for 1"),
    "from the end": (lambda t: t[-2:], InterfaceError, "tail gives the last rows"),
    "unknown in brackets": (lambda t: t["zz"], BindError, "the relation has no column 'zz'."),
    "unknown beside": (lambda t: t.select(col("a", "zz")), BindError, "the relation has no column 'zz'."),
    "unknown equality": (lambda t: t.filter(zz=1), BindError, "the relation has no column 'zz'."),
    "one name for two": (lambda t: t.select(col("a", "b").alias("c")), InterfaceError, "2 columns cannot all be called 'c'"),
    "one name for all": (lambda t: t.select(c=g.all()), InterfaceError, "4 columns cannot all be called 'c'"),
    "different numbers": (lambda t: t.select(g.all() == col("a", "b")), InterfaceError, "columns of 4 and of 2 names at once"),
    "no pattern": (lambda t: t.select(col("^($")), InterfaceError, "'^($' is no regular expression"),
    "exclude of one": (lambda t: col("a").exclude("b"), InterfaceError, "exclude leaves out columns of all()"),
    "no root": (lambda t: t.select(g.lit(1).name.keep()), InterfaceError, "is made of no column whose name it could have"),
    "nothing beside": (lambda t: g.sum_horizontal(), InterfaceError, "sum_horizontal takes an expression"),
    "sum of the package": (lambda t: g.sum(), InterfaceError, "sum() is a method of a relation and of groups"),
    "a strategy": (lambda t: g.col("a").fill_null(strategy="next"), InterfaceError, "there is no strategy 'next' of fill_null"),
    "no value": (lambda t: col("a").fill_null(), InterfaceError, "fill_null takes a value or a strategy"),
    "n and a part": (lambda t: t.sample(1, 0.5), InterfaceError, "sample takes n or fraction"),
    "a large part": (lambda t: t.sample(fraction=2.0), InterfaceError, "the fraction of a sample lies between 0 and 1, not 2.0"),
    "groups without rows": (lambda t: t.group_by("k").having(g.len() > 1).head(), InterfaceError, "give aggregates, not rows"),
    "an interpolation": (lambda t: g.col("a").quantile(0.5, "lower"), InterfaceError, "quantile is nearest or linear, not"),
    "a way to concat": (lambda t: g.concat([t, t], how="align"), InterfaceError, "how of concat is vertical, vertical_"),
    "concat of other names": (lambda t: g.concat([t["a", "b"], t["b", "a"]]), InterfaceError, "same columns, not a, b and b, a"),
    "nulls_last for some": (lambda t: t.sort("a", "b", nulls_last=[True]), InterfaceError, "a direction for each where there is"),
    "several months": (lambda t: col("d").dt.truncate("2mo"), InterfaceError, "truncate takes one week, month, quarter or year"),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str, t: Relation) -> None:
    asked, wanted = ROWS[name]
    assert asked(t) == wanted


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name: str, t: Relation) -> None:
    asked, kind, said = SAID[name]
    with pytest.raises(kind) as caught:
        asked(t)
    assert said in str(caught.value)
