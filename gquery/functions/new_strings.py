"""Functions that make new strings, over Arrow arrays (see `gquery.functions.vectors`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from gquery.errors import DataError
from gquery.expression.expr import Expr, Literal
from gquery.expression.types import BIGINT, INTEGER, VARCHAR, Kind
from gquery.functions import graphemes
from gquery.functions.casts import cast
from gquery.functions.md5 import md5_digests
from gquery.functions.registry import LIST_RESOLVERS, by_signature, host_scalar, is_null_literal, make, resolver
from gquery.functions.vectors import (
    Vector,
    alike,
    array_of,
    by_parameters,
    fitting,
    fixed_width_text,
    flags,
    from_numpy,
    integers,
    is_constant,
    joined_texts,
    null,
    room,
    scalar_text,
    scattered,
    size_of,
    text_bytes,
    text_like,
    value_array,
    with_nulls_of,
)
from gquery.runtime.arrow_compute import pc

_S, _SS, _SI = (VARCHAR,), (VARCHAR, VARCHAR), (VARCHAR, BIGINT)
_HEXADECIMAL = np.frombuffer("".join(f"{n:02x}" for n in range(256)).encode(), np.uint16)


@host_scalar("lower lcase", (_S, VARCHAR), example=("lower('GQuery')", "gquery"))
def lower(s: Vector) -> Vector:
    """In lower case, character by character."""
    return pc.utf8_lower(s)


@host_scalar("upper ucase", (_S, VARCHAR), example=("upper('gquery')", "GQUERY"))
def upper(s: Vector) -> Vector:
    """In upper case, character by character."""
    return pc.utf8_upper(s)


@host_scalar("reverse", (_S, VARCHAR), example=("reverse('abc')", "cba"))
def reverse(s: Vector) -> Vector:
    """The characters from last to first; what is combined to one character stays together."""
    is_ascii = pc.string_is_ascii(s)
    if pc.all(is_ascii).as_py() is not False:
        return pc.ascii_reverse(s)
    others = ~flags(is_ascii.fill_null(True))
    (places,) = np.nonzero(others)
    turned = graphemes.reversed_texts(s.take(from_numpy(places)))
    plain = pc.ascii_reverse(pc.if_else(from_numpy(~others), s, null(s.type)))
    return pc.coalesce(plain, scattered(turned.cast(s.type), places, len(s)))


@host_scalar("_trim_set", (_SS, VARCHAR))
def trim_set(s: Vector, characters: Vector) -> Vector:
    """Without some characters at both ends."""
    return by_parameters(lambda s, c: pc.utf8_trim(s, characters=c) if c else s, s, characters)


@host_scalar("_ltrim_set", (_SS, VARCHAR))
def ltrim_set(s: Vector, characters: Vector) -> Vector:
    """Without some characters at the start."""
    return by_parameters(lambda s, c: pc.utf8_ltrim(s, characters=c) if c else s, s, characters)


@host_scalar("_rtrim_set", (_SS, VARCHAR))
def rtrim_set(s: Vector, characters: Vector) -> Vector:
    """Without some characters at the end."""
    return by_parameters(lambda s, c: pc.utf8_rtrim(s, characters=c) if c else s, s, characters)


@resolver("trim", "$(VARCHAR, characters)", example=("trim('xxaxx', 'x')", "a"))
def _trim(s: Expr, characters: Expr) -> Expr | None:
    """Without some characters at both ends."""
    return by_signature("_trim_set", (s, characters), ((_SS, VARCHAR),))


@resolver("ltrim", "$(VARCHAR, characters)")
def _ltrim(s: Expr, characters: Expr) -> Expr | None:
    """Without some characters at the start."""
    return by_signature("_ltrim_set", (s, characters), ((_SS, VARCHAR),))


@resolver("rtrim", "$(VARCHAR, characters)")
def _rtrim(s: Expr, characters: Expr) -> Expr | None:
    """Without some characters at the end."""
    return by_signature("_rtrim_set", (s, characters), ((_SS, VARCHAR),))


# ---- joined strings ---------------------------------------------------------------------------------------------------


@host_scalar("_joined", (_SS, VARCHAR))
def joined(*texts: Vector) -> Vector:
    """Strings joined; NULL with a NULL: ``a || b``."""
    return joined_texts(*alike(list(texts)))


@host_scalar("_concatenated", (_SS, VARCHAR), strict=False)
def concatenated(*texts: Vector) -> Vector:
    """Strings joined; NULLs are passed over: ``concat(a, b)``."""
    texts = tuple(alike(list(texts)))
    nothing = text_like("", texts[0])  # Arrow loses a row in which all is NULL
    return pc.binary_join_element_wise(nothing, *texts, nothing, null_handling="skip")


@host_scalar("_concatenated_with", (_SS, VARCHAR), strict=False, nullable=True)
def concatenated_with(separator: Vector, *texts: Vector) -> Vector:
    """Strings joined with a separator between; NULLs among them are passed over: ``concat_ws('-', a, b)``."""
    separator, *rest = alike([separator, *texts])
    rows = size_of(separator, *texts)
    nothing = text_like("", rest[0])  # Arrow loses a row in which all is NULL; so each begins with a separator
    made = pc.binary_join_element_wise(nothing, *rest, separator, null_handling="skip")
    length = pc.utf8_length(separator)
    return by_parameters(lambda s, n: pc.utf8_slice_codeunits(s, n), array_of(made, rows), length)


@resolver("concat", "$(any, ...) -> VARCHAR", example=("concat('a', NULL, 1)", "a1"))
def _concat(first: Expr, *more: Expr) -> Expr:
    """All values as text, joined; NULLs are passed over."""
    texts = tuple(cast(e, VARCHAR) for e in (first, *more) if not is_null_literal(e))
    return make("_concatenated", texts, VARCHAR) if texts else Literal("", VARCHAR)


@resolver("_concat_operator", "any || any -> VARCHAR", example=("'g' || 'query'", "gquery"))
def _concat_operator(a: Expr, b: Expr) -> Expr:
    """``a || b``: two values as text, joined; NULL with a NULL. ``concat(...)`` takes any values and passes over NULLs."""
    return make("_joined", (cast(a, VARCHAR), cast(b, VARCHAR)), VARCHAR)


@resolver("concat_ws", "$(VARCHAR, any, ...) -> VARCHAR", example=("concat_ws('-', 'a', NULL, 'b')", "a-b"))
def _concat_ws(separator: Expr, first: Expr, *more: Expr) -> Expr | None:
    """All values as text with a separator between; NULLs are passed over."""
    if separator.dtype != VARCHAR and not is_null_literal(separator):
        return None
    between = cast(separator, VARCHAR)
    texts = tuple(cast(e, VARCHAR) for e in (first, *more) if not is_null_literal(e)) or (Literal("", VARCHAR),)
    return make("_concatenated_with", (between, *texts), VARCHAR)


def _of_texts(resolve: Callable[..., Expr | None]) -> Callable[[tuple[Expr, ...]], Expr | None]:
    """The same of structs, maps and blobs; lists are concatenated."""
    return lambda args: None if any(a.dtype.is_list for a in args) or not args else resolve(*args)


LIST_RESOLVERS.setdefault("concat", []).append(_of_texts(_concat))
LIST_RESOLVERS.setdefault("_concat_operator", []).append(
    _of_texts(lambda a, b: _concat_operator(a, b) if any(e.dtype.kind in (Kind.STRUCT, Kind.MAP) for e in (a, b)) else None)
)
LIST_RESOLVERS["concat_ws"] = [lambda args: _concat_ws(*args) if len(args) > 1 and not args[0].dtype.is_opaque else None]


# ---- repeated and replaced --------------------------------------------------------------------------------------------


@host_scalar("replace", ((VARCHAR, VARCHAR, VARCHAR), VARCHAR), example=("replace('aba', 'a', 'c')", "cbc"))
def replace(s: Vector, old: Vector, new: Vector) -> Vector:
    """Every ``old`` in s replaced."""

    def replaced(s: pa.Array, old: str, new: str) -> pa.Array:
        if not old:
            return s
        before, after = len(old.encode()), len(new.encode())
        if after > before:  # the most that it can grow to
            size = text_bytes(s)
            growth = int(pc.sum(pc.count_substring(s, old)).as_py() or 0) * (after - before)
            room(size + growth)
            s = fitting(s, size + growth)
        return pc.replace_substring(s, old, new)

    return by_parameters(replaced, s, old, new)


@host_scalar("repeat", (_SI, VARCHAR), example=("repeat('ab', 2)", "abab"))
def repeat(s: Vector, count: Vector) -> Vector:
    """The string some times over."""
    rows = size_of(s, count)
    s, times = array_of(s, rows), np.maximum(integers(count, rows), 0)
    lengths = integers(pc.binary_length(s), rows)
    size = int((lengths.astype(np.float64) * times).sum())  # may be beyond 64 bits
    room(size)
    made = pc.binary_repeat(fitting(s, size), from_numpy(np.where(lengths > 0, times, 0)))
    return with_nulls_of(made, array_of(count, rows))


def _padded(s: Vector, count: Vector, fill: Vector, at_start: bool) -> Vector:
    """Strings of so many characters: cut, or filled up. NULL where there is nothing to fill up with."""
    rows = size_of(s, count, fill)
    s = array_of(s, rows)
    wanted, lengths = np.maximum(integers(count, rows), 0), integers(pc.utf8_length(s), rows)
    missing = np.maximum(wanted - lengths, 0)
    missing[~flags(s.is_valid())] = 0
    if bool((lengths > wanted).any()):
        s = by_parameters(lambda s, n: pc.utf8_slice_codeunits(s, 0, max(0, n)), s, count)
    if not missing.any():
        return with_nulls_of(s, array_of(count, rows), array_of(fill, rows))
    longest = pc.max(pc.binary_length(fill)).as_py() if not is_constant(fill) else len((fill.as_py() or "").encode())
    room(size := text_bytes(s) + int(missing.astype(np.float64).sum()) * min(int(longest or 0), 4))
    s = fitting(s, size)
    pads = by_parameters(_padding, from_numpy(missing), fill, gives=s.type).cast(s.type)
    parts = (pads, s) if at_start else (s, pads)
    return with_nulls_of(joined_texts(*parts), array_of(count, rows))


def _padding(missing: pa.Array, fill: str) -> pa.Array:
    """So many characters of a text again and again; NULL where there are none."""
    size = int(pc.sum(missing).as_py() or 0) * 4
    type_ = pa.large_string() if size > 2**30 else pa.string()
    if len(fill) == 1:
        return pc.binary_repeat(pa.repeat(scalar_text(fill, type_ == pa.large_string()), len(missing)), missing)
    encoded = missing.dictionary_encode()
    texts = [(fill * (n // len(fill) + 1))[:n] if fill else None if n else "" for n in encoded.dictionary.to_pylist()]
    return value_array(texts, type_).take(encoded.indices)


_NO_FILL = (DataError, "insufficient padding: the fill of LPAD or RPAD is empty")


@host_scalar("lpad", ((VARCHAR, INTEGER, VARCHAR), VARCHAR), fails=_NO_FILL,
        example=("lpad('7', 3, '0')", "007"))  # fmt: skip
def lpad(s: Vector, count: Vector, fill: Vector) -> Vector:
    """Filled up at the start to some characters, or cut to them."""
    return _padded(s, count, fill, at_start=True)


@host_scalar("rpad", ((VARCHAR, INTEGER, VARCHAR), VARCHAR), fails=_NO_FILL,
        example=("rpad('ab', 5, 'xy')", "abxyx"))  # fmt: skip
def rpad(s: Vector, count: Vector, fill: Vector) -> Vector:
    """Filled up at the end to some characters, or cut to them."""
    return _padded(s, count, fill, at_start=False)


@host_scalar("chr", ((INTEGER,), VARCHAR), fails=(DataError, "chr of a number that is no code point"),
        example=("chr(97)", "a"))  # fmt: skip
def chr_(code: Vector) -> Vector:
    """The character of a code point."""
    rows = size_of(code)
    points = integers(code, rows)
    ok = (points >= 0) & (points < 0x110000) & ((points < 0xD800) | (points > 0xDFFF))
    points = np.where(ok, points, 0)
    characters = points.astype("<u4").tobytes().decode("utf-32-le").encode()
    lengths = 1 + (points >= 0x80).astype(np.int32) + (points >= 0x800) + (points >= 0x10000)
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    made = pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(characters))
    made = made if ok.all() else pc.if_else(from_numpy(ok), made, null(made.type))
    return with_nulls_of(made, code)


@host_scalar("md5", (_S, VARCHAR), example=("md5('a')", "0cc175b9c0f1b6a831c399e269772661"))
def md5(s: Vector) -> Vector:
    """The MD5 hash in hexadecimal digits."""
    digits = _HEXADECIMAL[md5_digests(s)].view(np.uint8)
    return with_nulls_of(fixed_width_text(digits), s)


@host_scalar("_like_pattern", (_SS, VARCHAR))
def like_pattern(pattern: Vector, escape: Vector) -> Vector:
    """A pattern of LIKE as kernels read it: bytes that UTF-8 never has stand for % and _."""
    return by_parameters(_prepared_pattern, pattern, escape)


def _prepared_pattern(patterns: pa.Array, escape: str) -> pa.Array:
    if patterns is None or escape is None:
        return pa.nulls(0, pa.string())
    if len(escape) > 1:
        raise DataError("the ESCAPE of LIKE is one character")
    type_ = patterns.type
    binary = pa.large_binary() if type_ == pa.large_string() else pa.binary()
    if escape:  # what is escaped becomes a byte of its own meanwhile, as does a lone escape at the end
        for n, c in enumerate((escape, "%", "_")):
            patterns = _bytes_replaced(patterns.cast(binary), (escape + c).encode(), bytes([0xF8 + n]))
        if pc.any(pc.ends_with(patterns, escape.encode())).as_py():
            raise DataError("a pattern of LIKE ends with the character of its ESCAPE")
        patterns = _bytes_replaced(patterns, escape.encode(), b"")
    patterns = pc.replace_substring_regex(patterns.cast(binary), b"%+", b"\xff")
    patterns = _bytes_replaced(patterns, b"_", b"\xfe")
    if escape:
        for n, c in enumerate((escape, "%", "_")):
            patterns = _bytes_replaced(patterns, bytes([0xF8 + n]), c.encode())
    return pa.Array.from_buffers(type_, len(patterns), patterns.buffers(), patterns.null_count, patterns.offset)


def _bytes_replaced(texts: pa.Array, old: bytes, new: bytes) -> pa.Array:
    return pc.replace_substring(texts, old, new)
