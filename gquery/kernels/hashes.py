"""Hashes of values in a kernel: of keys, for the function `hash`, and as chance."""

from __future__ import annotations

from collections.abc import Sequence

from gquery.expression.expr import Call
from gquery.expression.facts import INT64_BITS, MANTISSA_BITS
from gquery.expression.types import BIGINT, DOUBLE, INT64, UBIGINT, Register
from gquery.functions.chance import HASH, HASH_BOUNDS, HASH_WORD, RANDOM
from gquery.kernels import ir
from gquery.kernels.code import Code
from gquery.kernels.values import Value, ValueProperties, value_properties

FUNCTIONS = frozenset((HASH, HASH_WORD, RANDOM))
_UNIT = 2.0**-MANTISSA_BITS


def hash_values(values: Sequence[Value], code: Code) -> ir.Name:
    """A variable with the hash of a tuple of values, texts among them as strings; NULL hashes as a constant."""
    total: ir.Expression | None = None
    for value in values:
        register = value.properties.register
        hashed: ir.Expression = (
            code.call("hash_i64", code.call("from_bool", value.var))
            if register is Register.BOOL
            else code.call(f"hash_{register.value}", value.var)
        )
        if value.ok is not None:
            var = code.let(code.integer(0))
            with code.when(value.ok):
                code.set(var, hashed)
            hashed = var
        total = hashed if total is None else code.call("hash_combine", total, hashed)
    return code.let(total or code.integer(0))


def call(e: Call, values: Sequence[Value], code: Code) -> Value:
    """hash() of some values, as a UBIGINT in the low word of a wide register, or a BIGINT; or a double from 0 up to 1 of a
    seed and of what tells rows apart."""
    if e.function == HASH:
        made = code.let(code.call("make_i128", code.integer(0), hash_values(values, code)))
        return Value(made, None, ValueProperties(UBIGINT, HASH_BOUNDS, nullable=False))
    if e.function == HASH_WORD:
        return Value(hash_values(values, code), None, value_properties(BIGINT, INT64, nullable=False))
    seed, *others = values
    bits = code.call("hash_combine", hash_values(others, code), seed.var)
    number = code.call("f64_from_u64", code.call("shr_u64", bits, code.integer(INT64_BITS - MANTISSA_BITS)))
    made = code.let(code.call("mul_f64", number, code.constant(_UNIT)))
    return Value(made, None, value_properties(DOUBLE, nullable=False))
