"""Columns of Parquet that a GPU decodes: their bytes go there as they lie in the files, a chunk beside the other.

What the host's cores would decode in their turns, thousands of a GPU's threads do at once, a chunk each; and packed bytes are
fewer than values. It takes integers, and texts that are codes into dictionaries, without NULLs of local files,
where the GPU has room for all of it. Of what a kernel does not know, or what contradicts itself, the host reads the whole column,
or says what is wrong.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.assemble import Fixed
from gquery.columns.assemble_strings import DictionaryPieces
from gquery.columns.held_pages import HeldAssembly, HeldChunks, HeldKernels, held_kernels
from gquery.columns.ownership import check_decoded
from gquery.columns.page_values import OUTCOME, ROWS, MisfitError
from gquery.device.array import Array, on_gpu
from gquery.device.device import Device
from gquery.device.host import address_of
from gquery.device.transfer import Transfer, Upload
from gquery.errors import OutOfMemoryError
from gquery.io import pages
from gquery.io.chunks import Chunks
from gquery.io.files import reading
from gquery.io.pages import CAN_READ, DONE, SLACK, Layout, are_readable, made_bytes
from gquery.io.parquet_files import ParquetFiles, RowGroup
from gquery.io.parquet_opened import random_access
from gquery.runtime.interrupt import check
from gquery.runtime.threads import Phases
from gquery.runtime.tuples import NamedTuple

Run = tuple[RowGroup, ...]  # of one file, side by side
_ALIGNED = 64  # a chunk begins at a multiple of so many bytes
_MOST_CHARACTERS = 2**31 - 1  # that offsets of 32 bits tell apart
_decoding = threading.Semaphore(tuning.reading.decoded_columns)  # each has memory of its own meanwhile


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
    """Runs of row groups of a column, of one layout in all files, and their chunks."""

    files: ParquetFiles
    runs: Sequence[Run]
    layout: Layout
    chunks: Chunks


class HeldColumn:
    """A column of runs of row groups, to be decoded into an assembly that a device has alone."""

    def __init__(self, decoder: Decoder, held: HeldFiles, assembly: HeldAssembly) -> None:
        self._device, self._kernels, self._upload = decoder
        self._files, self._runs, self._layout, self._chunks = held
        self._assembly = assembly
        self._firsts = [0, *itertools.accumulate(map(len, self._runs))]  # the number of each run's first chunk
        size = -(-(self._chunks.packed + SLACK) // _ALIGNED) * _ALIGNED
        self._at = np.concatenate((np.zeros(1, np.int64), np.cumsum(size)))  # where each chunk lies, and the last one ends
        self._room = _Room.of(self._chunks)
        self._fetched: list[int] = []
        self._is_decoded = False

    def read(self) -> Phases[bool]:
        """Whether the assembly has all values; if not, another one has to begin anew."""
        needed = int(self._at[-1]) + len(self._chunks) * self._room.bytes
        if needed > self._device.free_bytes // tuning.reading.decoding_share:
            return False
        raw = self._upload.make(int(self._at[-1]), np.uint8)
        if not raw.is_alone:
            return False
        yield [partial(self._fetch, raw, number) for number in range(len(self._runs))]
        if len(self._fetched) == len(self._runs) and (yield from self._prepare()):
            yield [partial(self._decode, raw)]
        return self._is_decoded

    def _fetch(self, raw: Transfer, number: int) -> None:
        """The bytes of a run's chunks on their way to the device."""
        check()
        first, last = self._firsts[number], self._firsts[number + 1]
        low, high = int(self._at[first]), int(self._at[last])
        file, bytes_ = self._files.files[self._runs[number][0].file], raw.rows(low, high)
        chunks, places = self._chunks.take(slice(first, last)), address_of(bytes_) + self._at[first:last] - low
        wanted = np.stack((places, chunks.packed, chunks.start), 1)
        with reading(file.name, "Parquet file"), random_access(file) as source:
            is_there = self._kernels.fetch(source.fileno(), wanted)
        if is_there and self._look(number, chunks, places):
            raw.send(low, bytes_)
            self._fetched.append(number)

    def _look(self, number: int, chunks: Chunks, places: Array) -> bool:
        """Whether a device may decode the chunks of a run, whose bytes lie at these addresses of the host."""
        return True

    def _prepare(self) -> Phases[bool]:
        """The same of all chunks, once all are there."""
        yield from ()
        return True

    def _decode(self, raw: Transfer) -> None:
        """All chunks, and what is known of their values, into the assembly."""
        check()
        self._upload.wait()
        count, room, device = len(self._chunks), self._room, self._device
        bytes_, assembly = raw.buffer().on(device), self._assembly
        values, (block, low, high) = assembly.device_values(device), assembly.blocks()
        with _decoding:
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
            states, numbers = _states(self._layout, self._chunks), np.arange(count)
            states[:, pages.SOURCE] = _address(bytes_) + self._at[:-1]
            states[:, pages.WORDS], states[:, pages.ROOM] = _address(words) + 8 * room.words * numbers, room.words
            states[:, pages.FLAGS] = _address(flags) + (room.words + SLACK) * numbers
            states[:, pages.SCRATCH] = _address(scratch) + (room.scratch + SLACK) * numbers
            states[:, pages.SIZE] = room.scratch
            states[:, pages.DICTIONARY] = _address(entries) + 8 * room.entries * numbers
            states[:, pages.ENTRY_ROOM] = room.entries
            table = self._begin(states)
            rows = np.concatenate((np.zeros(1, np.int64), np.cumsum(self._chunks.values)))
            size = values.dtype.itemsize
            held = HeldChunks(states, _address(values) + size * rows[:-1], rows[:-1].copy(), size, low, high, block, table)
            found = self._kernels.decode(device, held)
        self._upload.release(raw)
        if (found[:, OUTCOME] != DONE).any() or (found[:, ROWS] != self._chunks.values).any():
            return
        try:
            assembly.take_found(found, low, high, partial(self._kernels.pick, device, _address(values), size))
        except MisfitError:
            return
        self._is_decoded = True

    def _begin(self, states: Array) -> Array | None:
        """Have the chunks' states begin behind what is known; see `HeldChunks.table`."""
        return None


class HeldCodes(HeldColumn):
    """A column of texts that are codes into dictionaries. The host takes those apart and makes one of them, whose codes are what
    a device decodes."""

    def __init__(self, decoder: Decoder, held: HeldFiles, assembly: DictionaryPieces, name: str) -> None:
        super().__init__(decoder, held, assembly)
        self._codes, self._name = assembly, name
        self._room = self._room._replace(entries=0)
        self._texts: dict[int, pa.Array] = {}  # of each run
        self._begun = np.zeros((len(self._chunks), 3), np.int64)  # of each chunk: bytes read, entries, those of its run before
        self._table: Array | None = None

    def _look(self, number: int, chunks: Chunks, places: Array) -> bool:
        room = chunks.unpacked.clip(0, tuning.reading.decoded_bytes)
        count, most = len(chunks), min(int(room.sum()), _MOST_CHARACTERS)
        offsets, characters, scratch = np.zeros(most // 4 + 1, np.int32), made_bytes(most), made_bytes(int(room.max()))
        states = _states(self._layout, chunks)
        states[:, pages.SOURCE], states[:, pages.ENTRY_ROOM] = places, most // 4
        states[:, pages.OFFSETS], states[:, pages.CHARACTERS] = address_of(offsets), address_of(characters)
        states[:, pages.CHARACTER_ROOM] = most
        states[:, pages.SCRATCH], states[:, pages.SIZE] = address_of(scratch), len(scratch) - SLACK
        if not self._kernels.dictionaries(states):
            return False
        entries, texts = states[:, pages.ENTRIES], int(states[-1, pages.TEXTS])
        self._begun[self._firsts[number] :][:count] = np.stack(
            (states[:, pages.AT], entries, states[:, pages.TEXTS] - entries), 1
        )
        used = characters[: states[-1, pages.BYTES]].copy()
        buffers = [None, pa.py_buffer(offsets[: texts + 1].copy()), pa.py_buffer(used)]
        self._texts[number] = pa.Array.from_buffers(pa.string(), texts, buffers)
        try:
            check_decoded(self._texts[number], self._name)
        except ValueError:  # the host says so
            return False
        return True

    def _prepare(self) -> Phases[bool]:
        texts = [self._texts[number] for number in range(len(self._runs))]
        before = np.repeat(np.cumsum([0, *map(len, texts)])[:-1], [len(run) for run in self._runs])
        self._begun[:, 2] += before
        self._table = yield from self._codes.unite(texts)
        return self._table is not None

    def _begin(self, states: Array) -> Array | None:
        states[:, pages.AT], states[:, pages.ENTRIES], before = self._begun.T
        states[:, pages.DICTIONARY] = 8 * before
        return self._table


def _states(layout: Layout, chunks: Chunks) -> Array:
    """A row for each chunk, of which nothing is read."""
    states = np.zeros((len(chunks), pages.STATE + 1), np.int64)
    states[:, pages.HAVE], states[:, pages.CODEC] = chunks.packed, chunks.codec
    states[:, pages.VALUES] = states[:, pages.LEFT] = chunks.values
    states[:, pages.WIDTH], states[:, pages.LEVELS] = layout.width, int(layout.has_levels)
    return states


def _address(array: Any) -> int:
    return int(on_gpu(array).data.ptr)


def held_column(
    files: ParquetFiles,
    runs: Sequence[Run],
    layouts: set[Layout | None],
    field: tuple[int, str],
    assembly: object,
    upload: Upload,
) -> HeldColumn | None:
    """The column of a field, its number and name, if a GPU may decode it: integers or codes of one leaf without NULLs, with one
    layout in all files, each of whose row groups is wanted whole. None while the kernels are not ready."""
    groups = [group for run in runs for group in run]
    layout = layouts.pop() if len(layouts) == 1 else None
    if layout is None or layout.are_texts or not groups or not all(group.whole and group.rows for group in groups):
        return None
    if not (CAN_READ and isinstance(assembly, (Fixed, DictionaryPieces)) and assembly.takes_held):
        return None
    if any(file.filesystem is not None for file in files.files):
        return None
    (chunks,) = files.chunks(field[0], groups)
    sizes = np.array([files.files[group.file].size for group in groups])
    are_read = are_readable(chunks, layout, np.array([group.rows for group in groups]), sizes)
    if not are_read.all() or (layout.has_levels and (chunks.nulls != 0).any()):
        return None
    device = upload.device
    kernels = None if device is None else held_kernels(device)
    if device is None or kernels is None:
        return None
    decoder, held = Decoder(device, kernels, upload), HeldFiles(files, runs, layout, chunks)
    if isinstance(assembly, Fixed):
        return HeldColumn(decoder, held, assembly)
    return HeldCodes(decoder, held, assembly, field[1])
