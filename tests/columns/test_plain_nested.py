"""Nested columns whose parts lie in encodings of Arrow's are those of plain parts, in every query."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import gquery
from gquery.columns.plain_nested import plain_array, plain_type

LISTS = [["a", "b"], None, [], ["a", None], ["a", "b"], [None]]
_TEXTS = pa.array(LISTS, pa.list_(pa.string()))
_RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 6], pa.int32()), pa.array([["a"], None, ["b", "b"]]))
_UNROLLED = pa.array([["a"], ["a"], None, ["b", "b"], ["b", "b"], ["b", "b"]])  # Arrow 25 cannot: it decodes no nested values
_MAPS = pa.array([[("k", "v")], None, [], [("k", "w"), ("l", None)]], pa.map_(pa.string(), pa.string()))
_MAP_TYPE = pa.map_(pa.string(), pa.dictionary(pa.int32(), pa.string()))
_DAYS = [[dt.date(2020, 1, 2)], None, [None, dt.date(1969, 12, 31)]]


def encoded(array: pa.Array) -> pa.Array:
    """Lists with the same values in a dictionary."""
    return pa.ListArray.from_arrays(array.offsets, array.values.dictionary_encode(), mask=array.is_null())


CASES: dict[str, tuple[pa.Array, pa.Array]] = {
    "lists of a dictionary": (encoded(_TEXTS), _TEXTS),
    "part of lists of a dictionary": (encoded(_TEXTS).slice(2), _TEXTS.slice(2)),
    "list views": (pa.array(LISTS, pa.list_view(pa.string())), _TEXTS),
    "part of list views": (pa.array(LISTS, pa.list_view(pa.string())).slice(1, 4), _TEXTS.slice(1, 4)),
    "large list views of text views": (pa.array(LISTS, pa.large_list_view(pa.string_view())), _TEXTS),
    "lists in a dictionary": (
        pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 0], pa.int8()), pa.array([["x"], ["y", None]])),
        pa.array([["x"], None, ["y", None], ["x"]]),
    ),
    "runs of lists": (_RUNS, _UNROLLED),
    "part of runs of lists": (_RUNS.slice(1, 4), _UNROLLED.slice(1, 4)),
    "lists of runs": (
        pa.ListArray.from_arrays(pa.array([0, 2, 3, 3], pa.int32()), pc.run_end_encode(pa.array([1, 1, None]))),
        pa.array([[1, 1], [None], []]),
    ),
    "maps to a dictionary": (
        pa.MapArray.from_arrays(_MAPS.offsets, _MAPS.keys, _MAPS.items.dictionary_encode(), _MAP_TYPE, mask=_MAPS.is_null()),
        _MAPS,
    ),
    "structs of a dictionary and milliseconds": (
        pa.StructArray.from_arrays(
            [pa.array(["a", None, "a"]).dictionary_encode(), pa.array([0, 1, None], pa.timestamp("ms"))],
            ["d", "t"],
            mask=pa.array([False, True, False]),
        ),
        pa.array([{"d": "a", "t": dt.datetime(1970, 1, 1)}, None, {"d": "a", "t": None}]),
    ),
    "days in milliseconds": (pa.array(_DAYS, pa.list_(pa.date64())), pa.array(_DAYS)),
    "short decimals": (
        pa.array([[Decimal("1.5")], None, [None]], pa.list_(pa.decimal64(5, 2))),
        pa.array([[Decimal("1.5")], None, [None]], pa.list_(pa.decimal128(5, 2))),
    ),
    "half floats": (
        pa.array([[1.5], None, [None]], pa.list_(pa.float16())),
        pa.array([[1.5], None, [None]], pa.list_(pa.float32())),
    ),
}
QUERIES = (
    "SELECT x, count(*) FROM t GROUP BY x",
    "SELECT a.k, b.k FROM t a JOIN t b ON a.x = b.x",
    "SELECT x FROM t UNION ALL SELECT x FROM t WHERE k > 1",
    "SELECT [x, NULL], {'x': x} FROM t",
    "SELECT list(x ORDER BY k), count(DISTINCT x), max(x) FROM t",
    "SELECT CAST(x AS VARCHAR), lag(x) OVER (ORDER BY k), rank() OVER (ORDER BY x) FROM t",
)


@pytest.mark.parametrize("name", CASES)
def test_as_plain_parts(name: str) -> None:
    given, plain = CASES[name]
    made = plain_array(given, plain_type(given.type))
    made.validate(full=True)
    assert made.to_pylist() == plain.to_pylist()
    assert plain_type(made.type) == made.type
    db, theirs = gquery.connect(device="python"), duckdb.connect()
    keys = pa.array(range(len(given)))
    db.register("t", pa.table({"k": keys, "x": given}))
    theirs.register("t", pa.table({"k": keys, "x": plain}))
    for sql in QUERIES:
        got: list[Any] = [db.sql(sql).fetchall(), theirs.execute(sql).fetchall()]
        assert sorted(map(repr, got[0])) == sorted(map(repr, got[1])), sql


VALUES: dict[str, pa.Array] = {
    "numbers": pa.array([1, None, 3]),
    "texts": pa.array(["a", None, ""]),
    "texts in views": pa.array(["a", None, "longer than twelve bytes"], pa.string_view()),
    "texts in a dictionary": pa.array(["a", None, "a"]).dictionary_encode(),
    "bytes": pa.array([b"a", None, b""]),
    "short decimals": pa.array([Decimal("1.5"), None, Decimal("-2")], pa.decimal64(5, 2)),
    "structs": pa.array([{"a": "x"}, None, {"a": None}]),
    "list views": pa.array([["a"], None, []], pa.list_view(pa.string())),
    "NULLs": pa.nulls(3),
}


@pytest.mark.parametrize("name", VALUES)
def test_runs_of(name: str) -> None:
    """Whole, in parts that begin and end within runs, empty and without a chunk; ends of each width."""
    values = VALUES[name]
    rows = [v for v, times in zip(values.to_pylist(), (2, 1, 3), strict=True) for _ in range(times)]
    for width in (pa.int16(), pa.int32(), pa.int64()):
        runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 6], width), values)
        for cuts in ([(0, 6)], [(1, 4)], [(1, 1), (0, 0), (4, 2), (0, 6)], []):
            db = gquery.connect(device="python")
            db.register("t", pa.table({"x": pa.chunked_array([runs.slice(a, n) for a, n in cuts], runs.type)}))
            want = [(v,) for a, n in cuts for v in rows[a : a + n]]
            assert db.sql("SELECT x FROM t").fetchall() == want, (width, cuts)


def test_other_types_stay() -> None:
    """Nanoseconds too, as they need not fit microseconds."""
    record, pairs = pa.struct([("a", pa.uuid())]), pa.map_(pa.int8(), pa.int8())
    for type_ in (pa.list_(pa.timestamp("ns")), pa.large_list(pa.int8()), record, pairs):
        assert plain_type(type_) is type_
