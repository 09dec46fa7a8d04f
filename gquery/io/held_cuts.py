"""Parts of Parquet's chunks that the warps of a GPU decode: a chunk each, or some pages where chunks are long.

A warp takes as long for a chunk as the chunk is, however few there are: files whose row groups have a million rows would leave
most of a GPU idle. The host lists the pages of such chunks by their headers, and takes their dictionaries apart, so that a warp
may begin at any page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gquery import tuning
from gquery.columns.held_pages import AT, COUNT, DICTIONARY, KIND, LEADING, PACKED, SIZE, HeldKernels
from gquery.device.array import Array, on_gpu
from gquery.device.host import address_of
from gquery.device.kept_memory import KEPT
from gquery.io import pages
from gquery.io.chunks import Chunks
from gquery.io.pages import SLACK, Layout, made_bytes
from gquery.runtime.tuples import NamedTuple

_STATES = 8 * 33 * (pages.STATE + 1)  # bytes of a part's state, and of those of the lanes that decode it


class Cuts(NamedTuple):
    """Parts of chunks, in order; an array (int64) of each: the number of its chunk, the byte of the chunk that it begins with and
    the one that it ends before, how many values it has, and the rows and bytes, unpacked, that there is room for of a page."""

    chunk: Array
    begin: Array
    end: Array
    values: Array
    rows: Array
    size: Array

    @property
    def room(self) -> int:
        """How many bytes of a device it takes to decode them, beside the values and dictionaries."""
        each = 2 * SLACK + _STATES
        return int((self.rows * 9 + self.size).sum()) + each * len(self.chunk)  # a word and a flag for each row

    def states(self, layout: Layout, chunks: Chunks, places: tuple[int, int, int]) -> Array:
        """A row for each, of which nothing is read; the addresses from which on they have words, flags and unpacked pages."""
        states = states_of(layout, chunks.take(self.chunk))
        states[:, pages.AT], states[:, pages.HAVE] = self.begin, self.end
        states[:, pages.VALUES] = states[:, pages.LEFT] = self.values
        states[:, pages.ROOM], states[:, pages.SIZE] = self.rows, self.size
        words, flags, scratch = places
        states[:, pages.WORDS] = words + 8 * before(self.rows)
        states[:, pages.FLAGS] = flags + before(self.rows + SLACK)
        states[:, pages.SCRATCH] = scratch + before(self.size + SLACK)
        return states


def whole(chunks: Chunks) -> Cuts:
    """Each chunk as one, with room for pages that are no larger than most files have."""
    rows = np.minimum(chunks.values, tuning.reading.decoded_rows)
    size = np.minimum(chunks.unpacked, tuning.reading.decoded_bytes)
    return Cuts(np.arange(len(chunks)), np.zeros(len(chunks), np.int64), chunks.packed, chunks.values, rows, size)


def cut(listed: Array, rows: int) -> Cuts:
    """Chunks, all of whose pages are listed, cut where a page begins, behind so many rows or more each."""
    chunk, count, size = listed[:, 0], listed[:, COUNT], listed[:, SIZE] + listed[:, LEADING]
    end = ends(listed)
    begin = np.where(_are_first(chunk), 0, np.roll(end, 1))
    is_data = listed[:, KIND] != DICTIONARY
    chunk, count, size, begin, end = (each[is_data] for each in (chunk, count, size, begin, end))
    is_first, behind = _are_first(chunk), before(count)
    behind = behind - behind[is_first][np.cumsum(is_first) - 1]
    starts = np.flatnonzero(is_first | _are_first(behind // rows))
    last = np.append(starts[1:], len(chunk)) - 1
    return Cuts(
        chunk[starts], begin[starts], end[last], np.add.reduceat(count, starts),
        np.maximum.reduceat(count, starts), np.maximum.reduceat(size, starts),
    )  # fmt: skip


def ends(listed: Array) -> Array:
    """The byte of its chunk that each page that is listed ends before."""
    made: Array = listed[:, AT] + listed[:, LEADING] + listed[:, PACKED]
    return made


def before(sizes: Array) -> Array:
    """The sum of those before each."""
    made: Array = np.cumsum(sizes) - sizes
    return made


def _are_first(numbers: Array) -> Array:
    """Whether each differs from the one before it."""
    made: Array = np.diff(numbers, prepend=-1) != 0
    return made


def number_dictionaries(kernels: HeldKernels, file: int, held: tuple[Layout, Chunks], listed: Array) -> Array | None:
    """The entries (int64), one behind another, of dictionaries of integers whose pages in an open file are listed; None where
    they contradict themselves. ``held`` has the layout, and all chunks."""
    size, counts, chunks = ends(listed), listed[:, COUNT], held[1].take(listed[:, 0])
    if not len(listed):
        return np.empty(0, np.int64)
    packed, scratch = KEPT.empty(int(size.sum()) + SLACK, np.dtype(np.uint8)), made_bytes(int(listed[:, SIZE].max()))
    places, words = address_of(packed) + before(size), KEPT.empty(int(counts.sum()), np.dtype(np.int64))
    if not kernels.fetch(file, np.stack((places, size, chunks.start), 1)):
        return None
    states = states_of(held[0], chunks)
    states[:, pages.SOURCE], states[:, pages.HAVE] = places, size
    states[:, pages.SCRATCH], states[:, pages.SIZE] = address_of(scratch), len(scratch) - SLACK
    states[:, pages.DICTIONARY], states[:, pages.ENTRY_ROOM] = address_of(words) + 8 * before(counts), counts
    is_whole = kernels.dictionaries(states) and bool((states[:, pages.ENTRIES] == counts).all())
    return words if is_whole else None


def states_of(layout: Layout, chunks: Chunks) -> Array:
    """A row for each chunk, of which nothing is read."""
    states = np.zeros((len(chunks), pages.STATE + 1), np.int64)
    states[:, pages.HAVE], states[:, pages.CODEC] = chunks.packed, chunks.codec
    states[:, pages.VALUES] = states[:, pages.LEFT] = chunks.values
    states[:, pages.WIDTH], states[:, pages.LEVELS] = layout.width, int(layout.has_levels)
    return states


def address_on(array: Any) -> int:
    """Where an array of a device lies."""
    return int(on_gpu(array).data.ptr)
