"""COALESCE, NULLIF and IF: names that stand for a Case; GREATEST and LEAST, which the engine renders itself: as a Case of
comparisons of each with each they would grow with the square of their arguments."""

from __future__ import annotations

from collections.abc import Sequence

from gquery.expression.expr import TRUE, Case, Expr, IsNull, Literal, Not
from gquery.expression.types import BOOLEAN, NULL
from gquery.functions.casts import cast, unified
from gquery.functions.registry import LIST_RESOLVERS, RESOLVERS, ScalarFunction, call, declare, make, resolver


def case(branches: list[tuple[Expr, Expr]], otherwise: Expr | None) -> Expr:
    """CASE over conditions, its values cast to their common type; without ELSE it is NULL."""
    values = unified([v for _, v in branches] + [otherwise or Literal(None, NULL)], "CASE")
    return case_of([test for test, _ in branches], values)


def case_of(tests: Sequence[Expr], values: Sequence[Expr]) -> Expr:
    """CASE over conditions and values of one type, of which the last is that of ELSE."""
    return Case(tuple([(cast(test, BOOLEAN), v) for test, v in zip(tests, values[:-1], strict=True)]), values[-1])


@resolver("coalesce ifnull nvl", "$(any, ...)", example=("coalesce(NULL, 2, 3)", "2"))
def _coalesce(first: Expr, *more: Expr) -> Expr:
    """The first argument that is not NULL."""
    values = unified((first, *more), "COALESCE")
    kept: list[Expr] = []
    for v in values:
        if isinstance(v, Literal) and v.value is None:
            continue
        kept.append(v)
        if isinstance(v, Literal):  # a column that has no NULL may have one behind a grouping set
            break
    if not kept:
        return values[0]
    if len(kept) > 1:
        return Case(tuple((Not(IsNull(v)), v) for v in kept[:-1]), kept[-1])
    if more and isinstance(kept[0], Literal) and kept[0].dtype.is_numeric:
        return Case(((TRUE, kept[0]),), kept[0])  # no literal any more: a literal's type would adapt to those around it
    return kept[0]


@resolver("nullif", "$(any, any)", example=("nullif(1, 2)", "1"))
def _nullif(a: Expr, b: Expr) -> Expr:
    """NULL where both are equal, else the first."""
    return Case(((call("eq", a, b), Literal(None, a.dtype)),), a)


LIST_RESOLVERS["nullif"] = RESOLVERS["nullif"]


@resolver("if", "$(BOOLEAN, any, any)", example=("if(1 > 2, 'a', 'b')", "b"))
def _if(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    """The second argument where the first is TRUE, else the third."""
    return case([(condition, then)], otherwise)


for _name, _doc, _example in (
    ("greatest", "The greatest argument that is not NULL.", ("greatest(1, 3, NULL)", "3")),
    ("least", "The least argument that is not NULL.", ("least(1, 3, NULL)", "1")),
):
    declare(ScalarFunction(_name, strict=False, null_if_all=True, doc=_doc, example=_example))


def _extreme(values: tuple[Expr, ...], name: str) -> Expr:
    """A call over the arguments that are not NULL for sure."""
    exprs = [e for e in unified(values, name.upper()) if not (isinstance(e, Literal) and e.value is None)]
    if not exprs:
        return unified(values, name.upper())[0]
    return exprs[0] if len(exprs) == 1 else make(name, exprs, exprs[0].dtype)


@resolver("greatest", "$(any, ...)")
def _greatest(first: Expr, *more: Expr) -> Expr:
    """The greatest argument that is not NULL."""
    return _extreme((first, *more), "greatest")


@resolver("least", "$(any, ...)")
def _least(first: Expr, *more: Expr) -> Expr:
    """The least argument that is not NULL."""
    return _extreme((first, *more), "least")
