"""Parts, codes and likeness of strings: functions that look at each string by itself, in Python, row by row.

They run over the entries of a dictionary where a column has one. Likeness is counted in bytes, as in DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from gquery.errors import DataError
from gquery.expression.expr import Expr, Literal
from gquery.expression.types import BIGINT, DOUBLE, UBIGINT, VARCHAR
from gquery.functions import byte_maps, edit_distance
from gquery.functions.md5 import md5_digests
from gquery.functions.registry import call, host_scalar, resolver
from gquery.functions.vectors import (
    Vector,
    array_of,
    each_row,
    each_value,
    flags,
    from_numpy,
    integers,
    is_constant,
    null,
    piecewise,
    size_of,
    with_nulls_of,
)
from gquery.runtime.arrow_compute import pc

_S, _SS = (VARCHAR,), (VARCHAR, VARCHAR)
_ASCII = 128
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
_URL = byte_maps.ByteMap({n: b"%%%02X" % n for n in range(256) if n not in _LETTERS + b"-.~"})
_REGEX = byte_maps.ByteMap({n: b"\\" + bytes([n]) if n else b"\\x00" for n in range(_ASCII) if n not in _LETTERS})
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


# ---- parts and codes -------------------------------------------------------------------------------------------------


@host_scalar("hex to_hex", (_S, VARCHAR), ((BIGINT,), VARCHAR), ((UBIGINT,), VARCHAR), example=("hex(255)", "FF"))
def hexadecimal(x: Vector) -> Vector:
    """An integer in hexadecimal digits, one below 0 as 64 bits; the bytes of a string."""
    return _in_digits(x, byte_maps.HEXADECIMAL)


def _in_digits(x: Vector, digits: byte_maps.ByteMap) -> pa.Array:
    array = array_of(x, size_of(x))
    if pa.types.is_integer(array.type):
        numbers = integers(array, len(array)).view(np.uint64)
        return byte_maps.texts_of(byte_maps.number_digits(numbers, digits), array)
    return digits.of(array)


@host_scalar("bin to_binary", (_S, VARCHAR), ((BIGINT,), VARCHAR), ((UBIGINT,), VARCHAR), example=("bin(5)", "101"))
def binary(x: Vector) -> Vector:
    """An integer in binary digits, one below 0 as 64 bits; the bytes of a string."""

    return _in_digits(x, byte_maps.BINARY)


@host_scalar("to_base", ((BIGINT, BIGINT), VARCHAR), ((BIGINT, BIGINT, BIGINT), VARCHAR), example=("to_base(255, 16)", "FF"),
             fails=(DataError, "to_base takes a number from 0, a base of 2 to 36, a length of 0 to 64"))  # fmt: skip
def to_base(*args: Vector) -> Vector:
    """A number in the digits of a base, with zeros before it up to a length."""

    def digits(n: int, base: int, length: int = 0) -> str | None:
        if n < 0 or not 2 <= base <= 36 or not 0 <= length <= 64:
            return None
        made = ""
        while n or not made:
            n, digit = divmod(n, base)
            made = _DIGITS[digit] + made
        return made.rjust(length, "0")

    return each_row(digits, pa.string(), *args)


@host_scalar("translate", ((VARCHAR, VARCHAR, VARCHAR), VARCHAR), example=("translate('abcabc', 'ab', 'x')", "xcxc"))
def translate(s: Vector, old: Vector, new: Vector) -> Vector:
    """Each character of ``old`` replaced by the one at its place in ``new``, or left out where there is none."""

    if is_constant(old) and is_constant(new):
        return _translated(array_of(s, size_of(s, old, new)), old.as_py(), new.as_py())
    return each_row(lambda s, old, new: s.translate(_replacements(old, new)), pa.string(), s, old, new)


def _replacements(old: str, new: str) -> dict[int, str]:
    return {ord(c): new[n] if n < len(new) else "" for n, c in reversed(list(enumerate(old)))}


def _translated(texts: pa.Array, old: str, new: str) -> pa.Array:
    """`translate` of all texts by one pair: bytes where what is replaced is ASCII, as no other character holds such a byte."""
    replacements = _replacements(old, new)
    of_bytes = {code: c.encode() for code, c in replacements.items() if code < _ASCII}
    made = byte_maps.ByteMap(of_bytes).of(texts)
    if len(of_bytes) == len(replacements):
        return made
    others = ~flags(pc.string_is_ascii(texts).fill_null(True))
    by_character = _beyond_ascii(texts, lambda s: s.translate(replacements))
    return pc.if_else(from_numpy(others), by_character.cast(made.type), made) if others.any() else made


@host_scalar("sha256", (_S, VARCHAR), example=("left(sha256('a'), 8)", "ca978112"))
def sha256(s: Vector) -> Vector:
    """The SHA-256 of the bytes, in hexadecimal digits."""
    import hashlib  # loads OpenSSL

    return each_row(lambda s: hashlib.sha256(s.encode()).hexdigest(), pa.string(), s)


@host_scalar("sha1", (_S, VARCHAR), example=("left(sha1('a'), 8)", "86f7e437"))
def sha1(s: Vector) -> Vector:
    """The SHA-1 of the bytes, in hexadecimal digits."""
    import hashlib

    return each_row(lambda s: hashlib.sha1(s.encode(), usedforsecurity=False).hexdigest(), pa.string(), s)


@host_scalar("url_encode", (_S, VARCHAR), example=("url_encode('a b/c')", "a%20b%2Fc"))
def url_encode(s: Vector) -> Vector:
    """As a part of a URL: what is no letter, digit or one of ``-_.~`` as % and two digits a byte."""
    return _URL.of(array_of(s, size_of(s)))


@host_scalar("url_decode", (_S, VARCHAR), example=("url_decode('a%20b%2Fc')", "a b/c"),
             fails=(DataError, "url_decode gives bytes that are no text"))  # fmt: skip
def url_decode(s: Vector) -> Vector:
    """A part of a URL as it was before `url_encode`."""

    texts = array_of(s, size_of(s))
    made = byte_maps.percent_decoded(texts)
    decoded = byte_maps.texts_of(made, texts)
    ok = byte_maps.are_texts(made)
    return decoded if ok.all() else pc.if_else(from_numpy(ok), decoded, null(decoded.type))


@host_scalar("regexp_escape", (_S, VARCHAR), example=("regexp_escape('a.b')", "a\\.b"))
def regexp_escape(s: Vector) -> Vector:
    """A regular expression that matches the string itself."""
    return _REGEX.of(array_of(s, size_of(s)))


@host_scalar("strip_accents", (_S, VARCHAR), example=("strip_accents('mühleisen')", "muhleisen"))
def strip_accents(s: Vector) -> Vector:
    """Letters without their accents."""
    import unicodedata

    def stripped(s: str) -> str:
        return "".join([c for c in unicodedata.normalize("NFD", s) if unicodedata.category(c) != "Mn"])

    return _beyond_ascii(s, stripped)


@host_scalar("nfc_normalize", (_S, VARCHAR), example=("strlen(nfc_normalize('e' || chr(769)))", "2"))
def nfc_normalize(s: Vector) -> Vector:
    """Letters and their accents as one code point each, where there is one."""
    import unicodedata

    return _beyond_ascii(s, lambda s: unicodedata.normalize("NFC", s))


def _beyond_ascii(s: Vector, f: Callable[[str], str]) -> pa.Array:
    """``f`` of the texts that are not ASCII, once for each that differs; the others stay."""
    texts = array_of(s, size_of(s))
    others = ~flags(pc.string_is_ascii(texts).fill_null(True))
    if not others.any():
        return texts
    made = piecewise(texts, others, lambda t: each_value(t, f, t.type), texts.type)
    return pc.if_else(from_numpy(others), made, texts)


@host_scalar("md5_number_upper", (_S, UBIGINT), example=("md5_number_upper('a')", "12157170054180749580"))
def md5_number_upper(s: Vector) -> Vector:
    """The first half of the MD5 hash as a number, its first byte the lowest."""
    return with_nulls_of(from_numpy(md5_digests(s).view("<u8")[:, 0]), s)


@host_scalar("md5_number_lower", (_S, UBIGINT), example=("md5_number_lower('a')", "7000413967451013937"))
def md5_number_lower(s: Vector) -> Vector:
    """The second half of the MD5 hash as a number, its first byte the lowest."""
    return with_nulls_of(from_numpy(md5_digests(s).view("<u8")[:, 1]), s)


@resolver("bit_length", "$(VARCHAR) -> BIGINT", example=("bit_length('ab')", "16"))
def _bit_length(s: Expr) -> Expr | None:
    """The bits of the string's bytes."""
    return call("multiply", call("strlen", s), Literal(8, BIGINT)) if s.dtype == VARCHAR else None


# ---- likeness --------------------------------------------------------------------------------------------------------


@host_scalar("levenshtein editdist3", (_SS, BIGINT), example=("levenshtein('duck', 'db')", "3"))
def levenshtein(a: Vector, b: Vector) -> Vector:
    """The bytes to insert, delete or replace from one string to the other."""
    return edit_distance.levenshtein(a, b)


@host_scalar("damerau_levenshtein", (_SS, BIGINT), example=("damerau_levenshtein('ab', 'ba')", "1"))
def damerau_levenshtein(a: Vector, b: Vector) -> Vector:
    """As levenshtein, and neighbours that are swapped count once."""
    return edit_distance.damerau_levenshtein(a, b)


@host_scalar("hamming mismatches", (_SS, BIGINT), example=("hamming('duck', 'luck')", "1"),
             fails=(DataError, "hamming takes two strings of one length that is not 0"))  # fmt: skip
def hamming(a: Vector, b: Vector) -> Vector:
    """At how many places the bytes differ."""
    return edit_distance.hamming(a, b)


@host_scalar("jaccard", (_SS, DOUBLE), example=("jaccard('abc', 'abd')", "0.5"),
             fails=(DataError, "jaccard takes strings that are not empty"))  # fmt: skip
def jaccard(a: Vector, b: Vector) -> Vector:
    """The share of the bytes that both have among those that one has."""
    return edit_distance.jaccard(a, b)
