"""Pages of a column's chunk in a Parquet file as words, without Arrow: read, unpacked and decoded by compiled kernels.

A chunk is read in windows; of each, a kernel reads as many pages as there is room for, so that the interpreter is needed once
for many. What it does not know (NULLs, other encodings and codecs, pages that contradict themselves) it leaves: the rows that
came before are right, and Arrow reads the others, or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.columns.ownership import check_decoded
from gquery.columns.page_values import PageKernels, Words
from gquery.device.array import Array
from gquery.device.host import address_of
from gquery.io.extents import nulls_of
from gquery.runtime.interrupt import check
from gquery.runtime.records import dataclass

# Words of the state and outcomes, as `kernels.primitives.pages` has them.
DICTIONARY, ENTRIES = 48, 49
SOURCE, HAVE, AT, WORDS, ROOM, MADE, SCRATCH, SIZE, LEFT, WIDTH, CODEC, LEVELS, NEED, STATE = range(50, 64)
DONE, MORE_BYTES, MORE_ROOM, MORE_SCRATCH, FOUND_DICTIONARY, FAILED = range(6)
SLACK = 64

_WIDTHS = {"INT32": 4, "INT64": 8, "BYTE_ARRAY": 0}
_CODECS = {"UNCOMPRESSED": 0, "SNAPPY": 1}


@dataclass(frozen=True)
class Chunk:
    """A column's chunk in a row group: where its pages lie in the file, how many values there are, the bytes of one (0: text that
    is wanted as codes), whether they have levels, and which codec (see `kernels.primitives.pages`)."""

    start: int
    size: int
    values: int
    width: int
    has_levels: bool
    codec: int


def chunk_of_pages(chunk: Any, column: Any, rows: int, file_size: int, as_codes: bool) -> Chunk | None:
    """What a footer tells of a chunk, ``column`` being its schema's; None where kernels would not read it."""
    width, codec = _WIDTHS.get(chunk.physical_type), _CODECS.get(chunk.compression)
    if width is None or codec is None or (width == 0) is not as_codes or chunk.num_values != rows:
        return None
    if column.max_repetition_level or column.max_definition_level > 1 or nulls_of(chunk):
        return None
    start, size = chunk.data_page_offset, chunk.total_compressed_size
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    if start < 4 or size <= 0 or start + size > file_size:
        return None
    return Chunk(start, size, rows, width, column.max_definition_level == 1, codec)


def made_bytes(size: int) -> Array:
    """Room for so many bytes, and those behind them that may be read and written as well."""
    return np.empty(size + SLACK, np.uint8)


def made_words(count: int) -> Array:
    """Room for so many words."""
    return np.empty(count, np.int64)


class PageBuffers:
    """What one thread needs to read pages, to be used for one chunk after another."""

    def __init__(self, window: int, values: int, largest: int) -> None:
        self.largest = largest  # bytes that one of them may come to, where a page needs more than others
        self.state = np.zeros(STATE + 1, np.int64)
        self.window = made_bytes(window)
        self.scratch = made_bytes(0)
        self.words = made_words(values)


class ChunkReader:
    """The pages of one chunk of the column ``name``. ``source`` is the file, which nobody else reads meanwhile."""

    def __init__(
        self, source: pa.NativeFile, chunk: Chunk, name: str, kernels: PageKernels, buffers: PageBuffers
    ) -> None:
        self._source, self._chunk, self._name, self._kernels, self._buffers = source, chunk, name, kernels, buffers
        self._dictionary: Array = np.zeros(1, np.int64)
        self._texts: pa.Array | None = None
        self._read = 0  # bytes of the chunk that were read into a window

    def pieces(self) -> Iterator[Words]:
        """The values in order, as far as kernels can read them. ValueError where texts are no UTF-8."""
        state, buffers = self._buffers.state, self._buffers
        state[:] = 0
        state[LEFT], state[WIDTH], state[CODEC] = self._chunk.values, self._chunk.width, self._chunk.codec
        state[LEVELS] = int(self._chunk.has_levels)
        while state[LEFT]:
            check()
            state[SOURCE], state[DICTIONARY] = address_of(buffers.window), address_of(self._dictionary)
            state[WORDS], state[ROOM] = address_of(buffers.words), len(buffers.words)
            state[SCRATCH], state[SIZE] = address_of(buffers.scratch), len(buffers.scratch) - SLACK
            outcome, made = self._kernels.read_pages(state), int(state[MADE])
            if made:
                yield Words(buffers.words[:made], self._texts)
            if not (outcome in (DONE, MORE_ROOM) and made) and not self._go_on(outcome, int(state[NEED])):
                return

    def _go_on(self, outcome: int, need: int) -> bool:
        """Whether there is more of what a kernel missed."""
        buffers = self._buffers
        if need * (8 if outcome == MORE_ROOM else 1) > buffers.largest:
            return False
        if outcome == MORE_BYTES:
            return self._more_bytes(need)
        if outcome == MORE_ROOM:
            buffers.words = made_words(need)
        elif outcome == MORE_SCRATCH:
            buffers.scratch = made_bytes(need)
        return outcome in (MORE_ROOM, MORE_SCRATCH) or (outcome == FOUND_DICTIONARY and self._take_dictionary(need))

    def _more_bytes(self, need: int) -> bool:
        """Move what is left of the window to its front, and fill the rest."""
        buffers, state = self._buffers, self._buffers.state
        left = buffers.window[state[AT] : state[HAVE]]
        size = len(buffers.window) - SLACK
        if len(left) == size or need > size:
            larger = made_bytes(max(need, 2 * size))
            larger[: len(left)] = left
            buffers.window = larger
        elif len(left):
            buffers.window[: len(left)] = left.copy()
        wanted = min(len(buffers.window) - SLACK - len(left), self._chunk.size - self._read)
        if wanted <= 0:
            return False
        self._source.seek(self._chunk.start + self._read)
        got = self._source.readinto(buffers.window[len(left) : len(left) + wanted])
        self._read += got
        state[AT], state[HAVE] = 0, len(left) + got
        return bool(got == wanted)

    def _take_dictionary(self, size: int) -> bool:
        """Make words of a dictionary's page, which is unpacked; whether it is one."""
        entries, raw, width = int(self._buffers.state[ENTRIES]), self._buffers.scratch, self._chunk.width
        if not 0 < entries <= size:
            return False
        if width:
            if size < entries * width:
                return False
            self._dictionary = raw[: entries * width].view(f"i{width}").astype(np.int64)
            return True
        offsets, characters = np.zeros(entries + 1, np.int32), made_bytes(size)
        if size < 4 * entries or not self._kernels.texts(raw, size, offsets, characters):
            return False
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(characters)]
        self._texts = pa.Array.from_buffers(pa.string(), entries, buffers)
        check_decoded(self._texts, self._name)
        self._dictionary = np.arange(entries, dtype=np.int64)
        return True
