"""Calls and casts of constants become their value.

The engine's own interpreter computes it (injected as `Evaluate`: rules know nothing of kernels), so a constant has the
value that the query would have computed. What raises stays: ``CASE WHEN a <> 0 THEN 1 // 0 END`` may never get there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial

from gquery.errors import Error
from gquery.expression.expr import Call, Cast, Expr, Literal
from gquery.expression.facts import power_of_ten
from gquery.expression.slots import FAILURES, SlotLiteral, derived
from gquery.expression.traverse import with_children
from gquery.expression.types import DType, Scalar, type_bounds

Evaluate = Callable[[Expr], Literal]
_EXACT: dict[str, Callable[..., int]] = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}
_COMPARED: dict[str, Callable[..., bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def folded(e: Call | Cast, evaluate: Evaluate | None) -> Expr:
    """The literal for a call or cast over literals, or the expression itself."""
    args = e.args if isinstance(e, Call) else (e.arg,)
    if evaluate is None or e.dtype.is_opaque or not all(isinstance(a, Literal) for a in args):
        return e
    literals = tuple(a for a in args if isinstance(a, Literal))
    form = _Form(e, evaluate)
    if any(isinstance(a, SlotLiteral) for a in literals):
        try:
            return derived(_value, e.dtype, literals, form)  # computed again for other values
        except FAILURES:
            return e
    number = form.number([a.value for a in literals])
    try:
        return evaluate(e) if number is None else Literal(number, e.dtype)
    except Error:
        return e


class _Form:
    """A call or cast without its arguments, two of which are equal where they compute the same."""

    def __init__(self, e: Call | Cast, evaluate: Evaluate) -> None:
        self.e, self.evaluate = e, evaluate
        self._key = (e.function, e.dtype, e.nullable) if isinstance(e, Call) else (e.dtype, e.try_)
        self.types = tuple(a.dtype for a in e.children)
        made, limit = _exact(e, self.types), type_bounds(e.dtype)
        self.exact = None if limit is None or made is None else (made, limit)  # what needs no interpreter

    def number(self, values: Sequence[Scalar | None]) -> int | None:
        """The result where it needs no interpreter; None for others, and where it does not fit its type."""
        if self.exact is None or None in values:
            return None
        made, limit = self.exact
        number = int(made(*values))
        return number if limit.low <= number <= limit.high else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Form) and (self._key, self.types) == (other._key, other.types)

    def __hash__(self) -> int:
        return hash((self._key, self.types))


def _exact(e: Call | Cast, types: tuple[DType, ...]) -> Callable[..., int] | None:
    """What computes the result of the arguments' values where these and the result are integers or decimals, whose values are
    integers: of arithmetic at the scale of the result, of a cast that adds decimal places, or none, and of comparisons. Text is
    in the order of its code points, which is that of its bytes. None for others."""
    if isinstance(e, Call) and e.function in _COMPARED:
        kind = types[0]
        has_order = kind.is_string or (type_bounds(kind) is not None and not kind.is_opaque)
        return _COMPARED[e.function] if has_order and kind == types[1] else None
    if not all(d.is_integer or d.is_decimal for d in (e.dtype, *types)):
        return None
    scales = [d.scale for d in types]
    if isinstance(e, Cast):
        more = e.dtype.scale - scales[0]
        return None if more < 0 else partial(operator.mul, power_of_ten(more))
    fits = sum(scales) == e.dtype.scale if e.function == "multiply" else set(scales) == {e.dtype.scale}
    return _EXACT.get(e.function) if fits else None


def _value(*given: Scalar | _Form) -> Scalar | None:
    """The value of a form for the values of its arguments, which come before it."""
    form = given[-1]
    assert isinstance(form, _Form)
    values = [v for v in given if not isinstance(v, _Form)]
    number = form.number(values)
    if number is not None:
        return number
    args = tuple(Literal(v, dtype) for v, dtype in zip(values, form.types, strict=True))
    value: Scalar | None = form.evaluate(with_children(form.e, args)).value
    return value
