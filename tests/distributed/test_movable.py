"""Frames that move between devices and become one: against Arrow's own concatenation, with random pieces of every type."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gquery.columns.arrow import export_column
from gquery.columns.arrow_buffers import bits_of, buffer_of
from gquery.columns.encode_strings import characters_column, characters_of, cleared
from gquery.columns.import_arrow import import_table
from gquery.columns.table import ColumnData, ColumnStatistics, Dictionary
from gquery.device.address_space import owner_of
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.distributed.movable import concatenated, movable, moved
from gquery.errors import InternalError
from gquery.expression.expr import Column
from gquery.expression.types import BIGINT, VARCHAR, Bounds, PhysicalType
from gquery.kernels.builtin import gathers
from gquery.kernels.values import ValueProperties
from gquery.operators.base import Frame
from gquery.operators.breakers import extreme_codes
from gquery.operators.value_ranks import rank
from gquery.planner.physical import Stored

HOST, HERE = cpu_device(), Device("cpu", 1)
WORDS = ["", "a", "ab", "ä", "z" * 40, "\U0001f600", "b", "b" * 9]


def integers(order: random.Random, rows: int) -> pa.Array:
    top = 2 ** order.choice((3, 7, 8, 15, 16, 31, 32, 62))
    low = order.choice((0, -top))
    return pa.array([order.randint(low, top) for _ in range(rows)], pa.int64())


def rising(order: random.Random, rows: int) -> pa.Array:
    start = order.choice((0, 0, 100, 200))
    return pa.array(sorted(start + order.randrange(90) for _ in range(rows)), pa.int64())


def decimals(order: random.Random, rows: int) -> pa.Array:
    top = 10 ** order.choice((2, 18, 30, 37))
    return pa.array([Decimal(order.randint(-top, top)) for _ in range(rows)], pa.decimal128(38, 0))


def truths(order: random.Random, rows: int) -> pa.Array:
    return pa.array([order.random() < 0.5 for _ in range(rows)], pa.bool_())


def floats(order: random.Random, rows: int) -> pa.Array:
    values = [0.0, -0.0, 1.5, float("inf"), float("nan"), 1e300]
    return pa.array([order.choice(values) for _ in range(rows)], pa.float64())


def texts(order: random.Random, rows: int) -> pa.Array:
    """All different, so that no dictionary is made of them."""
    type_ = order.choice((pa.string(), pa.large_string()))
    return pa.array([order.choice(WORDS) + str(i) for i in range(rows)], type_)


def words(order: random.Random, rows: int) -> pa.Array:
    """Few values, which come as a dictionary."""
    own = order.sample(WORDS, order.randint(1, len(WORDS)))
    return pa.array([order.choice(own) for _ in range(rows)], pa.string()).dictionary_encode()


def lists(order: random.Random, rows: int) -> pa.Array:
    return pa.array([[order.randrange(9)] * order.randrange(3) for _ in range(rows)], pa.list_(pa.int32()))


KINDS: list[Callable[[random.Random, int], pa.Array]] = [
    integers, rising, decimals, truths, floats, texts, words, lists,
]  # fmt: skip


def with_nulls(order: random.Random, array: pa.Array) -> pa.Array:
    rate = order.choice((0, 0, 0.3, 1))
    keep = pa.array([order.random() >= rate for _ in range(len(array))], pa.bool_())
    if pa.types.is_dictionary(array.type):
        codes = [code if ok else None for code, ok in zip(array.indices.to_pylist(), keep.to_pylist(), strict=True)]
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), array.dictionary)
    picked = pa.array([i if ok else None for i, ok in enumerate(keep.to_pylist())], pa.int64())
    return array.take(picked)


def column_of(array: pa.Array) -> ColumnData:
    """As a table has it; text as characters, since a small table would have a dictionary of it."""
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        ok = bits_of(array, 0) if array.null_count else None
        array, offsets = cleared(array, ok)
        return characters_column(
            Buffer(offsets),
            Buffer(characters_of(array)),
            buffer_of(ok),
            int((ok == 0).sum()) if ok is not None else 0,
            1,
        )
    return import_table(pa.table({"a": array})).columns[0]


def cut(order: random.Random, column: ColumnData) -> ColumnData:
    """A part of a column as views, now and then."""
    if order.random() < 0.6:
        return column
    low = order.randint(0, column.length)
    return column.slice(low, order.randint(low, column.length))


def as_views(column: ColumnData, device: Device) -> ColumnData:
    """A text column as a sink stores it: addresses of characters that others own."""
    data = gathers.string_views(column, device)
    assert column.characters is not None
    return ColumnData(
        column.dtype, PhysicalType.VIEW, column.length, Buffer(data, device), column.validity,
        statistics=column.statistics, owners=(column.characters,),
    )  # fmt: skip


def frame_of(*columns: ColumnData, number: Any = None) -> Frame:
    return Frame(dict(enumerate(columns)), columns[0].length, number=number)


def values_of(column: ColumnData) -> list[Any]:
    found = export_column(column).to_pylist()
    return ["nan" if isinstance(v, float) and v != v else repr(v) for v in found]


def holds(column: ColumnData) -> None:
    """What is said of a column is true of it."""
    known, rows = column.statistics, column.length
    if column.validity is not None:
        assert column.validity.length == rows
        missing = column.validity.on(HERE) == 0
        assert known.null_count in (None, int(missing.sum()))
    else:
        missing = np.zeros(rows, np.bool_)
        assert known.null_count in (None, 0)
    if column.physical_type.is_string:
        assert column.data.length == rows + 1 and column.data.on(HERE)[0] == 0
        return
    data = column.data.on(HERE)
    if column.physical_type is PhysicalType.I128:
        pairs = data.reshape(-1, 2).tolist()
        found = [(high << 64) + (low & 2**64 - 1) for low, high in pairs]
    else:
        found = data.tolist()
    assert len(found) == rows
    assert not any(v for v, is_null in zip(found, missing, strict=True) if is_null), "payloads under NULL are zero"
    if known.bounds is not None:
        assert all(known.bounds.low <= v <= known.bounds.high for v in found)
    if known.values is not None:
        assert all(
            known.values.low <= v <= known.values.high for v, gone in zip(found, missing, strict=True) if not gone
        )
    if known.is_sorted:
        assert found == sorted(found) and not missing.any()
    if known.is_unique:
        assert len(set(found)) == rows


def lies_on(frame: Frame, device: Device) -> None:
    for column in (*frame.columns.values(), *frame.rank_values.values()):
        assert not column.owners and column.physical_type is not PhysicalType.VIEW
        assert all(b.devices == (device,) for b in column.buffers)
        assert all(owner_of(b.on(device)) == device.ordinal for b in column.buffers if b.length)


def arrays_of(frame: Frame) -> list[Any]:
    return [b.on(b.devices[0]) for c in frame.columns.values() for b in (*c.buffers, *c.owners)]


def shares(one: Frame, other: Frame) -> bool:
    return any(np.shares_memory(a, b) for a in arrays_of(one) for b in arrays_of(other))


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("seed", range(25))
def test_pieces_of_every_type(kind: Callable[[random.Random, int], pa.Array], seed: int) -> None:
    """Moved to as many devices, and put together on one of them or another."""
    order = random.Random(f"{kind.__name__} {seed}")
    sizes = [order.choice((0, 1, 7, 40)) for _ in range(order.randint(1, 5))]
    pieces = [cut(order, column_of(with_nulls(order, kind(order, n)))) for n in sizes]
    expected = [v for p in pieces for v in values_of(p)]
    if kind is texts:
        pieces = [p if order.random() < 0.5 else as_views(p, HOST) for p in pieces]
    frames = [frame_of(p) for p in pieces]
    ranks = [moved(f, Device("cpu", n + 1)) for n, f in enumerate(frames)]
    for n, (before, after) in enumerate(zip(frames, ranks, strict=True)):
        lies_on(after, Device("cpu", n + 1))
        assert not shares(before, after) and values_of(after.columns[0]) == values_of(before.columns[0])
    for parts in (ranks, frames):
        whole = concatenated(parts, (), HERE)
        lies_on(whole, HERE)
        holds(whole.columns[0])
        assert whole.rows == whole.columns[0].length == len(expected)
        assert values_of(whole.columns[0]) == expected
        assert not any(shares(whole, p) for p in parts)


@pytest.mark.parametrize("planned", ["i64", "i128"])
@pytest.mark.parametrize("nullable", [True, False])
def test_a_planned_type(planned: str, nullable: bool) -> None:
    pieces = [column_of(pa.array(v, pa.int64())) for v in ([1, 2], [], [-(2**40)], [300])]
    bounds = Bounds(-(2**50), 2**50)
    stored = Stored(Column(0, "a", BIGINT), ValueProperties(BIGINT, bounds, nullable), PhysicalType(planned))
    made = concatenated([frame_of(p) for p in pieces], (stored,), HERE).columns[0]
    assert made.physical_type is stored.physical_type and (made.validity is not None) is nullable
    assert made.statistics.bounds == Bounds(-(2**40), 300)
    assert values_of(made) == ["1", "2", str(-(2**40)), "300"]


def test_a_wide_piece_in_a_narrower_plan() -> None:
    """Decimals that lie in 128 bits, where the plan has proved less."""
    pieces = [column_of(pa.array(v, pa.decimal128(38, 0))) for v in ([Decimal(5), Decimal(-7)], [Decimal(2**70)])]
    wide = concatenated([frame_of(p) for p in pieces], (), HOST).columns[0].slice(0, 2)
    what = ValueProperties(wide.dtype, Bounds(-10, 10))
    stored = Stored(Column(0, "a", wide.dtype), what, PhysicalType.I8)
    part = ColumnData(wide.dtype, PhysicalType.I128, 2, wide.data)
    made = concatenated([frame_of(part), frame_of(part)], (stored,), HERE).columns[0]
    assert made.data.on(HERE).tolist() == [5, -7] * 2
    made = concatenated([frame_of(wide)], (stored,), HERE).columns[0]
    assert made.data.on(HERE).tolist() == [5, -7], "what is known of them is more than there is"
    for values in ([Decimal(2**70)], [Decimal(200), Decimal(2**70)], [Decimal(-(2**64))]):
        with pytest.raises(InternalError, match="is i8, and has values in"):
            concatenated([frame_of(column_of(pa.array(values, pa.decimal128(38, 0))))], (stored,), HERE)
    with pytest.raises(InternalError, match="is i8, and has values in"):
        concatenated([frame_of(column_of(pa.array([200])))], (stored,), HERE)


def test_nothing_but_empty_frames() -> None:
    for kind in KINDS:
        empty = frame_of(column_of(kind(random.Random(0), 0)))
        whole = concatenated([moved(empty, Device("cpu", n)) for n in (2, 3)], (), HERE)
        assert whole.rows == 0 and values_of(whole.columns[0]) == []
        holds(whole.columns[0])


def test_frames_without_columns() -> None:
    assert concatenated([Frame({}, 3), Frame({}, 0), Frame({}, 4)], (), HERE) == Frame({}, 7)


def test_frames_that_do_not_fit() -> None:
    number, text = column_of(pa.array([1])), column_of(pa.array(["a"]))
    with pytest.raises(InternalError, match="frames of no rank"):
        concatenated([], (), HERE)
    with pytest.raises(InternalError, match=r"frames of \[\[0\], \[0, 1\]\]"):
        concatenated([frame_of(number), frame_of(number, number)], (), HERE)
    with pytest.raises(InternalError, match="one column has pieces of"):
        concatenated([frame_of(number), frame_of(column_of(pa.array([True])))], (), HERE)
    stored = Stored(Column(0, "a", BIGINT), ValueProperties(BIGINT, Bounds(0, 1)), PhysicalType.F64)
    with pytest.raises(InternalError, match="is f64, and has pieces of"):
        concatenated([frame_of(number)], (stored,), HERE)
    codes = column_of(pa.array(["a"]).dictionary_encode())
    with pytest.raises(InternalError, match="codes and others are text"):
        concatenated([frame_of(codes), frame_of(text)], (), HERE)


# ---- text -----------------------------------------------------------------------------------------------------------


def test_a_slice_of_text_moves_no_more_than_its_characters() -> None:
    column = column_of(pa.array([f"{i:06}" for i in range(1000)], pa.large_string()))
    part = moved(frame_of(column.slice(10, 20)), HERE).columns[0]
    assert part.characters is not None and part.characters.length == 60 and part.data.on(HERE)[0] == 0


def test_text_that_is_short_keeps_its_offsets() -> None:
    pieces = [frame_of(column_of(pa.array([f"x{i}" for i in range(n)]))) for n in (30, 40)]
    assert concatenated(pieces, (), HERE).columns[0].physical_type is PhysicalType.STRING32
    mixed = [*pieces, frame_of(column_of(pa.array(["y1", "y2"], pa.large_string())))]
    assert concatenated(mixed, (), HERE).columns[0].physical_type is PhysicalType.STRING64


# ---- dictionaries ---------------------------------------------------------------------------------------------------


def coded(strings: Sequence[str], dictionary: Dictionary) -> ColumnData:
    codes = np.array([dictionary.code_of(s) for s in strings], np.int16)
    known = ColumnStatistics(Bounds(0, len(dictionary) - 1))
    return ColumnData(VARCHAR, PhysicalType.I16, len(codes), Buffer(codes), dictionary=dictionary, statistics=known)


def dictionary_of(*values: str, type_: pa.DataType | None = None) -> Dictionary:
    return Dictionary(pa.array(sorted(values), type_ or pa.string()))


def test_one_dictionary_stays() -> None:
    both = dictionary_of("a", "b")
    made = concatenated([frame_of(coded("ab", both)), frame_of(coded("ba", both))], (), HERE).columns[0]
    assert made.dictionary is both and values_of(made) == ["'a'", "'b'", "'b'", "'a'"]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
def test_equal_dictionaries_are_one(type_: pa.DataType) -> None:
    first, second = dictionary_of("a", "b"), dictionary_of("a", "b", type_=type_)
    sliced = Dictionary(pa.array(["", "a", "b"], type_)[1:])
    made = concatenated([frame_of(coded("ab", d)) for d in (first, second, sliced)], (), HERE).columns[0]
    assert made.dictionary is first and values_of(made) == ["'a'", "'b'"] * 3


def test_digests_tell_where_one_text_ends() -> None:
    assert dictionary_of("ab", "c").digest != dictionary_of("a", "bc").digest
    assert Dictionary(pa.array([""])).digest != Dictionary(pa.array(["", ""])).digest


def test_a_planned_dictionary() -> None:
    """It stands where it has all values, also where no piece has it; else that is an error, as kernels count on it."""
    planned = dictionary_of("a", "b", "c")
    what = ValueProperties(VARCHAR, Bounds(0, 2), False, planned)
    stored = Stored(Column(0, "a", VARCHAR), what, PhysicalType.I8)
    for own in (dictionary_of("a", "b", "c"), dictionary_of("b", "c")):
        pieces = [coded("bc", own), coded("cb", dictionary_of("c", "b"))]
        made = concatenated([frame_of(p) for p in pieces], (stored,), HERE).columns[0]
        assert made.dictionary is planned and made.data.on(HERE).tolist() == [1, 2, 2, 1]
    strange = coded("d", dictionary_of("d"))
    for pieces in ([strange], [strange, coded("a", planned)]):
        with pytest.raises(InternalError, match="another dictionary than was planned"):
            concatenated([frame_of(p) for p in pieces], (stored,), HERE)
    empty = coded("", dictionary_of("x"))
    made = concatenated([frame_of(empty), frame_of(empty)], (stored,), HERE).columns[0]
    assert made.dictionary is planned and made.length == 0


def test_sorted_codes_stay_sorted_in_a_union() -> None:
    first = column_of(pa.array(["a", "c", "c"]).dictionary_encode())
    second = column_of(pa.array(["c", "d"]).dictionary_encode())
    assert first.statistics.is_sorted and second.statistics.is_sorted
    made = concatenated([frame_of(first), frame_of(second)], (), HERE).columns[0]
    assert made.statistics.is_sorted and not made.statistics.is_unique
    assert made.statistics.bounds == Bounds(0, 2)
    assert not concatenated([frame_of(second), frame_of(first)], (), HERE).columns[0].statistics.is_sorted


# ---- order ----------------------------------------------------------------------------------------------------------


def test_order_of_pieces_that_rise() -> None:
    a, b, c = (column_of(pa.array(v)) for v in ([1, 2, 5], [5, 9], [10, 12]))
    for pieces, is_sorted, is_unique in (
        ((a, b, c), True, False), ((b, c), True, True), ((a, c), True, True), ((c, a), False, False), ((a, a), False, False),
    ):  # fmt: skip
        known = concatenated([frame_of(p) for p in pieces], (), HERE).columns[0].statistics
        assert (known.is_sorted, known.is_unique) == (is_sorted, is_unique)


# ---- ranks and numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extremes", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_ranks_among_the_values_of_all(seed: int, extremes: bool) -> None:
    """Codes of all pieces compare as the values do that they stand for."""
    order = random.Random(seed)
    frames: list[Frame] = []
    expected: list[str | None] = []
    for n in range(order.randint(1, 4)):
        text = with_nulls(order, texts(order, order.choice((0, 1, 5, 20)))).cast(pa.large_string())
        expected += text.to_pylist()
        column = column_of(text)
        codes, values = extreme_codes(column, HOST) if extremes else rank(column, HOST)
        if column.validity is not None:
            codes = codes * column.validity.host
        code = ColumnData(BIGINT, PhysicalType.I64, column.length, Buffer(codes.astype(np.int64)), column.validity)
        frames.append(moved(Frame({0: code}, column.length, {0: values}), Device("cpu", n + 2)))
        lies_on(frames[-1], Device("cpu", n + 2))
    whole = concatenated(frames, (), HERE)
    made, ranked = whole.columns[0], export_column(whole.rank_values[0]).to_pylist()
    holds(made)
    assert ranked == sorted(set(ranked)) and made.length == len(expected)
    found = made.data.on(HERE).tolist()
    present = [(c, v) for c, v in zip(found, expected, strict=True) if v is not None]
    if not extremes:
        assert all(ranked[c] == v for c, v in present)
    elif present:
        texts_, codes_ = [v for _, v in present], [c for c, _ in present]
        assert (ranked[min(codes_)], ranked[max(codes_)]) == (min(texts_), max(texts_))


def test_a_number_is_read_before_rows_move() -> None:
    """As a GPU counts them: the arrays have room for more."""
    column = column_of(pa.array([5, 6, 7, 8]))
    text = as_views(column_of(pa.array([f"t{i}" for i in range(4)], pa.large_string())), HOST)
    frame = Frame({0: column, 1: text}, 4, number=np.array([3]))
    for made in (movable(frame), moved(frame, HERE), concatenated([frame], (), HERE)):
        assert made.rows == 3 and made.number is None
        assert values_of(made.columns[0]) == ["5", "6", "7"]
        assert values_of(made.columns[1]) == ["'t0'", "'t1'", "'t2'"]
