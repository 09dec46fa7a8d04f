"""Calls that no kernel can make, one row after another, in pipelines that are interpreted for their sake.

That is only where a row is needed at once: in the condition of an outer join, over columns of both sides, none of which is
nested. Everywhere else calls are made over whole arrays (`host_calls`).
"""

from __future__ import annotations

from typing import Any

from gquery.errors import InternalError
from gquery.expression.expr import Call, Cast, Column, new_column
from gquery.expression.traverse import with_children
from gquery.kernels import ir
from gquery.kernels.code import Code
from gquery.kernels.failures import Failure
from gquery.kernels.host_calls import name_of, vectorised
from gquery.kernels.registers import array_of_registers, bytes_of, kept_text, registers_of
from gquery.kernels.values import Value, ValueProperties, value_properties


def row_call(e: Call | Cast, values: list[Value], code: Code) -> Value:
    """The lines that make a call for the current row."""
    from gquery.kernels.dictionaries import as_string

    if any(t.is_opaque for t in (e.dtype, *(v.properties.dtype for v in values))):
        raise InternalError(f"{name_of(e)} of nested values is asked for row by row: `rules.nested_conditions` left it")
    values = [as_string(v, code) if v.properties.dtype.is_string else v for v in values]
    columns = tuple(new_column("argument", v.properties.dtype) for v in values)
    name = code.name("host_call").id
    code.functions[name] = _caller(with_children(e, columns), columns)
    what = value_properties(e.dtype, nullable=True)
    arguments = [ir.Parenthesized(ir.Choice(v.var, v.ok, ir.NONE)) if v.ok else v.var for v in values]
    made = code.let(ir.Call(name, tuple(arguments)))
    ok = code.let(ir.Operation(made, "is not", ir.NONE))
    return Value(
        code.let(ir.Choice(made, ok, code.zero(what.register))), ok, ValueProperties(e.dtype, what.bounds, True)
    )


def _caller(e: Any, columns: tuple[Column, ...]) -> Any:
    """A function of registers, None for NULL."""

    def call(*registers: Any) -> Any:
        arrays = {}
        for c, r in zip(columns, registers, strict=True):
            value = bytes_of(r) if isinstance(r, tuple) else r
            arrays[c.id] = array_of_registers([value], c.dtype)
        failures: list[Failure] = []
        made = vectorised(e, arrays, failures)
        for failure in failures:
            raise failure.error(failure.message)
        (found,) = registers_of(made, e.dtype)
        return kept_text(found) if isinstance(found, str) else found

    return call
