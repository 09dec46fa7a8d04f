"""Functions of BLOB: strings of bytes, over Arrow's binary arrays on the host.

Kernels carry blobs as they do lists, by row numbers; what groups, joins, sorts or compares them does so by a text of their bytes
(`functions.nested_keys`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from gquery.errors import ConversionError
from gquery.expression.expr import Expr
from gquery.expression.types import BIGINT, BLOB, VARCHAR, DType, Kind
from gquery.functions import base64_texts, byte_maps
from gquery.functions.binary import blobs_of
from gquery.functions.casts import cast
from gquery.functions.list_function import Typed, list_overload
from gquery.functions.registry import LIST_RESOLVERS, call, host_scalar, make
from gquery.functions.vectors import Vector, array_of, each_value, from_numpy, null, size_of
from gquery.runtime.arrow_compute import pc


def _of_blob(result: DType) -> Callable[[Expr], Typed | None]:
    def rule(x: Expr) -> Typed | None:
        return ([x], result) if x.dtype.kind is Kind.BLOB else None

    return rule


def _concat(args: tuple[Expr, ...]) -> Expr | None:
    """``a || b`` of blobs, or of one and a NULL; beside a text a blob is its text."""
    if Kind.BLOB not in {a.dtype.kind for a in args}:
        return None
    if any(a.dtype.is_string for a in args):
        return call("_concat_operator", *(cast(a, VARCHAR) for a in args))
    if any(a.dtype.kind not in (Kind.BLOB, Kind.NULL) for a in args):
        return None
    return make("_joined_blobs", [cast(a, BLOB) for a in args], BLOB)


LIST_RESOLVERS.setdefault("_concat_operator", []).append(_concat)


def _array(x: Vector) -> pa.Array:
    return blobs_of(array_of(x, size_of(x)))


def _each(x: Vector, f: Callable[[bytes], Any], type_: pa.DataType) -> pa.Array:
    return each_value(_array(x), f, type_)


@list_overload("octet_length", _of_blob(BIGINT), "$(BLOB) -> BIGINT", example=("octet_length(encode('añb'))", "4"))
def octet_length(x: Vector) -> Vector:
    """How many bytes a blob has."""
    return pc.binary_length(_array(x)).cast(pa.int64())


@list_overload("hex to_hex", _of_blob(VARCHAR), "$(BLOB) -> VARCHAR", example=("hex(encode('añb'))", "61C3B162"))
def hex_(x: Vector) -> Vector:
    """The bytes of a blob in hexadecimal digits."""
    return byte_maps.HEXADECIMAL.of(_array(x))


@list_overload("decode", _of_blob(VARCHAR), "$(BLOB) -> VARCHAR", example=("decode(encode('añb'))", "añb"))
def decode(x: Vector) -> Vector:
    """The text that a blob is in UTF-8."""
    try:
        return _array(x).cast(pa.large_string()).cast(pa.string())
    except pa.ArrowInvalid:
        raise ConversionError("decode: a blob is no text in UTF-8") from None


@list_overload("base64 to_base64", _of_blob(VARCHAR), "$(BLOB) -> VARCHAR", example=("base64(encode('abc'))", "YWJj"))
def to_base64(x: Vector) -> Vector:
    """The bytes of a blob in Base64."""
    blobs = _array(x)
    return byte_maps.texts_of(base64_texts.encoded(blobs), blobs)


@list_overload(
    "md5", _of_blob(VARCHAR), "$(BLOB) -> VARCHAR", example=("md5(encode('a'))", "0cc175b9c0f1b6a831c399e269772661")
)
def md5(x: Vector) -> Vector:
    """The MD5 of a blob, in hexadecimal digits."""
    import hashlib  # loads OpenSSL

    return _each(x, lambda b: hashlib.md5(b, usedforsecurity=False).hexdigest(), pa.string())


@list_overload("sha256", _of_blob(VARCHAR), "$(BLOB) -> VARCHAR", example=("left(sha256(encode('a')), 8)", "ca978112"))
def sha256(x: Vector) -> Vector:
    """The SHA-256 of a blob, in hexadecimal digits."""
    import hashlib  # loads OpenSSL

    return _each(x, lambda b: hashlib.sha256(b).hexdigest(), pa.string())


@list_overload("sha1", _of_blob(VARCHAR), "$(BLOB) -> VARCHAR", example=("left(sha1(encode('a')), 8)", "86f7e437"))
def sha1(x: Vector) -> Vector:
    """The SHA-1 of a blob, in hexadecimal digits."""
    import hashlib  # loads OpenSSL

    return _each(x, lambda b: hashlib.sha1(b, usedforsecurity=False).hexdigest(), pa.string())


@host_scalar("_joined_blobs", ((BLOB, BLOB), BLOB))
def joined(a: Vector, b: Vector) -> Vector:
    """The bytes of one blob and of another behind them."""
    rows = size_of(a, b)
    return pc.binary_join_element_wise(
        *(blobs_of(array_of(x, rows)) for x in (a, b)), pa.scalar(b"", pa.large_binary())
    )


@host_scalar("encode", ((VARCHAR,), BLOB), example=("hex(encode('añb'))", "61C3B162"))
def encode(text: Vector) -> Vector:
    """The bytes of a text in UTF-8."""
    return array_of(text, size_of(text)).cast(pa.large_string()).cast(pa.large_binary())


@host_scalar("unhex from_hex", ((VARCHAR,), BLOB), fails=(ConversionError, "unhex: no hexadecimal digits"),
             example=("decode(unhex('616263'))", "abc"))  # fmt: skip
def unhex(text: Vector) -> Vector:
    """The bytes that hexadecimal digits say."""

    texts = array_of(text, size_of(text))
    made, ok = byte_maps.hexadecimal_decoded(texts)
    blobs = byte_maps.blobs_from(made, texts)
    return blobs if ok.all() else pc.if_else(from_numpy(ok), blobs, null(blobs.type))


@host_scalar("from_base64", ((VARCHAR,), BLOB), fails=(ConversionError, "from_base64: a text is no Base64"),
             example=("decode(from_base64('YWJj'))", "abc"))  # fmt: skip
def from_base64(text: Vector) -> Vector:
    """The bytes that Base64 says."""

    texts = array_of(text, size_of(text))
    made, ok = base64_texts.decoded(texts)
    blobs = byte_maps.blobs_from(made, texts)
    return blobs if ok.all() else pc.if_else(from_numpy(ok), blobs, null(blobs.type))
