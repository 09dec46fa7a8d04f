"""Rows of the elements of lists: elements that lie one behind another are taken as they are, all others by their numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from gquery.functions.list_arrays import lists_of
from gquery.operators import unnest
from gquery.operators.unnest import RepeatedRows
from tests.support.harness import assert_same

LISTS = [[1, 2], [], None, [None], [3, None, 4], [5]] * 7


def table(lists: pa.Array) -> dict[str, pa.Table]:
    texts = pa.array(
        [None if x is None else [f"text {v}" for v in x] for x in lists.to_pylist()], pa.list_(pa.string())
    )
    return {
        "t": pa.table(
            {
                "n": range(len(lists)),
                "l": lists,
                "s": texts,
                "one": pa.array([[n] for n in range(len(lists))], pa.list_(pa.int64())),
            }
        )
    }


def hidden() -> pa.Array:
    """Lists under whose NULLs elements lie, and elements before the first and behind the last."""
    offsets = np.arange(0, 2 * len(LISTS) + 3, 2, dtype=np.int32)[:-1]
    mask = pa.array([n % 4 == 1 for n in range(len(LISTS))])
    return pa.ListArray.from_arrays(pa.array(offsets + 1), pa.array(range(2 * len(LISTS) + 9)), mask=mask)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT unnest(l) AS e FROM t",
        "SELECT n, unnest(l) AS e FROM t",
        "SELECT n, unnest(s) AS e, unnest(l) AS f FROM t",
        "SELECT unnest(one) AS e, unnest(l) AS f FROM t",
        "SELECT n, e FROM t, unnest(l) AS u(e)",
        "SELECT n, e FROM t LEFT JOIN unnest(l) AS u(e) ON TRUE",
        "SELECT n, e, o FROM t, unnest(l) WITH ORDINALITY AS u(e, o)",
        "SELECT count(*), sum(e) FROM (SELECT unnest(l) AS e FROM t WHERE n > 3)",
        "SELECT unnest(l) AS e FROM t WHERE n % 6 = 1",
        "SELECT e, count(*) FROM (SELECT unnest(string_split(array_to_string(s, ' '), ' ')) AS e FROM t) GROUP BY e",
        "SELECT unnest([n, NULL, n + 1]) AS e FROM t",
        "SELECT unnest([]) AS e FROM t",
    ],
)
@pytest.mark.parametrize(
    "lists",
    [pa.array(LISTS), pa.array([[7]] * 5 + LISTS).slice(5), hidden(), pa.array(LISTS[:0], pa.list_(pa.int64()))],
)
def test_elements(sql: str, lists: pa.Array) -> None:
    assert_same(sql, table(lists), targets=["python"], ranks=[1, 3] if len(lists) else [1])


def test_elements_one_behind_another_are_not_copied() -> None:
    lists = lists_of(pa.array([[1, 2], [], [3]]), 3)
    made = unnest._elements(lists, RepeatedRows(lists.lengths))
    assert made.to_pylist() == [1, 2, 3]
    assert made.buffers()[1].address == lists.elements.buffers()[1].address
    assert unnest._elements(lists, RepeatedRows(lists.lengths + 1)).to_pylist() == [1, 2, None, None, 3, None]
