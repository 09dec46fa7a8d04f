"""Predicates that follow from others: what a join's conditions say about one side alone.

From ORs: ``(a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4)`` implies ``a.x = 1 OR a.x = 3`` on a, and the like on b.
From equalities: ``a.k = b.k AND a.k < 5`` implies ``b.k < 5``.

`push_down_filter` asks for them at every join on its way down, so that an implied predicate travels on like any other.
They are true wherever the originals are TRUE, which is all that a conjunct of a condition asks for.
"""

from __future__ import annotations

from gquery import tuning
from gquery.expression.expr import TRUE, And, Call, Cast, Column, Expr, In, IsNull, Literal, Not, Or
from gquery.expression.traverse import conjunction, conjuncts, disjunction, substitute, walk
from gquery.planner.logical.equal_columns import equal_columns
from gquery.planner.logical.properties import equal_is_same
from gquery.planner.logical.tree import used_columns


def implied(terms: tuple[Expr, ...], left: frozenset[int], right: frozenset[int]) -> tuple[Expr, ...]:
    """Predicates over columns of one side only that follow from ``terms`` and are not among them."""
    out: dict[Expr, None] = {}
    for term in terms:
        if isinstance(term, Or) and len(term.args) <= tuning.rewrites.most_or_terms:
            used = used_columns(term)
            if used & left and used & right:
                for side in (left, right):
                    if (part := of_side(term, side)) is not None:
                        out[part] = None
    classes = equal_columns(terms)
    if classes:
        for term in (*terms, *out):
            used = used_columns(term)
            if len(used) != 1 or not _cheap(term):
                continue
            (i,) = used
            for other in classes[i].columns if i in classes else ():
                if other.id != i:
                    out[substitute(term, {i: other})] = None
    have = set(terms)
    return tuple(t for t in out if t not in have)


def of_side(term: Or, side: frozenset[int]) -> Expr | None:
    """What every branch of an OR says about the columns of one side, or the keys of groups; None where a branch says nothing."""
    parts: list[Expr] = []
    for branch in term.args:
        mine = tuple(t for t in conjuncts(branch) if used_columns(t) and used_columns(t) <= side)
        if not mine:
            return None
        parts.append(conjunction(mine))
    return disjunction(tuple(dict.fromkeys(parts)))


_CHEAP = (Column, Literal, In, And, Or, Not)


def _cheap(term: Expr) -> bool:
    """Whether a predicate of one column is true and worth testing of another that is equal: comparisons with constants, IN and
    their like, but none of the texts of floats."""
    return (
        all(
            isinstance(e, _CHEAP)
            or (isinstance(e, Cast) and (equal_is_same(e.arg.dtype) or e.dtype.is_numeric))
            or (isinstance(e, Call) and e.function in ("eq", "ne", "lt", "le", "gt", "ge", "like"))
            for e in walk(term)
        )
        and not isinstance(term, IsNull | Literal)
        and term != TRUE
    )
