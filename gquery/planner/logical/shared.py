"""Definitions: the subplans that a query computes once, and the walks that reach through their uses (`Shared`).

A use is a leaf, so that a walk over a plan (`planner.logical.tree`) ends there, and a chain of CTEs that each use the one before
twice stays as long as its text. What has to see the whole query asks here, and meets each definition once. Definitions
never refer to each other in a circle; those that others use come first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

from gquery.expression.expr import new_column
from gquery.planner.logical.everywhere import map_subqueries
from gquery.planner.logical.nodes import (
    Definition,
    Fixpoint,
    Join,
    Plan,
    Query,
    Scan,
    Shared,
)
from gquery.planner.logical.tree import (
    own_subqueries,
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


Kinds = frozenset[object]
"""Classes of nodes, of a join its `JoinKind`, of a use what it uses."""
_NO_KINDS: Kinds = frozenset()
_SCANS: Kinds = frozenset((Scan,))


def nodes(plan: Plan) -> Iterator[Plan]:
    """The plan and every plan below it, those inside subquery expressions too, but not those of definitions."""
    plans = [plan]
    while plans:
        stack = [plans.pop()]
        while stack:  # as `tree.walk`, without a second generator
            node = stack.pop()
            yield node
            if below := node.sources:
                stack.extend(below[::-1])
            if own := own_subqueries(node):
                plans += [s.plan for s in own]


def kinds(plan: Plan) -> Kinds:
    """What nodes a plan has, those of its definitions too: which rules may find something to do. A node remembers it, and most
    nodes stay from rule to rule. There are no subqueries any more."""
    if plan.__class__ is Scan:  # nearly half of all
        return _SCANS
    found: Kinds | None = plan.__dict__.get("_kinds")
    if found is None:
        found = plan.__dict__["_kinds"] = _kinds(plan)
    return found


def _kinds(plan: Plan) -> Kinds:
    if isinstance(plan, Shared):
        if "_kinds" not in plan.definition.plan.__dict__:
            for d in definitions(plan):  # those that it uses first: a long chain is no deep recursion
                kinds(d.plan)
        return kinds(plan.definition.plan)
    own: object = plan.kind if isinstance(plan, Join) else type(plan)
    found = _NO_KINDS
    for s in plan.sources:
        more = kinds(s)
        found = more if found <= more else found if more <= found else found | more
    return found if own in found else found | {own}


_Leaves = tuple[tuple[Shared, ...], tuple[Plan, ...]]
"""The uses of definitions in a plan, and the plans of its subqueries, those that stand in several nodes as often."""
_NO_LEAVES: _Leaves = (), ()


def _leaves(plan: Plan) -> _Leaves:
    """Remembered of each node: behind a rule most nodes below a new one are old. A use would remember itself, and keep all that
    it rests on until the collector comes."""
    if plan.__class__ is Scan:
        return _NO_LEAVES
    found: _Leaves | None = plan.__dict__.get("_leaves")
    if found is None:
        if isinstance(plan, Shared):
            return (plan,), ()
        own = own_subqueries(plan)
        found = ((), tuple([s.plan for s in own])) if own else _NO_LEAVES
        for s in plan.sources:
            below = _leaves(s)
            if below is not _NO_LEAVES:
                found = (found[0] + below[0], found[1] + below[1]) if found is not _NO_LEAVES else below
        plan.__dict__["_leaves"] = found
    return found


def uses(plan: Plan) -> tuple[Shared, ...]:
    """The uses of definitions in a plan, those inside subquery expressions too."""
    found, plans = _leaves(plan)
    if not plans:
        return found
    waiting = list(plans)
    while waiting:
        more, plans = _leaves(waiting.pop())
        found += more
        waiting += plans
    return found


def without_uses(plan: Plan) -> None:
    """Note what is known: that a plan uses no definition. Looking at each node of it costs more than most rules."""
    plan.__dict__["_leaves"] = _NO_LEAVES


def definitions(plan: Plan, changed: Definitions | None = None) -> tuple[Definition, ...]:
    """All definitions that a plan rests on, each once, behind those that it uses itself. ``changed`` ones stand for those with
    their numbers."""
    if changed or isinstance(plan, Shared):  # a use would remember itself
        return _definitions(plan, changed or {})
    found: tuple[Definition, ...] | None = plan.__dict__.get("_definitions")
    if found is None:
        found = plan.__dict__["_definitions"] = _definitions(plan, {}) if _leaves(plan) is not _NO_LEAVES else ()
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
    if kinds(plan).isdisjoint(wanted):
        return plan
    new, is_new = [], False
    for s in plan.sources:
        made = transform_kinds(s, wanted, f)
        is_new = is_new or made is not s
        new.append(made)
    return f(with_sources(plan, tuple(new)) if is_new else plan)


def with_definitions(plan: Plan, new: Definitions, positions: Positions | None = None) -> Plan:
    """The plan using other definitions in place of those with their numbers; the same object where it uses none."""
    if not new or (found := _leaves(plan)) is _NO_LEAVES:
        return plan
    if new.keys().isdisjoint([u.definition.number for u in (uses(plan) if found[1] else found[0])]):
        return plan
    if isinstance(plan, Shared):
        moved = None if positions is None else positions.get(plan.definition.number)
        fields = plan.fields if moved is None else tuple(moved[f] for f in plan.fields)
        return Shared(new[plan.definition.number], plan.columns, fields)
    plan = with_sources(plan, tuple([with_definitions(s, new, positions) for s in plan.sources]))
    return map_subqueries(plan, lambda q: with_definitions(q, new, positions)) if own_subqueries(plan) else plan


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
