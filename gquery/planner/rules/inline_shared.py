"""What is used once, or costs no more than reading it, stands where it is used.

    Join inner on a.k = b.k                        Join inner on a.k = b.k
      Shared u (a.k, a.n)                            Shared u (a.k, a.n)
      Shared v (b.k)                         =>      Filter x > 3
    u: Aggregate by k: n = count(*), used twice        Scan t
    v: Filter x > 3, used once                     u: Aggregate by k: n = count(*), used twice
         Scan t

In its place a subplan is a part of the query: predicates go down into it, columns are pruned, joins are ordered across it,
and its rows go on in one kernel. So a definition stands in each of its places if it

- is used once, or
- only filters and projects the rows of one table or of another definition, by expressions that are not many: each copy
  reads what its place asks for, where a frame would have to be written first.

Joins, aggregates, DISTINCT, unions and limits that are used several times are computed once. That also bounds the plan: it
stays as long as the text, however often CTEs use each other. AS MATERIALIZED and AS NOT MATERIALIZED overrule this, the
latter as long as the plan does not become too large.
"""

from __future__ import annotations

from collections import Counter

from gquery import tuning
from gquery.expression.expr import Column
from gquery.expression.traverse import walk
from gquery.planner.logical.everywhere import map_subqueries
from gquery.planner.logical.nodes import (
    Definition,
    Filter,
    Plan,
    Project,
    Query,
    Range,
    Scan,
    Shared,
    Values,
)
from gquery.planner.logical.shared import definitions, nodes, uses
from gquery.planner.logical.tree import (
    expressions,
    fresh_copy,
    own_subqueries,
    remap_node,
    transform_up,
)
from gquery.runtime.records import replace


def inline_shared(query: Query) -> Query | None:
    """The query with every definition in place that is used once or cheap."""
    return _Inlining(query).query()


def is_cheap(definition: Definition) -> bool:
    """Whether computing it anew costs no more than reading its rows would."""
    plan, parts = definition.plan, 0
    while isinstance(plan, Filter | Project):
        if own_subqueries(plan):
            return False
        parts += sum(1 for e in expressions(plan) for x in walk(e) if not isinstance(x, Column))
        plan = plan.source
    is_leaf = isinstance(plan, Scan | Range | Shared) or (isinstance(plan, Values) and len(plan.rows) == 1)
    return is_leaf and parts <= tuning.rewrites.most_copied_parts


class _Inlining:
    """One query: which definitions are put in place, and what their columns are called there."""

    def __init__(self, query: Query) -> None:
        self.old = query
        self.new: dict[int, Definition] = {}
        self.inlined: set[int] = set()
        self.first: set[int] = set()  # those that stand in their first place, under their own columns
        self.names: dict[int, Column] = {}

    def query(self) -> Query | None:
        order = definitions(self.old.plan)
        if not order or not self._choose(order):
            return None
        for d in order:
            self.new[d.number] = self._definition(d)
        plan = self._plan(self.old.plan)
        return Query(plan, tuple(self._named(c) for c in self.old.outputs), self.old.names)

    def _choose(self, order: tuple[Definition, ...]) -> bool:
        use_counts = Counter(u.definition.number for u in uses(self.old.plan))
        added = 0
        for d in reversed(order):  # those that use others first: each of their copies uses them again
            count = use_counts[d.number]
            size = sum(1 for _ in nodes(d.plan)) * (count - 1)
            is_asked = d.kept is False and added + size <= tuning.rewrites.most_copied_nodes
            copied = is_asked or (d.kept is not True and (count == 1 or is_cheap(d)))
            added += size if is_asked else 0
            if copied:
                self.inlined.add(d.number)
            for u in uses(d.plan):
                use_counts[u.definition.number] += count if copied else 1
        return bool(self.inlined)

    def _definition(self, d: Definition) -> Definition:
        plan = self._plan(d.plan)
        outputs = tuple(self._named(c) for c in d.outputs)
        return d if plan is d.plan else replace(d, plan=plan, outputs=outputs)

    def _named(self, c: Column) -> Column:
        new = self.names.get(c.id)
        return c if new is None else Column(new.id, new.name, new.dtype, c.nullable or new.nullable)

    def _plan(self, plan: Plan) -> Plan:
        """The plan with definitions in place, and their columns in place of those of their uses."""
        if not uses(plan):
            return plan

        def node(p: Plan) -> Plan:
            if isinstance(p, Shared):
                return self._use(p)
            p = map_subqueries(p, self._plan)
            return remap_node(p, self.names) if self.names else p  # what is in place has its names already

        return transform_up(plan, node)

    def _use(self, shared: Shared) -> Plan:
        d = self.new[shared.definition.number]
        if d.number not in self.inlined:
            return Shared(d, shared.columns, shared.fields)
        if d.number not in self.first:
            self.first.add(d.number)
            plan, columns = d.plan, {c.id: c for c in d.plan.columns}
        else:
            plan, columns = fresh_copy(d.plan)
        flags = {c.id: c for c in plan.columns}
        given = tuple(flags[columns[c.id].id] for c in (d.outputs[f] for f in shared.fields))
        self.names.update((c.id, g) for c, g in zip(shared.columns, given, strict=True))
        if [c.id for c in given] == [c.id for c in plan.columns]:
            return plan
        return Project(plan, tuple((c, c) for c in given))
