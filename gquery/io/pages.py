"""Pages of a column's chunks in a Parquet file as values or words, without Arrow: read, unpacked and decoded by compiled kernels.

A kernel reads bytes of the file itself, chunk after chunk, and as many pages as there is room for: where threads read, each turn
at the interpreter is one for which others wait. What it does not know (other encodings and codecs, pages that contradict
themselves) it leaves: the rows that came before are right, and Arrow reads the others, or says what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.ownership import check_decoded
from gquery.columns.page_values import PageKernels, Placed, PlacedTexts, Room, TextRoom, Words
from gquery.device.array import Array
from gquery.device.host import address_of
from gquery.expression.types import INT64
from gquery.io.chunks import TYPES, Chunks
from gquery.runtime.interrupt import check
from gquery.runtime.records import dataclass
from gquery.runtime.tuples import NamedTuple

# Words of the state, and outcomes, as `kernels.primitives.pages` has them.
DICTIONARY, ENTRIES = 48, 49
SOURCE, HAVE, AT, WORDS, ROOM, MADE, SCRATCH, SIZE, LEFT, WIDTH, CODEC, LEVELS, NEED = range(50, 63)
VALUES, NEXT, CHUNKS, FILE, WINDOW, POSITION, BEHIND = range(63, 70)
ENTRY_ROOM, CODES, TEXTS, OFFSETS, CHARACTERS, CHARACTER_ROOM, BYTES, ROW = range(70, 78)
FLAGS, IS_NULLABLE, NULLS, ARE_TEXTS, TEXT, TEXT_ROOM, TEXT_USED, STOP, TEXT_END, STATE = range(78, 88)
DONE, MORE_BYTES, MORE_ROOM, MORE_SCRATCH, FOUND_DICTIONARY, FAILED, MORE_TEXT = range(7)
SLACK = 64

CAN_READ = hasattr(os, "pread")
"""Whether the C library has what kernels read files by."""

_WIDTHS = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 0}
_BYTES = "FIXED_LEN_BYTE_ARRAY"  # decimals, the highest byte first
_SNAPPY = 1  # the last codec that kernels know


@dataclass(frozen=True)
class Layout:
    """How a column of a file is laid out: its physical type, the bytes of a value (0: text; below 0: the highest comes first),
    whether its pages have levels, and whether its texts are wanted as codes."""

    type: str
    width: int
    has_levels: bool
    as_codes: bool

    @property
    def are_texts(self) -> bool:
        """Whether texts are wanted as they are."""
        return not self.width and not self.as_codes


def layout_of(column: Any, is_text: bool, as_codes: bool) -> Layout | None:
    """That of a column, of which a footer's schema tells; None where kernels would not read it."""
    width = _WIDTHS.get(column.physical_type)
    if column.physical_type == _BYTES and 0 < column.length <= 8:
        width = -column.length
    if width is None or (width == 0) is not is_text or column.max_repetition_level or column.max_definition_level > 1:
        return None
    return Layout(column.physical_type, width, column.max_definition_level == 1, as_codes)


def are_readable(chunks: Chunks, layout: Layout, rows: Array, file_size: int | Array) -> Array:
    """Whether kernels would read chunks, which lie in row groups of so many rows in a file, or files, of so many bytes (bool)."""
    start, packed = chunks.start, chunks.packed
    lies_within = (start >= 4) & (packed > 0) & (packed <= file_size) & (start <= file_size - packed)
    made: Array = lies_within & (chunks.codec <= _SNAPPY) & (chunks.values == rows) & (chunks.type == TYPES.index(layout.type))
    return made


class Pages(NamedTuple):
    """Chunks of a column in one file, and what reads their pages."""

    kernels: PageKernels
    layout: Layout
    chunks: Chunks

    @property
    def may_have_nulls(self) -> bool:
        """Whether there may be NULLs."""
        return self.layout.has_levels and bool(self.chunks.nulls.any())


def made_bytes(size: int) -> Array:
    """Room for so many bytes, and those behind them that may be read and written as well."""
    return np.empty(size + SLACK, np.uint8)


def made_words(count: int) -> Array:
    """Room for so many words."""
    return np.empty(count, np.int64)


class PageBuffers:
    """What one thread needs to read pages, to be used for some chunks after others: a ``window`` of bytes of a file, room for so
    many words, and for dictionaries of so many ``entries``. Of texts up to so many bytes are together, and ``rows`` rows or some
    more."""

    def __init__(self, window: int, values: int, largest: int, entries: int, text_bytes: int, rows: int) -> None:
        self.largest = largest  # bytes that one of them may come to, where a page needs more than others
        self.text_bytes, self.rows = text_bytes, rows
        self.state = np.zeros(STATE + 1, np.int64)
        self.window = made_bytes(window)
        self.scratch = made_bytes(0)
        self.words = made_words(values)
        self.flags = made_bytes(values)  # a byte for each of them
        self.entries = made_words(entries)  # words of a dictionary
        self.codes = made_words(0)  # words that are their own codes
        self.offsets: Array = np.empty(0, np.int32)  # of texts of dictionaries
        self.characters = made_bytes(0)

    def make_room_for_texts(self, entries: int, size: int) -> None:
        """Room for so many texts of dictionaries, with so many bytes; what was there is gone where there was less."""
        if len(self.codes) < entries:
            self.codes = np.arange(entries)
            self.offsets = made_words(entries // 2 + 1).view(np.int32)
            self.offsets[0] = 0
        if len(self.characters) - SLACK < size:
            self.characters = made_bytes(size)


def page_buffers(is_limited: bool) -> PageBuffers:
    """Those of a thread; smaller where columns stay on a host under a limit."""
    limits = tuning.reading
    if is_limited:
        return PageBuffers(
            limits.limited_bytes, limits.limited_words, limits.thread_bytes // 4, limits.limited_words // 4,
            limits.limited_bytes, limits.limited_words,
        )  # fmt: skip
    return PageBuffers(
        limits.window_bytes, limits.window_bytes // 8, limits.largest_page, limits.window_bytes // 16,
        limits.text_bytes, INT64.high,
    )  # fmt: skip


class ChunkReader:
    """The pages of chunks of the column ``name``, one chunk after another, into ``room`` if they are given some. ``source``
    is the file."""

    def __init__(
        self,
        source: pa.NativeFile,
        pages: Pages,
        name: str,
        buffers: PageBuffers,
        room: Room | TextRoom | None = None,
    ) -> None:
        self._kernels, self._layout = pages.kernels, pages.layout
        chunks = pages.chunks
        self._chunks = np.stack((chunks.start, chunks.packed, chunks.values, chunks.codec), 1)
        self._unpacked, self._size = chunks.unpacked, 0
        self._file, self._name, self._buffers, self._room = source.fileno(), name, buffers, room
        self._own: Array | None = None  # words of a dictionary for which the buffers have no room
        self._texts: pa.Array | None = None  # what words are codes into

    def pieces(self) -> Iterator[Words | Placed | PlacedTexts | pa.Array]:
        """The values in order, as far as kernels can read them. ValueError where texts are no UTF-8."""
        state, buffers, layout = self._begin(), self._buffers, self._layout
        while self._is_left():
            check()
            self._give_room()
            outcome, made = self._kernels.read_chunks(state, buffers.words, self._room), int(state[MADE])
            if made and self._room is None:
                yield Words(buffers.words[:made], None if layout.width else self._known_texts())
            if outcome == FOUND_DICTIONARY and not layout.width:  # whose texts come beside those that there are
                yield from self._placed()
                self._room = None
            if not (outcome in (DONE, MORE_ROOM) and made) and not self._go_on(outcome, int(state[NEED])):
                break
        yield from self._placed()

    def _begin(self) -> Array:
        """The state, in which nothing is read yet."""
        state, buffers, layout = self._buffers.state, self._buffers, self._layout
        state[:] = 0
        state[FILE], state[WIDTH], state[LEVELS] = self._file, layout.width, int(layout.has_levels)
        state[NEXT], state[CHUNKS], state[STOP] = address_of(self._chunks), len(self._chunks), buffers.rows
        state[ARE_TEXTS] = int(layout.are_texts)
        if not layout.width:
            buffers.make_room_for_texts(max(len(buffers.entries) // 4, 1), len(buffers.window) // 4)
        return state

    def _is_left(self) -> bool:
        """Whether there is something to read."""
        return bool(self._buffers.state[LEFT] or self._buffers.state[CHUNKS])

    def _placed(self) -> Iterator[Placed]:
        rows = int(self._buffers.state[ROW])
        if rows and isinstance(self._room, Room):
            texts, nulls = None if self._layout.width else self._known_texts(), int(self._buffers.state[NULLS])
            yield Placed(rows, self._room, texts, nulls)

    def _give_room(self) -> None:
        state, buffers = self._buffers.state, self._buffers
        state[SOURCE], state[WINDOW] = address_of(buffers.window), len(buffers.window) - SLACK
        state[WORDS], state[ROOM] = address_of(buffers.words), len(buffers.words)
        state[FLAGS], state[IS_NULLABLE] = address_of(buffers.flags), int(self._takes_nulls())
        state[SCRATCH], state[SIZE] = address_of(buffers.scratch), len(buffers.scratch) - SLACK
        if self._own is not None:
            state[DICTIONARY], state[ENTRY_ROOM] = address_of(self._own), 0
        elif self._layout.width:
            state[DICTIONARY], state[ENTRY_ROOM] = address_of(buffers.entries), len(buffers.entries)
        else:  # a kernel says where in the codes those of a dictionary begin
            state[CODES], state[ENTRY_ROOM] = address_of(buffers.codes), len(buffers.codes)
            state[OFFSETS], state[CHARACTERS] = address_of(buffers.offsets), address_of(buffers.characters)
            state[CHARACTER_ROOM] = len(buffers.characters) - SLACK

    def _takes_nulls(self) -> bool:
        return self._room is not None and self._room.valid is not None

    def _go_on(self, outcome: int, need: int) -> bool:
        """Whether there is more of what a kernel missed."""
        buffers = self._buffers
        if need * (8 if outcome == MORE_ROOM else 1) > buffers.largest:
            return False
        if outcome == MORE_BYTES:
            self._widen_window(need)
        elif outcome == MORE_ROOM:
            buffers.words, buffers.flags = made_words(need), made_bytes(need)
        elif outcome == MORE_SCRATCH:
            buffers.scratch = made_bytes(need)
        elif outcome == FOUND_DICTIONARY:
            return self._take_dictionary(need)
        return outcome != FAILED

    def _widen_window(self, need: int) -> None:
        buffers, state = self._buffers, self._buffers.state
        left = buffers.window[state[AT] : state[HAVE]]
        buffers.window = made_bytes(max(need, 2 * (len(buffers.window) - SLACK)))
        buffers.window[: len(left)] = left
        state[AT], state[HAVE] = 0, len(left)

    def _take_dictionary(self, size: int) -> bool:
        """Make words of a dictionary's page, which is unpacked and larger than there is room for; whether it is one."""
        entries, raw, width = int(self._buffers.state[ENTRIES]), self._buffers.scratch, self._layout.width
        if not 0 < entries <= size or size < entries * (abs(width) or 4):
            return False
        if width:
            self._own = _words(raw[: entries * abs(width)], width)
            return True
        offsets, characters = np.zeros(entries + 1, np.int32), made_bytes(size)
        if not self._kernels.texts(raw, size, offsets, characters):
            return False
        self._texts, self._own = self._checked_texts(offsets, characters), np.arange(entries, dtype=np.int64)
        return True

    def _known_texts(self) -> pa.Array:
        """The texts of the dictionaries so far: copies, as others will lie there soon."""
        count, buffers = int(self._buffers.state[TEXTS]), self._buffers
        if self._own is None and (self._texts is None or len(self._texts) != count):
            characters = buffers.characters[: buffers.state[BYTES]].copy()
            self._texts = self._checked_texts(buffers.offsets[: count + 1].copy(), characters)
        return self._texts

    def _checked_texts(self, offsets: Array, characters: Array, valid: pa.Buffer | None = None) -> pa.Array:
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(characters)]
        type_ = pa.string() if offsets.itemsize == 4 else pa.large_string()
        made = pa.Array.from_buffers(type_, len(offsets) - 1, buffers)
        check_decoded(made, self._name)
        return made


def _words(raw: Array, width: int) -> Array:
    """Integers of ``width`` bytes, the highest first where it is below 0, as words."""
    if width > 0:
        return raw.view(f"i{width}").astype(np.int64)
    padded = np.zeros((len(raw) // -width, 8), np.uint8)
    padded[:, :-width] = raw.reshape(-1, -width)
    words: Array = padded.view(">i8")[:, 0].astype(np.int64) >> (64 + 8 * width)
    return words
