"""Values that meet in one variable, one column or one comparison: what is known of all of them, and each in that form."""

from __future__ import annotations

from gquery.columns.opaque import Opaque
from gquery.columns.table import Dictionary
from gquery.expression.types import Register
from gquery.kernels import dictionaries
from gquery.kernels.code import Code
from gquery.kernels.values import Value, ValueProperties


def merge(known: list[ValueProperties]) -> ValueProperties:
    """What is known of a value that is one of several: bounds joined, dictionaries merged, nullable if any is."""
    dtype = known[0].dtype
    nullable = any(k.nullable for k in known)
    if dtype.is_string:
        only = {id(k.dictionary) for k in known}
        shared = known[0].dictionary if len(only) == 1 else None
        return ValueProperties(dtype, known[0].bounds if shared is not None else None, nullable, shared)
    if dtype.is_opaque:
        return dictionaries.merge_opaque(known)
    bounds = None
    if dtype.is_exact:
        real = [k.bounds for k in known if k.bounds is not None]
        bounds = real[0]
        for b in real[1:]:
            bounds = bounds | b
    return ValueProperties(dtype, bounds, nullable)


def convert(value: Value, what: ValueProperties, code: Code) -> Value:
    """A value in the register class and form that ``what`` asks for; the logical types are equal."""
    if what.dtype.is_string:
        if isinstance(what.dictionary, Dictionary):
            if value.properties.dictionary is what.dictionary:
                return value
            return dictionaries.recode(value, what.dictionary, code)
        return dictionaries.as_string(value, code)
    if isinstance(what.dictionary, Opaque):
        return dictionaries.renumber(value, what.dictionary, code)
    if what.register is Register.I128 and value.properties.register is Register.I64:
        return Value(code.let(code.call("i128_from_i64", value.var)), value.ok, what)
    return value
