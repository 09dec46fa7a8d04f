"""Predicates move as close to the scans as they can, and conditions of inner joins to the join that first can tell.

    Filter a.x = 1 AND a.k = b.k          Join inner on a.k = b.k
      Join inner on TRUE             =>     Filter a.x = 1
        Scan a                                Scan a
        Scan b                              Scan b

One walk from the root with the predicates that are still to be placed; filters that meet are merged by it.
"""

from __future__ import annotations

from typing import assert_never

from gquery import tuning
from gquery.expression.expr import FALSE, TRUE, Column, Expr, Literal, Or
from gquery.expression.traverse import conjunction, conjuncts, substitute, walk
from gquery.functions.certain import never_fails
from gquery.planner.logical.nodes import (
    Aggregate,
    Apply,
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Limit,
    Plan,
    Project,
    Range,
    Scan,
    Shared,
    Sort,
    UnionAll,
    Unnest,
    Values,
    Window,
    WorkingTable,
)
from gquery.planner.logical.tree import column_ids, used_columns, with_sources
from gquery.planner.rules.infer_predicates import implied, of_side

Terms = tuple[Expr, ...]


def push_down_filter(plan: Plan) -> Plan | None:
    """Every predicate at the lowest node where its columns are known and its meaning is the same."""
    new = _push(plan, ())
    return None if new is plan else new


def _push(plan: Plan, terms: Terms) -> Plan:
    match plan:
        case Filter(source=s, predicate=p):
            below = _push(s, _merged(terms, conjuncts(p)))
            # the same object back where the filter has to stay as it is
            if isinstance(below, Filter) and below.source is s and below.predicate == p:
                return plan
            return below
        case Project(source=s, exprs=exprs):
            inner = {c.id: e for c, e in exprs if not (isinstance(e, Column) and e.id == c.id)}
            down, stay = _through(terms, inner)
            return _filter(with_sources(plan, (_push(s, down),)), stay)
        case Sort(source=s, limit=None, offset=0):
            return with_sources(plan, (_push(s, terms),))
        case Aggregate():
            return _aggregate(plan, terms)
        case Window():
            return _window(plan, terms)
        case Unnest(source=s):
            down = tuple(t for t in terms if used_columns(t) <= column_ids(s))
            return _filter(with_sources(plan, (_push(s, down),)), tuple(t for t in terms if t not in down))
        case Join():
            return _join(plan, terms)
        case UnionAll():
            return _union(plan, terms)
        case Scan() | Values() | Range() | Shared() | WorkingTable():
            return _filter(plan, terms)
        case Sort() | Limit() | Fixpoint():
            return _filter(with_sources(plan, (_push(plan.source, ()),)), terms)
        case Apply():
            return _filter(with_sources(plan, (_push(plan.left, ()), _push(plan.right, ()))), terms)
        case _:
            assert_never(plan)


def _through(terms: Terms, inner: dict[int, Expr]) -> tuple[Terms, Terms]:
    """The terms with expressions in place of columns, and those that would become too large: where each of many projections
    uses the one below it twice, a predicate that goes through all of them doubles at each."""
    if not inner or not terms:
        return terms, ()
    down: list[Expr] = []
    stay: list[Expr] = []
    sizes = {i: sum(1 for _ in walk(e)) for i, e in inner.items()}
    for t in terms:
        added = sum(sizes.get(x.id, 1) - 1 for x in walk(t) if isinstance(x, Column))
        if added <= tuning.rewrites.most_filter_parts:
            down.append(substitute(t, inner))
        else:
            stay.append(t)
    return tuple(down), tuple(stay)


def _merged(a: Terms, b: Terms) -> Terms:
    """All terms once, the inner ones first: they guard what the outer ones compute."""
    return tuple(dict.fromkeys((*b, *a)))


def _filter(plan: Plan, terms: Terms) -> Plan:
    terms = tuple(t for t in terms if t != TRUE)
    if not terms:
        return plan
    if any(isinstance(t, Literal) for t in terms):  # FALSE or NULL: no row
        return Values(plan.columns, ())
    return Filter(plan, conjunction(terms))


def _aggregate(plan: Aggregate, terms: Terms) -> Plan:
    keys = {c.id: e for c, e in plan.keys}
    over_keys = tuple(t for t in terms if keys and used_columns(t) <= keys.keys())
    down, large = _through((*over_keys, *_of_keys(terms, frozenset(keys))), keys)
    stay = tuple(t for t in terms if t not in over_keys or t in large)
    return _filter(with_sources(plan, (_push(plan.source, down),)), stay)


def _window(plan: Window, terms: Terms) -> Plan:
    """What a predicate drops below a window must be whole partitions."""
    partition = frozenset(e.id for e in plan.partition if isinstance(e, Column))
    down = tuple(t for t in terms if used_columns(t) <= partition)
    stay = tuple(t for t in terms if t not in down)
    return _filter(with_sources(plan, (_push(plan.source, down),)), stay)


def _of_keys(terms: Terms, keys: frozenset[int]) -> Terms:
    """What terms that read results of groups say of their keys: ``(year = 1 AND total > 0) OR year = 2`` asks for two years."""
    found = [of_side(t, keys) for t in terms if isinstance(t, Or) and not used_columns(t) <= keys]
    return tuple(t for t in found if t is not None and never_fails(t))


def _union(plan: UnionAll, terms: Terms) -> Plan:
    new: list[Plan] = []
    for source, row in zip(plan.sources, plan.inputs, strict=True):
        names: dict[int, Expr] = {c.id: x for c, x in zip(plan.columns, row, strict=True)}
        new.append(_push(source, tuple(substitute(t, names) for t in terms)))
    return with_sources(plan, tuple(new))


def _join(plan: Join, terms: Terms) -> Plan:
    if any(isinstance(t, Literal) and not t.value for t in terms):
        return Values(plan.columns, ())
    left_ids, right_ids = column_ids(plan.left), column_ids(plan.right)
    to_left: list[Expr] = []
    to_right: list[Expr] = []
    on: list[Expr] = []
    above: list[Expr] = []
    kind = plan.kind
    if kind is JoinKind.INNER:
        everything = _merged(terms, conjuncts(plan.condition))
        for t in (*everything, *implied(everything, left_ids, right_ids)):
            used = used_columns(t)
            (to_left if not used & right_ids else to_right if not used & left_ids else on).append(t)
        if FALSE in to_left or FALSE in to_right:
            return Values(plan.columns, ())
    else:
        for t in terms:
            down = kind is not JoinKind.FULL and used_columns(t) <= left_ids
            (to_left if down else above).append(t)
        known = conjuncts(plan.condition)
        if kind is not JoinKind.FULL:  # what holds of every left row, said of the right side's matches
            known = (*known, *(t for t in to_left if used_columns(t)))
        conditions = conjuncts(plan.condition)
        extra = implied(known, left_ids, right_ids) if kind in _RIGHT_IS_FREE else ()
        for t in (*conditions, *(t for t in extra if used_columns(t) <= right_ids)):
            used = used_columns(t)
            if used and used <= right_ids and (kind in _RIGHT_IS_FREE or (kind is JoinKind.MARK and not t.nullable)):
                to_right.append(t)
            elif kind is JoinKind.SEMI and used <= left_ids:
                to_left.append(t)
            else:
                on.append(t)
    left = _push(plan.left, tuple(dict.fromkeys(to_left)))
    right = _push(plan.right, tuple(dict.fromkeys(to_right)))
    condition = conjunction(tuple(on))
    if left is plan.left and right is plan.right and condition == plan.condition:
        return _filter(plan, tuple(above))
    return _filter(Join(left, right, kind, condition, plan.mark), tuple(above))


# a row of the right side that fails a condition on it alone is as if it were not there. (Not so for FULL, which shows
# it, nor for MARK, where a NULL condition makes the mark NULL.)
_RIGHT_IS_FREE = (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.SINGLE, JoinKind.ASOF)
