"""Lists, structs and maps whose parts lie in an encoding of Arrow's (dictionaries, runs, views) or in units and widths that are
none of ours, as functions take them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.columns.arrow_buffers import arrow_buffer, bits_of, numpy_name, values_of
from gquery.runtime.arrow_compute import take


def plain_type(type_: pa.DataType) -> pa.DataType:
    """The Arrow type of the same values without encodings; the type itself where there are none. Nanoseconds stay: they need not
    fit microseconds.

    >>> plain_type(pa.list_view(pa.dictionary(pa.int8(), pa.string())))
    ListType(list<item: string>)
    """
    is_ = pa.types
    if is_.is_dictionary(type_) or is_.is_run_end_encoded(type_):
        return plain_type(type_.value_type)
    if is_.is_map(type_):
        key, item = _plain_field(type_.key_field), _plain_field(type_.item_field)
        return type_ if (key, item) == (type_.key_field, type_.item_field) else pa.map_(key, item)
    if is_.is_list(type_) or is_.is_large_list(type_) or is_.is_list_view(type_) or is_.is_large_list_view(type_):
        field = _plain_field(type_.value_field)
        is_large = is_.is_large_list(type_) or is_.is_large_list_view(type_)
        made = pa.large_list(field) if is_large else pa.list_(field)
        return type_ if made == type_ else made
    if is_.is_fixed_size_list(type_):
        return pa.list_(_plain_field(type_.value_field), type_.list_size)
    if is_.is_struct(type_):
        fields = [_plain_field(f) for f in type_]
        return type_ if fields == list(type_) else pa.struct(fields)
    if is_.is_timestamp(type_) and type_.unit in ("s", "ms"):
        return pa.timestamp("us", type_.tz)
    if type_ == pa.string_view():
        return pa.string()
    if is_.is_date64(type_):
        return pa.date32()
    if is_.is_float16(type_):
        return pa.float32()
    if is_.is_decimal(type_) and not is_.is_decimal128(type_) and type_.precision <= 38 and type_.scale >= 0:
        return pa.decimal128(type_.precision, type_.scale)
    return type_


def is_encoded(type_: pa.DataType) -> bool:
    """Whether there are runs in a type, or a dictionary of an extension's values: Arrow neither copies nor takes these within
    others, nor makes empty ones."""
    return any(
        pa.types.is_run_end_encoded(t)
        or (pa.types.is_dictionary(t) and isinstance(t.value_type, pa.BaseExtensionType))
        for t in _parts(type_)
    )


def is_wrapped(type_: pa.DataType) -> bool:
    """Whether values of a type that gquery computes with lie in a layout that is none of theirs."""
    if pa.types.is_dictionary(type_):
        return is_wrapped(type_.value_type)
    return bool(pa.types.is_run_end_encoded(type_) or isinstance(type_, pa.BaseExtensionType))


def _parts(type_: pa.DataType) -> Iterator[pa.DataType]:
    """A type and those within it."""
    yield type_
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        yield from _parts(type_.value_type)
    elif not isinstance(type_, pa.BaseExtensionType):
        for n in range(type_.num_fields):
            yield from _parts(type_.field(n).type)


def plain_array(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """An array in the `plain_type` of its own. pa.ArrowInvalid for a value that it has not."""
    is_, own = pa.types, array.type
    if own == type_:
        return array
    if is_.is_run_end_encoded(own):
        return plain_array(unrolled(array), type_)
    if is_.is_dictionary(own):
        return _taken(plain_array(array.dictionary, type_), array.indices)
    if is_.is_list_view(own) or is_.is_large_list_view(own):
        return _of_views(array, type_)
    if is_.is_struct(own):
        fields = [plain_array(array.field(n), f.type) for n, f in enumerate(type_)]
        return pa.StructArray.from_arrays(fields, fields=list(type_), mask=array.is_null())
    if is_.is_map(own):
        parts = [plain_array(array.keys, type_.key_type), plain_array(array.items, type_.item_type)]
        return _around(array, type_, pa.StructArray.from_arrays(parts, fields=[type_.key_field, type_.item_field]))
    if is_.is_fixed_size_list(own):
        first, count = array.offset * own.list_size, len(array) * own.list_size
        inner = plain_array(array.values.slice(first, count), type_.value_type)
        ok = bits_of(array, 0)
        valid = None if ok.all() else pa.py_buffer(np.packbits(ok, bitorder="little"))
        return pa.Array.from_buffers(type_, len(array), [valid], -1, 0, [inner])
    if is_.is_list(own) or is_.is_large_list(own):
        return _around(array, type_, plain_array(array.values, type_.value_type))
    return array.cast(type_)


def unrolled(array: Any) -> pa.Array:
    """Run-end encoded values, one a row. (Arrow's own ``run_end_decode`` has neither texts in views nor dictionaries, before 26
    no nested values.)"""
    first = array.find_physical_offset()
    count = array.find_physical_length()
    ends = values_of(array.run_ends, numpy_name(array.run_ends.type))[first : first + count].astype(np.int64) - array.offset
    rows = np.repeat(np.arange(first, first + count), np.diff(np.minimum(ends, len(array)), prepend=0))
    values = array.values if array.values.type != pa.string_view() else array.values.cast(pa.string())
    return _taken(values, pa.Array.from_buffers(pa.int64(), len(rows), [None, arrow_buffer(rows)], 0))


def _taken(values: Any, rows: pa.Array) -> pa.Array:
    """The values at some places, of extensions and views too. (Arrow's own `array_take` has no texts in views.)"""
    type_ = values.type
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, _taken(values.storage, rows))
    if type_ in (pa.string_view(), pa.binary_view()):
        plain = pa.large_string() if type_ == pa.string_view() else pa.large_binary()
        return take(values.cast(plain), rows).cast(type_)
    try:
        return take(values, rows)
    except pa.ArrowNotImplementedError:  # such views within others
        parts = [pa.nulls(1, type_) if r is None else values.slice(r, 1) for r in rows.to_pylist()]
        return pa.concat_arrays(parts) if parts else values.slice(0, 0)


def _of_views(array: Any, type_: pa.DataType) -> pa.Array:
    """List views as lists. (Arrow 26's own cast gives a NULL a length.)"""
    ok = bits_of(array, 0).view(np.bool_)
    sizes = np.where(ok, values_of(array.sizes, numpy_name(array.sizes.type)), 0).astype(np.int64)
    ends = np.cumsum(sizes)
    starts = np.where(ok, values_of(array.offsets, numpy_name(array.offsets.type)), 0)
    places = np.repeat(starts - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)
    rows = pa.Array.from_buffers(pa.int64(), len(places), [None, arrow_buffer(places.astype(np.int64))], 0)
    values = _taken(plain_array(array.values, type_.value_type), rows)
    offsets = np.concatenate([[0], ends]).astype(np.int32 if pa.types.is_list(type_) else np.int64)
    valid = None if ok.all() else pa.py_buffer(np.packbits(ok, bitorder="little"))
    return pa.Array.from_buffers(type_, len(array), [valid, pa.py_buffer(offsets)], -1, 0, [values])


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def _around(array: Any, type_: pa.DataType, inner: pa.Array) -> pa.Array:
    """Lists or maps of the lengths of others, around other values."""
    valid, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(type_, len(array), [valid, offsets], -1, array.offset, [inner])
