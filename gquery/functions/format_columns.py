"""`format` and `printf` with one pattern for all rows: each specification writes its whole column, and the pieces are joined.

Most specifications of numbers say the same to Python, which writes all values of a column in one call. Others are written once
for each value that differs (`format_specs.written`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.functions.format_specs import Place, Spec, written
from gquery.functions.vectors import (
    Vector,
    alike,
    array_of,
    doubles,
    from_numpy,
    integers,
    is_constant,
    joined_texts,
    null,
    scalar_text,
    size_of,
    value_array,
    with_nulls_of,
)
from gquery.runtime.arrow_compute import pc

Parts = tuple[tuple[str, int, Spec | None, int], ...]
"""Texts before the places, the argument of each, how it is written, and the bits that it is cut to (0: all)."""
_INTEGERS = {"": "d", "d": "d", "i": "d", "u": "d", "x": "x", "X": "X", "o": "o", "b": "b"}
_PADS = {"<": "utf8_rpad", ">": "utf8_lpad", "^": "utf8_center"}  # of Arrow
_END = 10  # the byte behind each value that Python writes


def filled_in(read: Callable[[], Parts], values: tuple[Vector, ...]) -> pa.Array | None:
    """The texts of a pattern with its values, NULL where one of them is; None where a part needs a look at each row: widths among
    the arguments, numbers that are cut, arguments that are not there. A pattern that no row needs is not read."""
    rows = size_of(*values)
    values = tuple(with_nulls_of(v, *values) if isinstance(v, pa.Array) else v for v in values)
    if all(v.null_count == rows for v in values if isinstance(v, pa.Array)):
        return pa.nulls(rows, pa.string())
    parts = read()
    used = [(number, spec, bits) for _, number, spec, bits in parts if spec is not None]
    if any(bits or not 0 <= number < len(values) or _has_places(spec) for number, spec, bits in used):
        return None
    pieces: list[Vector] = []
    for text, number, spec, _ in parts:
        if text:
            pieces.append(scalar_text(text))
        if spec is not None:
            pieces.append(_piece(spec, values[number]))
    if not any(isinstance(p, pa.Array) for p in pieces):
        pieces.append(array_of(scalar_text(""), rows))
    return with_nulls_of(joined_texts(*alike(pieces)), *values)


def _has_places(spec: Spec) -> bool:
    return isinstance(spec.width, Place) or isinstance(spec.precision, Place)


def _piece(spec: Spec, values: Vector) -> Vector:
    """A column as a specification writes it, or the text of a constant."""
    width, precision = spec.width, spec.precision
    assert isinstance(width, int) and not isinstance(precision, Place)
    if is_constant(values):
        return scalar_text(written(spec, values.as_py(), width, precision))
    is_plain = not (spec.sign or spec.zeros or spec.alternate or spec.separator or width or precision is not None)
    type_ = values.type
    if pa.types.is_string(type_) and spec.kind in ("", "s"):
        if is_plain:
            return values
        if (made := _text_column(spec, values, width, precision)) is not None:
            return made
    if pa.types.is_integer(type_):
        if is_plain and spec.kind in ("", "d"):
            return values.cast(pa.string())
        template = _integer_template(spec, width, precision)
        if template is not None:
            return _by_python(template, _numbers(spec, values), values)
    if pa.types.is_float64(type_) and (template := _float_template(spec, width, precision)) is not None:
        numbers = doubles(values)
        is_finite = np.isfinite(numbers)
        made = _by_python(template, np.where(is_finite, numbers, 0.0), values)
        if is_finite.all():
            return made
        others = _each_value(spec, pc.if_else(from_numpy(is_finite), null(type_), values), width, precision)
        return pc.if_else(from_numpy(is_finite), made, others)
    return _each_value(spec, values, width, precision)


def _text_column(spec: Spec, values: pa.Array, width: int, precision: int | None) -> pa.Array | None:
    """A column of texts cut to a precision and filled up to a width; None where the specification is one of numbers."""
    align = spec.align or (">" if spec.is_printf else "<")
    if align not in _PADS or ((spec.sign or spec.zeros or spec.alternate) and not spec.is_printf):
        return None
    made = values if precision is None else pc.utf8_slice_codeunits(values, 0, precision)
    return getattr(pc, _PADS[align])(made, width, padding=spec.fill) if width else made


def _numbers(spec: Spec, values: pa.Array) -> Any:
    """Integers as Python writes them: those of printf without a sign as 64 bits."""
    numbers = integers(values, len(values))
    is_unsigned = (spec.is_printf and spec.kind in "uxXob" and spec.kind) or values.type == pa.uint64()
    return numbers.view(np.uint64) if is_unsigned else numbers


def _integer_template(spec: Spec, width: int, precision: int | None) -> str | None:
    """A specification of integers as one of Python's; None where it is not the same."""
    if spec.kind not in _INTEGERS or precision is not None or spec.alternate or (not spec.is_printf and spec.kind in ("i", "u")):
        return None
    if spec.separator not in ("", ",") or (spec.separator and (width or _INTEGERS[spec.kind] != "d")):
        return None
    return _aligned(spec, width, f"{spec.separator}{_INTEGERS[spec.kind]}")


def _float_template(spec: Spec, width: int, precision: int | None) -> str | None:
    """The same of doubles."""
    has_digits = precision is not None and spec.kind in ("f", "F", "e", "E", "g", "G") and precision > 0
    is_shortest = precision is None and not spec.kind
    if spec.alternate or spec.separator or not (has_digits or is_shortest):
        return None
    return _aligned(spec, width, f".{precision}{spec.kind}" if has_digits else "")


def _aligned(spec: Spec, width: int, kind: str) -> str | None:
    """Where a number stands in its width: what fills it up stands behind the sign where it is zeros or ``=``."""
    sign = spec.sign.replace("-", "")
    if spec.fill in "{}":
        return None
    if not width:
        return f"{sign}{kind}"
    if spec.zeros:
        return f"{sign}0{width}{kind}"
    return f"{spec.fill}{spec.align or '>'}{sign}{width}{kind}"


def _by_python(template: str, numbers: Any, like: pa.Array) -> pa.Array:
    """All numbers of a column as Python writes them, NULL where ``like`` has it."""
    every = (f"{{:{template}}}\n" * len(numbers)).format(*numbers.tolist())
    data = np.frombuffer(every.encode(), np.uint8)
    (ends,) = np.nonzero(data == _END)
    offsets = np.zeros(len(numbers) + 1, np.int64)
    offsets[1:] = ends - np.arange(len(numbers))
    made = pa.LargeStringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(data[data != _END]))
    return with_nulls_of(made.cast(pa.string()), like)


def _each_value(spec: Spec, values: pa.Array, width: int, precision: int | None) -> pa.Array:
    """A column written once for each value that differs."""
    keys = values.view(pa.int64()) if pa.types.is_float64(values.type) else values  # as 0.0 and -0.0 are two
    encoded = keys.dictionary_encode()
    each = encoded.dictionary.view(values.type) if keys is not values else encoded.dictionary
    made = [None if v is None else written(spec, v, width, precision) for v in each.to_pylist()]
    return value_array(made, pa.string()).take(encoded.indices)


__all__ = ["Parts", "filled_in"]
