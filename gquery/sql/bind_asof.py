"""Binding of ASOF joins: each left row beside the right row whose key is nearest among those that match.

`JoinKind.ASOF` keeps every left row. The other kinds are that and a filter: INNER and SEMI keep the rows that found one, ANTI
the others.
"""

from __future__ import annotations

from gquery.errors import BindError
from gquery.expression.expr import TRUE, Column, Expr, IsNull, Not, new_column
from gquery.expression.traverse import conjuncts
from gquery.expression.types import BOOLEAN
from gquery.planner.logical.bounds import comparisons
from gquery.planner.logical.nodes import Filter, Join, JoinKind, Plan, Project
from gquery.planner.logical.tree import column_ids


def asof_join(left: Plan, right: Plan, kind: JoinKind, condition: Expr) -> Plan:
    """The plan of an ASOF join of a kind. BindError where the condition does not compare the sides once."""
    found = comparisons(conjuncts(condition), column_ids(left), column_ids(right))
    if len(found) != 1:
        how = "has no comparison" if not found else "has several comparisons"
        raise BindError(f"an ASOF JOIN takes one comparison of both sides by >=, >, <= or <; this one {how}")
    (key,) = found
    if kind is JoinKind.LEFT:
        return Join(left, right, JoinKind.ASOF, condition)
    mark = key.build
    if not isinstance(mark, Column):  # of no right row it may be anything
        mark = new_column("found", BOOLEAN, False)
        right = Project(right, (*((c, c) for c in right.columns), (mark, TRUE)))
    is_missing = IsNull(Column(mark.id, mark.name, mark.dtype, True))
    joined = Join(left, right, JoinKind.ASOF, condition)
    return Filter(joined, is_missing if kind is JoinKind.ANTI else Not(is_missing))
