"""Columns of lists from Arrow and back: NULL lists, empty ones and NULL elements, slices, chunks, offsets of both widths."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery.columns.opaque import Opaque, Pending, joined
from gquery.functions.list_arrays import list_array, lists_of
from gquery.functions.list_ranks import ranks

_VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int16(), [1, -2, None, 300]),
    "wide": (pa.uint64(), [0, 2**64 - 1, None]),
    "doubles": (pa.float64(), [0.5, -0.0, None, float("inf")]),
    "halves": (pa.float16(), [0.5, None]),
    "booleans": (pa.bool_(), [True, False, None]),
    "decimals": (pa.decimal128(20, 2), [Decimal("1.25"), None, Decimal("-99999999999999.99")]),
    "dates": (pa.date32(), [dt.date(2020, 1, 1), None]),
    "moments": (pa.timestamp("us"), [dt.datetime(2020, 1, 1, 1), None]),
    "texts": (pa.string(), ["", "abc", None, "é"]),
    "views": (pa.string_view(), ["", "a text of more than twelve bytes", None]),
    "lists": (pa.list_(pa.int32()), [[1, None], [], None]),
}


def _column(rnd: random.Random, name: str, rows: int) -> pa.ChunkedArray:
    """A column of lists in chunks, empty ones among them, each a slice of a longer array."""
    element, values = _VALUES[name]
    type_ = rnd.choice((pa.list_, pa.large_list))(element)
    chunks = []
    while rows > 0:
        size = rnd.randrange(min(rows, 7) + 1)
        before, behind = rnd.randrange(3), rnd.randrange(3)
        made = [
            None if rnd.random() < 0.2 else [rnd.choice(values) for _ in range(rnd.randrange(4))]
            for _ in range(before + size + behind)
        ]
        chunks.append(pa.array(made, type_).slice(before, size))
        rows -= size
    return pa.chunked_array(chunks, type_)


@pytest.mark.parametrize("seed", range(12))
def test_lists_come_in_and_leave_as_they_are(seed: int) -> None:
    rnd = random.Random(seed)
    table = pa.table({name: _column(rnd, name, 23) for name in _VALUES})
    table = table.append_column("id", pa.array(range(23)))
    where, kept = rnd.choice((("true", range(23)), ("id % 3 = 1", range(1, 23, 3)), ("id > 99", ())))
    with gquery.connect(device="python") as connection:
        connection.register("t", table)
        made = connection.sql(f"SELECT * FROM t WHERE {where} ORDER BY id").to_arrow_table()
        made.validate(full=True)
        everything = table.to_pylist()
        assert made.to_pylist() == [everything[n] for n in kept]
        for name in _VALUES:
            found = connection.sql(
                f'SELECT len("{name}"), "{name}"[2], [id, 7] FROM t WHERE {where} ORDER BY id'
            ).fetchall()
            values = [everything[n][name] for n in kept]
            assert [r[0] for r in found] == [None if v is None else len(v) for v in values]
            assert [r[1] for r in found] == [v[1] if v is not None and len(v) > 1 else None for v in values]


def test_lists_are_taken_out_of_their_slices() -> None:
    array = pa.array([[9], [1, 2], None, [], [3, None]]).slice(1)
    lists = lists_of(array, 4)
    assert lists.flat.to_pylist() == [1, 2, 3, None]
    assert lists.rows.tolist() == [0, 0, 3, 3] and lists.ordinals.tolist() == [0, 1, 0, 1]
    assert list_array(lists.flat, lists.lengths, lists.ok).to_pylist() == array.to_pylist()


def test_what_lies_under_a_null_is_no_element() -> None:
    array = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), pa.array([1, 2, 3]), mask=pa.array([True, False]))
    assert lists_of(array, 2).flat.to_pylist() == [3]


def test_ranks_are_those_of_values() -> None:
    nan = float("nan")
    (doubles,) = ranks(pa.array([nan, -0.0, None, 0.0, nan, float("inf")]))
    assert doubles.tolist() == [2, 0, -1, 0, 2, 1]
    first, second = ranks(pa.array(["b", None]), pa.array(["a", "b"]))
    assert first.tolist() == [1, -1] and second.tolist() == [0, 1]
    (lists,) = ranks(pa.array([[1, 2], [1], None, [1, None], [1, 2]]))
    assert lists.tolist() == [1, 0, -1, 2, 1]


def test_values_that_a_run_makes_meet_those_that_are_known() -> None:
    known, pending = Opaque(pa.chunked_array([[[1], [2]]])), Pending()
    both = joined([known, pending])
    assert both.is_pending and both.start_of(pending) == 2**32 and both.numbers == 2**33
    made = Opaque(pa.chunked_array([[[7]]]), stands_for=pending)
    found = both.resolved(dict(made.origins()))
    assert found is both.resolved({pending: made})
    assert found.take(pa.array([2**32, 1, None])).to_pylist() == [[7], [2], None]
    assert found.take(pa.array([None], pa.int64())).to_pylist() == [None]


def test_a_query_asked_again_has_lists_of_its_own() -> None:
    with gquery.connect(device="python") as connection:
        connection.register("t", pa.table({"a": [1, 2, 3]}))
        sql = "SELECT list(a ORDER BY a) FILTER (WHERE a > {}), [{}] FROM t"
        results = [connection.sql(sql.format(n, n)) for n in (0, 1, 2, 5)]
        assert [r.fetchall() for r in results] == [
            [([1, 2, 3], [0])], [([2, 3], [1])], [([3], [2])], [(None, [5])],
        ]  # fmt: skip


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_an_outer_join_looks_into_lists_of_both_sides(device: str) -> None:
    with gquery.connect(device=device) as connection:
        connection.register("t", pa.table({"a": [1, 2, 3], "xs": [[1, 3], [1], None]}))
        found = connection.sql("SELECT x.a, y.a FROM t x LEFT JOIN t y ON list_contains(x.xs, y.a) ORDER BY ALL")
        assert found.fetchall() == [(1, 1), (1, 3), (2, 1), (3, None)]
        with pytest.raises(gquery.CardinalityError):
            connection.sql("SELECT (SELECT y.a FROM t y WHERE list_contains(x.xs, y.a)) FROM t x").fetchall()
