"""Arrow's buffers as NumPy arrays: views where the layouts agree, bytes where Arrow has bits.

Arrow's own conversion to NumPy imports pandas where that is installed, which takes longer than many queries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gquery.device.buffer import Buffer
from gquery.runtime.digests import blake2b


def offsets_of(array: pa.Array) -> Any:
    """The offsets of a string array, one more than it has rows."""
    type_ = np.dtype(np.int64 if array.type == pa.large_string() else np.int32)
    buffer = array.buffers()[1]
    if buffer is None or buffer.size == 0:
        return np.zeros(1, type_)
    return np.frombuffer(buffer, type_)[array.offset : array.offset + len(array) + 1]


def text_digest(array: pa.Array) -> bytes:
    """What tells the strings of an array from others: 16 bytes, the same for offsets of 32 and 64 bits. None is NULL."""
    offsets = offsets_of(array)
    first, last = int(offsets[0]), int(offsets[-1])
    digest = blake2b((offsets.astype(np.int64) - first).tobytes(), digest_size=16)
    characters = array.buffers()[2]
    if characters is not None:
        digest.update(memoryview(characters)[first:last])
    return digest.digest()


def numpy_name(type_: pa.DataType) -> str:
    """NumPy's name for the words that a number, date or time of Arrow's lies in."""
    width = type_.bit_width // 8
    if pa.types.is_floating(type_):
        return f"f{width}"
    return f"u{width}" if pa.types.is_unsigned_integer(type_) else f"i{width}"


def values_of(array: pa.Array, type_: Any, words: int = 1) -> Any:
    """A view of the data buffer of an array of fixed width."""
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.empty(0, type_)
    return np.frombuffer(buffer, type_)[array.offset * words : (array.offset + len(array)) * words]


def bits_of(array: pa.Array, which: int) -> Any:
    """A bitmap of an array (0: validity, 1: the data of booleans) as bytes; all ones where there is no validity, zeros of an
    array of no type, which is all NULL and has no bitmaps."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.uint8)
    buffer = array.buffers()[which]
    rows = len(array)
    if buffer is None or rows == 0:
        return np.ones(rows, np.uint8)
    start = array.offset // 8
    packed = np.frombuffer(buffer, np.uint8)[start : (array.offset + rows + 7) // 8]
    skip = array.offset - 8 * start
    return np.unpackbits(packed, bitorder="little")[skip : skip + rows]


def validity_of(array: pa.ChunkedArray) -> Any:
    """One byte a row: 1 for a value, 0 for NULL."""
    return concatenate([bits_of(c, 0) for c in array.chunks], np.dtype(np.uint8))


def concatenate(parts: list[Any], type_: Any) -> Any:
    """One contiguous array of the type; the part itself where there is one that is so already."""
    type_ = np.dtype(type_)
    if len(parts) == 1 and parts[0].dtype == type_ and parts[0].flags.c_contiguous:
        return parts[0]
    out = np.empty(sum(len(p) for p in parts), type_)
    at = 0
    for part in parts:
        out[at : at + len(part)] = part
        at += len(part)
    return out


def zero_nulls(values: Any, validity: Any) -> Any:
    """Values with 0 where the validity is 0."""
    if validity is None:
        return values
    return np.where(validity.view(np.bool_), values, values.dtype.type(0))


def read_only(array: Any) -> Any:
    """A view of a NumPy array through which nobody can make it writable again."""
    return np.asarray(memoryview(array).toreadonly()) if array.size else array.copy()


def arrow_buffer(array: Any) -> pa.Buffer:
    """The memory of a NumPy array for Arrow, which hands it on for reading alone."""
    data: Any = np.ascontiguousarray(array)
    return pa.py_buffer(memoryview(data).toreadonly())


def buffer_of(array: Any) -> Buffer | None:
    """A buffer around an array that may be missing."""
    return None if array is None else Buffer(array)
