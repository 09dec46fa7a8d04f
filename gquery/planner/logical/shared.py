"""Definitions: the subplans that a query computes once, and the walks that reach through their uses (`Shared`).

A use is a leaf, so that a walk over a plan (`planner.logical.tree`) ends there, and a chain of CTEs that each use the one before
twice stays as long as its text. What has to see the whole query asks here, and meets each definition once. Definitions
never refer to each other in a circle; those that others use come first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from operator import or_
from typing import get_args

from gquery.expression.expr import new_column
from gquery.planner.logical.everywhere import map_subqueries
from gquery.planner.logical.nodes import (
    Definition,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Query,
    Scan,
    Shared,
)
from gquery.planner.logical.tree import (
    own_subqueries,
    walk,
    with_sources,
)
from gquery.runtime.records import replace

Definitions = Mapping[int, Definition]  # by number
Positions = Mapping[int, Mapping[int, int]]  # for a definition whose outputs moved: the new position of an old one

_numbers = itertools.count(1)


def new_definition(query: Query, name: str = "", kept: bool | None = None) -> Definition:
    """A definition of a query that depends on none around it."""
    return Definition(next(_numbers), query.plan, query.outputs, name, kept)


def use(definition: Definition) -> Shared:
    """All columns of a definition, under ids that no other use has."""
    columns = tuple(new_column(c.name, c.dtype, c.nullable) for c in definition.outputs)
    return Shared(definition, columns, tuple(range(len(columns))))


Kinds = int
"""Some kinds of nodes, a bit each: classes, of joins each `JoinKind`; and whether there is a subquery expression."""
_ASKS = 1  # a subquery expression
_BITS: dict[object, Kinds] = {kind: 2 << n for n, kind in enumerate((*get_args(Plan), *JoinKind))}


def kinds_of(*wanted: object) -> Kinds:
    """The bits of classes of nodes and of `JoinKind`s."""
    return reduce(or_, [_BITS[kind] for kind in wanted])


_LEADING = kinds_of(Shared) | _ASKS  # of all that a use may be below


def kinds(plan: Plan) -> Kinds:
    """What nodes a plan has, without those of definitions and of subqueries: which rules may find something to do. A node
    remembers it, and most nodes stay from rule to rule."""
    found = plan.memo_kinds
    if found is None:
        found = _BITS[plan.kind if isinstance(plan, Join) else plan.__class__]
        if own_subqueries(plan):
            found |= _ASKS
        for s in plan.sources:
            found |= s.memo_kinds or kinds(s)
        plan.memo_kinds = found
    return found


def all_kinds(plan: Plan) -> Kinds:
    """What nodes a plan and its definitions have."""
    return reduce(or_, [kinds(d.plan) for d in definitions(plan)], kinds(plan))


def nodes(plan: Plan) -> Iterator[Plan]:
    """The plan and every plan below it, those inside subquery expressions too, but not those of definitions."""
    return _nodes_inside(plan) if kinds(plan) & _ASKS else walk(plan)


def _nodes_inside(plan: Plan) -> Iterator[Plan]:
    plans = [plan]
    while plans:
        for node in walk(plans.pop()):
            yield node
            plans += [s.plan for s in own_subqueries(node)]


def has_subqueries(plan: Plan) -> bool:
    """Whether a subquery expression stands in a plan, outside of others."""
    return bool(kinds(plan) & _ASKS)


def uses(plan: Plan) -> tuple[Shared, ...]:
    """The uses of definitions in a plan, those inside subquery expressions too."""
    if isinstance(plan, Shared):  # one would remember itself, and keep all that it rests on until the collector comes
        return (plan,)
    found = plan.memo_uses
    if found is None:
        found = plan.memo_uses = tuple(_uses(plan))
    return found


def _uses(plan: Plan) -> list[Shared]:
    found: list[Shared] = []
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        has = node.memo_kinds or kinds(node)
        if has & _LEADING:
            if isinstance(node, Shared):
                found.append(node)
            if has & _ASKS:
                waiting += [s.plan for s in own_subqueries(node)]
            waiting += node.sources[::-1]
    return found


def definitions(plan: Plan, changed: Definitions | None = None) -> tuple[Definition, ...]:
    """All definitions that a plan rests on, each once, behind those that it uses itself. ``changed`` ones stand for those with
    their numbers."""
    if changed or isinstance(plan, Shared):  # a use would remember itself
        return _definitions(plan, changed or {})
    found: tuple[Definition, ...] | None = plan.__dict__.get("_definitions")
    if found is None:
        found = plan.__dict__["_definitions"] = _definitions(plan, {}) if uses(plan) else ()
    return found


def _definitions(plan: Plan, changed: Definitions) -> tuple[Definition, ...]:
    out: list[Definition] = []
    met: set[int] = set()

    def below(p: Plan) -> list[tuple[Definition, bool]]:
        return [(changed.get(u.definition.number, u.definition), False) for u in reversed(uses(p))]

    stack = below(plan)
    while stack:
        d, is_done = stack.pop()
        if is_done:
            out.append(d)
        elif d.number not in met:
            met.add(d.number)
            stack.append((d, True))
            stack += [entry for entry in below(d.plan) if entry[0].number not in met]
    return tuple(out)


def every_node(plan: Plan) -> Iterator[Plan]:
    """Every node that a query rests on: of its definitions, of its plan, and inside subquery expressions."""
    for part in (*(d.plan for d in definitions(plan)), plan):
        for node in nodes(part):
            yield node
            if isinstance(node, Fixpoint):
                yield from every_node(node.step.plan)


def scans(plan: Plan) -> tuple[Scan, ...]:
    """The scans among them. Several steps ask: whether files have changed, what to load."""
    if isinstance(plan, Scan):
        return (plan,)  # which does not remember itself, as a use does not
    found: tuple[Scan, ...] | None = plan.__dict__.get("_scans")
    if found is None:
        out: list[Scan] = []
        for part in (*(d.plan for d in definitions(plan)), plan):
            for node in nodes(part):
                if isinstance(node, Scan):
                    out.append(node)
                elif isinstance(node, Fixpoint):
                    out += scans(node.step.plan)
        found = plan.__dict__["_scans"] = tuple(out)
    return found


# ---- rewriting -------------------------------------------------------------------------------------------------------


def transform_kinds(plan: Plan, wanted: Kinds, f: Callable[[Plan], Plan]) -> Plan:
    """`tree.transform_up` of what has such nodes (`kinds`): where none is, ``f`` has nothing to do, and nobody looks."""
    if not kinds(plan) & wanted:
        return plan
    new, is_new = [], False
    for s in plan.sources:
        made = transform_kinds(s, wanted, f)
        is_new = is_new or made is not s
        new.append(made)
    return f(with_sources(plan, tuple(new)) if is_new else plan)


def with_definitions(plan: Plan, new: Definitions, positions: Positions | None = None) -> Plan:
    """The plan using other definitions in place of those with their numbers; the same object where it uses none."""
    if not new or new.keys().isdisjoint([u.definition.number for u in uses(plan)]):
        return plan
    return _over(plan, new, positions)


def _over(plan: Plan, new: Definitions, positions: Positions | None) -> Plan:
    has = plan.memo_kinds or kinds(plan)
    if not has & _LEADING:
        return plan
    if isinstance(plan, Shared):
        if (d := new.get(plan.definition.number)) is None:
            return plan
        moved = None if positions is None else positions.get(plan.definition.number)
        return Shared(d, plan.columns, plan.fields if moved is None else tuple(moved[f] for f in plan.fields))
    plan = with_sources(plan, tuple([_over(s, new, positions) for s in plan.sources]))
    return map_subqueries(plan, lambda p: _over(p, new, positions)) if has & _ASKS and own_subqueries(plan) else plan


def rebuilt(plan: Plan, changed: Definitions, positions: Positions | None = None) -> Plan:
    """``plan`` over its definitions as they were changed, or over others in their place. The changed ones may still use old
    ones: all are put together anew."""
    standing: dict[int, list[int]] = {}
    for number, d in changed.items():
        standing.setdefault(d.number, []).append(number)
    new: dict[int, Definition] = {}
    for d in definitions(plan, changed):
        below = with_definitions(d.plan, new, positions)
        made = d if below is d.plan else replace(d, plan=below)
        if made is not d:
            new[d.number] = made
        new.update((number, made) for number in standing.get(d.number, ()))
    return with_definitions(plan, new, positions)


def each(query: Query, rewrite: Callable[[Query], Query | None]) -> Query | None:
    """The query with ``rewrite`` applied to every definition, as if it were a query, and to the query itself."""
    new: dict[int, Definition] = {}
    for old in definitions(query.plan):
        below, plan = old.query, with_definitions(old.plan, new)
        if plan is not old.plan:
            below = Query(plan, old.outputs, below.names)
        made = rewrite(below) or below
        if made.plan is not old.plan or made.outputs is not old.outputs:
            new[old.number] = replace(old, plan=made.plan, outputs=made.outputs)
    plan = with_definitions(query.plan, new)
    over = query if plan is query.plan else replace(query, plan=plan)
    made = rewrite(over) or over
    return None if made is query else made
