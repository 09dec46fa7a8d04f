"""Subplans that a query holds twice become one definition with two uses.

    Join inner on a.k = b.k                  Join inner on a.k = b.k
      Aggregate by a.k = k                     Shared (a.k)
        Scan t                        =>       Shared (b.k)
      Aggregate by b.k = k                   once: Aggregate by k
        Scan t                                       Scan t

CTEs and views are shared from the start (`gquery.sql`); this finds what was written twice, and what rules copied or made
equal (`share_rows`, `merge_aggregates`). Aggregates are shared, and joins that leave few rows: their results are small
against what they read. Two definitions that compute the same become one. It is the last rule, as others would make the
copies different again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from gquery.expression.expr import Column
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import Aggregate, Definition, Join, Plan, Project, Query, Shared
from gquery.planner.logical.shared import definitions, new_definition, with_definitions
from gquery.planner.logical.tree import canonical, fresh_copy, walk, with_sources
from gquery.planner.rules.share_rows import is_reduction


def share_subplans(query: Query) -> Query | None:
    """The query with each subplan that it holds twice as a definition."""
    new = _Sharing(_merged(query)).query()
    return None if new is query else new


def _merged(query: Query) -> Query:
    """The query with one definition for those that compute the same."""
    first: dict[Any, Definition] = {}
    new: dict[int, Definition] = {}
    for d in definitions(query.plan):
        plan = with_definitions(d.plan, new)
        made = d if plan is d.plan else replace(d, plan=plan)
        place = {c.id: i for i, c in enumerate(plan.columns)}
        known = first.setdefault((canonical(plan), tuple(place[c.id] for c in d.outputs)), made)
        if known is not d:
            new[d.number] = known
    plan = with_definitions(query.plan, new)
    return query if plan is query.plan else replace(query, plan=plan)


def _look(plan: Plan) -> Any:
    """What equal subplans surely have in common, cheap to compute; None for those that are not shared."""
    match plan:
        case Aggregate(source=s, keys=keys, aggregates=calls):
            return len(keys), tuple([a.function for _, a in calls]), type(s)
        case Project(source=Join(), exprs=exprs):
            return len(exprs)
        case _:
            return None


class _Sharing:
    """One query: which subplans it holds how often, and the definitions that are made of them."""

    def __init__(self, query: Query) -> None:
        self.old = query
        self.estimator = Estimator()
        self.places: Counter[Any] = Counter()
        self.made: dict[Any, Definition] = {}

    def query(self) -> Query:
        order = definitions(self.old.plan)
        plans = [*(d.plan for d in order), self.old.plan]
        looks = Counter(_look(n) for p in plans for n in walk(p))
        del looks[None]
        if max(looks.values(), default=0) < 2:  # most queries have no two that could be equal
            return self.old
        self.likely = {look for look, n in looks.items() if n > 1}
        for plan in plans:
            self._count(plan)
        if max(self.places.values(), default=0) < 2:
            return self.old
        new: dict[int, Definition] = {}
        for d in order:
            made = self._replaced(with_definitions(d.plan, new))
            if made is not d.plan:
                new[d.number] = replace(d, plan=made)
        return replace(self.old, plan=self._replaced(with_definitions(self.old.plan, new)))

    def _count(self, plan: Plan) -> None:
        """How often each subplan would be computed if what is found twice were computed once."""
        key = self._key(plan)
        if key is not None:
            self.places[key] += 1
            if self.places[key] > 1:
                return
        for s in plan.sources:
            self._count(s)

    def _key(self, plan: Plan) -> Any:
        """What a subplan shares with its equals; None for one that is not worth sharing."""
        look = _look(plan)
        if look is None or look not in self.likely:
            return None
        return canonical(plan) if isinstance(plan, Aggregate) or is_reduction(plan, self.estimator) else None

    def _replaced(self, plan: Plan) -> Plan:
        key = self._key(plan)
        if key is None or self.places[key] < 2:
            return with_sources(plan, tuple([self._replaced(s) for s in plan.sources]))
        if key not in self.made:
            inside, names = fresh_copy(with_sources(plan, tuple([self._replaced(s) for s in plan.sources])))
            outputs = tuple(Column(names[c.id].id, c.name, c.dtype, c.nullable) for c in plan.columns)
            self.made[key] = new_definition(Query(inside, outputs, tuple(c.name for c in outputs)))
        return Shared(self.made[key], plan.columns, tuple(range(len(plan.columns))))
