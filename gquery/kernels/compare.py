"""Comparisons, IN, and constants of text.

Strings of one sorted dictionary are compared by their codes, and against a constant by the code that the constant has or
would have; the kernel then tests an integer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gquery import tuning
from gquery.columns.table import Dictionary
from gquery.device.buffer import Buffer
from gquery.expression.types import BOOLEAN, Register
from gquery.kernels import dictionaries, ir
from gquery.kernels.arithmetic import as_f64, as_i128, wide_constant
from gquery.kernels.bindings import Content
from gquery.kernels.code import Code
from gquery.kernels.values import Value, value_properties

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


def is_in(value: Value, values: tuple[Any, ...], code: Code) -> Value:
    """``value IN (constants)``."""
    what = value_properties(BOOLEAN, nullable=value.properties.nullable)
    register = value.properties.register
    if isinstance(value.properties.dictionary, Dictionary):
        codes = (value.properties.dictionary.code_of(v) for v in values)
        values = tuple(c for c in codes if c is not None)
    if register is Register.I64 and len(values) > tuning.kernel_texts.chained_integers:
        return Value(_search(value.var, sorted({int(v) for v in values}), code), value.ok, what)
    if register is Register.STR and len(values) > tuning.kernel_texts.chained_texts:
        return Value(code.let(_one_of(value.var, [str(v).encode() for v in values], code)), value.ok, what)
    tests: list[ir.Expression] = []
    for v in values:
        match register:
            case Register.STR:
                tests.append(code.call("eq_str", value.var, string_constant(str(v).encode(), code)))
            case Register.I128:
                tests.append(code.call("eq_i128", value.var, wide_constant(int(v), code)))
            case Register.F64:
                tests.append(code.call("eq_f64", value.var, code.constant(float(v))))
            case Register.BOOL:
                tests.append(code.call("eq_i64", code.call("from_bool", value.var), code.constant(int(v))))
            case Register.I64:
                tests.append(code.call("eq_i64", value.var, code.constant(int(v))))
    return Value(code.let(ir.disjunction(tests)), value.ok, what)


def _search(var: ir.Expression, values: list[int], code: Code) -> ir.Expression:
    """A binary search in a sorted parameter array."""
    table = code.pointer("i64", Content(Buffer(np.array(values, dtype=np.int64))), "t")
    low, high = code.let(code.integer(0)), code.let(code.constant(len(values)))
    with code.loop(code.call("lt_i64", low, high)):
        middle = code.let(code.call("shr_i64", code.call("add_i64", low, high), code.integer(1)))
        with code.when(code.call("lt_i64", ir.Load(table, middle), var)):
            code.set(low, code.call("add_i64", middle, code.integer(1)))
        with code.otherwise():
            code.set(high, middle)
    found = code.let(ir.FALSE)
    with code.when(code.call("lt_i64", low, code.constant(len(values)))):
        code.set(found, code.call("eq_i64", ir.Load(table, low), var))
    return found


def _one_of(var: ir.Expression, texts: list[bytes], code: Code) -> ir.Expression:
    """A search for a string among few: written out, each comparison would be a loop of its own, to be compiled."""
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    table = code.pointer("i64", Content(Buffer(ends)), "t")
    return code.call("one_of", var, _address(b"".join(texts), code), table, code.constant(len(texts)))


def string_constant(text: bytes, code: Code) -> ir.Name:
    """A STR of constant bytes, which live in a parameter's buffer."""
    return code.let(code.call("make_str", _address(text, code), code.constant(len(text))))


def _address(text: bytes, code: Code) -> ir.Name:
    """A parameter for where a copy of these bytes lies."""
    data = np.frombuffer(text, dtype=np.uint8) if text else np.zeros(1, dtype=np.uint8)
    return code.scalar(Content(Buffer(data.copy())), "i64", "a")
