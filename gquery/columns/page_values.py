"""Values of a column as words of 64 bits, and who makes them of a file's pages.

Arrow's reader of Parquet makes arrays of Arrow's types, integers of 16 bytes for decimals among them, which are narrowed
afterwards. Kernels that read pages themselves (`kernels.builtin.parquet_pages`) make words, which stay in a core's cache
until they are narrowed. Kernels lie above columns and files, so the engine hands them down when it is loaded. Nobody waits for a
compiler here: until they are ready, Arrow does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from gquery.device.array import Array
from gquery.expression.types import INT64
from gquery.runtime.records import dataclass


@dataclass(frozen=True, eq=False)
class Words:
    """Some values of a column, none NULL: int64, to be used before the next are asked for. With a ``dictionary`` of texts, which
    are valid, they are codes into it."""

    values: Any
    dictionary: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class Room:
    """Where the values of rows go: contiguous integers of 1, 2, 4 or 8 bytes; one that does not fit is cut off. ``low`` and
    ``high`` (int64) take the extremes of each block of ``block`` rows, of the first of which ``skip`` rows lie before. Where a
    block has no values yet they are the greatest and the least number there is. ``valid`` (uint8) takes 1 for a value and 0 for
    NULL, under which the value is 0; without it no row may be NULL."""

    values: Any
    low: Any
    high: Any
    block: int
    skip: int
    valid: Any | None = None


def room_for(values: Array, block: int, skip: int, valid: Array | None = None) -> Room:
    """That of rows without values yet."""
    blocks = -(-(skip + len(values)) // block)
    return Room(values, np.full(blocks, INT64.high), np.full(blocks, INT64.low), block, skip, valid)


@dataclass(frozen=True, eq=False)
class TextRoom:
    """Where texts go: ``offsets`` (int32 or int64, the first is there), their bytes from ``start`` to ``end`` of ``characters``,
    of which those up to ``writable`` may be written as well, and ``valid`` (uint8): 1 for a value and 0 for NULL; without it no
    row may be NULL."""

    offsets: Any
    characters: Any
    valid: Any | None
    start: int
    end: int
    writable: int


@dataclass(frozen=True, eq=False)
class Placed:
    """Values of a column that are in their place, ``nulls`` of them NULL: the first ``rows`` of a room. With a ``dictionary`` of
    texts, which are valid, they are codes into it."""

    rows: int
    room: Room
    dictionary: pa.Array | None = None
    nulls: int = 0

    def __len__(self) -> int:
        return self.rows


CHUNK_WORDS = (
    "type", "codec", "values", "unpacked", "packed", "data_page", "dictionary_page", "nulls",
    "low_at", "low_size", "high_at", "high_size", "text_bytes",
)  # fmt: skip
"""What a footer tells of a chunk, each a word of 64 bits, -1 where it does not: numbers as Parquet's definition has them, and
where in the footer the bytes of minimum and maximum lie."""


OUTCOME, ROWS, FALLS, CHANGES, LONGEST, FOUND = range(6)
"""Words that tell of a chunk that a GPU has decoded, as `kernels.primitives.held_chunks` has them."""


@dataclass(frozen=True, eq=False)
class PlacedTexts:
    """Texts that are in their place, ``nulls`` of them NULL: the first ``rows`` of a room, up to the byte ``end``."""

    rows: int
    end: int
    nulls: int

    def __len__(self) -> int:
        return self.rows


class MisfitError(Exception):
    """A piece holds what this kind of assembly cannot: the column is to be read again by `Gathered`."""


class PageKernels(Protocol):
    """What reads pages."""

    def read_chunks(self, state: Array, words: Array, room: Room | TextRoom | None) -> int:
        """Reads values of chunks into ``room``, as far as nothing is missing, else into ``words`` as far as there is room; see
        `kernels.primitives.chunks.read_chunks`."""
        ...

    def texts(self, source: Array, size: int, offsets: Array, characters: Array) -> bool:
        """Takes texts with lengths in front apart, as many as there are offsets (int32) but the first, which is 0; whether so
        many are there, and no more."""
        ...

    def pick(self, words: Array, bits: Array, first: int) -> int:
        """Moves those words whose bit is set, that of the first one is ``first``, to the front, in order; how many there are.
        Behind the bits lie eight bytes that may be read."""
        ...

    def footer(self, raw: Array, groups: int, columns: int) -> Array | None:
        """What a footer's bytes tell of the chunks of so many row groups: int64 of row groups x columns x `CHUNK_WORDS`; None
        where it is none, or where chunks lie elsewhere or are encrypted."""
        ...


_find: Callable[[], PageKernels | None] | None = None


def use_page_kernels(find: Callable[[], PageKernels | None]) -> None:
    """Take kernels from here on, in all of the process."""
    global _find
    _find = find


def page_kernels() -> PageKernels | None:
    """The kernels; None while they are not ready."""
    return None if _find is None else _find()
