"""What functions over Arrow arrays share.

A host function takes Arrow arrays, or scalars where an argument is the same for all rows, and gives an array of as many
rows. It never looks at one row alone: what it does stands in Arrow's compute functions, which let go of the
interpreter's lock, or in NumPy. Most of them take a parameter (a pattern, a width) once for all rows; `by_parameters`
takes rows apart where a parameter is a column.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.runtime.arrow_compute import pc

Vector = Any  # pa.Array, or pa.Scalar
LARGE = 2**31 - 1  # bytes from which on offsets take 64 bits
_MOST_CODES = 2**62


class _Room(threading.local):
    """Whom this thread asks before it makes large arrays."""

    ask: Callable[[int], None] | None = None


_room = _Room()


def reserving_room(ask: Callable[[int], None]) -> None:
    """From now on this thread asks there for the bytes of results that are much larger than what they are made of."""
    _room.ask = ask


def room(size: int) -> None:
    """Ask for the memory of a result; OutOfMemoryError where there is none."""
    if _room.ask is not None:
        _room.ask(size)


def size_of(*args: Vector) -> int:
    """The rows of a call: those of its arrays, 1 where there is none."""
    return next((len(a) for a in args if isinstance(a, pa.Array)), 1)


def array_of(x: Vector, rows: int) -> pa.Array:
    """A vector as an array."""
    if isinstance(x, pa.Array):
        return x
    return pa.repeat(x, rows) if rows else pa.nulls(0, x.type)  # Arrow repeats no list 0 times


def from_numpy(values: Any, ok: Any = None) -> pa.Array:
    """A NumPy array as one of Arrow's, NULL where ``ok`` is False. (Arrow's own way imports pandas where that is installed,
    which takes longer than many queries; so does making scalars of Python values.)"""
    if values.dtype == np.bool_:
        type_, data = pa.bool_(), np.packbits(values, bitorder="little")
    else:
        type_, data = _ARROW_TYPES[values.dtype.str[1:]], np.ascontiguousarray(values)
    bitmap = None if ok is None or ok.all() else pa.py_buffer(np.packbits(ok, bitorder="little"))
    return pa.Array.from_buffers(type_, len(values), [bitmap, pa.py_buffer(data)])


_ARROW_TYPES = {f"{kind}{size}": getattr(pa, f"{'u' if kind == 'u' else ''}int{8 * size}")()
                for kind in "iu" for size in (1, 2, 4, 8)}  # fmt: skip


def strings(texts: Sequence[str]) -> pa.Array:
    """Python strings as an array."""
    data = [t.encode() for t in texts]
    offsets = np.zeros(len(data) + 1, np.int32)
    np.cumsum([len(d) for d in data], out=offsets[1:])
    return pa.StringArray.from_buffers(len(data), pa.py_buffer(offsets), pa.py_buffer(b"".join(data)))


def value_array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Python's values as an array (`runtime.value_arrays`)."""
    from gquery.runtime import value_arrays  # which few queries need

    return value_arrays.value_array(values, type_)


@lru_cache(64)
def scalar_text(value: str, is_large: bool = False) -> pa.Scalar:
    """A string as a scalar."""
    return (strings([value]).cast(pa.large_string()) if is_large else strings([value]))[0]


def text_like(value: str, array: Vector) -> pa.Scalar:
    """A string as a scalar of an array's type."""
    return scalar_text(value, array.type == pa.large_string())


@lru_cache(64)
def null(type_: pa.DataType) -> pa.Scalar:
    """NULL of a type."""
    return pa.nulls(1, type_)[0]


def lower_case(value: str) -> str:
    """A string as `pc.utf8_lower` has it."""
    return str(pc.utf8_lower(strings([value]))[0].as_py())


def joined_texts(*texts: Vector) -> pa.Array:
    """Strings joined row by row, NULL with a NULL."""
    return pc.binary_join_element_wise(*texts, text_like("", texts[0]))


def offsets_of(texts: pa.Array) -> Any:
    """Where the strings of an array begin among its characters, and where the last one ends."""
    type_ = np.int64 if texts.type == pa.large_string() else np.int32
    buffer = texts.buffers()[1]
    if buffer is None or not buffer.size:
        return np.zeros(1, np.int64)
    return np.frombuffer(buffer, type_)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)


def characters_of(texts: pa.Array) -> Any:
    """The bytes that the offsets of strings point into."""
    buffer = texts.buffers()[2]
    return np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(0, np.uint8)


def is_constant(x: Vector) -> bool:
    return not isinstance(x, pa.Array)


def text_bytes(x: Vector) -> int:
    """The bytes of the characters of an array of strings."""
    return int(pc.sum(pc.binary_length(x)).as_py() or 0)


def fitting(array: pa.Array, size: int) -> pa.Array:
    """Strings with offsets wide enough for a result of so many bytes."""
    return array.cast(pa.large_string()) if size > LARGE and array.type == pa.string() else array


def alike(args: list[Vector]) -> list[Vector]:
    """Strings with offsets of one width, wide enough for all of them one behind the other."""
    sizes = [text_bytes(a) if isinstance(a, pa.Array) else len((a.as_py() or "").encode()) for a in args]
    rows = size_of(*args)
    total = sum(s if isinstance(a, pa.Array) else s * rows for s, a in zip(sizes, args, strict=True))
    if total > LARGE or any(a.type != pa.string() for a in args):
        return [a.cast(pa.large_string()) for a in args]
    return args


def by_parameters(
    f: Callable[..., pa.Array], subject: Vector, *parameters: Vector, gives: pa.DataType | None = None
) -> pa.Array:
    """``f(rows of the subject, *values)`` for each combination of the parameters' values, NULL where one is NULL. Where all
    are constants that is one call. ``gives`` is the result's type, the subject's unless it is said."""
    rows = size_of(subject, *parameters)
    subject = array_of(subject, rows)
    if all(is_constant(p) and p.is_valid for p in parameters):
        return f(subject, *(p.as_py() for p in parameters))
    codes = np.zeros(rows, np.int64)
    ok = np.ones(rows, np.bool_)
    encoded = []
    for p in parameters:
        each = array_of(p, rows).dictionary_encode()
        known = flags(each.indices.is_valid())
        ok &= known
        codes = codes * max(len(each.dictionary), 1) + integers(each.indices, rows)
        encoded.append(each)
    made, order = [], np.flatnonzero(ok)
    order = order[np.argsort(codes[order], kind="stable")]
    ends = np.flatnonzero(np.append(np.diff(codes[order]) != 0, True)) + 1
    start = 0
    for end in ends.tolist() if len(order) else ():
        few = order[start:end]
        values = [e.dictionary[e.indices[int(few[0])].as_py()].as_py() for e in encoded]
        made.append(f(subject.take(from_numpy(few)), *values))
        start = end
    if not made:
        return pa.nulls(rows, gives or subject.type)
    return scattered(pa.chunked_array(made).combine_chunks(), order, rows)


def scattered(values: pa.Array, places: Any, rows: int) -> pa.Array:
    """An array of so many rows with the values at these places and NULL elsewhere."""
    at = np.full(rows, -1, np.int64)
    at[places] = np.arange(len(places))
    return values.take(from_numpy(at, at >= 0))


def piecewise(array: pa.Array, where: Any, f: Callable[[pa.Array], pa.Array], type_: pa.DataType) -> pa.Array:
    """``f`` over the rows of which ``where`` (NumPy) is true, NULL at the others."""
    (places,) = np.nonzero(where)
    if len(places) == len(array):
        return f(array).cast(type_)
    if not len(places):
        return pa.nulls(len(array), type_)
    return scattered(f(array.take(from_numpy(places))).cast(type_), places, len(array))


def flags(array: pa.Array) -> Any:
    """Booleans as a NumPy array, False for NULL."""
    rows = len(array)
    if not rows:
        return np.zeros(0, np.bool_)
    both = pc.and_(array, array.is_valid()) if array.null_count else array
    bits = np.frombuffer(both.buffers()[1], np.uint8)
    found = np.unpackbits(bits, bitorder="little")[both.offset : both.offset + rows].view(np.bool_)
    return (
        found
        & np.unpackbits(np.frombuffer(both.buffers()[0], np.uint8), bitorder="little")[
            both.offset : both.offset + rows
        ].view(np.bool_)
        if both.null_count
        else found
    )


def each_value(array: pa.Array, f: Callable[[Any], Any], type_: pa.DataType) -> pa.Array:
    """A Python function over the values of an array, once for each that differs: for forms that are rare."""
    encoded = array.dictionary_encode()
    made = value_array([None if v is None else f(v) for v in encoded.dictionary.to_pylist()], type_)
    return made.take(encoded.indices)


def integers(x: Vector, rows: int) -> Any:
    """Integers, dates or timestamps as int64 of NumPy, 0 for NULL."""
    array = array_of(x, rows)
    if pa.types.is_date(array.type):
        array = array.view(pa.int32())
    elif pa.types.is_timestamp(array.type) or pa.types.is_time64(array.type):
        array = array.view(pa.int64())
    if not len(array):
        return np.zeros(0, np.int64)
    width = f"{'u' if pa.types.is_unsigned_integer(array.type) else 'i'}{array.type.bit_width // 8}"
    data = np.frombuffer(array.buffers()[1], width)[array.offset : array.offset + len(array)].astype(np.int64)
    return np.where(flags(array.is_valid()), data, 0) if array.null_count else data


def doubles(array: pa.Array) -> Any:
    """DOUBLE as float64 of NumPy; under NULL is any."""
    data = array.buffers()[1]
    return np.zeros(0) if not len(array) else np.frombuffer(data, np.float64)[array.offset : array.offset + len(array)]


def with_nulls_of(made: pa.Array, *args: Vector) -> pa.Array:
    """An array with NULL where an argument has it."""
    present = [a for a in args if isinstance(a, pa.Array) and a.null_count]
    if not present:
        return made
    ok = present[0].is_valid()
    for a in present[1:]:
        ok = pc.and_(ok, a.is_valid())
    return pc.if_else(ok, made, null(made.type))


def fixed_width_text(characters: Any) -> pa.Array:
    """Rows of bytes (NumPy, two-dimensional) as strings."""
    rows, width = characters.shape
    offsets = np.arange(0, (rows + 1) * width, max(width, 1), dtype=np.int64)[: rows + 1]
    if not width:
        offsets = np.zeros(rows + 1, np.int64)
    data = pa.py_buffer(np.ascontiguousarray(characters))
    if rows * width <= LARGE:
        return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets.astype(np.int32)), data)
    return pa.LargeStringArray.from_buffers(rows, pa.py_buffer(offsets), data)


def each_row(f: Callable[..., Any], gives: pa.DataType, *args: Vector) -> pa.Array:
    """``f`` of the values of each row, in Python; NULL where one is NULL. Where rows repeat it is called once for each that
    differs, so it depends on its arguments alone."""
    rows = size_of(*args)
    repeated = repeats([a for a in args if isinstance(a, pa.Array)])
    if repeated is not None:
        few = from_numpy(repeated[0])
        made = each_row(f, gives, *(a.take(few) if isinstance(a, pa.Array) else a for a in args))
        return made.take(repeated[1])
    columns = [array_of(a, rows).to_pylist() for a in args]
    return value_array([None if None in row else f(*row) for row in zip(*columns, strict=True)], gives)


def repeats(arrays: Sequence[pa.Array]) -> tuple[Any, pa.Array] | None:
    """Rows (int64 of NumPy) that have all values that there are side by side in some arrays, and for each row which of these has
    its values (int32); None where nearly all rows differ, or arrays of a type cannot be counted."""
    rows = len(arrays[0]) if arrays else 0
    most = rows // 2
    if not most:
        return None
    codes = np.zeros(rows, np.int64)
    numbers = 1
    for array in arrays:
        if not _is_counted(array.type):
            return None
        encoded = (array.view(pa.int64()) if pa.types.is_float64(array.type) else array).dictionary_encode()
        if len(encoded.dictionary) > most:
            return None
        numbers *= len(encoded.dictionary) + 1
        if numbers > _MOST_CODES:
            return None
        known = np.where(flags(array.is_valid()), integers(encoded.indices, rows) + 1, 0)
        codes = codes * (len(encoded.dictionary) + 1) + known
    encoded = from_numpy(codes).dictionary_encode()
    if len(encoded.dictionary) > most:
        return None
    first = np.zeros(len(encoded.dictionary), np.int64)
    first[integers(encoded.indices, rows)] = np.arange(rows)  # some row of each
    return first, encoded.indices


def _is_counted(type_: pa.DataType) -> bool:
    is_ = pa.types
    return bool(is_.is_string(type_) or is_.is_large_string(type_) or is_.is_integer(type_) or is_.is_boolean(type_)
                or is_.is_float64(type_))  # fmt: skip
