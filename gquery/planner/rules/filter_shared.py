"""A definition gives no row that none of its uses asks for.

    Join inner on a.k = b.k                       Join inner on a.k = b.k
      Filter a.year = 2001                          Filter a.year = 2001
        Shared u (a.k, a.year)             =>         Shared u (a.k, a.year)
      Filter b.year = 2002                          Filter b.year = 2002
        Shared u (b.k, b.year)                        Shared u (b.k, b.year)
    u: Aggregate by k, year                       u: Aggregate by k, year
         Scan sales                                    Filter year = 2001 OR year = 2002
                                                         Scan sales

Where every use has a filter right above it, a row that passes none of them is needed by no one. The filters stay; what they
have in common, or that one of them is TRUE, goes down into the definition. It comes after `push_down_filter`, which brings
the filters there.
"""

from __future__ import annotations

from gquery import tuning
from gquery.expression.expr import Expr
from gquery.expression.traverse import disjunction, substitute, walk
from gquery.planner.logical.nodes import Definition, Filter, Plan, Query, Shared
from gquery.planner.logical.shared import definitions, rebuilt, uses
from gquery.planner.logical.tree import walk as walk_plan
from gquery.planner.rules.fold_constants import Evaluate
from gquery.planner.rules.push_down_filter import push_down_filter
from gquery.planner.rules.simplify import simplify
from gquery.runtime.records import replace

Asked = dict[int, list[Expr | None]]
"""By definition each use's filter over the definition's outputs, None for no filter."""


def filter_shared(query: Query, evaluate: Evaluate | None) -> Query | None:
    """The query with the filters of all uses of a definition, one of which must hold, inside it."""
    order = definitions(query.plan)
    if not order:
        return None
    asked: Asked = {d.number: [] for d in order}
    changed: dict[int, Definition] = {}
    _note(query.plan, asked)
    for d in reversed(order):  # those that use others first: what goes down in them may reach these
        predicate = _one_of(asked[d.number])
        plan = d.plan
        if predicate is not None:
            plan = _filtered(plan, predicate, evaluate)
            changed[d.number] = replace(d, plan=plan)
        _note(plan, asked)
    plan = rebuilt(query.plan, changed)
    return None if plan is query.plan else replace(query, plan=plan)


def _filtered(plan: Plan, predicate: Expr, evaluate: Evaluate | None) -> Plan:
    """The rows of a plan that pass, tested as far down as can be; what is constant there is folded."""
    plan = Filter(plan, predicate)
    plan = push_down_filter(plan) or plan
    return simplify(plan, evaluate) or plan


def _note(plan: Plan, asked: Asked) -> None:
    """Enters what each use in a plan asks for."""
    filtered: set[int] = set()
    for node in walk_plan(plan) if uses(plan) else ():
        match node:
            case Filter(source=Shared() as use, predicate=p):
                filtered.add(id(use))
                made: dict[int, Expr] = {c.id: o for c, o in zip(use.columns, use.outputs, strict=True)}
                asked[use.definition.number].append(substitute(p, made))
            case Shared(definition=d) if id(node) not in filtered:
                asked[d.number].append(None)
            case _:
                pass


def _one_of(filters: list[Expr | None]) -> Expr | None:
    """What holds of every row that some use asks for; None if nothing is known."""
    known = [f for f in filters if f is not None]
    if not known or len(known) < len(filters):
        return None
    different = tuple(dict.fromkeys(known))
    if sum(1 for f in different for _ in walk(f)) > tuning.rewrites.most_filter_parts:
        return None
    if len(different) == 1:
        return different[0]
    return disjunction(different)
