"""A column of every Arrow type, NULLs among its values: what tests of carried columns run over."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

MOMENTS = [dt.datetime(2020, 1, 1, 1), None, dt.datetime(1960, 1, 1)]


def known() -> Iterator[tuple[str, pa.Array]]:
    """Types that gquery computes with."""
    yield "boolean", pa.array([True, None, False])
    for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        yield str(t), pa.array([1, None, 3], t)
    for t in (pa.float16(), pa.float32(), pa.float64()):
        yield str(t), pa.array([1.5, None, -0.5], t)
    for t in (pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(20, 3), pa.decimal256(20, 3)):
        yield f"decimal{t.bit_width}", pa.array([Decimal("1.25"), None, Decimal("-3.5")], t)
    for t in (pa.date32(), pa.date64()):
        yield str(t)[:6], pa.array([dt.date(2020, 1, 1), None, dt.date(1960, 1, 1)], t)
    for unit in ("s", "ms", "us", "ns"):
        yield f"timestamp_{unit}", pa.array(MOMENTS, pa.timestamp(unit))
    for unit in ("s", "us", "ns"):
        yield f"zone_{unit}", pa.array(MOMENTS, pa.timestamp(unit, "Europe/Berlin"))
    for unit in ("s", "ms", "us", "ns"):
        yield f"duration_{unit}", pa.array([dt.timedelta(1, 5), None, dt.timedelta(-1)], pa.duration(unit))
    for t in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")):
        yield str(t), pa.array([dt.time(1, 2, 3), None, dt.time(0)], t)
    yield "span", pa.array([pa.MonthDayNano([1, 2, 3000]), None, pa.MonthDayNano([0, -1, -7000])])
    for t in (pa.string(), pa.large_string(), pa.string_view()):
        yield str(t), pa.array(["a" * 20, None, ""], t)
    yield "dictionary", pa.array(["x", None, "y"]).dictionary_encode()
    yield "dictionary_of_integers", pa.array([1, None, 2]).dictionary_encode()
    yield "runs", pc.run_end_encode(pa.array([1, 1, None]))
    yield "runs_of_text", pc.run_end_encode(pa.array(["a", None, None]))
    yield "bool8", pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0], pa.int8()))
    yield "null", pa.nulls(3)


def carried() -> Iterator[tuple[str, str, pa.Array]]:
    """Types that gquery carries alone, with DuckDB's name of each."""
    i = pa.int32()
    for t in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield str(t), "BLOB", pa.array([b"a\xff" * 20, None, b""], t)
    yield "fixed", "BLOB", pa.array([b"abc", None, b"\0\0\0"], pa.binary(3))
    for t in (pa.list_(i), pa.large_list(i), pa.list_view(i), pa.large_list_view(i)):
        yield str(t).split("<")[0].replace("list", "items"), "INTEGER[]", pa.array([[1, None], None, []], t)
    yield "array", "INTEGER[2]", pa.array([[1, 2], None, [3, None]], pa.list_(i, 2))
    yield "record", "STRUCT(a BIGINT, b VARCHAR[])", pa.array([{"a": 1, "b": ["x"]}, None, {"a": None, "b": None}])
    views = pa.struct([("v", pa.string_view())])
    yield "record_of_views", "STRUCT(v VARCHAR)", pa.array([{"v": "a" * 20}, None, {"v": "x"}], views)
    yield "pairs", "MAP(VARCHAR, INTEGER)", pa.array([[("k", 1)], None, []], pa.map_(pa.string(), i))
    codes = pa.array([0, None, 1], pa.int8())
    yield "dictionary_of_lists", "BIGINT[]", pa.DictionaryArray.from_arrays(codes, pa.array([[1], [2, 3]]))
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], i), pa.array([[1], None]))
    yield "runs_of_lists", "BIGINT[]", runs
    kinds, members = pa.array([0, 1, 0], pa.int8()), [pa.array([1, None, None]), pa.array(["x", None, "z"])]
    yield "sparse_union", 'UNION("0" BIGINT, "1" VARCHAR)', pa.UnionArray.from_sparse(kinds, members)
    places = pa.array([0, 0, 1], i)
    dense = pa.UnionArray.from_dense(kinds, places, [pa.array([1, None]), pa.array([None, "z"])])
    yield "dense_union", 'UNION("0" BIGINT, "1" VARCHAR)', dense
    yield "uuid", "UUID", pa.array([uuid.UUID(int=1).bytes, None, uuid.UUID(int=2).bytes], pa.uuid())
    yield "json", "JSON", pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None, "2"]))
    yield "decimal_wide", "DECIMAL(60,2)", pa.array([Decimal("1.25"), None, Decimal(-3)], pa.decimal256(60, 2))
    yield "decimal_tens", "DECIMAL(5,-2)", pa.array([Decimal(100), None, Decimal(300)], pa.decimal128(5, -2))


def table_of(columns: dict[str, Any], times: int = 1) -> pa.Table:
    """The columns so many times one after another, each time a chunk, behind numbered rows."""
    chunks = {n: pa.chunked_array([a] * times, a.type) for n, a in columns.items()}
    return pa.table({"id": pa.array(range(3 * times)), "g": pa.array([n % 2 for n in range(3 * times)]), **chunks})
