"""Few rows of Arrow arrays whose values nobody has looked at yet.

Arrow's own functions trust the offsets of text. Here they are not trusted: what they say is compared with the bytes that are
there, of offsets that were copied first, as another thread may write to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.columns.arrow_buffers import numpy_name

_TEXT = {pa.string(): np.int32, pa.large_string(): np.int64}


def is_pickable(type_: pa.DataType) -> bool:
    """Whether a `Picker` takes an array of that type: text, and values of a fixed width."""
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)
    is_time = pa.types.is_date(type_) or pa.types.is_timestamp(type_)
    return type_ in _TEXT or is_number or is_time or bool(pa.types.is_decimal128(type_))


class Picker:
    """Takes rows out of an array. What it has to know of the array is found out once."""

    def __init__(self, array: pa.ChunkedArray) -> None:
        self.type = array.type
        self._starts = np.cumsum([0, *(len(chunk) for chunk in array.chunks)])
        self._chunks = [_Chunk(chunk) for chunk in array.chunks]

    def rows(self, rows: Any) -> pa.Array:
        """The values in these rows (int64), in their order, in memory of their own. ArrowInvalid where text does not lie within
        its bytes; what the values are is not looked at."""
        found = self._each(rows, lambda chunk, own: chunk.rows(own), pa.concat_arrays)
        return pa.nulls(0, self.type) if found is None else found

    def numbers(self, rows: Any) -> tuple[Any, Any]:
        """The same of integers, dates and timestamps as NumPy's integers, with 1 or 0 by row for value or NULL, or None."""
        found = self._each(rows, lambda chunk, own: chunk.numbers(own), np.concatenate)
        if not any(chunk.has_nulls for chunk in self._chunks):
            return found, None
        return found, self._each(rows, lambda chunk, own: chunk.validity(own), np.concatenate)

    def _each(self, rows: Any, take: Callable[[_Chunk, Any], Any], join: Callable[[Sequence[Any]], Any]) -> Any:
        """What ``take`` gives for the rows of each chunk, put together in the rows' order."""
        if len(self._chunks) == 1:
            return take(self._chunks[0], rows)
        which = np.searchsorted(self._starts, rows, side="right") - 1
        parts = [take(self._chunks[n], rows[which == n] - self._starts[n]) for n in np.unique(which).tolist()]
        if not parts:
            return None
        back = np.empty(len(rows), np.int64)
        back[np.argsort(which, kind="stable")] = np.arange(len(rows))
        return join(parts).take(pa.array(back) if isinstance(parts[0], pa.Array) else back)


class _Chunk:
    """One array, with views of its buffers."""

    def __init__(self, array: pa.Array) -> None:
        self._array, self._offset = array, array.offset
        buffers: list[Any] = array.buffers() if len(array) else [None, None, None]
        bitmap, *rest = buffers
        self._bitmap = None if bitmap is None else np.frombuffer(bitmap, np.uint8)
        self._data: Any = None
        word = _TEXT.get(array.type)
        if word is not None and len(array):
            self._data = np.frombuffer(rest[0], word)
            self._characters = memoryview(b"" if rest[1] is None else rest[1])
        elif is_integral(array.type) and len(array):
            self._data = np.frombuffer(rest[0], numpy_name(array.type))

    @property
    def has_nulls(self) -> bool:
        return self._bitmap is not None

    def rows(self, rows: Any) -> pa.Array:
        if self._array.type in _TEXT:
            return self._texts(rows)
        return self._array.take(pa.array(rows))  # no further than there are rows, for which a valid structure has room

    def numbers(self, rows: Any) -> Any:
        return self._data[rows + self._offset]

    def validity(self, rows: Any) -> Any:
        if self._bitmap is None:
            return np.ones(len(rows), np.uint8)
        at = rows + self._offset
        return self._bitmap[at >> 3] >> (at & 7).astype(np.uint8) & 1

    def _texts(self, rows: Any) -> pa.Array:
        if not len(rows):
            return pa.nulls(0, self._array.type)
        at = rows + self._offset
        lows, highs = self._data[at].astype(np.int64), self._data[at + 1].astype(np.int64)
        ok = None if self._bitmap is None else self.validity(rows)
        if ok is not None:
            highs = np.where(ok == 1, highs, lows)
        if lows.min() < 0 or (lows > highs).any() or highs.max() > self._characters.nbytes:
            raise pa.ArrowInvalid(f"offsets from {lows.min()} to {highs.max()} into {self._characters.nbytes} bytes")
        pieces = b"".join([self._characters[a:b] for a, b in zip(lows.tolist(), highs.tolist(), strict=True)])
        offsets = np.zeros(len(rows) + 1, self._data.dtype)
        np.cumsum(highs - lows, out=offsets[1:])
        valid = None if ok is None else pa.py_buffer(np.packbits(ok, bitorder="little"))
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(pieces)]
        return pa.Array.from_buffers(self._array.type, len(rows), buffers)


def is_integral(type_: pa.DataType) -> bool:
    """Whether values lie in Arrow as the integers that they are here: whole numbers up to 64 bits, days, microseconds."""
    is_number = pa.types.is_integer(type_) and type_ != pa.uint64()
    return bool(is_number or pa.types.is_date32(type_) or (pa.types.is_timestamp(type_) and type_.unit == "us"))
