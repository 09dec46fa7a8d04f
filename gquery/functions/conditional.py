"""COALESCE, NULLIF, IF, GREATEST and LEAST: names that stand for a Case."""

from __future__ import annotations

from gquery.dtypes import BOOLEAN
from gquery.expr import TRUE, Case, Expr, IsNull, Literal, Not, conjunction, disjunction
from gquery.functions.casts import cast, unified
from gquery.functions.registry import call, make, resolver


def case(branches: list[tuple[Expr, Expr]], otherwise: Expr | None) -> Expr:
    """CASE over conditions, its values cast to their common type; without ELSE it is NULL."""
    from gquery.dtypes import NULL

    values = unified([v for _, v in branches] + [otherwise or Literal(None, NULL)], "CASE")
    pairs = tuple((cast(c, BOOLEAN), v) for (c, _), v in zip(branches, values[:-1], strict=True))
    return Case(pairs, values[-1])


@resolver("coalesce ifnull nvl", "$(any, ...)", example=("coalesce(NULL, 2, 3)", "2"))
def _coalesce(first: Expr, *more: Expr) -> Expr:
    """The first argument that is not NULL."""
    values = unified((first, *more), "COALESCE")
    kept: list[Expr] = []
    for v in values:
        if isinstance(v, Literal) and v.value is None:
            continue
        kept.append(v)
        if not v.nullable:
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


@resolver("if", "$(BOOLEAN, any, any)", example=("if(1 > 2, 'a', 'b')", "b"))
def _if(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    """The second argument where the first is TRUE, else the third."""
    return case([(condition, then)], otherwise)


def _extreme(values: tuple[Expr, ...], op: str, what: str) -> Expr:
    """The first value that beats all others or meets NULLs only; NULLs are passed over."""
    exprs = [e for e in unified(values, what) if not (isinstance(e, Literal) and e.value is None)]
    if not exprs:
        return unified(values, what)[0]
    if len(exprs) == 1:
        return exprs[0]
    branches: list[tuple[Expr, Expr]] = []
    for i, e in enumerate(exprs):
        terms: list[Expr] = [Not(IsNull(e))] if e.nullable else []
        for j, other in enumerate(exprs):
            if i != j:
                beats: Expr = make(op, (e, other), BOOLEAN)
                terms.append(disjunction((IsNull(other), beats)) if other.nullable else beats)
        branches.append((conjunction(tuple(terms)), e))
    return Case(tuple(branches[:-1]), exprs[-1])


@resolver("greatest", "$(any, ...)", example=("greatest(1, 3, NULL)", "3"))
def _greatest(first: Expr, *more: Expr) -> Expr:
    """The greatest argument that is not NULL."""
    return _extreme((first, *more), "ge", "GREATEST")


@resolver("least", "$(any, ...)", example=("least(1, 3, NULL)", "1"))
def _least(first: Expr, *more: Expr) -> Expr:
    """The least argument that is not NULL."""
    return _extreme((first, *more), "le", "LEAST")
