"""Expressions of the same parts, which a statement writes several times, are one object.

    sum(CASE WHEN month = 1 THEN price * quantity ELSE 0 END),     both products are one,
    sum(CASE WHEN month = 2 THEN price * quantity ELSE 0 END)      and so are both zeros as DECIMAL

What is asked of an expression is remembered of the object: the second is typed, compared, hashed and described in no time. Parts
are the same where they are the same objects, as columns of one table are, and slots of constants that are written alike. What
differs each time that it is evaluated, such as a call of random(), is never the same object.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery.expression.expr import Expr, Literal
from gquery.expression.types import NULL
from gquery.functions import call, case_of, unified

_NOTHING = Literal(None, NULL)


class Interned:
    """What was made of the same parts before. They are kept, so that their ids stay theirs."""

    __slots__ = ("_calls", "_values")

    def __init__(self) -> None:
        self._calls: dict[tuple[str, int, int], tuple[Expr, Expr, Expr]] = {}
        self._values: dict[tuple[int, ...], tuple[tuple[Expr, ...], list[Expr]]] = {}

    def call(self, function: str, left: Expr, right: Expr) -> Expr:
        """A typed call of an operator."""
        key = (function, id(left), id(right))
        if (found := self._calls.get(key)) is None:
            found = self._calls[key] = left, right, call(function, left, right)
        return found[2]

    def case(self, branches: Sequence[tuple[Expr, Expr]], otherwise: Expr | None) -> Expr:
        """CASE over conditions, whose values have the same types wherever the same ones meet."""
        values = (*[v for _, v in branches], _NOTHING if otherwise is None else otherwise)
        key = tuple(map(id, values))
        if (found := self._values.get(key)) is None:
            found = self._values[key] = values, unified(values, "CASE")
        return case_of([test for test, _ in branches], found[1])
