"""Few rows of Arrow arrays whose values nobody has looked at yet.

Arrow's own functions trust the offsets of text. Here they are not trusted: what they say is compared with the bytes that are
there, of offsets that were copied first, as another thread may write to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.columns.arrow import code_array
from gquery.columns.arrow_buffers import numpy_name
from gquery.runtime.arrow_compute import take
from gquery.runtime.records import cached_property

_TEXT = {pa.string(): np.int32, pa.large_string(): np.int64}


def is_pickable(type_: pa.DataType) -> bool:
    """Whether a `Picker` takes an array of that type: text, and values of a fixed width."""
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)
    is_time = pa.types.is_date(type_) or pa.types.is_timestamp(type_) or pa.types.is_time(type_)
    return type_ in _TEXT or is_number or is_time or bool(pa.types.is_decimal128(type_))


class Places:
    """Where rows lie in arrays that are cut into chunks alike; ``starts`` are the first rows of the chunks and the rows' number.
    Found once for all columns of a table."""

    def __init__(self, starts: Sequence[int], rows: Any) -> None:
        self.count = len(rows)
        self._starts, self._rows = starts, rows
        self.is_one_chunk = len(starts) == 2

    @cached_property
    def parts(self) -> list[tuple[int, Any, Any]]:
        """By chunk: its number, which of the rows lie there, and their numbers in it."""
        if self.is_one_chunk:
            return [(0, slice(None), self._rows)]
        which = np.searchsorted(self._starts, self._rows, side="right") - 1
        found = []
        for n in np.flatnonzero(np.bincount(which)).tolist():  # `np.unique` imports numpy.ma
            here = np.flatnonzero(which == n)
            found.append((n, here, self._rows[here] - self._starts[n]))
        return found


class Picker:
    """Takes rows out of an array. What it has to know of the array is found out once."""

    def __init__(self, array: pa.ChunkedArray) -> None:
        self.type = array.type
        self.is_text, self.is_number = array.type in _TEXT, _is_number(array.type)
        self.starts = (0, *accumulate(len(chunk) for chunk in array.chunks))
        self._chunks = [_Chunk(chunk) for chunk in array.chunks]
        self._has_nulls = any(chunk.has_nulls for chunk in self._chunks)
        if self.is_text or self.is_number:
            self._word = np.dtype(_TEXT.get(array.type) or numpy_name(array.type))

    def rows(self, at: Places) -> pa.Array:
        """The values in these rows, in their order, in memory of their own. What the values are is not looked at."""
        if not at.count:
            return pa.nulls(0, self.type)
        taken = [self._chunks[n].rows(rows) for n, _, rows in at.parts]
        if at.is_one_chunk:
            return taken[0]
        back = np.empty(at.count, np.int64)
        back[np.concatenate([here for _, here, _ in at.parts])] = np.arange(at.count)
        return take(pa.concat_arrays(taken), code_array(back, None))

    def numbers(self, at: Places) -> tuple[Any, Any]:
        """The same as NumPy's numbers of what `is_number`, 0 for NULL; with 1 or 0 by row for value or NULL, or None."""
        values, ok = self._gathered(at, self._word, _Chunk.numbers), self._validity(at)
        return (values, ok) if ok is None else (np.where(ok == 1, values, self._word.type(0)), ok)

    def texts(self, at: Places) -> tuple[Any, bytes, Any]:
        """The same of text: offsets, bytes, and 1 or 0 by row for value or NULL, or None; NULLs have no bytes. ArrowInvalid
        where text does not lie within its bytes, UnicodeDecodeError where it is not UTF-8."""
        pieces: list[Any] = [b""] * at.count
        lengths = np.zeros(at.count, np.int64)
        ok = self._validity(at)
        for n, here, rows in at.parts:
            lengths[here] = self._chunks[n].slices(rows, None if ok is None else ok[here], here, pieces)
        joined = b"".join(pieces)
        if not joined.isascii():
            for piece in pieces:  # valid one by one: none begins or ends in the midst of a character
                str(piece, "utf-8")
        offsets = np.zeros(at.count + 1, self._word)
        np.cumsum(lengths, out=offsets[1:])
        return offsets, joined, ok

    def _validity(self, at: Places) -> Any:
        return self._gathered(at, np.dtype(np.uint8), _Chunk.validity) if self._has_nulls else None

    def _gathered(self, at: Places, type_: np.dtype[Any], of: Callable[[_Chunk, Any], Any]) -> Any:
        """What ``of`` gives for the rows of each chunk, in the rows' order."""
        if at.is_one_chunk and at.count:
            return of(self._chunks[0], at.parts[0][2])
        out = np.empty(at.count, type_)
        if at.count:
            for n, here, rows in at.parts:
                out[here] = of(self._chunks[n], rows)
        return out


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
        elif _is_number(array.type) and len(array):
            self._data = np.frombuffer(rest[0], numpy_name(array.type))

    @property
    def has_nulls(self) -> bool:
        return self._bitmap is not None

    def rows(self, rows: Any) -> pa.Array:
        # no further than there are rows, for which a valid structure has room
        return take(self._array, code_array(rows, None))

    def numbers(self, rows: Any) -> Any:
        return self._data[rows + self._offset if self._offset else rows]

    def validity(self, rows: Any) -> Any:
        if self._bitmap is None:
            return np.ones(len(rows), np.uint8)
        at = rows + self._offset
        return self._bitmap[at >> 3] >> (at & 7).astype(np.uint8) & 1

    def slices(self, rows: Any, ok: Any, here: Any, pieces: list[Any]) -> Any:
        """Put the bytes of each row's text into ``pieces``, at the places ``here``, and give the lengths."""
        at = rows + self._offset if self._offset else rows
        lows, highs = self._data[at].astype(np.int64), self._data[at + 1].astype(np.int64)
        if ok is not None:
            highs = np.where(ok == 1, highs, lows)
        characters, size = self._characters, self._characters.nbytes
        ends = list(zip(lows.tolist(), highs.tolist(), strict=True))
        if not all(0 <= low <= high <= size for low, high in ends):
            raise pa.ArrowInvalid(f"offsets from {lows.min()} to {highs.max()} into {size} bytes")
        places = range(len(ends)) if isinstance(here, slice) else here.tolist()
        for place, (low, high) in zip(places, ends, strict=True):
            pieces[place] = characters[low:high]
        return highs - lows


def _is_number(type_: pa.DataType) -> bool:
    """Whether values lie in Arrow as the numbers that they are here: whole ones up to 64 bits, floats, days, microseconds."""
    is_integer = pa.types.is_integer(type_) and type_ != pa.uint64()
    is_micros = type_ == pa.time64("us") or (pa.types.is_timestamp(type_) and type_.unit == "us")
    is_time = pa.types.is_date32(type_) or is_micros
    return bool(is_integer or type_ in (pa.float32(), pa.float64()) or is_time)
