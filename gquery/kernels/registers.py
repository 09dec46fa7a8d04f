"""Registers of the python target as arrays of Arrow's, and back; memory for text that such arrays hand to it."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.columns.arrow import carried_type, string_array
from gquery.expression.types import DType, Kind
from gquery.functions.vectors import from_numpy
from gquery.kernels.checks import string_at


class _Arena(threading.local):
    """The bytes of strings that calls make for pipelines that this thread interprets. They are copied out by the sink of the
    same pipeline; the executor resets the arena when that has ended."""

    def __init__(self) -> None:
        self.kept: list[Any] = []


_arena = _Arena()


def reset_arena() -> None:
    """Lets go of the texts that interpreted kernels have made on this thread."""
    _arena.kept = []


def kept_text(text: str) -> tuple[int, int]:
    """A STR of a string."""
    data = text.encode()
    if not data:
        return (0, 0)
    buffer = ctypes.create_string_buffer(data, len(data))
    _arena.kept.append(buffer)
    return (ctypes.addressof(buffer), len(data))


def bytes_of(pair: tuple[int, int]) -> bytes:
    """The bytes of a STR."""
    return string_at(pair[0], pair[1]) if pair[1] else b""


def array_of_registers(results: Sequence[Any], dtype: DType) -> pa.Array:
    """Registers (None for NULL, bytes for text) as an array of Arrow's."""
    type_ = carried_type(dtype)
    if dtype.is_opaque or dtype.kind is Kind.NULL:
        return pa.nulls(len(results), type_)  # the constant of such a type
    if dtype.is_string:
        return string_array(results).cast(pa.string())
    ok = np.array([r is not None for r in results], np.bool_)
    plain = [0 if r is None else r for r in results]
    if dtype.is_float:
        values = np.array(plain, np.float32 if dtype.kind is Kind.REAL else np.float64)
        made = from_numpy(values.view(f"i{values.itemsize}"), ok)
        return made.view(type_)
    if dtype.kind is Kind.BOOLEAN:
        return from_numpy(np.array(plain, np.bool_), ok)
    if dtype.is_decimal or dtype.kind is Kind.INTERVAL:
        words = np.array([[signed(n & (2**64 - 1)), n >> 64] for n in plain], np.int64).reshape(-1)
        bitmap = pa.py_buffer(np.packbits(ok, bitorder="little"))
        return pa.Array.from_buffers(type_, len(results), [bitmap, pa.py_buffer(words)])
    width = "u8" if dtype.kind is Kind.UBIGINT else "i8"
    made = from_numpy(np.array(plain, width), ok)
    if dtype.kind is Kind.DATE:
        made = made.cast(pa.int32())
    return made.view(type_) if dtype.is_temporal or dtype.kind is Kind.TIME else made.cast(type_)


def registers_of(array: pa.Array, dtype: DType) -> list[Any]:
    """The values of an array as registers."""
    if dtype.kind is Kind.DATE:
        array = array.view(pa.int32())
    elif dtype.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME):
        array = array.view(pa.int64())
    elif dtype.is_decimal or dtype.kind is Kind.INTERVAL:
        whole = pa.decimal128(38, 0)
        array = pa.Array.from_buffers(whole, len(array), array.buffers(), array.null_count, array.offset)
    return list(array.to_pylist())


def signed(word: int) -> int:
    """A word of 64 bits as a signed number."""
    return word - 2**64 if word >= 2**63 else word
