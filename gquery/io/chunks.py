"""What footers tell of a column's chunks, one in each row group, as arrays.

A file has thousands of row groups as well as one, and PyArrow's objects for a chunk and its statistics take 20 us. Where kernels
are ready they read a footer's bytes in one pass, all columns at once; else, and of a footer that they do not take, PyArrow's
objects are asked, once each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gquery.columns.narrowing import words_of
from gquery.columns.page_values import CHUNK_WORDS, PageKernels
from gquery.device.array import Array
from gquery.errors import FileError
from gquery.expression.types import INTEGER_BOUNDS, DType
from gquery.io.files import File
from gquery.io.footers import chunk_of, types_of
from gquery.runtime.records import dataclass

TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_NOT_ASKED = 255  # a codec that there is not
_TYPE, _CODEC, _VALUES, _UNPACKED, _PACKED, _DATA, _DICTIONARY, _NULLS, _LOW, _LOW_SIZE, _HIGH, _HIGH_SIZE, _TEXT = range(13)
_MOST_BYTES = 2**44  # of a chunk that is unpacked, as far as anybody counts
_END = 8  # bytes behind a footer: its length, and a word that files end with


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunks of one leaf; ``words`` is int64, a row of `CHUNK_WORDS` for each."""

    words: Array

    def __len__(self) -> int:
        return len(self.words)

    def take(self, positions: Array | slice | list[int]) -> Chunks:
        """Some of them."""
        return Chunks(self.words[positions])

    @property
    def type(self) -> Array:
        """Where in `TYPES` theirs is."""
        return self.words[:, _TYPE]

    @property
    def codec(self) -> Array:
        """0: none; 1: Snappy; and others, or not known, that kernels do not read."""
        return self.words[:, _CODEC]

    @property
    def values(self) -> Array:
        """How many values there are, NULLs among them."""
        return self.words[:, _VALUES]

    @property
    def unpacked(self) -> Array:
        """Their bytes, uncompressed; 0 where that is not told, or cannot be."""
        return self.words[:, _UNPACKED].clip(0, _MOST_BYTES)

    @property
    def packed(self) -> Array:
        """Their bytes in the file."""
        return self.words[:, _PACKED]

    @property
    def start(self) -> Array:
        """Where the first of their pages lies in the file."""
        data, dictionary = self.words[:, _DATA], self.words[:, _DICTIONARY]
        return np.where((dictionary > 0) & (dictionary < data), dictionary, data)

    @property
    def dictionary_bytes(self) -> Array:
        """How many of their bytes in the file lie before the first page of data; 0 where there is no dictionary."""
        data, dictionary = self.words[:, _DATA], self.words[:, _DICTIONARY]
        return np.where((dictionary > 0) & (dictionary < data), data - dictionary, 0)

    @property
    def has_dictionary(self) -> Array:
        """Whether a page with a dictionary is told of."""
        return self.words[:, _DICTIONARY] >= 0

    @property
    def nulls(self) -> Array:
        """How many values are NULL, -1: not known."""
        return np.maximum(self.words[:, _NULLS], -1)

    @property
    def text_bytes(self) -> Array:
        """How many bytes the texts among them have together, -1: not known."""
        words = self.words[:, _TEXT]
        return np.where(words > _MOST_BYTES, -1, np.maximum(words, -1))


class FooterTable:
    """What the footer of one file tells of all its chunks, read from its bytes: ``words`` is int64 of row groups x leaves x
    `CHUNK_WORDS`."""

    def __init__(self, words: Array, raw: Array) -> None:
        self.words, self._raw = words, raw

    def has_ends(self, leaf: int) -> bool:
        """Whether there are minima and maxima of a leaf, whose order is that of its type."""
        return bool(((self.words[:, leaf, _LOW_SIZE] >= 0) & (self.words[:, leaf, _HIGH_SIZE] >= 0)).any())

    def integers(self, leaf: int, width: int) -> tuple[Array, Array, Array]:
        """Minima and maxima of a leaf whose values have so many bytes (below 0: the highest comes first), as int64, and whether
        both are there."""
        rows = self.words[:, leaf]
        known = (rows[:, _LOW_SIZE] == abs(width)) & (rows[:, _HIGH_SIZE] == abs(width))
        return self._integers(rows[:, _LOW], known, width), self._integers(rows[:, _HIGH], known, width), known

    def _integers(self, at: Array, known: Array, width: int) -> Array:
        size = abs(width)
        raw = self._raw[np.where(known, at, 0)[:, None] + np.arange(size)]
        if width > 0:
            return raw.view(f"<i{size}")[:, 0].astype(np.int64)
        padded = np.zeros((len(raw), 8), np.uint8)
        padded[:, :size] = raw
        made: Array = padded.view(">i8")[:, 0].astype(np.int64) >> (64 - 8 * size)
        return made

    def texts(self, leaf: int) -> tuple[list[str | None], list[str | None]]:
        """Minima and maxima of a leaf of texts, None where they are not there."""
        rows = self.words[:, leaf]
        return self._texts(rows[:, _LOW], rows[:, _LOW_SIZE]), self._texts(rows[:, _HIGH], rows[:, _HIGH_SIZE])

    def _texts(self, at: Array, sizes: Array) -> list[str | None]:
        raw = self._raw
        return [
            None if size < 0 else _text(raw[first : first + size].tobytes())
            for first, size in zip(at.tolist(), sizes.tolist(), strict=True)
        ]


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def footer_bytes(source: Any, file: File, footer: Any) -> Array | None:
    """The bytes of the footer of a file of this machine, which is open; None where it is another than was read."""
    size = footer.serialized_size
    if file.filesystem is not None or size + _END > file.size:
        return None
    raw = np.frombuffer(source.read_at(size + _END, file.size - size - _END), np.uint8)
    is_it = len(raw) == size + _END and raw[size:].tobytes() == size.to_bytes(4, "little") + b"PAR1"
    return raw[:size] if is_it else None


def table_of(kernels: PageKernels, footer: Any, raw: Array) -> FooterTable | None:
    """A footer's bytes read by kernels; None where they do not take it."""
    words = kernels.footer(raw, footer.num_row_groups, footer.num_columns)
    is_told = words is not None and bool((words[:, :, [_TYPE, _CODEC, _VALUES, _UNPACKED, _PACKED, _DATA]] >= 0).all())
    return FooterTable(words, raw) if words is not None and is_told else None


def words_in_table(table: FooterTable, footer: Any, leaf: int, name: str) -> Array:
    """A row of `CHUNK_WORDS` for each chunk of a leaf. FileError where its type is not that of the schema."""
    types = types_of(footer)
    words = table.words[:, leaf] if leaf < len(types) else None
    if words is None or (words[:, _TYPE] != TYPES.index(types[leaf])).any():
        raise FileError(f'Cannot read the Parquet file "{name}": its footer contradicts itself about column {leaf}')
    return words


def words_of_objects(footer: Any, row_groups: list[int], leaf: int, name: str, has_nulls: bool) -> Array:
    """The same of some row groups by PyArrow's objects, but for codecs and the places of minima and maxima, and for NULLs where
    they are not wanted. FileError where a type is not that of the schema."""
    types = types_of(footer)
    words = np.full((len(row_groups), len(CHUNK_WORDS)), -1, np.int64)
    for row, number in zip(words, row_groups, strict=True):
        chunk = chunk_of(footer.row_group(number), leaf, types, name)  # no codec: where it is damaged, PyArrow would abort
        stats = chunk.statistics if has_nulls else None
        row[: _NULLS + 1] = (
            TYPES.index(types[leaf]), _NOT_ASKED, chunk.num_values, chunk.total_uncompressed_size, chunk.total_compressed_size,
            chunk.data_page_offset, chunk.dictionary_page_offset if chunk.has_dictionary_page else -1,
            stats.null_count if stats is not None and stats.has_null_count else -1,
        )  # fmt: skip
    return words


def integer_width(column: Any, type_: pa.DataType) -> int | None:
    """The bytes of a minimum that is an integer of gquery's as it lies in a footer, of a column in its schema (below 0: the
    highest comes first); None where it is none."""
    if words_of(type_) is None and not pa.types.is_int8(type_):
        return None
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return -column.length if 0 < column.length <= 8 else None
    return {"INT32": 4, "INT64": 8}.get(column.physical_type)


def within(dtype: DType, low: Array, high: Array, known: Array) -> Array:
    """Where minima and maxima that are known can be those of a type."""
    bounds = INTEGER_BOUNDS.get(dtype.kind)
    if bounds is not None:
        known = known & (low >= bounds[0]) & (high <= bounds[1])
    return known & (low <= high)
