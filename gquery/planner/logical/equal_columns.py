"""Classes of columns that a conjunction of conditions makes equal.

    a = b AND b = c                                    a, b and c are equal, and none is NULL
    a IS NOT DISTINCT FROM b                           a and b are the same, and may both be NULL
    a = b AND b IS NOT DISTINCT FROM c                 as of three ``=``: b is not NULL, so c is not
    a IS NOT DISTINCT FROM b, and a is never NULL      as of ``=``
"""

from __future__ import annotations

from collections.abc import Iterable

from gquery.expression.expr import Call, Column, Expr
from gquery.expression.frozen import frozen
from gquery.expression.types import BOOLEAN
from gquery.planner.logical.properties import same_columns


@frozen
class EqualColumns:
    """Columns of one type that have the same value in each row for which the conditions are TRUE. ``null_safe``: they may all be
    NULL there; else none is."""

    columns: tuple[Column, ...]
    null_safe: bool


def equal_columns(terms: Iterable[Expr]) -> dict[int, EqualColumns]:
    """The class of each column that the equalities among some terms name."""
    members: dict[int, list[Column]] = {}
    valued: set[int] = set()  # columns that are not NULL where the terms are TRUE
    for term in terms:
        pair = same_columns(term)
        if pair is None or pair[0].dtype != pair[1].dtype:
            continue
        assert isinstance(term, Call)
        is_plain = term.function == "eq"
        valued.update(c.id for c in pair if is_plain or not c.nullable)
        a, b = (members.setdefault(c.id, [c]) for c in pair)
        if a is not b:
            a.extend(b)
            for c in b:
                members[c.id] = a
    classes: dict[int, EqualColumns] = {}
    for i, columns in members.items():
        if i not in classes and len(columns) > 1:
            found = EqualColumns(tuple(columns), not any(c.id in valued for c in columns))
            classes.update((c.id, found) for c in columns)
    return classes


def equal(a: Expr, b: Expr, null_safe: bool) -> Expr:
    """Equality, under which NULLs are equal if it is ``null_safe``; the plain one where one side is never NULL."""
    if null_safe and a.nullable and b.nullable:
        return Call("is_not_distinct_from", (a, b), BOOLEAN, False)
    return Call("eq", (a, b), BOOLEAN, a.nullable or b.nullable)
