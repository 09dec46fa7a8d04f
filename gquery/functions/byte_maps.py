"""Strings of which each byte becomes some bytes, for all strings at once by NumPy: digits, escapes, and back.

An array of strings is one array of bytes and the places at which each string begins. A table of 256 entries tells what a byte
becomes; how many bytes these are, summed up, tells where the new strings begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.functions.vectors import LARGE, with_nulls_of

_BLOCK = 1 << 20  # bytes at a time, about, so that what is known of each byte takes little memory
_ASCII = 128
Strings = tuple[Any, Any]
"""uint8 bytes, and int64 places in them: of rows + 1 ends, the first of which is 0."""


class ByteMap:
    """What each of the 256 bytes becomes: itself where nothing else is said. ``table[byte, :sizes[byte]]`` are its bytes."""

    def __init__(self, replacements: Mapping[int, bytes]) -> None:
        self.sizes = np.ones(256, np.uint8)
        self.table = np.zeros((256, max(1, *map(len, replacements.values())) if replacements else 1), np.uint8)
        self.table[:, 0] = np.arange(256)
        for byte, new in replacements.items():
            self.sizes[byte] = len(new)
            self.table[byte, : len(new)] = list(new)
        self.width = self.table.shape[1]
        self.changes = (self.sizes != 1) | (self.table[:, 0] != np.arange(256))
        self.is_even = bool((self.sizes == self.width).all())

    def of(self, strings: pa.Array) -> pa.Array:
        """All strings of an array with the bytes replaced, NULL for NULL."""
        data, offsets = bytes_of(strings)
        if self.is_even:
            return texts_of((self._table_of_words()[data].view(np.uint8), offsets * self.width), strings)
        made, ends, written = [], np.zeros(len(offsets), np.int64), 0
        for rows in blocks(offsets):
            first = offsets[rows.start]
            part = data[first : offsets[rows.stop]]
            if not self.changes[part].any():
                made.append(part)
                ends[rows.start + 1 : rows.stop + 1] = offsets[rows.start + 1 : rows.stop + 1] - first + written
                written += len(part)
                continue
            sizes = self.sizes[part]
            behind = np.zeros(len(part) + 1, np.int64)
            np.cumsum(sizes, out=behind[1:])
            ends[rows.start + 1 : rows.stop + 1] = behind[offsets[rows.start + 1 : rows.stop + 1] - first] + written
            new = np.repeat(self.table[:, 0][part], sizes)
            (longer,) = np.nonzero(sizes > 1)
            for k in range(1, self.width):
                longer = longer[sizes[longer] > k]
                new[behind[longer] + k] = self.table[part[longer], k]
            made.append(new)
            written += len(new)
        return texts_of((np.concatenate(made) if made else data, ends), strings)

    def _table_of_words(self) -> Any:
        """The table as one word a byte, where there are words of its width."""
        word = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}.get(self.width)
        return self.table if word is None else self.table.view(word)[:, 0]


HEXADECIMAL = ByteMap({n: b"%02X" % n for n in range(256)})
BINARY = ByteMap({n: f"{n:08b}".encode() for n in range(256)})
_VALUES = np.full(256, -1, np.int16)  # of hexadecimal digits; -1 for other bytes
for _n, _digit in enumerate(b"0123456789ABCDEF"):
    _VALUES[_digit] = _VALUES[_digit | 0x20 if _n >= 10 else _digit] = _n


def bytes_of(strings: pa.Array) -> Strings:
    """The bytes of strings, or of blobs."""
    is_large = pa.types.is_large_string(strings.type) or pa.types.is_large_binary(strings.type)
    _, ends, data = strings.buffers()
    if ends is None or not len(strings):
        return np.zeros(0, np.uint8), np.zeros(len(strings) + 1, np.int64)
    offsets = np.frombuffer(ends, np.int64 if is_large else np.int32)[strings.offset :][: len(strings) + 1].astype(np.int64)
    held = np.zeros(0, np.uint8) if data is None or not data.size else np.frombuffer(data, np.uint8)
    return held[offsets[0] : offsets[-1]], offsets - offsets[0]


def texts_of(made: Strings, like: pa.Array) -> pa.Array:
    """Bytes as texts, NULL where ``like`` is; their offsets are as wide as they have to be."""
    data, offsets = made
    rows, characters = len(offsets) - 1, pa.py_buffer(np.ascontiguousarray(data))
    if len(data) <= LARGE:
        texts = pa.StringArray.from_buffers(rows, pa.py_buffer(offsets.astype(np.int32)), characters)
    else:
        texts = pa.LargeStringArray.from_buffers(rows, pa.py_buffer(np.ascontiguousarray(offsets)), characters)
    return with_nulls_of(texts, like)


def blobs_from(made: Strings, like: pa.Array) -> pa.Array:
    """Bytes as blobs of large offsets, NULL where ``like`` is."""
    data, offsets = made
    ends = pa.py_buffer(np.ascontiguousarray(offsets, np.int64))
    buffers = [None, ends, pa.py_buffer(np.ascontiguousarray(data))]
    blobs = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
    return with_nulls_of(blobs, like)


def blocks(offsets: Any) -> Iterator[slice]:
    """Ranges of rows, each of some bytes or of one row."""
    start, rows = 0, len(offsets) - 1
    while start < rows:
        stop = int(np.searchsorted(offsets, offsets[start] + _BLOCK, "right")) - 1
        stop = min(max(stop, start + 1), rows)
        yield slice(start, stop)
        start = stop


# ---- numbers ---------------------------------------------------------------------------------------------------------


def number_digits(numbers: Any, digits: ByteMap) -> Strings:
    """Numbers (uint64) in the digits of their bytes, without zeros before the first."""
    used = max(1, (int(numbers.max()).bit_length() + 7) // 8) if len(numbers) else 1  # bytes
    each = digits.table[numbers.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - used :]]
    each = each.reshape(len(numbers), used * digits.width)
    width = each.shape[1]
    is_digit = each != ord("0")
    is_digit[:, -1] = True
    zeros = is_digit.argmax(axis=1)
    offsets = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(width - zeros, out=offsets[1:])
    return each[np.arange(width) >= zeros[:, None]], offsets


# ---- back ------------------------------------------------------------------------------------------------------------


def percent_decoded(strings: pa.Array) -> Strings:
    """Strings in which % and two hexadecimal digits are one byte; what is no such three bytes stays."""
    data, offsets = bytes_of(strings)
    (marks,) = np.nonzero(data == ord("%"))
    ends = offsets[np.searchsorted(offsets, marks, "right")]  # of the string of each
    marks = marks[marks + 2 < ends]
    high, low = _VALUES[data[marks + 1]], _VALUES[data[marks + 2]]
    is_escape = (high >= 0) & (low >= 0)
    marks = marks[is_escape]
    decoded, kept = data.copy(), np.ones(len(data), np.bool_)
    decoded[marks] = (high * 16 + low)[is_escape]
    kept[marks + 1] = kept[marks + 2] = False
    return decoded[kept], offsets - 2 * np.searchsorted(marks, offsets)


def _is_text(data: Any) -> bool:
    try:
        data.tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True


def are_texts(made: Strings) -> Any:
    """Which strings of bytes are UTF-8."""
    data, offsets = made
    ok = np.ones(len(offsets) - 1, np.bool_)
    if _is_text(data) and not (data[offsets[:-1][np.diff(offsets) > 0]] & 0xC0 == 0x80).any():
        return ok
    (rows,) = np.nonzero(np.logical_or.reduceat(np.append(data, 0) >= _ASCII, offsets[:-1]) & (np.diff(offsets) > 0))
    for row in rows:
        ok[row] = _is_text(data[offsets[row] : offsets[row + 1]])
    return ok


def hexadecimal_decoded(strings: pa.Array) -> tuple[Strings, Any]:
    """The bytes that hexadecimal digits say, the first of an odd number by itself, and which strings have these alone."""
    data, offsets = bytes_of(strings)
    sizes = np.diff(offsets)
    values = _VALUES[data]
    (odd,) = np.nonzero(values < 0)
    ok = np.ones(len(sizes), np.bool_)
    ok[np.searchsorted(offsets, odd, "right") - 1] = False
    behind = np.repeat(offsets[1:], sizes) - np.arange(len(data))
    (low,) = np.nonzero(behind % 2 == 1)
    high = np.where(low > np.repeat(offsets[:-1], sizes)[low], values[low - 1], 0)
    ends = np.zeros(len(offsets), np.int64)
    np.cumsum((sizes + 1) // 2, out=ends[1:])
    return ((high * 16 + values[low]).astype(np.uint8), ends), ok


__all__ = ["BINARY", "HEXADECIMAL", "ByteMap", "are_texts", "blobs_from", "bytes_of", "hexadecimal_decoded", "number_digits",
           "percent_decoded", "texts_of"]  # fmt: skip
