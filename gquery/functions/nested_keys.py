"""Keys of nested values: texts that are equal where the values are, and in their order.

No kernel looks into a list, a struct or a map, so whatever groups, joins, sorts or compares them does so by a text that the host
writes of each (`operators` and the rule `comparison_keys` say where). The key of a row depends on that row alone: rows of
several tables, ranks and parts of a limited memory have keys that agree, and all operators of texts take them. Codes of one
dictionary of all values would be shorter, and need all values before the first row.

What is written keeps the order of the bytes the order of the values: numbers by digits of seven bits, the greatest first and the
sign turned; a mark before each value, a greater one in place of NULL, the least of all behind the last element of a list. Seven
bits, so that a key is a text of ASCII. DuckDB's order: element by element, field by field, NULL behind all values, NaN the
greatest number and equal to itself, a shorter list before the longer one that begins like it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gquery.expression.facts import INT64_BITS
from gquery.functions.list_arrays import lists_of, plain
from gquery.functions.vectors import flags, null, offsets_of, scalar_text
from gquery.runtime.arrow_compute import pc

_END, _VALUE, _NULL = "\x01", "\x02", "\x03"  # the order of the marks is that of what they stand for
_TEXT_END, _ESCAPED = "\x00\x00", "\x00\x01"  # behind a text, and in place of its own NULs
_DIGIT_BITS, _GREATEST_DIGIT = 7, 0x7F
_SIGN = np.uint64(2**63)


def keys_of(array: pa.Array) -> pa.Array:
    """The keys of the values of an array, NULL for NULL."""
    from gquery.functions.binary import blobs_of, hex_of, is_blob

    array, rows = plain(array), len(array)
    type_ = array.type
    if type_ == pa.null():
        return pa.nulls(rows, pa.large_string())
    if pa.types.is_struct(type_):
        keys = _joined([_marked(array.field(i)) for i in range(type_.num_fields)])
    elif pa.types.is_nested(type_):
        lists = lists_of(array, rows)
        keys = _joined([_by_list(_marked(lists.flat), lists.lengths), _END])
    elif is_blob(type_):
        keys = _joined([hex_of(blobs_of(array)), _TEXT_END])
    elif pa.types.is_string(type_) or pa.types.is_large_string(type_):
        keys = _joined([pc.replace_substring(array.cast(pa.large_string()), "\x00", _ESCAPED), _TEXT_END])
    else:
        keys = _numbers(array)
    return pc.if_else(array.is_valid(), keys, _scalar(None)) if array.null_count else keys


def _marked(array: pa.Array) -> pa.Array:
    """The keys of values within others: each begins with its mark, and none is NULL."""
    return pc.fill_null(_joined([_VALUE, keys_of(array)]), _scalar(_NULL))


def _joined(parts: list[Any]) -> pa.Array:
    whole = [_scalar(p) if isinstance(p, str) else p for p in parts]
    return pc.binary_join_element_wise(*whole, _scalar(""))


def _scalar(text: str | None) -> pa.Scalar:
    return null(pa.large_string()) if text is None else scalar_text(text, is_large=True)


def _by_list(keys: pa.Array, lengths: Any) -> pa.Array:
    """The keys of elements, which stand list by list, as one text a list."""
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    offsets = np.ascontiguousarray(offsets_of(keys)[ends])
    return pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(offsets), keys.buffers()[2])


def _numbers(array: pa.Array) -> pa.Array:
    """Digits of numbers, times and truth values: as many as the type needs."""
    type_ = array.type
    if pa.types.is_boolean(type_):
        return _digits([flags(array).astype(np.uint64)], 1)
    if pa.types.is_decimal(type_):
        words = _words(array, "u8", 2).reshape(-1, 2)
        return _digits([words[:, 1] ^ _SIGN, words[:, 0]], INT64_BITS)
    if pa.types.is_floating(type_):
        values = _words(array, f"f{type_.bit_width // 8}").astype(np.float64)
        bits = np.where(np.isnan(values), np.nan, np.where(values == 0, 0.0, values)).view(np.uint64)  # one NaN, one 0
        return _digits([np.where(bits >= _SIGN, ~bits, bits ^ _SIGN)], INT64_BITS)
    sign = np.uint64(0 if pa.types.is_unsigned_integer(type_) else 1 << (type_.bit_width - 1))
    return _digits([_words(array, f"u{type_.bit_width // 8}").astype(np.uint64) ^ sign], type_.bit_width)


def _words(array: pa.Array, type_: str, count: int = 1) -> Any:
    """The words in which an array of fixed width lies, so many a row."""
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.empty(0, type_)
    return np.frombuffer(buffer, type_)[array.offset * count : (array.offset + len(array)) * count]


def _digits(words: list[Any], bits: int) -> pa.Array:
    """Numbers of words of so many bits, the greatest word first, as digits."""
    count = -(-bits // _DIGIT_BITS)
    rows, width = len(words[0]), count * len(words)
    digits = np.empty((rows, width), np.uint8)
    for place in range(width):
        word, shift = words[place // count], np.uint64(_DIGIT_BITS * (count - 1 - place % count))
        digits[:, place] = (word >> shift) & np.uint64(_GREATEST_DIGIT)
    offsets = np.arange(rows + 1, dtype=np.int64) * width
    return pa.LargeStringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(digits))
