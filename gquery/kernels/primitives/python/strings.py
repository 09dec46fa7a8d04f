"""Strings: (address, length) of UTF-8 bytes that somebody else owns."""

from __future__ import annotations

from gquery.kernels.primitives.python.values import Pointer, Str


def make_str(address: int, length: int) -> Str:
    """The text of ``length`` UTF-8 bytes at an address. It does not own them."""
    return address, length


def str_address(s: Str) -> int:
    """The address of a text's first byte."""
    return s[0]


def str_bytes(s: Str) -> int:
    """How many bytes a text has."""
    return s[1]


def string32(offsets: Pointer, characters: int, i: int) -> Str:
    """Text ``i`` of a column with int32 offsets; its bytes are the column's."""
    start = offsets[i]
    return characters + start, offsets[i + 1] - start


string64 = string32


def view(pointer: Pointer, i: int) -> Str:
    """Text ``i`` of a column of views: an address and a length, two int64 words each."""
    return pointer[2 * i], pointer[2 * i + 1]


load_pair = view


def store_view(pointer: Pointer, i: int, s: Str) -> None:
    """Sets element ``i`` of a column of views; the bytes are not copied."""
    pointer[2 * i], pointer[2 * i + 1] = s
