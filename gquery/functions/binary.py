"""Blobs over Arrow's binary arrays: their bytes in digits, and as the texts that casts read and write."""

from __future__ import annotations

import re
from functools import cache

import pyarrow as pa

from gquery.functions.byte_maps import HEXADECIMAL, ByteMap
from gquery.functions.vectors import each_value, flags, from_numpy, piecewise
from gquery.runtime.arrow_compute import pc

_TEXT = re.compile(r"(?:[\x00-\x5b\x5d-\x7f]|\\x[0-9a-fA-F]{2})*", re.ASCII)
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")
_ODD = re.compile(rb"[^ !#-&(-\[\]-~]")


def is_blob(type_: pa.DataType) -> bool:
    """Whether an Arrow type is one of strings of bytes."""
    is_ = pa.types
    return bool(
        is_.is_binary(type_)
        or is_.is_large_binary(type_)
        or is_.is_binary_view(type_)
        or is_.is_fixed_size_binary(type_)
    )


def blobs_of(array: pa.Array) -> pa.Array:
    """Blobs in one array of large offsets."""
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    return array.cast(pa.large_binary())


def hex_of(blobs: pa.Array) -> pa.Array:
    """Two hexadecimal digits a byte, whose order is that of the bytes; blobs of large offsets, and large texts."""
    return HEXADECIMAL.of(blobs).cast(pa.large_string())


def blob_of_text(text: str) -> bytes | None:
    """The bytes of a text of ASCII, in which a backslash begins one in hexadecimal digits; None for another.

    >>> blob_of_text("a\\\\xFF"), blob_of_text("\\\\x4"), blob_of_text("é")
    (b'a\\xff', None, None)
    """
    if _TEXT.fullmatch(text) is None:
        return None
    return _ESCAPE.sub(lambda m: bytes([int(m[1], 16)]), text.encode())


def text_of_blob(blob: bytes) -> str:
    """A blob as a cast prints it.

    >>> text_of_blob(b"a'\\xff")
    'a\\\\x27\\\\xFF'
    """
    return _ODD.sub(lambda m: b"\\x%02X" % m[0][0], blob).decode()


def from_texts(texts: pa.Array) -> pa.Array:
    """The blobs that texts say; NULL for one that says none."""
    odd = ~flags(pc.string_is_ascii(texts).fill_null(True)) | flags(pc.match_substring(texts, "\\").fill_null(False))
    plain = texts.cast(pa.large_string()).cast(pa.large_binary())
    if not odd.any():
        return plain
    others = piecewise(texts, odd, lambda t: each_value(t, blob_of_text, pa.large_binary()), pa.large_binary())
    return pc.if_else(from_numpy(odd), others, plain)


def to_texts(blobs: pa.Array) -> pa.Array:
    """Blobs as casts print them (`text_of_blob`)."""
    return _printed().of(blobs_of(blobs))


@cache
def _printed() -> ByteMap:
    return ByteMap({n: text_of_blob(bytes([n])).encode() for n in range(256)})
