"""Pages of a column's chunks in a Parquet file as words, without Arrow: read, unpacked and decoded by compiled kernels.

Chunks are read into a window, as many as it holds, and a kernel reads as many pages as there is room for, so that the interpreter
is needed once for many: where threads read, each of its turns is one for which others wait. A chunk that is larger than the window
is read piece by piece. What a kernel does not know (NULLs, other encodings and codecs, pages that contradict themselves) it
leaves: the rows that came before are right, and Arrow reads the others, or says what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.columns.ownership import check_decoded
from gquery.columns.page_values import PageKernels, Words
from gquery.device.array import Array
from gquery.device.host import address_of
from gquery.runtime.interrupt import check
from gquery.runtime.records import dataclass

# Words of the state, of what describes a chunk, and outcomes, as `kernels.primitives.pages` has them.
DICTIONARY, ENTRIES = 48, 49
SOURCE, HAVE, AT, WORDS, ROOM, MADE, SCRATCH, SIZE, LEFT, WIDTH, CODEC, LEVELS, NEED = range(50, 63)
VALUES, NEXT, CHUNKS, ENTRY_ROOM, OFFSETS, OFFSET_ROOM, CHARACTERS, CHARACTER_ROOM, STATE = range(63, 72)
FOUND, DESCRIPTION = 4, 5
DONE, MORE_BYTES, MORE_ROOM, MORE_SCRATCH, FOUND_DICTIONARY, FAILED = range(6)
SLACK = 64

CAN_READ = hasattr(os, "preadv")
"""Whether files are read in a way that several threads share."""

_WIDTHS = {"INT32": 4, "INT64": 8, "BYTE_ARRAY": 0}
_CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1}


@dataclass(frozen=True)
class Layout:
    """How a column of a file is laid out: its physical type, the bytes of a value (0: text that is wanted as codes), and whether its
    pages have levels."""

    type: str
    width: int
    has_levels: bool


@dataclass(frozen=True)
class Chunk:
    """A column's chunk in a row group: where its pages lie in the file, how many values there are, and which codec (see
    `kernels.primitives.pages`)."""

    start: int
    size: int
    values: int
    codec: int


def layout_of(column: Any, as_codes: bool) -> Layout | None:
    """That of a column, of which a footer's schema tells; None where kernels would not read it."""
    width = _WIDTHS.get(column.physical_type)
    if width is None or (width == 0) is not as_codes or column.max_repetition_level or column.max_definition_level > 1:
        return None
    return Layout(column.physical_type, width, column.max_definition_level == 1)


def chunk_of_pages(chunk: Any, layout: Layout, rows: int, file_size: int) -> Chunk | None:
    """What a footer tells of a chunk without NULLs; None where kernels would not read it."""
    codec = _CODECS.get(chunk.compression)
    if codec is None or chunk.physical_type != layout.type or chunk.num_values != rows:
        return None
    start, size = chunk.data_page_offset, chunk.total_compressed_size
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    if start < 4 or size <= 0 or start + size > file_size:
        return None
    return Chunk(start, size, rows, codec)


def made_bytes(size: int) -> Array:
    """Room for so many bytes, and those behind them that may be read and written as well."""
    return np.empty(size + SLACK, np.uint8)


def made_words(count: int) -> Array:
    """Room for so many words."""
    return np.empty(count, np.int64)


class PageBuffers:
    """What one thread needs to read pages, to be used for some chunks after others: a ``window`` of bytes of a file, room for so many
    words, and for dictionaries of so many ``entries``."""

    def __init__(self, window: int, values: int, largest: int, entries: int) -> None:
        self.largest = largest  # bytes that one of them may come to, where a page needs more than others
        self.state = np.zeros(STATE + 1, np.int64)
        self.window = made_bytes(window)
        self.scratch = made_bytes(0)
        self.words = made_words(values)
        self.entries = made_words(entries)
        self.codes = made_words(0)  # a dictionary whose words are their own codes
        self.offsets: Array = np.empty(0, np.int32)  # of texts of dictionaries
        self.characters = made_bytes(0)

    def room_for_texts(self) -> tuple[Array, Array]:
        """For the offsets and the bytes of dictionaries of texts."""
        if not len(self.offsets):
            self.codes = np.arange(len(self.entries), dtype=np.int64)
            self.offsets = made_words(max(len(self.entries) // 2, 1)).view(np.int32)
            self.characters = made_bytes(len(self.window) // 4)
        return self.offsets, self.characters


class ChunkReader:
    """The pages of some chunks of the column ``name``, one chunk after another. ``source`` is the file."""

    def __init__(
        self,
        source: pa.NativeFile,
        layout: Layout,
        chunks: Sequence[Chunk],
        name: str,
        kernels: PageKernels,
        buffers: PageBuffers,
    ) -> None:
        self._file, self._layout, self._chunks = source.fileno(), layout, chunks
        self._name, self._kernels, self._buffers = name, kernels, buffers

    def pieces(self) -> Iterator[Words]:
        """The values in order, as far as kernels can read them. ValueError where texts are no UTF-8."""
        first = 0
        while first < len(self._chunks):
            last, room = first, len(self._buffers.window) - SLACK
            while last < len(self._chunks) and self._chunks[last].size <= room:
                room -= self._chunks[last].size
                last += 1
            some = _Window(self._file, self._layout, self._chunks[first : max(last, first + 1)], self._buffers)
            if not (yield from some.pieces(self._kernels, self._name)):
                return
            first = max(last, first + 1)


class _Window:
    """Some chunks that the window holds, or one that it does not."""

    def __init__(self, file: int, layout: Layout, chunks: Sequence[Chunk], buffers: PageBuffers) -> None:
        self._file, self._layout, self._chunks, self._buffers = file, layout, chunks, buffers
        self._read = 0  # bytes of the last chunk that were read
        self._described = np.zeros((len(chunks), DESCRIPTION), np.int64)
        self._own: Array | None = None  # words of a dictionary for which the buffers have no room
        self._taken: pa.Array | None = None  # texts of one
        self._texts: pa.Array | None = None  # the dictionary of the chunk that the next words are of
        self._chunk, self._left = -1, 0  # the number of that chunk, and how many of its words are still to come
        self._offset = self._character = 0  # where in the buffers the next dictionary of texts begins

    def pieces(self, kernels: PageKernels, name: str) -> Generator[Words, None, bool]:
        """The words in order; returns whether these are all."""
        state, layout = self._buffers.state, self._layout
        state[:] = 0
        state[WIDTH], state[LEVELS] = layout.width, int(layout.has_levels)
        state[NEXT], state[CHUNKS] = address_of(self._described), len(self._chunks)
        self._give_room_for_texts()
        self._fill()
        while state[LEFT] or state[CHUNKS]:
            check()
            self._give_room()
            outcome, made = kernels.read_chunks(state), int(state[MADE])
            if made:
                yield from self._words(self._buffers.words[:made], name)
            if not (outcome in (DONE, MORE_ROOM) and made) and not self._go_on(outcome, kernels):
                return False
        return True

    # ---- room ------------------------------------------------------------------------------------------------------
    def _give_room_for_texts(self) -> None:
        if not self._layout.width:
            state, offsets, characters = self._buffers.state, *self._buffers.room_for_texts()
            state[OFFSETS], state[OFFSET_ROOM] = address_of(offsets), len(offsets)
            state[CHARACTERS], state[CHARACTER_ROOM] = address_of(characters), len(characters) - SLACK

    def _give_room(self) -> None:
        state, buffers = self._buffers.state, self._buffers
        state[WORDS], state[ROOM] = address_of(buffers.words), len(buffers.words)
        state[SCRATCH], state[SIZE] = address_of(buffers.scratch), len(buffers.scratch) - SLACK
        entries = buffers.entries if self._layout.width else buffers.codes
        state[DICTIONARY] = address_of(entries if self._own is None else self._own)
        state[ENTRY_ROOM] = len(entries) if self._own is None else 0

    def _fill(self) -> None:
        """Read the chunks into the window, of a larger one the first bytes."""
        window, at = self._buffers.window, 0
        for number, chunk in enumerate(self._chunks):
            size = min(chunk.size, len(window) - SLACK - at)
            self._read = os.preadv(self._file, [window[at : at + size]], chunk.start)
            self._described[number] = address_of(window) + at, self._read, chunk.values, chunk.codec, 0
            at += size

    def _go_on(self, outcome: int, kernels: PageKernels) -> bool:
        """Whether there is more of what a kernel missed."""
        buffers, need = self._buffers, int(self._buffers.state[NEED])
        if need * (8 if outcome == MORE_ROOM else 1) > buffers.largest:
            return False
        if outcome == MORE_BYTES:
            return self._more_bytes(need)
        if outcome == MORE_ROOM:
            buffers.words = made_words(need)
        elif outcome == MORE_SCRATCH:
            buffers.scratch = made_bytes(need)
        return outcome in (MORE_ROOM, MORE_SCRATCH) or (
            outcome == FOUND_DICTIONARY and self._take_dictionary(need, kernels)
        )

    def _more_bytes(self, need: int) -> bool:
        """Move what is left of the window to its front, and fill the rest."""
        if len(self._chunks) > 1:  # of which the window had all
            return False
        buffers, state, (chunk,) = self._buffers, self._buffers.state, self._chunks
        left = buffers.window[state[AT] : state[HAVE]]
        size = len(buffers.window) - SLACK
        if len(left) == size or need > size:
            larger = made_bytes(max(need, 2 * size))
            larger[: len(left)] = left
            buffers.window = larger
        elif len(left):
            buffers.window[: len(left)] = left.copy()
        wanted = min(len(buffers.window) - SLACK - len(left), chunk.size - self._read)
        if wanted <= 0:
            return False
        got = os.preadv(self._file, [buffers.window[len(left) : len(left) + wanted]], chunk.start + self._read)
        self._read += got
        state[SOURCE], state[AT], state[HAVE] = address_of(buffers.window), 0, len(left) + got
        return bool(got == wanted)

    # ---- dictionaries ----------------------------------------------------------------------------------------------
    def _take_dictionary(self, size: int, kernels: PageKernels) -> bool:
        """Make words of a dictionary's page, which is unpacked and larger than there is room for; whether it is one."""
        entries, raw, width = int(self._buffers.state[ENTRIES]), self._buffers.scratch, self._layout.width
        if not 0 < entries <= size or size < entries * (width or 4):
            return False
        if width:
            self._own = raw[: entries * width].view(f"i{width}").astype(np.int64)
            return True
        offsets, characters = np.zeros(entries + 1, np.int32), made_bytes(size)
        if not kernels.texts(raw, size, offsets, characters):
            return False
        self._taken, self._own = _texts(offsets, characters), np.arange(entries, dtype=np.int64)
        return True

    def _words(self, words: Array, name: str) -> Iterator[Words]:
        """Words with the dictionary of their chunk, where they are codes."""
        if self._layout.width:
            yield Words(words)
            return
        at = 0
        while at < len(words):
            while not self._left:
                self._chunk += 1
                self._left, self._texts = self._chunks[self._chunk].values, None
            if self._texts is None:
                self._texts = self._next_texts()
                check_decoded(self._texts, name)
            end = at + min(self._left, len(words) - at)
            yield Words(words[at:end], self._texts)
            self._left -= end - at
            at = end

    def _next_texts(self) -> pa.Array:
        """The dictionary of the chunk: a copy, as others will lie there soon."""
        entries, buffers = int(self._described[self._chunk, FOUND]), self._buffers
        if not entries:
            assert self._taken is not None
            return self._taken
        offsets = buffers.offsets[self._offset : self._offset + entries + 1].copy()
        end = self._character + int(offsets[-1])
        characters = buffers.characters[self._character : end].copy()
        self._offset, self._character = self._offset + entries + 1, end
        return _texts(offsets, characters)


def _texts(offsets: Array, characters: Array) -> pa.Array:
    return pa.Array.from_buffers(
        pa.string(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(characters)]
    )
