"""Columns of Parquet that a GPU decodes: their bytes go there as they lie in the files, a chunk beside the other.

What the host's cores would decode in their turns, a GPU's warps do at once, a chunk or some pages each (`io.held_cuts`); and
packed bytes are fewer than values. It takes integers, texts that are codes into dictionaries (`io.held_codes`) and texts as they
are (`io.held_texts`), without NULLs of local files, where the GPU has room for all of it. Of what a kernel does not know, or what
contradicts itself, the host reads the whole column, or says what is wrong.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from gquery import tuning
from gquery.columns.held_pages import COUNT, DICTIONARY, KIND, PLAIN, HeldAssembly, HeldChunks, HeldKernels
from gquery.columns.page_values import OUTCOME, ROWS, MisfitError
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.device.transfer import Transfer, Upload
from gquery.errors import OutOfMemoryError
from gquery.io import pages
from gquery.io.chunks import Chunks
from gquery.io.files import reading
from gquery.io.held_cuts import address_on, before, cut, number_dictionaries, whole
from gquery.io.pages import DONE, SLACK, Layout
from gquery.io.parquet_files import ParquetFiles, RowGroup
from gquery.io.parquet_opened import random_access
from gquery.runtime.interrupt import check
from gquery.runtime.threads import Phases, core_count
from gquery.runtime.tuples import NamedTuple

_ALIGNED = 64  # a chunk begins at a multiple of so many bytes
decoding = threading.Semaphore(tuning.reading.decoded_columns)
"""For columns that a device decodes at once: each has memory of its own meanwhile."""


class Decoder(NamedTuple):
    """A device that decodes, its kernels, and what brings bytes there."""

    device: Device
    kernels: HeldKernels
    upload: Upload


class HeldFiles(NamedTuple):
    """Row groups of files, and a column of them: its layout, which is one in all files, and its chunks."""

    files: ParquetFiles
    groups: Sequence[RowGroup]
    layout: Layout
    chunks: Chunks


class HeldBytes(ABC):
    """A column of row groups whose bytes go to a device, which decodes them."""

    def __init__(self, decoder: Decoder, held: HeldFiles) -> None:
        self._device, self._kernels, self._upload = decoder
        self._files, self._groups, self._layout, self._chunks = held
        size = -(-(self._chunks.packed + SLACK) // _ALIGNED) * _ALIGNED
        self._at = np.concatenate((np.zeros(1, np.int64), np.cumsum(size)))  # where each chunk lies, and the last one ends
        self._sent: list[int] = []
        self._is_refused = self._is_decoded = False

    def read(self) -> Phases[bool]:
        """Whether the assembly has all values; if not, another one has to begin anew."""
        if not self._is_room():
            return False
        raw = self._upload.make(int(self._at[-1]) + 8 * self._words_behind(), np.uint8, least=1)  # waits for all kernels
        if not raw.is_alone:
            return False
        parts = self._parts()
        if not (yield from self._plan(parts)):
            self._upload.release(raw)  # to which nothing was sent yet
            return False
        yield [partial(self._send, raw, number, *part) for number, part in enumerate(parts)]
        if len(self._sent) == len(parts) and (yield from self._prepare()):
            yield [partial(self._decode, raw)]
        return self._is_decoded

    def _plan(self, parts: list[tuple[int, slice]]) -> Phases[bool]:
        """What has to be known before anything is sent; whether a device may decode it."""
        yield from ()
        return True

    @abstractmethod
    def _needed(self) -> int:
        """How many bytes of the device that takes, beside the values."""

    def _is_room(self) -> bool:
        """Whether a device has room enough."""
        return self._needed() <= self._device.free_bytes // tuning.reading.decoding_share

    def _words_behind(self) -> int:
        """How many words are sent behind the chunks' bytes."""
        return 0

    def _parts(self) -> list[tuple[int, slice]]:
        """Chunks side by side of one file, its number first, that a thread sends: as many parts as there are cores, if those are
        not too small."""
        files, size = [group.file for group in self._groups], self._chunks.packed.tolist()
        most = max(sum(size) // core_count(), tuning.reading.uploaded_bytes)
        found, first, bytes_ = list[tuple[int, slice]](), 0, 0
        for number, file in enumerate(files):
            if number > first and (file != files[first] or bytes_ + size[number] > most):
                found.append((files[first], slice(first, number)))
                first, bytes_ = number, 0
            bytes_ += size[number]
        return [*found, (files[first], slice(first, len(files)))]

    def _send(self, raw: Transfer, number: int, file: int, part: slice) -> None:
        """Bring the bytes of a part's chunks to the device."""
        chunks = self._chunks.take(part)
        ranges = np.stack((self._at[:-1][part], chunks.packed, chunks.start), 1)
        with self._open(file) as opened:
            if self._is_refused or not self._look(raw, number, part, opened):
                self._is_refused = True  # nor are others' sent
            elif raw.send_ranges(opened, ranges, self._kernels.upload):
                self._sent.append(number)

    @contextmanager
    def _open(self, file: int) -> Iterator[int]:
        """A file, open: its number."""
        check()
        with reading(self._files.files[file].name, "Parquet file"), random_access(self._files.files[file]) as source:
            yield source.fileno()

    def _look(self, raw: Transfer, number: int, part: slice, file: int) -> bool:
        """Whether a device may decode a part's chunks, which lie in an open file; words behind the bytes are sent."""
        return True

    def _prepare(self) -> Phases[bool]:
        """The same of all chunks, once all are there."""
        yield from ()
        return True

    @abstractmethod
    def _decode(self, raw: Transfer) -> None:
        """All chunks, which are sent; `_is_decoded` where all is well."""


class HeldColumn(HeldBytes):
    """One that is decoded into an assembly that a device has alone. Long chunks are cut at pages; see `io.held_cuts`."""

    def __init__(self, decoder: Decoder, held: HeldFiles, assembly: HeldAssembly) -> None:
        super().__init__(decoder, held)
        self._assembly = assembly
        self._cuts = whole(self._chunks)
        self._is_cut = bool(self._chunks.values.max() > tuning.reading.cut_rows)
        self._listed: dict[int, Array] = {}  # pages of each part, where chunks are cut

    def _needed(self) -> int:
        return int(self._at[-1]) + self._cuts.room

    def _plan(self, parts: list[tuple[int, slice]]) -> Phases[bool]:
        if not self._is_cut:
            return True
        yield [partial(self._list, number, *part) for number, part in enumerate(parts)]
        if len(self._listed) < len(parts):
            return False
        rows = max(int(self._chunks.values.sum()) // tuning.reading.cuts, 1)
        self._cuts = cut(np.concatenate([self._listed[number] for number in range(len(parts))]), rows)
        return self._is_room()

    def _list(self, number: int, file: int, part: slice) -> None:
        """The pages of a part's chunks, if a device may decode them."""
        chunks, layout = self._chunks.take(part), self._layout
        about = np.stack((chunks.start, chunks.packed, chunks.values, chunks.codec), 1)
        with self._open(file) as opened:
            entry = abs(layout.width) or 4  # bytes of its length
            listed = self._kernels.list_pages(opened, about, layout.has_levels, entry, tuning.reading.decoded_bytes)
        if listed is None:
            return
        listed[:, 0] += part.start
        is_far = (listed[:, COUNT] > tuning.reading.decoded_rows) & (listed[:, KIND] != DICTIONARY)
        is_text = (listed[:, KIND] == PLAIN) & (layout.width == 0)  # which is no code
        if not (is_far | is_text).any():
            self._listed[number] = listed

    def _decode(self, raw: Transfer) -> None:
        """All chunks, and what is known of their values, into the assembly."""
        check()
        self._upload.wait()
        cuts, device, assembly = self._cuts, self._device, self._assembly
        bytes_, values, (block, low, high) = raw.buffer().on(device), assembly.device_values(device), assembly.blocks()
        rows, size = before(cuts.values), values.dtype.itemsize
        with decoding:
            try:
                memory = self._memory()
                words, flags, scratch, entries = (address_on(each) for each in memory)
                states = cuts.states(self._layout, self._chunks, (words, flags, scratch))
                states[:, pages.SOURCE] = address_on(bytes_) + self._at[:-1][cuts.chunk]
                table = self._begin(states, entries, address_on(bytes_) + int(self._at[-1]))
                held = HeldChunks(states, address_on(values) + size * rows, rows, size, low, high, block, table)
                found = self._kernels.decode(device, held)
            except OutOfMemoryError:
                return
        self._upload.release(raw)
        if (found[:, OUTCOME] != DONE).any() or (found[:, ROWS] != cuts.values).any():
            return
        try:
            assembly.take_found(found, low, high, partial(self._kernels.pick, device, address_on(values), size))
        except MisfitError:
            return
        self._is_decoded = True

    def _memory(self) -> list[Any]:
        """For words, flags, unpacked pages and dictionaries."""
        cuts = self._cuts
        rows, bytes_, slack = int(cuts.rows.sum()), int(cuts.size.sum()), SLACK * len(cuts.chunk)
        sizes = (rows, np.int64), (rows + slack, np.uint8), (bytes_ + slack, np.uint8), (self._own_entries(), np.int64)
        return [self._device.empty(max(size, 1), dtype, "decoding columns") for size, dtype in sizes]

    def _own_entries(self) -> int:
        """Of how many words the dictionaries are that a device takes apart."""
        return 0

    @abstractmethod
    def _begin(self, states: Array, entries: int, words: int) -> Array | None:
        """Have states begin behind what is known of dictionaries, or take them apart to the address ``entries``; see
        `HeldChunks.table`. At the address ``words`` lies what was sent behind the bytes."""


class HeldNumbers(HeldColumn):
    """A column of integers."""

    def __init__(self, decoder: Decoder, held: HeldFiles, assembly: HeldAssembly) -> None:
        super().__init__(decoder, held, assembly)
        most = np.minimum(self._chunks.values, self._cuts.size // abs(held.layout.width))
        self._entries = np.where(self._chunks.has_dictionary, most, 0)  # for which there is room, of each chunk's dictionary
        self._places, self._counts = np.zeros((2, len(self._chunks)), np.int64)  # of those that the host takes apart

    def _needed(self) -> int:
        return super()._needed() + 8 * int(self._entries.sum())

    def _words_behind(self) -> int:
        return int(self._entries.sum()) if self._is_cut else 0

    def _look(self, raw: Transfer, number: int, part: slice, file: int) -> bool:
        if not self._is_cut:
            return True
        listed = self._listed[number]
        listed = listed[listed[:, KIND] == DICTIONARY]
        chunk, counts, first = listed[:, 0], listed[:, COUNT], int(self._entries[: part.start].sum())
        if (counts > self._entries[chunk]).any():
            return False
        words = number_dictionaries(self._kernels, file, (self._layout, self._chunks), listed)
        if words is None:
            return False
        raw.send(int(self._at[-1]) + 8 * first, words.view(np.uint8))
        self._places[chunk], self._counts[chunk] = first + before(counts), counts
        return True

    def _own_entries(self) -> int:
        return 0 if self._is_cut else int(self._entries.sum())

    def _begin(self, states: Array, entries: int, words: int) -> Array | None:
        if self._is_cut:
            chunk = self._cuts.chunk
            states[:, pages.DICTIONARY], states[:, pages.ENTRIES] = words + 8 * self._places[chunk], self._counts[chunk]
        else:
            states[:, pages.DICTIONARY], states[:, pages.ENTRY_ROOM] = entries + 8 * before(self._entries), self._entries
        return None
