"""Text as keys of a sort: eight bytes of each string at a time, as numbers that compare as the bytes do."""

from __future__ import annotations

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin.define import address, builtin_kernel, launch
from gquery.kernels.builtin.elements import row_numbers


def text_words(column: ColumnData, device: Device, n: int, rows: Array | None = None) -> Array:
    """The n-th eight bytes of strings as unsigned numbers that compare as the bytes do, zeros behind a string's end."""
    if device.is_cpu and (column.length if rows is None else rows.size) < tuning.built_in_kernels.numpy_text_rows:
        return _words_by_numpy(column, n, rows)
    rows = row_numbers(device.xp, column.length) if rows is None else rows
    words: Array = device.xp.empty(rows.size, np.uint64)
    characters = 0 if column.characters is None else address(column.characters.on(device))
    launch(WORDS[column.physical_type], rows.size, words, column.data.on(device), characters, rows, n, words)
    return words


WORDS = {
    physical_type: builtin_kernel(
        f"data:*{element} characters:i64 rows:*u32 n:i64 words:*u64",
        f"store_u64(words, i64(i), text_word({string}(data, characters, i64(rows[i])), n))",
    )
    for physical_type, element, string in (
        (PhysicalType.STRING32, "i32", "string32"),
        (PhysicalType.STRING64, "i64", "string64"),
    )
}


def _words_by_numpy(column: ColumnData, n: int, rows: Array | None) -> Array:
    """`text_words` on the host: every place of the characters is the start of a word, of which some are taken."""
    assert column.characters is not None
    data, characters = column.data.host, column.characters.host
    starts, ends = (data[:-1], data[1:]) if rows is None else (data[:-1][rows], data[1:][rows])
    at = starts.astype(np.int64)
    at += 8 * n
    left = ends - at
    if characters.size < 8:
        characters = np.concatenate([characters, np.zeros(8, np.uint8)])
    last = characters.size - 8
    windows: Array = np.ndarray(last + 1, "<u8", np.ascontiguousarray(characters), 0, (1,))
    words: Array = windows[np.minimum(at, last)].astype(np.uint64, copy=False).byteswap(inplace=True)
    late = at > last  # less than eight bytes before the end of all characters
    if late.any():
        words[late] <<= (8 * np.minimum(at[late] - last, 7)).astype(np.uint64)
    words &= _FIRST_BYTES[np.clip(left, 0, 8)]
    return words


_FIRST_BYTES = np.array([2**64 - 2 ** (64 - 8 * k) for k in range(9)], np.uint64)
"""Masks of the first so many bytes of a word."""


def bytes_of_rows(column: ColumnData, rows: Array) -> list[bytes]:
    """The bytes of some strings, on the host."""
    offsets, characters = column.data.host, column.characters.host.data if column.characters else b""
    return [bytes(characters[offsets[i] : offsets[i + 1]]) for i in rows]
