"""What comes together on a GPU, from outside, from ranks, in chunks, and what a result hands out, has CuPy compile nothing: seen
without a GPU (`tests.support.meta_gpu`)."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from gquery.columns.looked_over import bounds_and_order
from gquery.columns.opaque import Opaque
from gquery.columns.table import ColumnData
from gquery.device.copies import copy_into
from gquery.distributed import column_pieces
from gquery.distributed.column_pieces import one_column, recoded, text_parts
from gquery.execution import streamed
from gquery.expression.types import (
    BIGINT,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    UBIGINT,
    VARCHAR,
    Bounds,
    DType,
    PhysicalType,
    decimal,
)
from gquery.io import memory
from gquery.kernels.builtin import scans
from gquery.result.result_column import ResultColumn
from gquery.runtime.records import replace
from tests.support import meta_arrays
from tests.support.meta_arrays import copies
from tests.support.meta_gpu import GPU, MetaBuffer, meta_gpu

import_module("gquery.kernels.builtin.column_loops")  # hands down what lies below kernels
ROWS = [1, 1000]


@pytest.fixture(autouse=True)
def _gpu() -> Iterator[None]:
    with meta_gpu():
        copies.compiled.clear()
        yield
    assert copies.compiled == []


def _column(dtype: DType, physical_type: PhysicalType, rows: int, nulls: bool = False) -> ColumnData:
    words = rows + 1 if physical_type.is_string else 2 * rows if physical_type is PhysicalType.I128 else rows
    return ColumnData(
        dtype,
        physical_type,
        rows,
        MetaBuffer(words, np.dtype(physical_type.numpy)),
        MetaBuffer(rows, np.dtype(np.uint8)) if nulls else None,
        MetaBuffer(90, np.dtype(np.uint8)) if physical_type.is_string else None,
    )


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(
    ("dtype", "physical_types"),
    [
        (BIGINT, ["I8", "I16", "I64"]),
        (BIGINT, ["U8", "I32"]),
        (decimal(38, 0), ["I64", "I128", "I16"]),
        (DOUBLE, ["F64", "F64"]),
        (VARCHAR, ["STRING32", "STRING64", "STRING32"]),
    ],
)
def test_pieces_of_one_column(dtype: DType, physical_types: list[str], rows: int) -> None:
    pieces = [_column(dtype, PhysicalType[t], rows + n, nulls=n == 1) for n, t in enumerate(physical_types)]
    made = one_column(pieces, None, GPU)
    assert made.length == sum(p.length for p in pieces) and made.validity is not None


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("nulls", [False, True])
def test_other_codes(nulls: bool, rows: int) -> None:
    for physical_type in (PhysicalType.U8, PhysicalType.U16, PhysicalType.I32):
        piece = _column(VARCHAR, physical_type, rows, nulls)
        for table in (np.dtype(np.int64), np.dtype(np.uint16)):
            codes: Any = meta_arrays.empty(300, table)
            assert recoded(piece, codes, Bounds(0, 299), GPU).data.length == rows
        none: Any = meta_arrays.empty(0, np.int64)
        assert recoded(piece, none, Bounds(0, 0), GPU).length == rows


@pytest.mark.parametrize("starts", [(7,), (0, 1 << 32, 5)])
def test_other_numbers_of_values(starts: tuple[int, ...]) -> None:
    class Own(Opaque):
        __slots__ = ()

        def __init__(self) -> None:
            pass

        def starts_in(self, whole: Opaque) -> tuple[int, ...]:
            return starts

    own = Own()
    piece = replace(_column(VARCHAR, PhysicalType.I64, 50, nulls=True), dictionary=own)
    made = column_pieces._renumbered(piece, own, Bounds(0, 1 << 40), GPU)
    assert made.data.length == 50


def test_parts_of_texts_and_misfits() -> None:
    offsets, _ = text_parts(_column(VARCHAR, PhysicalType.STRING32, 50), GPU)
    assert offsets.size == 51
    for physical_type in (PhysicalType.I8, PhysicalType.I64, PhysicalType.I128):
        assert isinstance(column_pieces._fits(_column(decimal(38, 0), physical_type, 50), Bounds(-5, 100)), bool)


@pytest.mark.parametrize("rows", ROWS)
def test_arrays_from_outside(rows: int) -> None:
    for name in ("bool", "int8", "uint16", "int64", "uint64", "float32"):
        array: Any = meta_arrays.empty(2 * rows, name)
        for given in (array, array[::2], array[::-1]):
            copied = memory.copy_of(given)
            assert copied.shape == given.shape and copied.dtype == name
            memory.import_device_array(given, memory._array_type(given, "c"))


def test_words_without_a_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Bounds(0, 2**64 - 1), bounds_and_order(np.arange(2))[1]
    monkeypatch.setattr(memory, "bounds_and_order", lambda array: found)
    array: Any = meta_arrays.empty(20, np.uint64)
    column = memory.import_device_array(array, UBIGINT)
    assert column.physical_type is PhysicalType.I128 and column.data.length == 40


@pytest.mark.parametrize(
    ("dtype", "physical_type"),
    [(BIGINT, "I8"), (INTEGER, "I32"), (UBIGINT, "I64"), (UBIGINT, "I128"), (decimal(9, 2), "I16"), (decimal(30, 2), "I128"),
     (REAL, "F32"), (INTERVAL, "I64"), (INTERVAL, "I32"), (INTERVAL, "I128")],
)  # fmt: skip
def test_results_as_arrays(dtype: DType, physical_type: str) -> None:
    column = ResultColumn("c", _column(dtype, PhysicalType[physical_type], 50, nulls=True))
    assert column.values.shape == column._without_nulls().shape == (50,)


def test_one_element() -> None:
    """CuPy leaves out the dimension of an array of one where elements are set, and compiles a copy."""
    to: Any = meta_arrays.empty(1, np.int32)
    array: Any = meta_arrays.empty(1, np.int32)
    copy_into(to, GPU, array, GPU)
    for value, dtype in ((1, np.uint8), (-1, np.int64), (0.5, np.float64), (1, np.bool_)):
        assert GPU.full(3, value, dtype).shape == (3,)
    assert copies.compiled == []
    to[:] = array
    assert len(copies.compiled) == 1
    copies.compiled.clear()


def test_chunks_of_a_selection() -> None:
    class Attempt:
        device = GPU

    attempt: Any = Attempt()
    selection: Any = meta_arrays.empty(500, np.uint32)
    places, rows = streamed._places(attempt, selection, [0, 4, 9], 32)
    assert len(places) == 4 and len(rows) == 3
    moved, flags = scans.moved_within(selection, 3, 400)
    assert moved.shape == flags.shape == (500,)
