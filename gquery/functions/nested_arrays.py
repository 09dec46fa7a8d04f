"""Arrow's arrays of structs, and nested arrays in one Arrow type: of what one logical type has several (text with offsets of 32
or 64 bits, fields under other names) meets in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.functions.vectors import flags, integers


def bitmap_of(ok: Any) -> pa.Buffer | None:
    """Arrow's bitmap of booleans; None where all are there."""
    return None if ok is None or ok.all() else pa.py_buffer(np.packbits(ok, bitorder="little"))


def struct_array(children: Sequence[pa.Array], ok: Any = None, names: Sequence[str] = ()) -> pa.Array:
    """Structs of these fields; NULL where ``ok`` is False. Fields have numbers for names where none are given."""
    names = names or [str(n) for n in range(len(children))]
    type_ = pa.struct([pa.field(name, c.type) for name, c in zip(names, children, strict=True)])
    return counted(
        pa.Array.from_buffers(type_, len(children[0]), [bitmap_of(ok)], children=[counted(c) for c in children])
    )


def counted(array: pa.Array) -> pa.Array:
    """The array, whose NULLs have been counted: PyArrow 25 ends the process where a map is made of keys of which it does not know
    that none is NULL."""
    _ = array.null_count
    return array


def fields_of(structs: pa.Array) -> list[pa.Array]:
    """The fields of structs, NULL where a struct is."""
    return list(structs.flatten())


def as_type(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """An array in another Arrow type of the same logical type: fields by place, whatever their names."""
    is_ = pa.types
    if array.type == type_:
        return array
    if is_.is_null(array.type) or is_.is_null(type_):  # of no type: there are none, or all are NULL
        return pa.nulls(len(array), type_)
    if is_.is_struct(type_):
        children = [counted(as_type(array.field(n), type_.field(n).type)) for n in range(type_.num_fields)]
        return counted(pa.Array.from_buffers(type_, len(array), [_validity(array)], children=children))
    if not is_.is_nested(type_):
        return array.cast(type_)
    wanted = pa.struct([type_.key_field, type_.item_field]) if is_.is_map(type_) else type_.value_type
    offsets = integers(array.offsets, len(array) + 1)
    ends = pa.py_buffer(np.ascontiguousarray(offsets, np.int64 if is_.is_large_list(type_) else np.int32))
    children = [as_type(array.values, wanted)]
    return pa.Array.from_buffers(type_, len(array), [_validity(array), ends], children=children)


def _validity(array: pa.Array) -> pa.Buffer | None:
    if not array.null_count:
        return None
    return bitmap_of(flags(array.is_valid()))


def widest(types: Sequence[pa.DataType]) -> pa.DataType:
    """The Arrow type that values of one logical type in these fit in."""
    is_ = pa.types
    known = [t for t in types if not is_.is_null(t)]
    if not known:
        return pa.null()
    first = known[0]
    if all(t == first for t in known):
        return first
    if is_.is_struct(first):
        inner = [widest([t.field(n).type for t in known]) for n in range(first.num_fields)]
        return pa.struct([pa.field(first.field(n).name, t) for n, t in enumerate(inner)])
    if is_.is_map(first):
        return pa.map_(widest([t.key_type for t in known]), widest([t.item_type for t in known]))
    if is_.is_nested(first):
        inner_type = widest([t.value_type for t in known])
        return pa.large_list(inner_type) if any(map(is_.is_large_list, known)) else pa.list_(inner_type)
    return next((t for t in known if is_.is_large_string(t)), first)
