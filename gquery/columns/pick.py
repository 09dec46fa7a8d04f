"""Few rows of Arrow arrays whose values nobody has looked at yet.

Arrow's own functions trust the offsets of text. Here they are not trusted: what they say is compared with the bytes that are
there, of offsets that were copied first, as another thread may write to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

_TEXT = {pa.string(): np.int32, pa.large_string(): np.int64}


def is_pickable(type_: pa.DataType) -> bool:
    """Whether `picked` takes an array of that type: text, and values of a fixed width."""
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)
    is_time = pa.types.is_date(type_) or pa.types.is_timestamp(type_)
    return type_ in _TEXT or is_number or is_time or bool(pa.types.is_decimal128(type_))


def picked(array: pa.ChunkedArray, rows: Any) -> pa.Array:
    """The values in these rows (int64), in their order, in memory of their own. ArrowInvalid where text does not lie within its
    bytes; what the values are is not looked at."""
    starts = np.cumsum([0, *(len(chunk) for chunk in array.chunks)])
    which = np.searchsorted(starts, rows, side="right") - 1
    order = np.argsort(which, kind="stable")
    parts = [_of_chunk(array.chunk(int(n)), rows[which == n] - starts[n]) for n in np.unique(which)]
    if not parts:
        return pa.nulls(0, array.type)
    back = np.empty(len(rows), np.int64)
    back[order] = np.arange(len(rows))
    made = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    return made if len(parts) == 1 else made.take(pa.array(back))


def _of_chunk(chunk: pa.Array, rows: Any) -> pa.Array:
    word = _TEXT.get(chunk.type)
    if word is None:
        return chunk.take(
            pa.array(rows)
        )  # reads no further than there are rows, which the chunk's structure has room for
    bitmap, offsets, characters = chunk.buffers()
    at = rows + chunk.offset
    ends = np.frombuffer(offsets, word)
    lows, highs = ends[at].astype(np.int64), ends[at + 1].astype(np.int64)
    if bitmap is not None:
        ok = np.frombuffer(bitmap, np.uint8)[at >> 3] >> (at & 7) & 1
        highs = np.where(ok == 1, highs, lows)
    size = 0 if characters is None else characters.size
    if len(rows) and not (lows.min() >= 0 and (lows <= highs).all() and highs.max() <= size):
        raise pa.ArrowInvalid(f"offsets from {lows.min()} to {highs.max()} into {size} bytes")
    whole = memoryview(b"" if characters is None else characters)
    pieces = b"".join([whole[low:high] for low, high in zip(lows.tolist(), highs.tolist(), strict=True)])
    made = [pa.py_buffer(np.cumsum([0, *(highs - lows)], dtype=word)), pa.py_buffer(pieces)]
    valid = None if bitmap is None else pa.py_buffer(np.packbits(ok, bitorder="little"))
    return pa.Array.from_buffers(chunk.type, len(rows), [valid, *made])
