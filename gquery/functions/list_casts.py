"""Casts of lists: to lists of another type, element by element, and to text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from gquery.errors import ConversionError
from gquery.expression.types import DType, Kind
from gquery.functions import cast_to_text, text_casts
from gquery.functions.list_arrays import Lists, list_array, lists_of
from gquery.functions.vectors import flags, from_numpy
from gquery.runtime.arrow_compute import pc

_QUOTED = r"""[\[\]{}(),:='"]|^\s|\s$|^$|^(?i:null)$"""


def cast_lists(array: pa.Array, source: DType, target: DType, to: pa.DataType, is_tried: bool) -> pa.Array:
    """``CAST(array AS target)``, where ``source`` or the target is a LIST; ``to`` is the target's Arrow type."""
    lists = lists_of(array, len(array))
    assert source.element is not None
    if target.is_string:
        return _text(lists, source.element)
    assert target.element is not None
    made = cast_elements(lists.flat, source.element, target.element, to.value_type, is_tried)
    return list_array(made, lists.lengths, lists.ok)


def cast_elements(elements: pa.Array, source: DType, target: DType, to: pa.DataType, is_tried: bool) -> pa.Array:
    """Elements in another type. What has no value there is an error, or NULL where it is ``is_tried``."""
    if source == target or source.kind is Kind.NULL:
        return elements if elements.type == to else elements.cast(to)
    if target.is_list:
        return cast_lists(elements, source, target, to, is_tried)
    if target.is_string:
        return _text(lists_of(elements, len(elements)), source.element) if source.element else (
            cast_to_text.to_text(elements, source)
        )  # fmt: skip
    if source.is_string:
        made = text_casts.from_text(elements, target, to)
        _check(made, elements, target, is_tried)
        return made
    return _number(elements, source, target, to, is_tried)


def _number(elements: pa.Array, source: DType, target: DType, to: pa.DataType, is_tried: bool) -> pa.Array:
    if source.is_float and target.is_integer:
        elements = pc.round(elements, round_mode="half_to_even")
    elif source.is_decimal and target.is_integer:
        elements = pc.round(elements, round_mode="half_towards_infinity")
    elif source.kind is Kind.BOOLEAN and (target.is_decimal or target.is_float):
        elements = elements.cast(pa.int8())
    if target.is_decimal and source.scale > target.scale:
        elements = pc.round(elements, target.scale, round_mode="half_towards_infinity")
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


def _text(lists: Lists, element: DType) -> pa.Array:
    """Lists as DuckDB writes them: ``[1, NULL, 3]``; texts in quotes where they could be read as something else."""
    flat = lists.flat
    if element.is_list:
        assert element.element is not None
        texts = _text(lists_of(flat, len(flat)), element.element)
    elif element.kind is Kind.NULL:
        texts = pa.nulls(len(flat), pa.string())
    elif element.is_string:
        texts = _quoted(flat)
    else:
        texts = cast_to_text.to_text(flat, element)
    joined = joined_lists(lists, pc.fill_null(texts, "NULL"), ", ")
    opened = pc.binary_join_element_wise("[", joined, "]", "")
    return pc.if_else(from_numpy(lists.ok), opened, pa.nulls(1, opened.type)[0])


def _quoted(texts: pa.Array) -> pa.Array:
    odd = pc.match_substring_regex(texts, _QUOTED)
    escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), "'", "\\'")
    return pc.if_else(odd, pc.binary_join_element_wise("'", escaped, "'", ""), texts)


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
    return pc.if_else(from_numpy(lists.ok), pc.binary_join(whole, separator), pa.nulls(1, own.type)[0])
