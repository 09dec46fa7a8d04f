"""Keys of joins and groups: several bounded columns packed into one integer.

Where every key is exact and bounded, a tuple of keys is a number in mixed radix: ``(k0 - base0) + width0 * (k1 - base1)
+ ...``. NULL, where a key takes part with it, is one more value, the last. A small range of such numbers addresses
an array directly; any that fits 62 bits is the key of a hash table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery.device.array import Array
from gquery.expression.types import Register
from gquery.kernels import ir
from gquery.kernels.builtin.define import namespace
from gquery.kernels.builtin.elements import converted
from gquery.kernels.builtin.group_columns import key_values, nullable_key_values
from gquery.kernels.code import Code
from gquery.kernels.values import Value, ValueProperties
from gquery.planner.layouts import KeyEncoding, null_key


def encode_keys(
    values: Sequence[Value], key_encoding: KeyEncoding, code: Code, checked: bool
) -> tuple[ir.Name, ir.Name | None]:
    """The encoded key of a row, and a boolean variable that says whether it lies in the key encoding's ranges and no
    key is NULL that may not be (None where that is proved). With ``checked`` values may lie outside (the probing
    side)."""
    inside: list[ir.Expression] = []
    total: ir.Expression | None = None
    stride = 1
    zero = code.integer(0)
    for value, part in zip(values, key_encoding.parts, strict=True):
        var = code.call("from_bool", value.var) if value.properties.register is Register.BOOL else value.var
        if part.base or part.is_own:
            var = code.call("sub_i64", var, code.constant(part.base))
        span = part.width - part.nullable
        proved = part.contains(value.properties.bounds, value.ok is not None)
        needs_var = (value.ok is not None and part.nullable) or (checked and not proved)
        if needs_var:
            var = code.let(var)
        if checked and not proved:
            test: ir.Expression = ir.And(
                (code.call("ge_i64", var, zero), code.call("lt_i64", var, code.constant(span)))
            )
            if value.ok is not None and part.nullable:
                test = ir.Or((ir.Parenthesized(ir.Not(value.ok)), ir.Parenthesized(test)))
            inside.append(ir.Parenthesized(test))
        if value.ok is not None:
            if part.nullable:
                with code.when(ir.Not(value.ok)):
                    code.set(var, code.constant(span))
            else:
                inside.append(value.ok)
        if stride != 1:
            var = code.call("mul_i64", var, code.constant(stride))
        total = var if total is None else code.call("add_i64", total, var)
        stride *= part.width
    encoded = code.let(total or zero)
    return encoded, code.let(ir.conjunction(*inside)) if inside else None


def decode_keys(encoded: Array, key_encoding: KeyEncoding) -> list[tuple[Array, Array | None]]:
    """The keys (and, for nullable parts, their validity) of an array of encoded keys (NumPy or CuPy)."""
    if namespace(encoded) is not np:
        return _decoded_on_gpu(encoded, key_encoding)
    result: list[tuple[Array, Array | None]] = []
    rest = encoded
    for n, part in enumerate(key_encoding.parts):
        last = n == len(key_encoding.parts) - 1
        value = rest if last else rest % part.width
        if not last:
            rest = rest // part.width
        if part.nullable:
            valid = value != part.width - 1
            result.append((value * valid + part.base * valid, valid.astype("uint8")))
        else:
            result.append((value + part.base, None))
    return result


def _decoded_on_gpu(encoded: Array, key_encoding: KeyEncoding) -> list[tuple[Array, Array | None]]:
    """`decode_keys` by kernels, one a key."""
    result: list[tuple[Array, Array | None]] = []
    stride, keys = 1, encoded if encoded.dtype == np.int64 else converted(encoded, np.int64)
    for n, part in enumerate(key_encoding.parts):
        width = None if n == len(key_encoding.parts) - 1 else part.width
        if part.nullable:
            result.append(nullable_key_values(keys, stride, width, part.base, part.width - 1))
        else:
            result.append((key_values(keys, stride, width, part.base), None))
        stride *= part.width
    return result


def raw_key(value: Value, what: ValueProperties, code: Code) -> ir.Expression:
    """The key of a row, of one integer as it is."""
    if value.ok is None:
        return value.var
    var = code.let(value.var)
    with code.when(ir.Not(value.ok)):
        code.set(var, code.constant(null_key(what)))
    return var


def decode_raw_key(keys: Array, what: ValueProperties) -> tuple[Array, Array | None]:
    """The values (and, where they can be NULL, their validity) of an array of integers that were keys as they are."""
    if not what.nullable:
        return keys, None
    if namespace(keys) is not np:
        return nullable_key_values(keys, 1, None, 0, null_key(what))
    valid = keys != null_key(what)
    return keys * valid, valid.astype("uint8")


def equal_values(a: Value, b: Value, null_safe: bool, code: Code) -> ir.Expression:
    """A test that two keys are equal; NULLs are equal to each other if ``null_safe``, else to nothing."""
    from gquery.kernels.compare import comparison

    result = comparison("is_not_distinct_from" if null_safe else "eq", a, b, code)
    return result.var if result.ok is None else ir.And((result.ok, result.var))
