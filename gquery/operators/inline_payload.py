"""Packed inline payloads: the narrow columns that a probe wants of a build row, in the bits of one integer that is never 0.

A join table holds the payload in place of the row's number, where the columns fit. The probe that finds it need not read the
row, which saves one of two random accesses to memory. 0 says that there is no row.
"""

from __future__ import annotations

from functools import partial

from gquery.expression.types import Register
from gquery.kernels import ir
from gquery.kernels.code import Code
from gquery.kernels.values import Value, ValueProperties
from gquery.planner.layouts import InlinePayload, PayloadField


def encode_payload(inline: InlinePayload, code: Code) -> ir.Expression:
    """A variable with the payload of the current row."""
    total = code.integer(1)
    for f in inline.fields:
        value = code.column(f.column)
        text = code.call("from_bool", value.var) if f.properties.register is Register.BOOL else value.var
        if f.base:
            text = code.call("sub_i64", text, code.constant(f.base))
        if value.ok is not None:
            assert f.null is not None
            var = code.let(code.constant(f.null))
            with code.when(value.ok):
                code.set(var, text)
            text = var
        if f.shift:
            text = code.call("shl_i64", text, code.constant(f.shift))
        total = code.call("add_i64", total, text)
    return code.let(total)


def provide_payload_fields(inline: InlinePayload, var: ir.Expression, guard: ir.Expression | None, code: Code) -> None:
    """Make the columns of the word in ``var`` those of the current row; NULL where ``guard`` is False."""
    for f in inline.fields:
        what = (
            f.properties
            if guard is None
            else ValueProperties(f.properties.dtype, f.properties.bounds, True, f.properties.dictionary)
        )
        code.provide(f.column.id, what, partial(_field, inline, f, what, var, guard, code))


def _field(
    inline: InlinePayload,
    f: PayloadField,
    what: ValueProperties,
    var: ir.Expression,
    guard: ir.Expression | None,
    code: Code,
) -> Value:
    value: ir.Expression = code.call("sub_i64", var, code.integer(1))
    if f.shift:
        value = code.call("shr_u64", value, code.constant(f.shift))
    if f is not inline.fields[-1]:
        value = code.call("and_i64", value, code.constant((1 << f.bits) - 1))
    ok = guard
    if f.null is not None:
        value = code.let(value)
        ok = code.let(code.call("ne_i64", value, code.constant(f.null)))
        if guard is not None:
            ok = code.let(ir.And((guard, ok)))
    if what.register is Register.BOOL:
        value = code.call("truth", value)
    elif f.base:
        value = code.call("add_i64", value, code.constant(f.base))
    if ok is None:
        return Value(code.let(value), None, what)
    made = code.let(code.zero(what.register))  # a NULL holds what a lookup may take
    with code.when(ok):
        code.set(made, value)
    return Value(made, ok, what)
