"""A long text column of others taken into memory of our own: copied and validated in pieces, on threads.

`Origin.taking` hands the tasks to `runtime.threads`. All chunks become one array, which lies as it is kept, so that
nothing is copied twice. What is copied first and looked at second cannot change in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow_buffers import bits_of, offsets_of

_ASCII = 128
Task = Callable[[], None]


class OwnedText:
    """The copy of an array of strings, which must have a row. First all of `copies` are done, then all of `checks`; then
    `chunks` are valid, one of them. A ValueError or ArrowInvalid says what is wrong."""

    def __init__(self, array: pa.ChunkedArray) -> None:
        self._chunks = [(chunk, offsets_of(chunk)) for chunk in array.chunks if len(chunk)]
        self._spans = [_span(chunk, offsets) for chunk, offsets in self._chunks]
        rows, size = len(array), sum(last - first for first, last in self._spans)
        is_long = array.type == pa.large_string() or size > np.iinfo(np.int32).max
        self._type = pa.large_string() if is_long else pa.string()
        self._offsets = np.empty(rows + 1, np.int64 if is_long else np.int32)
        self._offsets[rows] = size
        self._characters = np.empty(size, np.uint8)
        self._valid = np.empty(rows, np.uint8) if array.null_count else None
        self.chunks: list[pa.Array] = []

    def copies(self) -> Iterator[Task]:
        """Tasks that copy offsets and characters into memory of gquery's own; they may run in any order."""
        row = at = 0
        for (chunk, offsets), (first, last) in zip(self._chunks, self._spans, strict=True):
            for low in range(0, len(chunk), tuning.ownership.piece_rows):
                part = chunk.slice(low, tuning.ownership.piece_rows)
                yield partial(self._copy_rows, part, offsets[low : low + len(part)], row + low, at - first)
            characters = np.frombuffer(chunk.buffers()[2] or b"", np.uint8)
            for low in range(first, last, tuning.ownership.piece_bytes):
                yield partial(
                    self._copy_bytes, characters[low : min(low + tuning.ownership.piece_bytes, last)], at + low - first
                )
            row, at = row + len(chunk), at + last - first

    def checks(self) -> Iterator[Task]:
        """Tasks that validate the copy as Arrow does: offsets that never fall, UTF-8 without errors. pa.ArrowInvalid where it is
        not. They run behind the copies."""
        bits = None if self._valid is None else pa.py_buffer(np.packbits(self._valid, bitorder="little"))
        buffers = [bits, pa.py_buffer(self._offsets), pa.py_buffer(self._characters)]
        self.chunks = [pa.Array.from_buffers(self._type, len(self._offsets) - 1, buffers)]
        for low in range(0, len(self.chunks[0]), tuning.ownership.piece_rows):
            yield partial(self._check, low)

    def _copy_rows(self, part: pa.Array, offsets: Any, row: int, moved: int) -> None:
        rows = slice(row, row + len(part))
        np.add(offsets, self._offsets.dtype.type(moved), out=self._offsets[rows], casting="same_kind")
        if self._valid is not None:
            self._valid[rows] = bits_of(part, 0)

    def _copy_bytes(self, characters: Any, at: int) -> None:
        self._characters[at : at + len(characters)] = characters

    def _check(self, low: int) -> None:
        """Offsets that go up within the characters are in order, and ASCII is UTF-8 however it is cut. Arrow looks at the
        rest, which takes ten times as long."""
        offsets: Any = self._offsets[low : low + tuning.ownership.piece_rows + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        if 0 <= first <= last <= len(self._characters) and bool((offsets[1:] >= offsets[:-1]).all()):
            if first == last or int(self._characters[first:last].max()) < _ASCII:
                return
        self.chunks[0].slice(low, tuning.ownership.piece_rows).validate(full=True)


def _span(chunk: pa.Array, offsets: Any) -> tuple[int, int]:
    first, last = int(offsets[0]), int(offsets[-1])
    size = chunk.buffers()[2].size if chunk.buffers()[2] is not None else 0
    if not 0 <= first <= last <= size:
        raise ValueError(f"offsets from {first} to {last} into {size} bytes")
    return first, last
