"""`Relation.pivot` and `unpivot` beside Polars."""

from __future__ import annotations

from typing import Any

import pytest

import gquery
from gquery.errors import BindError, DataError, Error, InterfaceError

polars = pytest.importorskip("polars")
DATA = {
    "g": [1, 1, 2, 2, 3],
    "a": ["x", "y", "x", "x", None],
    "v": [10, 20, 30, None, 7],
    "w": [1.5, 2.5, 3.5, 4.5, 5.5],
    'it\'s "x"': [True, False, True, True, None],
}


def _rows(rows: Any) -> list[Any]:
    return sorted(rows, key=str)


@pytest.fixture
def both() -> tuple[Any, Any]:
    frame = polars.DataFrame(DATA)
    return gquery.connect("python").from_data(frame), frame


@pytest.mark.parametrize(
    "given",
    [
        *(
            {"index": "g", "values": "v", "aggregate_function": f}
            for f in ("min", "max", "first", "last", "mean", "median")
        ),
        {"index": "g", "values": "v", "aggregate_function": "len"},
        {"index": "g", "values": ["v", "w"], "aggregate_function": "max"},
        {"index": ["g", "w", 'it\'s "x"'], "aggregate_function": "max"},
        {"values": "v", "aggregate_function": "max"},
        {"index": ["g", "w"], "values": "v"},
        {"index": "g", "values": "v", "aggregate_function": "max", "sort_columns": True},
        {"index": "g", "values": ["v", "w"], "aggregate_function": "max", "separator": "/"},
        {"on": "g", "index": "a", "values": "v", "aggregate_function": "min"},
        {"on": 'it\'s "x"', "index": "g", "values": "v", "aggregate_function": "max"},
        {"on": ["w", "g"], "index": "a", "values": "v", "aggregate_function": "max"},
    ],
)
def test_pivot(both: tuple[Any, Any], given: dict[str, Any]) -> None:
    ours, theirs = (side.pivot(**{"on": "a", **given}) for side in both)
    assert ours.columns == theirs.columns
    assert _rows(ours.fetchall()) == _rows(theirs.rows())


def test_a_sum_of_no_values_is_null(both: tuple[Any, Any]) -> None:
    made = both[0].pivot("a", index="g", values="v", aggregate_function="sum")
    assert _rows(made.fetchall()) == [(1, 10, 20, None), (2, 30, None, None), (3, None, None, 7)]


def test_several_columns_name_a_column_together(both: tuple[Any, Any]) -> None:
    made = both[0].drop_nulls(["a"]).pivot(["a", "g"], index="w", values="v", aggregate_function="first")
    assert made.columns == ["w", '{"x",1}', '{"y",1}', '{"x",2}']


def test_no_rows(both: tuple[Any, Any]) -> None:
    empty = both[0].filter("g > 9")
    assert empty.pivot("a", index="g", values="v", aggregate_function="sum").fetchall() == []
    assert empty.unpivot(["v", "w"], index="g").fetchall() == []


@pytest.mark.parametrize(
    "given",
    [
        {"on": ["v", "w"], "index": "g"},
        {"on": ["v", "w"]},
        {"on": "v", "index": ["g", "v"]},
        {"index": ["g", 'it\'s "x"', "a"]},
        {"on": ["a", "v"], "index": "g", "variable_name": "n", "value_name": "z"},
        {"on": ["g", "a", "v", "w"]},
    ],
)
def test_unpivot(both: tuple[Any, Any], given: dict[str, Any]) -> None:
    ours, theirs = (side.unpivot(**given) for side in both)
    assert ours.columns == theirs.columns
    assert _rows(ours.fetchall()) == _rows(theirs.rows())


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda r: r.pivot("a", index="g", values="v"), DataError, "2 values for one cell"),
        (lambda r: r.pivot("nope", index="g"), BindError, "'nope'"),
        (lambda r: r.pivot("a"), InterfaceError, "index or values"),
        (lambda r: r.pivot("a", index=["g", "v", "w", 'it\'s "x"']), InterfaceError, "a column of each"),
        (lambda r: r.pivot("a", index="g", aggregate_function="what"), InterfaceError, "aggregate_function"),
        (lambda r: r.unpivot("v", index="g", variable_name="g"), InterfaceError, "two columns of one name"),
        (lambda r: r.unpivot("nope"), BindError, "'nope'"),
    ],
)
def test_what_is_wrong_is_said(both: tuple[Any, Any], call: Any, error: type[Error], match: str) -> None:
    with pytest.raises(error) as caught:
        call(both[0])
    assert match in str(caught.value)
