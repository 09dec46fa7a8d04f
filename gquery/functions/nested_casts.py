"""Casts of nested values: to those of other types, element by element and field by field, and to text."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.errors import ConversionError
from gquery.expression.nested_types import struct_of
from gquery.expression.types import JSON, UUID, VARCHAR, DType, Kind
from gquery.functions import binary, cast_to_text, text_casts
from gquery.functions.casts import fields_in
from gquery.functions.list_arrays import Lists, list_array, lists_of, plain
from gquery.functions.nested_arrays import as_type, fields_of, struct_array
from gquery.functions.vectors import each_value, flags, from_numpy, joined_texts, scalar_text, text_like, value_array
from gquery.runtime.arrow_compute import pc

_QUOTED = r"""[\[\]{}(),:='"]|^\s|\s$|^$|^(?i:null)$"""


def cast_nested(array: pa.Array, source: DType, target: DType, to: pa.DataType, is_tried: bool) -> pa.Array:
    """``CAST(array AS target)``, where ``source`` or the target is nested; ``to`` is the target's Arrow type."""
    if source.kind is Kind.BLOB and target.kind is Kind.BLOB:
        return array.cast(to)
    if source == JSON and target.kind is not Kind.BLOB:
        return import_module("gquery.functions.tojson").from_json(array, target, to, is_tried)  # late, and it rests on casts
    if target.is_string:
        return binary.to_texts(array) if source.kind is Kind.BLOB else text_of(array, source)
    if target.kind is Kind.BLOB:
        made = binary.from_texts(array)
        _check(made, array, target, is_tried)
        return made.cast(to)
    if source.is_string:
        return _from_text(array, target, to, is_tried)
    if target.is_struct:
        return _structs(array, source, target, to, is_tried)
    lists = lists_of(array, len(array))
    if source.kind is Kind.MAP:
        inner, wanted = (struct_of(t.fields) for t in (source, target))
        entries = cast_elements(lists.flat, inner, wanted, pa.struct([to.key_field, to.item_field]), is_tried)
        return as_type(list_array(entries, lists.lengths, lists.ok), to)
    assert source.element is not None and target.element is not None
    made = cast_elements(lists.flat, source.element, target.element, to.value_type, is_tried)
    return list_array(made, lists.lengths, lists.ok)


def _structs(array: pa.Array, source: DType, target: DType, to: pa.DataType, is_tried: bool) -> pa.Array:
    """Structs by the names of their fields, or by place where one has no names; NULL in fields that are new."""
    fields, made = fields_of(array), []
    for n, place in enumerate(fields_in(source, target)):
        wanted = to.field(n).type
        if place is None:
            made.append(pa.nulls(len(array), wanted))
        else:
            types = source.fields[place][1], target.fields[n][1]
            made.append(as_type(cast_elements(plain(fields[place]), *types, wanted, is_tried), wanted))
    return as_type(struct_array(made, flags(array.is_valid())), to)


def _from_text(texts: pa.Array, target: DType, to: pa.DataType, is_tried: bool) -> pa.Array:
    """Texts as lists, structs or maps: the texts of their parts are cast, all together."""
    from gquery.functions.maps import are_keys, map_array
    from gquery.functions.nested_texts import list_parts, pairs, struct_parts

    names = [name for name, _ in target.fields]
    is_map = target.kind is Kind.MAP
    rows: list[Any] = []
    for text in texts.to_pylist():
        parts = (
            None if text is None
            else struct_parts(text, names) if target.is_struct
            else list_parts(text) if not is_map
            else found if (found := pairs(text, "=")) is not None and all(k is not None for k, _ in found)
            else None
        )  # fmt: skip
        if text is not None and parts is None and not is_tried:
            raise ConversionError(f"could not convert string {text!r} to {target}")
        rows.append(parts)
    ok = np.array([r is not None for r in rows], np.bool_)

    def made(parts: list[str | None], dtype: DType, wanted: pa.DataType) -> pa.Array:
        return as_type(cast_elements(value_array(parts, pa.string()), VARCHAR, dtype, wanted, is_tried), wanted)

    if target.is_struct:
        fields = [
            made([None if r is None else r[n] for r in rows], t, to.field(n).type)
            for n, (_, t) in enumerate(target.fields)
        ]
        return as_type(struct_array(fields, ok), to)
    lengths = np.array([len(r or ()) for r in rows], np.int64)
    flat = [part for r in rows for part in r or ()]
    if not is_map:
        assert target.element is not None
        return as_type(list_array(made(flat, target.element, to.value_type), lengths, ok), to)
    keys, values = (
        made([part[n] for part in flat], t, f.type)
        for n, ((_, t), f) in enumerate(zip(target.fields, (to.key_field, to.item_field), strict=True))
    )
    if not are_keys(keys, np.repeat(np.arange(len(rows)), lengths), len(rows)).all():
        raise ConversionError(f"the keys of a {target} have to differ, and none can be NULL")
    return as_type(map_array(keys, values, lengths, ok), to)


def cast_elements(elements: pa.Array, source: DType, target: DType, to: pa.DataType, is_tried: bool) -> pa.Array:
    """Elements in another type. What has no value there is an error, or NULL where it is ``is_tried``."""
    if source == target or source.kind is Kind.NULL:
        return as_type(elements, to)
    if target.is_nested:
        return cast_nested(elements, source, target, to, is_tried)
    if target == UUID:
        from gquery.functions.uuid import canonical  # few lists have any

        made = each_value(elements, canonical, pa.string())
        _check(made, elements, target, is_tried)
        return made.cast(to)
    if target.is_string:
        return text_of(elements, source) if source.is_nested else cast_to_text.to_text(elements, source)
    if source.is_string:
        made = text_casts.from_text(elements, target, to)
        _check(made, elements, target, is_tried)
        return made
    return _other(elements, source, target, to, is_tried)


def _other(elements: pa.Array, source: DType, target: DType, to: pa.DataType, is_tried: bool) -> pa.Array:
    """Numbers and truths as each other, days and moments as each other."""
    if all(t.is_numeric or t.kind is Kind.BOOLEAN for t in (source, target)):
        from gquery.functions.number_casts import cast_numbers

        made = cast_numbers(elements, source, target, to)
        if not is_tried and made.null_count > elements.null_count:
            failed = int(np.flatnonzero(flags(made.is_null()) & flags(elements.is_valid()))[0])
            raise ConversionError(f"an element of a list has no value of type {target}: {elements[failed]}")
        return made
    try:
        return elements.cast(to)
    except pa.ArrowInvalid as error:
        if not is_tried:
            raise ConversionError(f"an element of a list has no value of type {target}: {error}") from None
    each = [_tried(elements[n : n + 1], to) for n in range(len(elements))]
    return pa.concat_arrays(each) if each else pa.nulls(0, to)


def _tried(one: pa.Array, to: pa.DataType) -> pa.Array:
    try:
        return one.cast(to)
    except pa.ArrowInvalid:
        return pa.nulls(1, to)


def _check(made: pa.Array, elements: pa.Array, target: DType, is_tried: bool) -> None:
    if is_tried or made.null_count <= elements.null_count:
        return
    failed = flags(made.is_null()) & flags(elements.is_valid())
    text = elements[int(np.flatnonzero(failed)[0])].as_py()
    raise ConversionError(f"could not convert string {text!r} to {target}")


# ---- text ------------------------------------------------------------------------------------------------------------


def text_of(array: pa.Array, dtype: DType) -> pa.Array:
    """Nested values as DuckDB writes them: ``[1, NULL]``, ``{'a': 1}``, ``(1, 2)``, ``{k=1}``; texts in quotes where they could
    be read as something else."""
    if dtype.is_struct:
        made = _struct_text(
            [_inner_text(f, t) for f, (_, t) in zip(fields_of(array), dtype.fields, strict=True)], dtype
        )
        return pc.if_else(array.is_valid(), made, pa.nulls(1, made.type)[0])
    lists = lists_of(array, len(array))
    if dtype.kind is Kind.MAP:
        key, value = (_inner_text(f, t) for f, (_, t) in zip(fields_of(lists.flat), dtype.fields, strict=True))
        texts, ends = pc.binary_join_element_wise(key, value, text_like("=", key)), "{}"
    else:
        assert dtype.element is not None
        texts, ends = _inner_text(lists.flat, dtype.element), "[]"
    inside = joined_lists(lists, texts, ", ")
    opened = joined_texts(text_like(ends[0], inside), inside, text_like(ends[1], inside))
    return pc.if_else(from_numpy(lists.ok), opened, pa.nulls(1, opened.type)[0])


def _struct_text(fields: Sequence[pa.Array], dtype: DType) -> pa.Array:
    escaped = [name.replace("\\", "\\\\").replace("'", "\\'") for name, _ in dtype.fields]
    is_named = any(escaped)
    parts: list[Any] = [scalar_text("{" if is_named else "(")]
    for n, text in enumerate(fields):
        parts += [scalar_text((", " if n else "") + (f"'{escaped[n]}': " if is_named else "")), text]
    return pc.binary_join_element_wise(*parts, scalar_text("}" if is_named else ")"), scalar_text(""))


def _inner_text(array: pa.Array, dtype: DType) -> pa.Array:
    """The texts of values within others; none is NULL."""
    if dtype.is_nested:
        texts = text_of(array, dtype)
    elif dtype.kind is Kind.NULL:
        texts = pa.nulls(len(array), pa.string())
    elif dtype.is_string:
        texts = _quoted(plain(array).cast(pa.string()))
    else:
        texts = cast_to_text.to_text(plain(array), dtype)
        texts = texts if dtype.is_numeric or dtype.kind is Kind.BOOLEAN else _quoted(texts)
    return pc.fill_null(texts, text_like("NULL", texts))


def _quoted(texts: pa.Array) -> pa.Array:
    odd = pc.match_substring_regex(texts, _QUOTED)
    escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), "'", "\\'")
    quote = text_like("'", texts)
    return pc.if_else(odd, joined_texts(quote, escaped, quote), texts)


def joined_lists(lists: Lists, texts: pa.Array, separator: str) -> pa.Array:
    """The texts of each list, one for each element, with a separator between them. NULL is left out, and NULL for a list."""
    kept = flags(texts.is_valid())
    rows, own = lists.rows[kept], texts.filter(from_numpy(kept)) if not kept.all() else texts
    counts = np.bincount(rows, minlength=len(lists))
    offsets = np.zeros(len(lists) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    whole = pa.ListArray.from_arrays(
        pa.Array.from_buffers(pa.int32(), len(offsets), [None, pa.py_buffer(offsets)]), own
    )
    return pc.if_else(from_numpy(lists.ok), pc.binary_join(whole, text_like(separator, whole.values)), pa.nulls(1, own.type)[0])
