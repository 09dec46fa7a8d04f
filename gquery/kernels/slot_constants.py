"""Constants of a kernel that depend on slots: its text does not, and they are made again for other values.

Where a kernel is written for itself, and not kept for other values, the slots are pinned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gquery.device.buffer import Buffer
from gquery.expression.expr import Expr, Literal
from gquery.expression.slots import decided, is_recorded, pin, shown
from gquery.expression.types import INT64, Bounds, Kind, type_bounds
from gquery.functions.casts import is_between
from gquery.kernels import ir
from gquery.kernels.bindings import Constant, Content, SlotConstant, TextMatches
from gquery.kernels.code import Code
from gquery.kernels.kernel import ElementType
from gquery.kernels.values import Value, ValueProperties, value_properties


def number_of(
    make: Callable[..., int | float], literals: tuple[Literal, ...], code: Code, *given: Any
) -> ir.Expression:
    """The parameter for the number that ``make`` computes of the literals' values and ``given``: of one type for all values."""
    name = code.constant(make(*map(shown, literals), *given))
    note_slots(name, _number, make, literals, given, code)
    return name


def array_of(
    make: Callable[..., Buffer], literals: tuple[Literal, ...], code: Code, type_: ElementType, *given: Any
) -> ir.Name:
    """The parameter that points to the array that ``make`` computes likewise: of one type for all values, of any length."""
    name = code.pointer(type_, Content(make(*map(shown, literals), *given)), "t")
    note_slots(name, _content, make, literals, given, code)
    return name


def string_of(make: Callable[..., bytes], literals: tuple[Literal, ...], code: Code, *given: Any) -> ir.Name:
    """A STR of the bytes that ``make`` computes likewise; they live in a parameter's buffer."""
    address = address_of(make, literals, code, *given)
    length = number_of(_length, literals, code, make, given)
    return code.let(code.call("make_str", address, length))


def address_of(make: Callable[..., bytes], literals: tuple[Literal, ...], code: Code, *given: Any) -> ir.Name:
    """The parameter for where such bytes lie."""
    address = code.scalar(Content(buffer_of(make(*map(shown, literals), *given))), "i64", "a")
    note_slots(address, _text, make, literals, given, code)
    return address


def operand(e: Expr, code: Code) -> Value | None:
    """A slot as one side of a comparison: its value is part of neither the text nor what is known. None where it has to be
    looked at, and for what is no slot."""
    if not (isinstance(e, Literal) and is_recorded(e)) or code.recall(e) is not None:
        return None
    value = _operand(e, code)
    return value if value is None or code.is_thrown_away else code.remember(e, value)


def _operand(e: Literal, code: Code) -> Value | None:
    bounds = type_bounds(e.dtype)
    if e.dtype.is_string:
        return Value(string_of(str.encode, (e,), code), None, value_properties(e.dtype, nullable=False))
    if e.dtype.is_float:
        return Value(number_of(float, (e,), code), None, value_properties(e.dtype, nullable=False))
    if not e.dtype.is_exact or e.dtype.kind is Kind.BOOLEAN or bounds is None:
        return None
    if not bounds.within(INT64) and not decided(is_between, (e,), INT64.low, INT64.high):
        return None
    known = Bounds(max(bounds.low, INT64.low), min(bounds.high, INT64.high))
    return Value(number_of(int, (e,), code), None, ValueProperties(e.dtype, known, False))


def buffer_of(text: bytes) -> Buffer:
    """Bytes as a parameter's buffer: at least one, as an empty array has no address."""
    data = np.frombuffer(text, dtype=np.uint8) if text else np.zeros(1, dtype=np.uint8)
    return Buffer(data.copy())


def note_slots(
    name: ir.Expression,
    bind: Callable[..., Constant | Content | TextMatches],
    make: Callable[..., Any],
    literals: tuple[Literal, ...],
    given: tuple[Any, ...],
    code: Code,
) -> None:
    """Say what a parameter is made of: ``bind`` makes its binding of the literals' values, ``make`` and ``given``."""
    if not any(map(is_recorded, literals)):
        return
    if code.keeps_slots and isinstance(name, ir.Name):
        code.slots[name.id] = SlotConstant(bind, literals, (make, given))
    else:
        pin(literals)


def _number(*given: Any) -> Constant:
    *values, make, more = given
    return Constant(make(*values, *more))


def _content(*given: Any) -> Content:
    *values, make, more = given
    return Content(make(*values, *more))


def _text(*given: Any) -> Content:
    *values, make, more = given
    return Content(buffer_of(make(*values, *more)))


def _length(*given: Any) -> int:
    *values, make, more = given
    return len(make(*values, *more))
