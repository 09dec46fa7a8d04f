"""Columns of Parquet whose texts are codes into dictionaries, of which a GPU decodes the codes; see `io.held_chunks`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.assemble_strings import DictionaryPieces
from gquery.columns.ownership import check_decoded
from gquery.device.array import Array
from gquery.device.host import address_of
from gquery.device.transfer import Transfer
from gquery.io import pages
from gquery.io.held_chunks import Decoder, HeldColumn, HeldFiles
from gquery.io.held_cuts import before, states_of
from gquery.io.pages import SLACK, made_bytes
from gquery.runtime.threads import Phases

_MOST_CHARACTERS = 2**31 - 1  # that offsets of 32 bits tell apart


class HeldCodes(HeldColumn):
    """A column of texts that are codes into dictionaries. The host takes those apart and makes one of them, whose codes are what
    a device decodes."""

    def __init__(self, decoder: Decoder, held: HeldFiles, assembly: DictionaryPieces, name: str) -> None:
        super().__init__(decoder, held, assembly)
        self._codes, self._name = assembly, name
        self._texts: dict[int, tuple[pa.Array, slice]] = {}  # of each part
        self._begun = np.zeros((len(self._chunks), 3), np.int64)  # of each chunk: bytes read, entries, those of its part before
        self._table: Array | None = None

    def _look(self, raw: Transfer, number: int, part: slice, file: int) -> bool:
        chunks = self._chunks.take(part)
        packed, room = chunks.dictionary_bytes, chunks.unpacked.clip(0, tuning.reading.decoded_bytes)
        most = min(int(room.sum()), _MOST_CHARACTERS)
        if not packed.all() or (packed > chunks.packed).any():
            return False
        pages_ = made_bytes(int(packed.sum()))
        places = address_of(pages_) + before(packed)
        if not self._kernels.fetch(file, np.stack((places, packed, chunks.start), 1)):
            return False
        offsets, characters, scratch = np.zeros(most // 4 + 1, np.int32), made_bytes(most), made_bytes(int(room.max()))
        states = states_of(self._layout, chunks)
        states[:, pages.HAVE] = packed
        states[:, pages.SOURCE], states[:, pages.ENTRY_ROOM] = places, most // 4
        states[:, pages.OFFSETS], states[:, pages.CHARACTERS] = address_of(offsets), address_of(characters)
        states[:, pages.CHARACTER_ROOM] = most
        states[:, pages.SCRATCH], states[:, pages.SIZE] = address_of(scratch), len(scratch) - SLACK
        if not self._kernels.dictionaries(states):
            return False
        entries, texts = states[:, pages.ENTRIES], int(states[-1, pages.TEXTS])
        self._begun[part] = np.stack((states[:, pages.AT], entries, states[:, pages.TEXTS] - entries), 1)
        used = characters[: states[-1, pages.BYTES]].copy()
        buffers = [None, pa.py_buffer(offsets[: texts + 1].copy()), pa.py_buffer(used)]
        made = pa.Array.from_buffers(pa.string(), texts, buffers)
        try:
            check_decoded(made, self._name)
        except ValueError:  # the host says so
            return False
        self._texts[number] = made, part
        return True

    def _prepare(self) -> Phases[bool]:
        entries = 0
        for texts, part in (found := [self._texts[number] for number in sorted(self._texts)]):
            self._begun[part, 2] += entries
            entries += len(texts)
        self._table = yield from self._codes.unite([texts for texts, _ in found])
        return self._table is not None

    def _begin(self, states: Array, entries: int, words: int) -> Array | None:
        at, counts, earlier = self._begun[self._cuts.chunk].T
        if not self._is_cut:  # parts of others begin where pages with values do
            states[:, pages.AT] = at
        states[:, pages.ENTRIES], states[:, pages.DICTIONARY] = counts, 8 * earlier
        return self._table
