"""Aggregates that are made of others become those, and an expression over them.

    Aggregate by k: corr(y, x)        Project k, <expression over sums>
      Scan t                            Aggregate by k: count(*), sum(x - cx), sum(y - cy), ...
                                =>        Join on k
                                            Scan t
                                            Project k, cx, cy
                                              Aggregate by k: min(x), avg(x), max(x), min(y), ...
                                                Scan t

The declaration of an aggregate says what its parts are (`functions.aggregate_parts`). The join is there where they look at rows
in the light of something known of the group. What groups by value first gets a group of its own, joined to the others on the
keys. Plain aggregates of the node stay beside the parts.
"""

from __future__ import annotations

from functools import partial

from gquery import tuning
from gquery.expression.expr import Column, Expr, new_column
from gquery.functions import declaration, is_ordered
from gquery.functions.aggregate_parts import Parts, centred
from gquery.planner.logical.aggregate_joins import Calls, equal_keys, joined_parts, moved
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import Aggregate, Join, JoinKind, Plan, Project, Query, Shared
from gquery.planner.logical.shared import kinds_of, new_definition, transform_kinds
from gquery.planner.logical.tree import fresh_copy, remap_expr, walk
from gquery.runtime.records import replace

_KINDS = kinds_of(Aggregate)


def expand_aggregates(plan: Plan) -> Plan | None:
    """No aggregate is made of others any more."""
    new = transform_kinds(plan, _KINDS, lambda n: _expand(n) if isinstance(n, Aggregate) else n)
    return None if new is plan else new


def _expand(plan: Aggregate) -> Plan:
    if not any(declaration(a).parts for _, a in plan.aggregates):
        in_order = tuple(x for x in plan.aggregates if is_ordered(x[1]))
        if not in_order or len(in_order) == len(plan.aggregates):
            return plan
        others = tuple(x for x in plan.aggregates if not is_ordered(x[1]))
        return joined_parts(plan, [others, in_order], lambda part: part)
    is_small = partial(_is_small, plan)
    shared: list[tuple[Column, Expr]] = []
    parts, alone = Parts(is_small), []
    plain = []
    for c, a in plan.aggregates:
        make = declaration(a).parts
        if make is None:
            plain.append((c, a))
            continue
        own = Parts(is_small)
        own.where, own.order = a.filter, a.order
        make(own, *a.args)
        if own.values:
            alone.append((c, a))
            continue
        parts.where, parts.order = a.filter, a.order
        shared.append((c, _as_known(c, make(parts, *a.args), parts)))
    if len(alone) + bool(shared or plain) > 1:
        calls = tuple((c, a) for c, a in plan.aggregates if (c, a) not in alone)
        return joined_parts(plan, [*([calls] if calls else []), *(((c, a),) for c, a in alone)], _expand)
    if alone:
        return _by_values(plan)
    calls = (*plain, *((c, a) for a, c in parts.calls.items()))
    if parts.pivot_calls:
        plan = _keys_made_once(plan)
    source = _with_pivots(plan, parts) if parts.pivot_calls else plan.source
    passed = tuple((c, c) for c, _ in (*plan.keys, *plain))
    return Project(_expand(Aggregate(source, plan.keys, calls)), (*passed, *shared))


def _as_known(c: Column, made: Expr, parts: Parts) -> Expr:
    """What an aggregate became. Where that is one part, it is NOT NULL if the aggregate is: a part that looks at some of the rows
    (those at an extreme) does not know that there are any."""
    if not isinstance(made, Column) or c.nullable or not made.nullable:
        return made
    known = replace(made, nullable=False)
    parts.calls = {a: known if part == made else part for a, part in parts.calls.items()}
    return known


def _by_values(plan: Aggregate) -> Plan:
    """The only aggregate of a node, which looks at the values of a group, each of them once."""
    ((c, a),) = plan.aggregates
    make, parts = declaration(a).parts, Parts(partial(_is_small, plan))
    assert make is not None
    parts.where, parts.order = a.filter, a.order
    result = make(parts, *a.args)
    keys = tuple((new_column(k.name, k.dtype, k.nullable), e) for k, e in plan.keys)
    inner = Aggregate(plan.source, keys + parts.values, tuple((v, call) for call, v in parts.value_calls.items()))
    outer = Aggregate(
        _expand(inner),
        tuple((k, made) for (k, _), (made, _) in zip(plan.keys, keys, strict=True)),
        tuple((made, call) for call, made in parts.calls.items()),
    )
    return Project(_expand(outer), (*((k, k) for k, _ in plan.keys), (c, result)))


def _is_small(plan: Aggregate) -> bool:
    """Whether groups have few rows, about."""
    estimator = Estimator()
    groups = max(estimator.rows(plan), 1.0) if plan.keys else 1.0
    return estimator.rows(plan.source) < tuning.group_layouts.register_rows * groups


def _keys_made_once(plan: Aggregate) -> Aggregate:
    """The node over rows that have their keys already, where computing one may fail and a join stands below: what is known of
    the groups might be joined to the rows before that join leaves out some, which have no keys."""
    from gquery.kernels.host_calls import may_fail  # with the first that may need it

    is_sure = not any(may_fail(e) for _, e in plan.keys)
    if is_sure or not any(isinstance(p, Join) for p in walk(plan.source)):
        return plan
    copy, new = fresh_copy(plan.source)
    keys = tuple((new_column(c.name, c.dtype, c.nullable), remap_expr(e, new)) for c, e in plan.keys)
    own = tuple(new.get(c.id, c) for c in plan.source.columns)
    rows = Project(copy, (*((c, c) for c in own), *keys))
    outputs = (*own, *(c for c, _ in keys))
    definition = new_definition(Query(rows, outputs, tuple(c.name for c in outputs)), "rows", True)
    made = tuple(new_column(c.name, c.dtype, c.nullable) for c, _ in keys)
    source = Shared(definition, (*plan.source.columns, *made), tuple(range(len(outputs))))
    return replace(plan, source=source, keys=tuple((k, m) for (k, _), m in zip(plan.keys, made, strict=True)))


def _with_pivots(plan: Aggregate, parts: Parts) -> Plan:
    """The rows of the source, each with what is known of its group."""
    source, names = fresh_copy(plan.source)
    keys = tuple((new_column(c.name, c.dtype, c.nullable), remap_expr(e, names)) for c, e in plan.keys)
    calls: Calls = tuple((c, a) for a, c in parts.pivot_calls.items())
    pivots: Plan = _expand(Aggregate(source, keys, tuple((c, moved(a, names)) for c, a in calls)))
    if parts.pivots:
        passed = [(c, c) for c, _ in (*keys, *calls)]
        pivots = Project(pivots, (*passed, *((c, centred(of)) for of, c in parts.pivots.items())))
    return Join(plan.source, pivots, JoinKind.INNER, equal_keys([e for _, e in plan.keys], [c for c, _ in keys]))
