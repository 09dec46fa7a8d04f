"""Texts of a column's chunks as they are, by the kernels of `io.pages`: arrays of as many rows as there is room for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from gquery.columns.page_values import Placed, PlacedTexts, Room, TextRoom, Words
from gquery.device.host import address_of
from gquery.expression.types import INT64
from gquery.io.pages import (
    BYTES,
    CHUNKS,
    DICTIONARY,
    DONE,
    ENTRIES,
    LEFT,
    MADE,
    MORE_ROOM,
    MORE_TEXT,
    NEED,
    NULLS,
    ROW,
    SLACK,
    STOP,
    TEXT,
    TEXT_END,
    TEXT_ROOM,
    TEXT_USED,
    TEXTS,
    ChunkReader,
    made_bytes,
)
from gquery.runtime.interrupt import check


class TextReader(ChunkReader):
    """The texts of chunks, one chunk after another: in their place, where room is given, else as arrays."""

    def pieces(self) -> Iterator[Words | Placed | PlacedTexts | pa.Array]:
        """The values in order, as far as kernels can read them. ValueError where they are no UTF-8."""
        state, buffers = self._begin(), self._buffers
        room = self._begin_piece(0) if self._room is None else self._begin_room(self._room)
        while self._is_left():
            check()
            self._give_room()
            state[TEXT], state[TEXT_ROOM], state[TEXT_END] = address_of(room.characters), room.end, room.writable
            outcome = self._kernels.read_chunks(state, buffers.words, room)
            made, need, is_full = int(state[MADE]), int(state[NEED]), outcome == MORE_TEXT
            if is_full and (need > buffers.largest or self._room is not None):
                break
            if not is_full and not (outcome in (DONE, MORE_ROOM) and made) and not self._go_on(outcome, need):
                break
            if self._room is None and (is_full or outcome == MORE_ROOM):  # enough rows, or words need more room
                if state[ROW]:
                    yield self._array(room)
                room = self._begin_piece(need if is_full else 0)
        if state[ROW]:
            yield self._array(room) if self._room is None else self._in_place(room)

    def _begin_room(self, room: Room | TextRoom) -> TextRoom:
        """All rows go where they are wanted, whose bytes somebody has counted."""
        assert isinstance(room, TextRoom)
        self._buffers.state[TEXT_USED], self._buffers.state[STOP] = room.start, INT64.high
        return room

    def _begin_piece(self, least: int) -> TextRoom:
        """Room for the rows that are left, or as many as are enough, and as many bytes of text as they have in the file, or
        ``least``. Where that was not enough once, it is twice as much."""
        buffers = self._buffers
        chunk = len(self._chunks) - int(buffers.state[CHUNKS])
        rows = int(buffers.state[LEFT]) + int(self._chunks[chunk:, 2].sum())
        rows = min(rows, buffers.rows + len(buffers.words))
        size = max(int(self._unpacked[max(chunk - 1, 0) :].sum()), 2 * self._size if least else 0)
        self._size = max(least, min(size, buffers.text_bytes))
        buffers.state[[ROW, NULLS, TEXT_USED]] = 0
        offsets = np.empty(rows + 1, np.int32)
        offsets[0] = 0
        return TextRoom(offsets, made_bytes(self._size), np.empty(rows, np.uint8), 0, self._size, self._size + SLACK)

    def _takes_nulls(self) -> bool:
        return self._room is None or self._room.valid is not None

    def _give_room(self) -> None:
        super()._give_room()
        self._buffers.state[DICTIONARY] = address_of(self._buffers.codes)

    def _take_dictionary(self, size: int) -> bool:
        """Take a dictionary's page apart, which is unpacked and larger than there is room for; whether it is one."""
        state, buffers, entries = self._buffers.state, self._buffers, int(self._buffers.state[ENTRIES])
        if not 0 < entries <= size or size < 4 * entries:
            return False
        buffers.make_room_for_texts(entries, size)
        if not self._kernels.texts(buffers.scratch, size, buffers.offsets[: entries + 1], buffers.characters):
            return False
        state[TEXTS], state[BYTES] = entries, size - 4 * entries
        return True

    def _array(self, room: TextRoom) -> pa.Array:
        state = self._buffers.state
        rows, nulls = int(state[ROW]), int(state[NULLS])
        valid = pa.py_buffer(np.packbits(room.valid[:rows], bitorder="little")) if nulls and room.valid is not None else None
        characters = room.characters[: int(state[TEXT_USED])]
        return self._checked_texts(room.offsets[: rows + 1], characters, valid)

    def _in_place(self, room: TextRoom) -> PlacedTexts:
        """What was read, which is valid. Where the first text begins others may write: the end of what they have."""
        state, rows = self._buffers.state, int(self._buffers.state[ROW])
        first = np.array([room.start, room.offsets[1]], room.offsets.dtype)
        for offsets in (first, room.offsets[1 : rows + 1]):
            self._checked_texts(offsets, room.characters)
        return PlacedTexts(rows, int(state[TEXT_USED]), int(state[NULLS]))
