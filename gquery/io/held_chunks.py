"""Columns of Parquet that a GPU decodes: their bytes go there as they lie in the files, a chunk beside the other.

What the host's cores would decode in their turns, thousands of a GPU's threads do at once, a chunk each; and packed bytes are
fewer than values. It takes integers, texts that are codes into dictionaries (`io.held_codes`) and texts as they are
(`io.held_texts`), without NULLs of local files, where the GPU has room for all of it. Of what a kernel does not know, or what
contradicts itself, the host reads the whole column, or says what is wrong.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from gquery import tuning
from gquery.columns.held_pages import HeldAssembly, HeldChunks, HeldKernels
from gquery.columns.page_values import OUTCOME, ROWS, MisfitError
from gquery.device.array import Array, on_gpu
from gquery.device.device import Device
from gquery.device.transfer import Transfer, Upload
from gquery.errors import OutOfMemoryError
from gquery.io import pages
from gquery.io.chunks import Chunks
from gquery.io.files import reading
from gquery.io.pages import DONE, SLACK, Layout
from gquery.io.parquet_files import ParquetFiles, RowGroup
from gquery.io.parquet_opened import random_access
from gquery.runtime.interrupt import check
from gquery.runtime.threads import Phases, core_count
from gquery.runtime.tuples import NamedTuple

_ALIGNED = 64  # a chunk begins at a multiple of so many bytes
decoding = threading.Semaphore(tuning.reading.decoded_columns)
"""For columns that a device decodes at once: each has memory of its own meanwhile."""


class _Room(NamedTuple):
    """What decoding takes of a device for each chunk: how many words, bytes of an unpacked page, and entries of a dictionary."""

    words: int
    scratch: int
    entries: int

    @classmethod
    def of(cls, chunks: Chunks) -> _Room:
        """That of the largest ones, but for pages that are larger than most files have."""
        rows = min(int(chunks.values.max()), tuning.reading.decoded_rows)
        size = min(int(chunks.unpacked.max()), tuning.reading.decoded_bytes)
        return cls(rows, size, min(rows, size // 4) if chunks.has_dictionary.any() else 0)

    @property
    def bytes(self) -> int:
        return 8 * self.words + self.words + SLACK + self.scratch + SLACK + 8 * self.entries


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
        self._is_decoded = False

    def read(self) -> Phases[bool]:
        """Whether the assembly has all values; if not, another one has to begin anew."""
        if self._needed() > self._device.free_bytes // tuning.reading.decoding_share:
            return False
        raw = self._upload.make(int(self._at[-1]), np.uint8, least=1)
        if not raw.is_alone:
            return False
        parts = self._parts()
        yield [partial(self._send, raw, number, *part) for number, part in enumerate(parts)]
        if len(self._sent) == len(parts) and (yield from self._prepare()):
            yield [partial(self._decode, raw)]
        return self._is_decoded

    @abstractmethod
    def _needed(self) -> int:
        """How many bytes of the device that takes, beside the values."""

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
        check()
        opened, chunks = self._files.files[file], self._chunks.take(part)
        ranges = np.stack((self._at[:-1][part], chunks.packed, chunks.start), 1)
        with reading(opened.name, "Parquet file"), random_access(opened) as source:
            if self._look(number, part, source.fileno()):
                if raw.send_ranges(source.fileno(), ranges, self._kernels.upload):
                    self._sent.append(number)

    def _look(self, number: int, part: slice, file: int) -> bool:
        """Whether a device may decode a part's chunks, which lie in an open file."""
        return True

    def _prepare(self) -> Phases[bool]:
        """The same of all chunks, once all are there."""
        yield from ()
        return True

    @abstractmethod
    def _decode(self, raw: Transfer) -> None:
        """All chunks, which are sent; `_is_decoded` where all is well."""


class HeldColumn(HeldBytes):
    """One that is decoded into an assembly that a device has alone."""

    def __init__(self, decoder: Decoder, held: HeldFiles, assembly: HeldAssembly) -> None:
        super().__init__(decoder, held)
        self._assembly = assembly
        self._room = _Room.of(self._chunks)

    def _needed(self) -> int:
        return int(self._at[-1]) + len(self._chunks) * self._room.bytes

    def _decode(self, raw: Transfer) -> None:
        """All chunks, and what is known of their values, into the assembly."""
        check()
        self._upload.wait()
        count, room, device = len(self._chunks), self._room, self._device
        bytes_, assembly = raw.buffer().on(device), self._assembly
        values, (block, low, high) = assembly.device_values(device), assembly.blocks()
        with decoding:
            try:
                words, flags, scratch, entries = (
                    device.empty(max(count * size, 1), dtype, "decoding columns")
                    for size, dtype in (
                        (room.words, np.int64),
                        (room.words + SLACK, np.uint8),
                        (room.scratch + SLACK, np.uint8),
                        (room.entries, np.int64),
                    )
                )
            except OutOfMemoryError:
                return
            states, numbers = states_of(self._layout, self._chunks), np.arange(count)
            states[:, pages.SOURCE] = address_on(bytes_) + self._at[:-1]
            states[:, pages.WORDS], states[:, pages.ROOM] = address_on(words) + 8 * room.words * numbers, room.words
            states[:, pages.FLAGS] = address_on(flags) + (room.words + SLACK) * numbers
            states[:, pages.SCRATCH] = address_on(scratch) + (room.scratch + SLACK) * numbers
            states[:, pages.SIZE] = room.scratch
            states[:, pages.DICTIONARY] = address_on(entries) + 8 * room.entries * numbers
            states[:, pages.ENTRY_ROOM] = room.entries
            table = self._begin(states)
            rows = np.concatenate((np.zeros(1, np.int64), np.cumsum(self._chunks.values)))
            size = values.dtype.itemsize
            held = HeldChunks(states, address_on(values) + size * rows[:-1], rows[:-1].copy(), size, low, high, block, table)
            found = self._kernels.decode(device, held)
        self._upload.release(raw)
        if (found[:, OUTCOME] != DONE).any() or (found[:, ROWS] != self._chunks.values).any():
            return
        try:
            assembly.take_found(found, low, high, partial(self._kernels.pick, device, address_on(values), size))
        except MisfitError:
            return
        self._is_decoded = True

    def _begin(self, states: Array) -> Array | None:
        """Have the chunks' states begin behind what is known; see `HeldChunks.table`."""
        return None


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
