"""Texts put together in their place: the bytes that each group has are told before, as footers of Parquet do.

What is decoded is written where it stays, once, and by the thread that decodes it. Pieces that are kept and written into the
column once all are there (`gquery.columns.assemble_strings`) take fresh memory twice, and the system clears each page of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow_buffers import bits_of
from gquery.columns.assemble_strings import Strings
from gquery.columns.encode_strings import (
    characters_column,
    characters_of,
    cleared,
    dictionary_limit,
    estimate_sample,
    sampled_rows,
    without_views,
)
from gquery.columns.page_values import MisfitError, Placed, PlacedTexts, TextRoom, Words
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.transfer import Transfer, Upload
from gquery.runtime.threads import Phases


class CountedStrings(Strings):
    """Strings as they are, of which each group has ``sizes`` bytes; a sample decides whether they get a dictionary after all."""

    def __init__(self, starts: Sequence[int], sizes: Sequence[int], upload: Upload) -> None:
        super().__init__(starts, upload)
        self._bytes = [0, *accumulate(sizes)]
        is_narrow = self._bytes[-1] < tuning.encoding.narrow_offsets
        self._offsets: Array = np.empty(starts[-1] + 1, np.int32 if is_narrow else np.int64)
        self._offsets[0] = 0
        self._characters: Array = np.empty(self._bytes[-1], np.uint8)
        self._validity: Array | None = None
        self._lock = threading.Lock()
        self._held: tuple[Transfer, Transfer] | None = None  # offsets and characters that a device has alone

    def room(self, group: int, at: int, is_nullable: bool) -> TextRoom:
        """In the arrays themselves. Nobody writes behind the bytes of a group: others may be there."""
        first, last, end = self._starts[group] + at, self._starts[group + 1], self._bytes[group + 1]
        start = int(self._offsets[first]) if at else self._bytes[group]
        self._offsets[first] = start
        valid = self._flags()[first:last] if is_nullable else None
        return TextRoom(self._offsets[first : last + 1], self._characters, valid, start, end, end)

    def add(self, group: int, pieces: Iterable[pa.Array | Words | Placed | PlacedTexts]) -> int:
        """Writes the pieces of a group that are not in their place; how many rows they have. MisfitError where they have other
        bytes than was told, ValueError where there are more rows."""
        start, end = self._starts[group], self._starts[group + 1]
        row, byte = start, self._bytes[group]
        for piece in pieces:
            if row + len(piece) > end:
                raise ValueError(f"a row group holds more than the {end - start} rows that the footer tells")
            if isinstance(piece, PlacedTexts):
                byte = piece.end
                self._count_nulls(piece.nulls)
            else:
                byte = self._write(group, row, without_views(piece))
            row += len(piece)
        if row == end and byte != self._bytes[group + 1]:
            raise MisfitError
        self._groups[group] = [self._array(start, row)]
        return row - start

    def _write(self, group: int, row: int, piece: pa.Array) -> int:
        """A piece from a row on; the byte behind it."""
        room, ok = self.room(group, row - self._starts[group], piece.null_count > 0), None
        if room.valid is not None:
            ok = bits_of(piece, 0)
            room.valid[: len(ok)] = ok
            self._count_nulls(piece.null_count)
        array, offsets = cleared(piece, ok)
        low, size = int(offsets[0]), int(offsets[-1]) - int(offsets[0])
        if size > room.end - room.start:
            raise MisfitError
        room.offsets[: len(piece) + 1] = np.add(offsets, room.start - low, dtype=np.int64)
        self._characters[room.start : room.start + size] = characters_of(array)[low : low + size]
        return room.start + size

    @property
    def takes_held(self) -> bool:
        """Whether there are enough rows for a device to decode."""
        return self._starts[-1] >= tuning.encoding.compiled_rows

    def begin_held(self) -> tuple[Buffer, Buffer] | None:
        """Offsets and bytes that a device decodes into, which has them alone; None where it has no room."""
        offsets = self._upload.make(len(self._offsets), self._offsets.dtype)
        characters = self._upload.make(len(self._characters), np.uint8)
        if not (offsets.is_alone and characters.is_alone):
            return None
        self._held = offsets, characters
        return offsets.buffer(), characters.buffer()

    def _look(self) -> None:
        if self._held is None:
            super()._look()
            return
        offsets, characters = (transfer.buffer() for transfer in self._held)
        rows = self._starts[-1]
        pieces = [_piece(offsets, characters, at, size) for at, size in sampled_rows(rows)]
        self._distinct = estimate_sample(pa.chunked_array(pieces), rows)
        if self._distinct <= dictionary_limit(rows):  # which the host makes
            self._offsets, self._characters, self._held = offsets.host, characters.host, None
            self._groups = [[self._array(low, high)] for low, high in pairwise(self._starts)]

    def _count_nulls(self, nulls: int) -> None:
        with self._lock:
            self._nulls += nulls

    def _flags(self) -> Array:
        """A byte for each row, 1 until it is NULL."""
        with self._lock:
            if self._validity is None:
                self._validity = np.ones(self._starts[-1], np.uint8)
            return self._validity

    def _array(self, start: int, end: int) -> pa.Array:
        """Rows that are in their place."""
        ok = None if self._validity is None else self._validity[start:end]
        valid = None if ok is None or ok.all() else pa.py_buffer(np.packbits(ok, bitorder="little"))
        buffers = [valid, pa.py_buffer(self._offsets[start : end + 1]), pa.py_buffer(self._characters)]
        return pa.Array.from_buffers(
            pa.string() if self._offsets.itemsize == 4 else pa.large_string(), end - start, buffers
        )

    def _written(self) -> Phases[ColumnData]:
        """The column, which is there."""
        self._groups = []
        if self._held is not None:
            offsets, characters = (transfer.buffer() for transfer in self._held)
            return characters_column(offsets, characters, None, 0, self._distinct)
        parts: list[tuple[Array, Sequence[int]]] = [
            (self._offsets, [0, *(row + 1 for row in self._starts[1:])]),
            (self._characters, self._bytes),
        ]
        if self._validity is not None and self._nulls:
            parts.append((self._validity, self._starts))
        transfers = [self._upload.start(array) for array, _ in parts]
        yield [
            partial(transfer.send, low, array[low:high])
            for transfer, (array, borders) in zip(transfers, parts, strict=True)
            for low, high in pairwise(borders)
        ]
        offsets, characters, *validity = (transfer.buffer() for transfer in transfers)
        return characters_column(offsets, characters, validity[0] if validity else None, self._nulls, self._distinct)


def _piece(offsets: Buffer, characters: Buffer, at: int, size: int) -> pa.Array:
    """Some rows of texts that a device has."""
    device = offsets.devices[0]
    borders = device.to_host(offsets.on(device)[at : at + size + 1])
    text = device.to_host(characters.on(device)[int(borders[0]) : int(borders[-1])])
    buffers = [None, pa.py_buffer(borders - borders[0]), pa.py_buffer(np.ascontiguousarray(text))]
    return pa.Array.from_buffers(pa.string() if borders.itemsize == 4 else pa.large_string(), size, buffers)
