"""Binding of lists in expressions: ``[a, b]``, and what is taken out of a list or a text by place: ``xs[1]``, ``s[2:3]``."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from gquery.errors import NotSupportedError
from gquery.expression.expr import Expr, Literal
from gquery.expression.types import BIGINT, BLOB, VARCHAR, Kind
from gquery.functions import call
from gquery.functions.opaque import refuse_nested, refuse_opaque
from gquery.functions.registry import is_null_literal
from gquery.sql.binding.lambdas import BindBody, comprehension
from gquery.sql.scope import Scope
from gquery.sql.types import integer_literal

Bind = Callable[[exp.Expr], Expr]


def of_list(node: exp.Bracket | exp.Array, bind: Bind, body: BindBody, scope: Scope) -> Expr:
    """A list of values, one that is made of another's, or what is taken out of one."""
    match node:
        case exp.Array(expressions=[exp.Comprehension() as made]):
            return comprehension(made, bind, body, scope)
        case exp.Array():
            return call("list_value", *map(bind, node.expressions))
        case _:
            return _bracket(node, bind)


def _bracket(node: exp.Bracket, bind: Bind) -> Expr:
    """``x[2]`` and ``x[2:3]`` of a list or a text, ``x[1:4:2]`` of a list."""
    of, index = bind(node.this), node.expressions[0]
    refuse_opaque((of,), "[]")
    if of.dtype.kind is Kind.NULL and len(node.expressions) == 1:
        return _of_null(of, index, bind)
    if len(node.expressions) != 1 or not (of.dtype == VARCHAR or of.dtype.is_nested) or of.dtype == BLOB:
        raise NotSupportedError("not supported: [] of a value that is neither a list, a struct, a map nor a string")
    if isinstance(index, exp.Slice):
        refuse_nested(() if of.dtype.is_list else (of,), "a slice")
        return _slice(of, index, bind)
    if of.dtype.kind is Kind.MAP:
        return call("map_extract_value", of, bind(index))
    if of.dtype.is_nested:
        return call("array_extract", of, bind(index))
    return call("substring", of, bind(index), integer_literal(1))


def _of_null(of: Expr, index: exp.Expr, bind: Bind) -> Expr:
    if not isinstance(index, exp.Slice):
        return call("array_extract", of, bind(index))
    ends = (integer_literal(1) if end is None else bind(end) for end in (index.this, index.expression))
    return call("list_slice", of, *ends)


def _slice(of: Expr, index: exp.Slice, bind: Bind) -> Expr:
    start = bind(index.this) if index.this is not None else integer_literal(1)
    step = index.args.get("step")
    if of.dtype.is_list:
        stop = bind(index.expression) if index.expression is not None else Literal(2**62, BIGINT)
        return call("list_slice", of, start, stop, *(() if step is None else (bind(step),)))
    if step is not None:
        raise NotSupportedError("not supported: a step in a slice of a string")
    if index.expression is None:
        return call("substring", of, start)
    stop = bind(index.expression)
    ends = [e.value for e in (start, stop) if isinstance(e, Literal) and e.dtype.is_integer and e.value is not None]
    if is_null_literal(start) or is_null_literal(stop):
        return Literal(None, VARCHAR)
    if len(ends) == 2 and min(ends) > 0:
        return call("substring", of, start, integer_literal(max(0, ends[1] - ends[0] + 1)))
    raise NotSupportedError("not supported: a string slice whose ends are not positive constants")
