"""Columns of Parquet whose texts are wanted as they are, which a GPU decodes; see `io.held_chunks`.

A GPU's threads take pages here, which the host lists by their headers. How many bytes of text there are before a page is known
once all pages are unpacked, where their texts wait to be copied to their places.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gquery import tuning
from gquery.columns.assemble_texts import CountedStrings
from gquery.columns.held_pages import (
    AT,
    BYTES,
    COUNT,
    DICTIONARY,
    IS_DONE,
    KIND,
    LEADING,
    LEVELS,
    LONGEST_PAGE,
    PAGE,
    PAGE_BASE,
    PAGE_BEFORE,
    PAGE_DICTIONARY,
    PAGE_ENDINGS,
    PAGE_ENTRIES,
    PAGE_KIND,
    PAGE_PLACE,
    PAGE_SOURCE,
    PAGE_TARGET,
    PAGE_WIDTH,
    PAGE_WORDS,
    SIZE,
    HeldTextKernels,
)
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.transfer import Transfer
from gquery.errors import OutOfMemoryError
from gquery.io.held_chunks import Decoder, HeldBytes, HeldFiles, decoding
from gquery.io.held_cuts import address_on
from gquery.io.pages import SLACK
from gquery.runtime.interrupt import check
from gquery.runtime.threads import Phases

_ALIGNED = 64  # a page is unpacked to a multiple of so many bytes


class HeldTexts(HeldBytes):
    """A column of texts as they are."""

    def __init__(self, decoder: Decoder, held: HeldFiles, assembly: CountedStrings, kernels: HeldTextKernels) -> None:
        super().__init__(decoder, held)
        self._texts, self._text_kernels = assembly, kernels
        self._listed: dict[int, Array] = {}  # pages of each part
        self._rooms: tuple[Buffer, Buffer] | None = None

    def _needed(self) -> int:
        unpacked, rows = int(self._chunks.unpacked.sum()), int(self._chunks.values.sum())
        return int(self._at[-1]) + unpacked + unpacked + 8 * rows

    def _look(self, raw: Transfer, number: int, part: slice, file: int) -> bool:
        chunks = self._chunks.take(part)
        about = np.stack((chunks.start, chunks.packed, chunks.values, chunks.codec), 1)
        largest = min(tuning.reading.decoded_bytes, LONGEST_PAGE)
        listed = self._text_kernels.list_pages(file, about, self._layout.has_levels, 4, largest)
        if listed is not None:
            listed[:, 0] += part.start
            self._listed[number] = listed
        return listed is not None

    def _prepare(self) -> Phases[bool]:
        yield from ()
        self._rooms = self._texts.begin_held()
        return self._rooms is not None

    def _decode(self, raw: Transfer) -> None:
        check()
        assert self._rooms is not None
        self._upload.wait()
        device = self._device
        source, offsets, characters = (buffer.on(device) for buffer in (raw.buffer(), *self._rooms))
        listed = np.concatenate([self._listed[number] for number in sorted(self._listed)])
        pages, unpacked, words = self._pages(listed, address_on(source))
        with decoding:
            try:
                scratch, room = (
                    device.empty(unpacked, np.uint8, "decoding columns"),
                    device.empty(words, np.int64, "decoding columns"),
                )
                pages[:, PAGE_TARGET] += address_on(scratch)
                pages[:, PAGE_BASE] = address_on(scratch)
                for word in (PAGE_WORDS, PAGE_DICTIONARY):
                    pages[:, word] += address_on(room)
                found = self._text_kernels.decompress_texts(device, pages)
                if self._is_as_told(listed, found):
                    self._put(pages, found, offsets, characters)
                    self._is_decoded = self._text_kernels.place_texts(device, pages, found)
            except OutOfMemoryError:
                return
        self._upload.release(raw)

    def _pages(self, listed: Array, source: int) -> tuple[Array, int, int]:
        """The pages that are listed as kernels want them, unpacked behind one another; how many bytes they have then, and how
        many words their texts have."""
        pages, kind, chunk = np.zeros((len(listed), PAGE), np.int64), listed[:, KIND], listed[:, 0]
        pages[:, PAGE_SOURCE] = source + self._at[:-1][chunk] + listed[:, AT]
        pages[:, LEADING - 1 : LEVELS] = listed[:, LEADING : LEVELS + 1]
        sizes = -(-(listed[:, SIZE] + SLACK) // _ALIGNED) * _ALIGNED
        pages[:, PAGE_TARGET] = np.cumsum(sizes) - sizes
        counts = listed[:, COUNT]
        places = np.cumsum(counts) - counts
        pages[:, PAGE_WORDS] = 8 * places
        of_chunk, of_entries = np.zeros((2, len(self._chunks)), np.int64)
        of_chunk[chunk[kind == DICTIONARY]] = places[kind == DICTIONARY]
        of_entries[chunk[kind == DICTIONARY]] = counts[kind == DICTIONARY]
        pages[:, PAGE_DICTIONARY], pages[:, PAGE_ENTRIES] = 8 * of_chunk[chunk], of_entries[chunk]
        return pages, int(sizes.sum()), max(int(counts.sum()), 1)

    def _is_as_told(self, listed: Array, found: Array) -> bool:
        """Whether all pages are unpacked, and their texts have the bytes that footers tell."""
        if not found[:, IS_DONE].all():
            return False
        is_data = listed[:, KIND] != DICTIONARY
        bytes_ = np.bincount(listed[is_data, 0], found[is_data, BYTES].astype(np.float64), len(self._chunks))
        return bool((bytes_ == self._chunks.text_bytes).all())

    def _put(self, pages: Array, found: Array, offsets: Any, characters: Any) -> None:
        """Where the texts of each page go, and where their ends go."""
        is_data = pages[:, PAGE_KIND] != DICTIONARY
        bytes_, rows = found[:, BYTES] * is_data, pages[:, PAGE_KIND + 1] * is_data
        width = offsets.dtype.itemsize
        before = np.cumsum(bytes_) - bytes_
        pages[:, PAGE_PLACE], pages[:, PAGE_BEFORE] = address_on(characters) + before, before
        pages[:, PAGE_ENDINGS] = address_on(offsets) + width * (1 + np.cumsum(rows) - rows)
        pages[:, PAGE_WIDTH] = width
