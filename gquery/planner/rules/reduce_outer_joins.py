"""An outer join whose NULL rows are dropped above anyway becomes an inner (or a less outer) one.

    Filter b.x > 1                Filter b.x > 1
      Join left on a.k = b.k  =>    Join inner on a.k = b.k

A SINGLE join becomes a LEFT one where the right side is proved to have one match at most.
"""

from __future__ import annotations

from gquery.expression.expr import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    Expr,
    In,
    InSubquery,
    IsNull,
    Literal,
    Not,
    Or,
    ScalarSubquery,
)
from gquery.functions import FUNCTIONS
from gquery.planner.logical.nodes import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    Sort,
)
from gquery.planner.logical.properties import many_to_one
from gquery.planner.logical.tree import column_ids, with_sources
from gquery.runtime.records import replace

_NONE: frozenset[int] = frozenset()


def reduce_outer_joins(plan: Plan) -> Plan | None:
    """Every join as little outer as what stands above it allows."""
    new = _reduce(plan, _NONE)
    return None if new is plan else new


def _reduce(plan: Plan, rejected: frozenset[int]) -> Plan:
    """``rejected``: columns for which a row with NULL is dropped by someone above."""
    match plan:
        case Filter(source=s, predicate=p):
            return with_sources(plan, (_reduce(s, rejected | rejects_null(p)),))
        case Sort(source=s, limit=None, offset=0):
            return with_sources(plan, (_reduce(s, rejected),))
        case Project(source=s, exprs=exprs):
            below = _NONE.union(*(null_if_null(e) for c, e in exprs if c.id in rejected))
            return with_sources(plan, (_reduce(s, below),))
        case Aggregate(source=s, keys=keys):
            below = _NONE.union(*(null_if_null(e) for c, e in keys if c.id in rejected))
            return with_sources(plan, (_reduce(s, below),))
        case Join():
            return _join(plan, rejected)
        case _:
            return with_sources(plan, tuple([_reduce(s, _NONE) for s in plan.sources]))


def _join(plan: Join, rejected: frozenset[int]) -> Plan:
    left_rejected = bool(rejected & column_ids(plan.left))
    right_rejected = bool(rejected & column_ids(plan.right))
    kind = plan.kind
    left, right = plan.left, plan.right
    if kind is JoinKind.SINGLE and many_to_one(plan):
        kind = JoinKind.LEFT
    if kind is JoinKind.FULL and left_rejected and right_rejected:
        kind = JoinKind.INNER
    elif kind is JoinKind.FULL and left_rejected:
        kind = JoinKind.LEFT
    elif kind is JoinKind.FULL and right_rejected:
        kind, left, right = JoinKind.LEFT, right, left
    elif kind is JoinKind.LEFT and right_rejected:
        kind = JoinKind.INNER
    if kind is not plan.kind:
        plan = replace(plan, left=left, right=right, kind=kind)
    on = rejects_null(plan.condition)
    match kind:
        case JoinKind.INNER | JoinKind.SEMI:
            down = (rejected | on, rejected | on)
        case JoinKind.FULL:
            down = (_NONE, _NONE)
        case JoinKind.MARK:
            down = (rejected, _NONE)
        case JoinKind.LEFT | JoinKind.SINGLE | JoinKind.ASOF | JoinKind.ANTI:
            down = (rejected, on)
    return with_sources(plan, (_reduce(plan.left, down[0]), _reduce(plan.right, down[1])))


def rejects_null(e: Expr) -> frozenset[int]:
    """Columns such that the predicate is not TRUE where one of them is NULL."""
    match e:
        case And(args):
            return _NONE.union(*(rejects_null(a) for a in args))
        case Or(args):
            first, *others = (rejects_null(a) for a in args)
            return first.intersection(*others)
        case Not(IsNull(arg)):
            return null_if_null(arg)
        case _:
            return null_if_null(e)


def null_if_null(e: Expr) -> frozenset[int]:
    """Columns such that the expression is NULL where one of them is."""
    match e:
        case Column(id=i):
            return frozenset((i,))
        case Call(function=f, args=args):
            return _NONE.union(*(null_if_null(a) for a in args)) if FUNCTIONS[f].strict else _NONE
        case Cast(arg=arg) | Not(arg) | In(arg=arg):
            return null_if_null(arg)
        case And(args) | Or(args):  # NULL only if every argument is: FALSE or TRUE may win
            first, *others = (null_if_null(a) for a in args)
            return first.intersection(*others)
        case Literal() | Case() | IsNull() | ScalarSubquery() | Exists() | InSubquery():
            return _NONE
