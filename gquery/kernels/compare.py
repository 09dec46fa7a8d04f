"""Comparisons, IN, and constants of text.

Strings of one sorted dictionary are compared by their codes, and against a constant by the code that the constant has or
would have; the kernel then tests an integer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gquery import tuning
from gquery.columns.table import Dictionary
from gquery.device.buffer import Buffer
from gquery.expression.expr import Literal
from gquery.expression.slots import pin
from gquery.expression.types import BOOLEAN, INT64, Register, type_bounds
from gquery.kernels import dictionaries, ir
from gquery.kernels.bindings import Content
from gquery.kernels.code import Code
from gquery.kernels.number_registers import as_f64, as_i128, wide_constant
from gquery.kernels.slot_constants import address_of, array_of, buffer_of, number_of, string_of
from gquery.kernels.values import Value, fits_int64, value_properties

COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from", "is_not_distinct_from"}


def comparison(function: str, a: Value, b: Value, code: Code) -> Value:
    """Compare two values of one logical type; IS [NOT] DISTINCT FROM takes NULLs as equal."""
    if function in ("is_distinct_from", "is_not_distinct_from"):
        return _distinct(a, b, function == "is_distinct_from", code)
    return Value(
        code.let(test(function, a, b, code)),
        code.both(a.ok, b.ok),
        value_properties(BOOLEAN, nullable=bool(a.ok or b.ok)),
    )


def test(function: str, a: Value, b: Value, code: Code) -> ir.Expression:
    """A comparison, NULLs left aside."""
    a, b = comparable(a, b, code)
    match a.properties.register:
        case Register.BOOL:
            return code.call(f"{function}_i64", code.call("from_bool", a.var), code.call("from_bool", b.var))
        case register:
            return code.call(f"{function}_{register.value}", a.var, b.var)


def comparable(a: Value, b: Value, code: Code) -> tuple[Value, Value]:
    """Two values in one register class, so that comparing registers compares values."""
    if a.properties.dtype.is_string:
        if a.properties.dictionary is not None and a.properties.dictionary is b.properties.dictionary:
            return a, b
        return dictionaries.as_string(a, code), dictionaries.as_string(b, code)
    kinds = {a.properties.register, b.properties.register}
    if kinds == {Register.I64, Register.I128}:
        return (
            Value(as_i128(a, code), a.ok, a.properties if a.properties.register is Register.I128 else b.properties),
            Value(as_i128(b, code), b.ok, b.properties if b.properties.register is Register.I128 else a.properties),
        )
    if Register.F64 in kinds and len(kinds) > 1:
        return Value(as_f64(a, code), a.ok, value_properties(a.properties.dtype)), Value(
            as_f64(b, code), b.ok, value_properties(b.properties.dtype)
        )
    return a, b


def _distinct(a: Value, b: Value, negated: bool, code: Code) -> Value:
    """Whether two values differ, where NULL is a value like others; never NULL."""
    what = value_properties(BOOLEAN, nullable=False)
    if a.ok is None and b.ok is None:
        return Value(code.let(test("ne" if negated else "eq", a, b, code)), None, what)
    left, right = a.ok or ir.TRUE, b.ok or ir.TRUE
    var = code.let(ir.FALSE)
    with code.when(ir.And((left, right))):
        code.set(var, test("eq", a, b, code))
    with code.otherwise():
        code.set(var, ir.And((ir.Not(left), ir.Not(right))))
    return Value(code.let(ir.Not(var)) if negated else var, None, what)


def is_in(value: Value, items: tuple[Literal, ...], code: Code) -> Value:
    """``value IN (constants)``."""
    what = value_properties(BOOLEAN, nullable=value.properties.nullable)
    register, dictionary = value.properties.register, value.properties.dictionary
    many = len(items) > tuning.kernel_texts.chained_integers
    if isinstance(dictionary, Dictionary):
        if many:
            return Value(_search(value.var, _places, items, code, dictionary), value.ok, what)
        places = [number_of(dictionaries.place, (x,), code, dictionary) for x in items]
        tests = [code.call("eq_i64", value.var, k) for k in places]
        return Value(code.let(ir.disjunction(tests)), value.ok, what)
    if register is Register.I64:
        wide = [x for x in items if not fits_int64(type_bounds(x.dtype))]
        pin(wide)
        beyond = {id(x) for x in wide if not INT64.low <= int(x.value) <= INT64.high}  # which no value of 64 bits is
        items = tuple([x for x in items if id(x) not in beyond])
        if not items:
            return Value(ir.FALSE, value.ok, what)
        if many:
            return Value(_search(value.var, _values, items, code), value.ok, what)
    if register is Register.STR and len(items) > tuning.kernel_texts.chained_texts:
        return Value(code.let(_one_of(value.var, items, code)), value.ok, what)
    return Value(code.let(ir.disjunction([_equals(value.var, register, x, code) for x in items])), value.ok, what)


def _equals(var: ir.Expression, register: Register, item: Literal, code: Code) -> ir.Expression:
    """A test that a value is one constant."""
    match register:
        case Register.STR:
            return code.call("eq_str", var, string_of(str.encode, (item,), code))
        case Register.I128:
            return code.call("eq_i128", var, wide_constant(int(item.value), code))
        case Register.F64:
            return code.call("eq_f64", var, number_of(float, (item,), code))
        case Register.BOOL:
            return code.call("eq_i64", code.call("from_bool", var), code.constant(int(item.value)))
        case Register.I64:
            return code.call("eq_i64", var, number_of(int, (item,), code))


def _search(
    var: ir.Expression, find: Callable[..., set[int]], items: tuple[Literal, ...], code: Code, *given: Dictionary
) -> ir.Expression:
    """A binary search in a sorted parameter array of what ``find`` makes of the constants."""
    table, count = array_of(_sorted, items, code, "i64", find, given), number_of(_count, items, code, find, given)
    low, high = code.let(code.integer(0)), code.let(count)
    with code.loop(code.call("lt_i64", low, high)):
        middle = code.let(code.call("shr_i64", code.call("add_i64", low, high), code.integer(1)))
        with code.when(code.call("lt_i64", ir.Load(table, middle), var)):
            code.set(low, code.call("add_i64", middle, code.integer(1)))
        with code.otherwise():
            code.set(high, middle)
    found = code.let(ir.FALSE)
    with code.when(code.call("lt_i64", low, count)):
        code.set(found, code.call("eq_i64", ir.Load(table, low), var))
    return found


def _values(*values: int) -> set[int]:
    return {int(v) for v in values}


def _places(*given: str | Dictionary) -> set[int]:
    """The codes of some texts in the dictionary behind them."""
    *texts, dictionary = given
    assert isinstance(dictionary, Dictionary)
    return {dictionaries.place(str(text), dictionary) for text in texts}


def _sorted(*values: Any) -> Buffer:
    *constants, find, given = values
    return Buffer(np.array(sorted(find(*constants, *given)), dtype=np.int64))


def _count(*values: Any) -> int:
    *constants, find, given = values
    return len(find(*constants, *given))


def _one_of(var: ir.Expression, items: tuple[Literal, ...], code: Code) -> ir.Expression:
    """A search for a string among few: written out, each comparison would be a loop of its own, to be compiled."""
    table = array_of(_ends, items, code, "i64")
    return code.call("one_of", var, address_of(_joined, items, code), table, code.constant(len(items)))


def _ends(*texts: str) -> Buffer:
    """Where each of some texts ends that lie one after another."""
    return Buffer(np.cumsum([len(text.encode()) for text in texts], dtype=np.int64))


def _joined(*texts: str) -> bytes:
    return "".join(texts).encode()


def string_constant(text: bytes, code: Code) -> ir.Name:
    """A STR of constant bytes, which live in a parameter's buffer."""
    return code.let(code.call("make_str", _address(text, code), code.constant(len(text))))


def _address(text: bytes, code: Code) -> ir.Name:
    """A parameter for where a copy of these bytes lies."""
    return code.scalar(Content(buffer_of(text)), "i64", "a")
