"""What values are compared by, where it is not themselves: intervals by what they amount to, nested values by texts.

Comparisons are bound over these keys; what groups and sorts gets them by the rule `planner.rules.comparison_keys`.
"""

from __future__ import annotations

from gquery.errors import BindError
from gquery.expression.expr import Case, Expr, IsNull, Literal, Not
from gquery.expression.traverse import conjunction, disjunction
from gquery.expression.types import INTERVAL, VARCHAR, DType
from gquery.functions import intervals
from gquery.functions.casts import cast, unified, unify
from gquery.functions.nested_keys import keys_of
from gquery.functions.operators import COMPARISONS
from gquery.functions.registry import LIST_RESOLVERS, ScalarFunction, call, declare, make, shown
from gquery.functions.vectors import Vector, array_of, size_of

_KEY = "_nested_key"


def _nested_key(x: Vector) -> Vector:
    return keys_of(array_of(x, size_of(x)))


declare(ScalarFunction(_KEY, host=_nested_key, doc="A text that orders nested values as they are compared."))


def has_key(dtype: DType) -> bool:
    """Whether values of a type are compared by keys."""
    return dtype == INTERVAL or dtype.is_nested


def comparable(e: Expr) -> Expr:
    """What is equal, less or greater where an expression is: that itself, or its key."""
    if not e.dtype.is_nested:
        return intervals.comparable(e)
    return Literal(None, VARCHAR) if isinstance(e, Literal) else make(_KEY, (e,), VARCHAR)


def _comparison(name: str) -> None:
    def compared(a: Expr, b: Expr) -> Expr | None:
        dtype = unify((a, b), comparing=True)
        if dtype is None:
            raise BindError(f"cannot compare {a.dtype} and {b.dtype} by {shown(name)}; an explicit CAST is required")
        return call(name, comparable(cast(a, dtype)), comparable(cast(b, dtype)))

    LIST_RESOLVERS.setdefault(name, []).append(lambda args: compared(*args))


for _name in COMPARISONS:
    _comparison(_name)


def _extreme(name: str, test: str) -> None:
    def extreme(args: tuple[Expr, ...]) -> Expr:
        """The one argument of all that are not NULL, from left to right."""
        found, *others = unified(args, name.upper())
        for other in others:
            is_kept = disjunction((IsNull(other), call(test, comparable(found), comparable(other))))
            found = Case(((conjunction((Not(IsNull(found)), is_kept)), found),), other)
        return found

    LIST_RESOLVERS.setdefault(name, []).append(extreme)


_extreme("greatest", "ge")
_extreme("least", "le")
