"""Calls that are made only where their arguments are there: one that gives a value, and one that also says whether it does."""

from __future__ import annotations

from gquery.kernels import ir
from gquery.kernels.code import Code
from gquery.kernels.values import Value, ValueProperties
from gquery.runtime.records import replace


def single(result: ir.Expression, ok: ir.Expression | None, what: ValueProperties, code: Code) -> Value:
    """A call that gives a value wherever its arguments are there."""
    if ok is None:
        return Value(code.let(result), None, replace(what, nullable=False))
    var = code.let(code.zero(what.register))
    with code.when(ok):
        code.set(var, result)
    return Value(var, ok, what)


def pair(result: ir.Expression, ok: ir.Expression | None, what: ValueProperties, code: Code) -> Value:
    """A call that gives a value and whether it is there."""
    if ok is None:
        found = code.let(result)
        return Value(code.let(ir.Item(found, 0)), code.let(ir.Item(found, 1)), what)
    var, there = code.let(code.zero(what.register)), code.let(ir.FALSE)
    with code.when(ok):
        found = code.let(result)
        code.set(var, ir.Item(found, 0))
        code.set(there, ir.Item(found, 1))
    return Value(var, there, what)
