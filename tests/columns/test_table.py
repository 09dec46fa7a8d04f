"""Arrow in, Arrow out: every type, layout and edge; physical types, dictionaries, statistics, buffers."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gquery.columns.arrow import export_table
from gquery.columns.encode import import_column
from gquery.columns.import_arrow import import_table
from gquery.columns.table import ColumnData, Dictionary, Table
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.errors import ConversionError, OutOfMemoryError
from gquery.expression.types import BIGINT, VARCHAR, Bounds, Field, PhysicalType
from gquery.runtime.amounts import format_bytes

D = Decimal
T = datetime.datetime
EDGES: dict[str, Any] = {
    "bool": pa.array([True, None, False, True]),
    "int8": pa.array([-128, None, 127, 0], pa.int8()),
    "int16": pa.array([-(2**15), None, 2**15 - 1, 0], pa.int16()),
    "int32": pa.array([-(2**31), None, 2**31 - 1, 0], pa.int32()),
    "int64": pa.array([-(2**63), None, 2**63 - 1, 0], pa.int64()),
    "uint8": pa.array([0, None, 255, 1], pa.uint8()),
    "uint16": pa.array([0, None, 2**16 - 1, 1], pa.uint16()),
    "uint32": pa.array([0, None, 2**32 - 1, 1], pa.uint32()),
    "uint64": pa.array([0, None, 2**64 - 1, 1], pa.uint64()),
    "uint64 that fits": pa.array([0, None, 2**63 - 1, 1], pa.uint64()),
    "decimal 18": pa.array([D("-" + "9" * 16 + ".99"), None, D("9" * 16 + ".99"), D(0)], pa.decimal128(18, 2)),
    "decimal of 19 digits": pa.array([D("-9.9"), None, D("9.9"), D(0)], pa.decimal128(19, 1)),
    "decimal at 64 bits": pa.array([D(-(2**63)), None, D(2**63 - 1), D(0)], pa.decimal128(38, 0)),
    "decimal over 64 bits": pa.array([D(-(2**63) - 1), None, D(2**63), D(1)], pa.decimal128(38, 0)),
    "decimal of 38 digits": pa.array([D("-" + "9" * 38), None, D("9" * 38), D(-1)], pa.decimal128(38, 0)),
    "float32": pa.array([1.5, None, float("inf"), -0.0], pa.float32()),
    "float64": pa.array([1e308, None, float("-inf"), 5e-324]),
    "date32": pa.array([datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31), datetime.date(1969, 12, 31)]),
    "timestamp": pa.array([T(1, 1, 1), None, T(2024, 2, 29, 23, 59, 59, 9), T(1970, 1, 1)], pa.timestamp("us")),
    "string": pa.array(["", None, "añ日本", "z" * 100]),
    "null": pa.nulls(4),
}  # fmt: skip


def round_trip(array: Any) -> None:
    table = pa.table({"a": array})
    back = export_table(import_table(table))
    back.validate(full=True)
    assert back.schema.types == table.schema.types
    assert str(back.to_pydict()) == str(table.to_pydict())  # as text, since NaN is not equal to itself


@pytest.mark.parametrize("name", EDGES)
def test_round_trip(name: str) -> None:
    array = EDGES[name]
    round_trip(array)
    round_trip(array.drop_null())
    round_trip(array.slice(1, 2))
    round_trip(array.slice(0, 0))
    round_trip(pa.chunked_array([], array.type))
    round_trip(pa.chunked_array([array, array.slice(1), array.slice(0, 0), array.slice(2, 1)]))
    round_trip(pa.chunked_array([array, array.drop_null()]))
    round_trip(pa.nulls(3, array.type))


def test_long_bitmaps_with_offsets() -> None:
    rng = np.random.default_rng(1)
    for values in (rng.integers(0, 2, 1000).astype(bool), rng.integers(-5, 5, 1000), rng.random(1000)):
        array = pa.array(values, mask=rng.random(1000) < 0.3)
        for low, high in ((0, 1000), (3, 997), (8, 16), (13, 14), (999, 1000)):
            round_trip(array.slice(low, high - low))


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array(["b", "a", None, "b"], pa.large_string()), ["b", "a", None, "b"]),
        (pa.array(["b", "a", None, "b" * 30], pa.string_view()), ["b", "a", None, "b" * 30]),
        (pa.array(["b", "a", None, "b"]).dictionary_encode(), ["b", "a", None, "b"]),
        (pa.DictionaryArray.from_arrays([0, 1, 2, 3, None], ["x", "y", "x", None]), ["x", "y", "x", None, None]),
        (pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), pa.array([], pa.string())), []),
        (pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), pa.array([], pa.string())), [None]),
        (pa.array([5, None, 5]).dictionary_encode(), [5, None, 5]),
        (pa.array([1.5, None], pa.float16()), [1.5, None]),
        (pa.array([D(5), None], pa.decimal256(38, 0)), [D(5), None]),
        (pa.array([D("5.5"), None], pa.decimal64(18, 1)), [D("5.5"), None]),
        (pa.array([D("5.5"), None], pa.decimal32(9, 1)), [D("5.5"), None]),
        (pa.array([86_400_000, None], pa.date64()), [datetime.date(1970, 1, 2), None]),
        (pa.array([-1, None], pa.timestamp("s")), [datetime.datetime(1969, 12, 31, 23, 59, 59), None]),
        (pa.array([-1000, None], pa.timestamp("ms")), [datetime.datetime(1969, 12, 31, 23, 59, 59), None]),
        (pa.array([1000, None], pa.timestamp("ns")), [datetime.datetime(1970, 1, 1, 0, 0, 0, 1), None]),
    ],
)
def test_layouts_that_become_ours(array: Any, expected: list[Any]) -> None:
    for chunks in ([array], [array, array]):
        table = import_table(pa.table({"a": pa.chunked_array(chunks)}))
        assert export_table(table).column(0).to_pylist() == expected * len(chunks)


def test_chunks_with_different_dictionaries() -> None:
    chunks = [pa.array(x).dictionary_encode() for x in (["b", "c"], ["a", "c", None], ["a"])]
    column = import_column(pa.chunked_array(chunks), Field("s", VARCHAR))
    assert isinstance(column.dictionary, Dictionary)
    assert column.dictionary.strings == ["a", "b", "c"]
    assert column.data.host.tolist() == [1, 2, 0, 2, 0, 0]


def test_chunk_with_an_empty_dictionary() -> None:
    empty = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int32()), pa.array([], pa.string()))
    array = pa.chunked_array([pa.array(["b", None, "a"]).dictionary_encode(), empty])
    assert export_table(import_table(pa.table({"a": array}))).column(0).to_pylist() == ["b", None, "a", None, None]


def test_what_cannot_be_held_exactly() -> None:
    with pytest.raises(ConversionError, match=r'"a".*exactly'):
        import_table(pa.table({"a": pa.array([1], pa.timestamp("ns"))}))


@pytest.mark.parametrize(
    ("values", "physical_type"),
    [
        ([-128, 127], PhysicalType.I8),
        ([0, 255], PhysicalType.U8),
        ([-1, 255], PhysicalType.I16),
        ([0, 65535], PhysicalType.U16),
        ([-1, 65535], PhysicalType.I32),
        ([0, 2**32 - 1], PhysicalType.U32),
        ([-1, 2**32 - 1], PhysicalType.I64),
        ([], PhysicalType.I8),
    ],
)
def test_physical_types(values: list[int], physical_type: PhysicalType) -> None:
    column = import_column(pa.array(values, pa.int64()), Field("a", BIGINT))
    assert column.physical_type is physical_type
    assert str(column.data.dtype) == physical_type.numpy
    assert column.data.host.tolist() == values


def test_payload_under_null_is_zero() -> None:
    values, ok = np.array([2**40, 7, 2**41]), np.array([False, True, False])
    array = pa.Array.from_buffers(
        pa.int64(), 3, [pa.py_buffer(np.packbits(ok, bitorder="little")), pa.py_buffer(values)]
    )
    column = import_column(array, Field("a", BIGINT))
    assert column.physical_type is PhysicalType.I8
    assert column.data.host.tolist() == [0, 7, 0]
    assert column.validity is not None
    assert column.validity.host.tolist() == [0, 1, 0]
    assert column.statistics.bounds == Bounds(0, 7)
    strings = pa.array(["abc", "d"])
    hidden = pa.StringArray.from_buffers(2, strings.buffers()[1], strings.buffers()[2], pa.py_buffer(b"\2"))
    assert export_table(import_table(pa.table({"s": hidden}))).column(0).to_pylist() == [None, "d"]


def test_statistics() -> None:
    def stats(values: Any) -> Any:
        return import_column(pa.array(values), Field("a", BIGINT)).statistics

    rising = stats(range(10_000))
    assert (rising.bounds, rising.distinct) == (Bounds(0, 9999), 10_000)
    assert rising.is_sorted and rising.is_unique
    level = stats(np.arange(10_000) // 2)
    assert level.is_sorted and not level.is_unique and level.distinct == 5_000
    late = np.arange(3_000_000)
    late[-1] = 0
    assert not stats(late).is_sorted
    border = np.arange(10_000)
    border[4096] = 4095  # where the first step of the test for order ends
    assert stats(border).is_sorted and not stats(border).is_unique
    shuffled = np.random.default_rng(0).permutation(200_000)
    assert stats(shuffled).is_unique and not stats(shuffled).is_sorted
    shuffled[7] = shuffled[100_000]
    assert not stats(shuffled).is_unique
    nulls = stats([1, None, 3])
    assert nulls.null_count == 1 and not nulls.is_sorted and not nulls.is_unique
    spread = stats(np.random.default_rng(0).integers(0, 100_000, 1_000_000))
    assert spread.distinct is not None and 60_000 < spread.distinct <= 100_000
    assert stats(np.array([], np.int64)).bounds == Bounds(0, 0)


def test_narrow_copies_and_views() -> None:
    values = np.arange(5) + 2**40
    array = pa.array(values)
    column = import_column(array, Field("a", BIGINT))
    assert column.data.host.ctypes.data == array.buffers()[1].address  # 64 bits are the narrowest here
    small = pa.array(np.arange(5))
    assert import_column(small, Field("a", BIGINT)).physical_type is PhysicalType.I8
    wide = import_column(small, Field("a", BIGINT), narrow=False)
    assert wide.physical_type is PhysicalType.I64
    assert wide.data.host.ctypes.data == small.buffers()[1].address
    floats = pa.array([1.5, 2.5])
    assert import_column(floats, Field("a", BIGINT)).data.host.ctypes.data == floats.buffers()[1].address
    strings = pa.array([f"string number {i}" for i in range(5000)])
    text = import_column(strings.slice(10, 4000), Field("s", VARCHAR))
    assert text.physical_type is PhysicalType.STRING32
    assert text.characters is not None
    assert text.characters.host.ctypes.data == strings.buffers()[2].address
    assert text.data.host.ctypes.data == strings.buffers()[1].address + 40


def test_dictionary() -> None:
    column = import_column(pa.array(["é", "b", "a", None, "b", "\U0001f600", "Z"]), Field("s", VARCHAR))
    assert isinstance(column.dictionary, Dictionary)
    d = column.dictionary
    assert d.strings == sorted(d.strings, key=str.encode)
    assert [d.code_of(s) for s in d.strings] == list(range(len(d)))
    assert d.code_of("nothing") is None
    assert (d.lower_bound(""), d.lower_bound("aa"), d.lower_bound("\U0010ffff")) == (0, 2, 5)
    many = Dictionary(pa.array([f"{n:05}" for n in range(0, 3000, 3)], pa.large_string())[10:])
    assert [many.code_of(s) for s in many.strings] == list(range(990))
    assert many.code_of("00030") == 0 and many.lower_bound("99999") == 990 and many.code_of("00027") is None
    assert column.statistics.bounds == Bounds(0, len(d) - 1)
    assert d == d and d != import_column(pa.array(["a"]), Field("s", VARCHAR)).dictionary


def test_dictionary_only_where_values_repeat() -> None:
    few = pa.array([f"value {i % 100}" for i in range(100_000)])
    many = pa.array([f"value {i}" for i in range(100_000)])
    skewed = pa.array(["same"] * 70_000 + [f"value {i}" for i in range(30_000)])
    assert len(import_column(few, Field("s", VARCHAR)).dictionary or ()) == 100
    for array in (many, skewed):
        assert import_column(array, Field("s", VARCHAR)).dictionary is None
        round_trip(array)


def test_views_are_exported() -> None:
    text = Buffer(np.frombuffer("zéro one".encode(), np.uint8))
    at = text.host.ctypes.data
    data = Buffer(np.array([at, 5, at + 6, 3, at, 0], np.int64))
    column = ColumnData(VARCHAR, PhysicalType.VIEW, 3, data, Buffer(np.array([1, 1, 0], np.uint8)), owners=(text,))
    from gquery.columns.arrow import export_column

    assert export_column(column).to_pylist() == ["zéro", "one", None]
    assert export_column(column.slice(1, 2)).to_pylist() == ["one"]


def test_slices() -> None:
    table = pa.table({k: v for k, v in EDGES.items() if k != "null"})
    for low, high in ((0, 4), (1, 3), (2, 2), (3, 9)):
        got = export_table(import_table(table).slice(low, high))
        assert str(got.to_pydict()) == str(table.slice(low, max(0, min(high, 4) - low)).to_pydict())


def test_table_without_columns() -> None:
    from gquery.expression.types import Schema

    assert export_table(Table(Schema(()), (), 3)).num_columns == 0


def test_buffers() -> None:
    buffer = Buffer(np.arange(3))
    cpu = cpu_device()
    assert buffer.is_on(cpu) and (buffer.length, buffer.nbytes) == (3, 24)
    buffer.drop(cpu)  # the last copy stays
    assert buffer.on(cpu).tolist() == [0, 1, 2]


def test_memory_limit() -> None:
    device = Device("cpu", memory_limit=1000)
    kept = device.empty(100, np.int64, "group")
    assert device.used_bytes == 800
    with pytest.raises(OutOfMemoryError, match=r"in join build: 400 bytes wanted, 800 bytes in use.*Remedies"):
        device.zeros(50, np.int64, "join build")
    del kept
    assert device.used_bytes == 0
    assert device.full(5, 7, np.int32).tolist() == [7] * 5
    with pytest.raises(OutOfMemoryError):
        cpu_device().empty(1 << 60, np.uint8, "sort")
    assert format_bytes(999) == "999 bytes"


@pytest.mark.cuda
def test_gpu_buffers() -> None:
    from gquery.device.device import cuda_device

    device = cuda_device(0)
    table = import_table(pa.table({k: v for k, v in EDGES.items() if k != "null"}))
    for column in table.columns:
        for buffer in column.buffers:
            there = buffer.on(device)
            assert buffer.is_on(device)
            assert device.to_host(there).tobytes() == buffer.host.tobytes()
    limited = device.with_limit(1000)  # its arrays lie in a pool of their own
    with pytest.raises(OutOfMemoryError, match="in sort"):
        limited.empty(10_000, np.int64, "sort")
    with pytest.raises(OutOfMemoryError):
        device.empty(1 << 50, np.uint8, "sort")
    buffer = Buffer(device.xp.arange(5))
    assert not buffer.is_on(cpu_device())
    assert buffer.host.tolist() == [0, 1, 2, 3, 4]
