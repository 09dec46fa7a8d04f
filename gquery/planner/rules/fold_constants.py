"""Calls and casts of constants become their value.

The engine's own interpreter computes it (injected as `Evaluate`: rules know nothing of kernels), so a constant has the
value that the query would have computed. What raises stays: ``CASE WHEN a <> 0 THEN 1 // 0 END`` may never get there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from gquery.errors import Error
from gquery.expression.expr import Call, Cast, Expr, Literal
from gquery.expression.slots import FAILURES, SlotLiteral, derived
from gquery.expression.traverse import with_children
from gquery.expression.types import Scalar, type_bounds

Evaluate = Callable[[Expr], Literal]
_EXACT: dict[str, Callable[..., int]] = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}


def folded(e: Call | Cast, evaluate: Evaluate | None) -> Expr:
    """The literal for a call or cast over literals, or the expression itself."""
    args = e.args if isinstance(e, Call) else (e.arg,)
    if evaluate is None or not all(isinstance(a, Literal) for a in args):
        return e
    if any(isinstance(a, SlotLiteral) for a in args):
        return _derived(e, args, evaluate)
    try:
        return evaluate(e)
    except Error:
        return e


def _derived(e: Call | Cast, args: tuple[Expr, ...], evaluate: Evaluate) -> Expr:
    """The same of slots: the literal is computed again for other values."""
    literals = tuple(a for a in args if isinstance(a, Literal))
    try:
        return derived(_value, e.dtype, literals, _Form(e, evaluate))
    except FAILURES:
        return e


class _Form:
    """A call or cast without its arguments, two of which are equal where they compute the same."""

    def __init__(self, e: Call | Cast, evaluate: Evaluate) -> None:
        self.e, self.evaluate = e, evaluate
        self._key = (e.function, e.dtype, e.nullable) if isinstance(e, Call) else (e.dtype, e.try_)
        self.types = tuple(a.dtype for a in e.children)
        limit = type_bounds(e.dtype) if e.dtype.is_integer or e.dtype.is_decimal else None
        made = _EXACT.get(e.function) if isinstance(e, Call) else None
        self.exact = None if limit is None or made is None else (made, limit)  # what needs no interpreter

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Form) and (self._key, self.types) == (other._key, other.types)

    def __hash__(self) -> int:
        return hash((self._key, self.types))


def _value(*given: Scalar | _Form) -> Scalar | None:
    """The value of a form for the values of its arguments, which come before it."""
    *values, form = given
    assert isinstance(form, _Form)
    if form.exact is not None and all(v is not None for v in values):
        made, limit = form.exact
        number = made(*values)
        if limit.low <= number <= limit.high:
            return number
    args = tuple(Literal(v, dtype) for v, dtype in zip(values, form.types, strict=True))
    value: Scalar | None = form.evaluate(with_children(form.e, args)).value
    return value
