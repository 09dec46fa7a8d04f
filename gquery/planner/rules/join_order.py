"""The order of joins, from estimates.

A group of inner joins is taken apart into its relations and conditions and put together anew. The engine streams the
left side of a join through in one fused pipeline and builds a table over the right side, so the relation that is
largest (the *probe side*) comes to stand leftmost, and every other relation is a build side of the chain over it, or joined
into one first (`join_cost` says which is cheaper):

    Join                     the largest table is read once, probing two tables, in one kernel;
      Join                   orders are joined with customers before their table is built
        Filter sales
        Join orders, customers
      shops

Dynamic programming over the connected subsets (Moerkotte and Neumann, "Dynamic programming strikes back", 2008) finds
the cheapest tree for up to ten relations; above that the pair that is cheapest to join is joined first. SEMI and ANTI
joins in the group filter the relation they speak of; the other kinds keep their place above the inner joins.

Rows that a user sorted keep their order under a window. Where the window became a join with groups of these rows
(`whole_partitions`), the rows are the probe side, whatever it costs.
"""

from __future__ import annotations

from dataclasses import field
from math import inf

from gquery import tuning
from gquery.expression.expr import Expr
from gquery.expression.traverse import conjunction, conjuncts
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Limit,
    Plan,
    Project,
    Shared,
    Sort,
    Unnest,
    Window,
    WorkingTable,
)
from gquery.planner.logical.selectivity import weight
from gquery.planner.logical.shared import kinds, kinds_of
from gquery.planner.logical.tree import column_ids, used_columns, with_sources
from gquery.planner.rules.join_cost import raw_rows
from gquery.planner.rules.join_graph import JoinGraph
from gquery.planner.rules.join_search import JoinSearch
from gquery.planner.rules.semi_join_reduction import reduced_build_side
from gquery.runtime.records import dataclass

_ROUNDS, _USES = kinds_of(WorkingTable), kinds_of(Shared)


def join_order(plan: Plan, estimator: Estimator) -> Plan | None:
    """Every group of inner joins in the order that is estimated to be cheapest."""
    new = _reorder(plan, estimator)
    return None if new is plan else new


def _reorder(plan: Plan, estimator: Estimator) -> Plan:
    cluster = plan.source if isinstance(plan, Filter) else plan
    if not isinstance(cluster, Join) or cluster.kind is JoinKind.FULL:
        return with_sources(plan, tuple([_reorder(s, estimator) for s in plan.sources]))
    group = _Group(estimator)
    group.take(plan)
    if group.entangled:
        group = _Group(estimator, barrier=True)
        group.take(plan)
    return group.build()


def _reads_round(plan: Plan) -> bool:
    """Whether a plan within a recursion reads the rows of the round before."""
    if not kinds(plan) & _ROUNDS:
        return False
    return plan.level is None if isinstance(plan, WorkingTable) else any(_reads_round(s) for s in plan.sources)


def _is_window_of_sorted_rows(relations: list[Plan], rows: int) -> bool:
    """Whether one relation gives the rows of a sorted definition, and each of the others groups of it."""
    if len(relations) == 1:
        return False
    own = _sorted_definitions(relations[rows])
    return bool(own) and all(_is_made_of(r, own) for i, r in enumerate(relations) if i != rows)


def _sorted_definitions(plan: Plan) -> frozenset[int]:
    """The definitions whose rows a plan passes on in the order of a sort below them."""
    passed: set[int] = set()
    if not kinds(plan) & _USES:
        return frozenset()
    while True:
        match plan:
            case Filter(source=s) | Project(source=s) | Limit(source=s) | Window(source=s) | Unnest(source=s):
                plan = s
            case Join(left=s, kind=kind) if kind not in (JoinKind.INNER, JoinKind.FULL):
                plan = s
            case Join(left=s) if _is_window_of_sorted_rows([s, plan.right], 0):
                plan = s
            case Shared(definition=d):
                passed.add(d.number)
                plan = d.plan
            case Sort():
                return frozenset(passed)
            case _:
                return frozenset()


def _is_made_of(plan: Plan, numbers: frozenset[int]) -> bool:
    """Whether a plan gives groups of the rows of one of these definitions, or these rows, which are groups of one each."""
    while isinstance(plan, Filter | Project | Aggregate | Join):  # DISTINCT groups groups, a semi-join leaves out rows
        plan = plan.sources[0]
    return isinstance(plan, Shared) and plan.definition.number in numbers


@dataclass(frozen=True)
class _Dependent:
    """A join in the group that is not an inner one: its left side is the group, its right side stands apart."""

    join: Join
    right: Plan
    needs: frozenset[int]  # columns of the group (or of dependents before it) that its condition reads


@dataclass
class _Group:
    """Relations, conditions and dependents of a group of joins."""

    estimator: Estimator
    barrier: bool = False  # joins that make columns are relations of their own
    relations: list[Plan] = field(default_factory=list)
    terms: list[Expr] = field(default_factory=list)  # conditions of inner joins
    filters: list[Expr] = field(default_factory=list)  # predicates of filters inside the group
    dependents: list[_Dependent] = field(default_factory=list)
    searches: dict[int, JoinSearch] = field(default_factory=dict)  # in the relations as they are, by probe side

    # -- taking apart

    def take(self, plan: Plan) -> None:
        match plan:
            case Filter(source=Join(kind=kind)) if kind is not JoinKind.FULL and not self._is_barrier(kind):
                self.take(plan.source)
                self.filters.extend(conjuncts(plan.predicate))
            case Join(kind=JoinKind.INNER):
                self.take(plan.left)
                self.take(plan.right)
                self.terms.extend(conjuncts(plan.condition))
            case Join(kind=kind) if kind is not JoinKind.FULL and not self._is_barrier(kind):
                self.take(plan.left)
                needs = used_columns(plan.condition) - column_ids(plan.right)
                self.dependents.append(_Dependent(plan, _reorder(plan.right, self.estimator), needs))
            case Join():
                left, right = _reorder(plan.left, self.estimator), _reorder(plan.right, self.estimator)
                self.relations.append(with_sources(plan, (left, right)))
            case _:
                new = tuple([_reorder(s, self.estimator) for s in plan.sources])
                self.relations.append(with_sources(plan, new))

    def _is_barrier(self, kind: JoinKind) -> bool:
        return self.barrier and kind not in (JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI)

    @property
    def entangled(self) -> bool:
        """Whether an inner join's condition reads columns that a dependent makes: then it cannot stand above."""
        if self.barrier or not self.dependents:
            return False
        base = frozenset[int]().union(*(column_ids(r) for r in self.relations))
        return any(not used_columns(t) <= base for t in self.terms)

    # -- putting together

    def build(self) -> Plan:
        rows = [self.estimator.rows(r) for r in self.relations]
        probe_side = self._probe_side(rows)
        late = self._put_early(probe_side, rows)
        joined = plan = self._inner_joins(probe_side)
        have = column_ids(plan)
        waiting = list(dict.fromkeys(self.filters))
        for dependent in [None, *late]:
            if dependent is not None:
                right = dependent.right
                if dependent.needs <= column_ids(joined):
                    right = reduced_build_side(joined, dependent.join, right, self.estimator)
                plan = Join(plan, right, dependent.join.kind, dependent.join.condition, dependent.join.mark)
                have = column_ids(plan)
            ready = tuple(t for t in waiting if used_columns(t) <= have)
            if ready:
                waiting = [t for t in waiting if t not in ready]
                plan = Filter(plan, conjunction(ready))
        return plan if not waiting else Filter(plan, conjunction(tuple(waiting)))

    def _probe_side(self, rows: list[float]) -> int:
        """The relation to stream: the heaviest one, or the one of most rows below its filters if that chain is cheaper. In a
        recursion one that has the rows of a round: tables over the others are built once. Of a window over sorted rows these."""
        in_order = next((i for i in range(len(rows)) if _is_window_of_sorted_rows(self.relations, i)), None)
        if in_order is not None:
            return in_order
        raw = [raw_rows(r, n) for r, n in zip(self.relations, rows, strict=True)]
        numbers = [i for i, r in enumerate(self.relations) if _reads_round(r)] or range(len(rows))
        heaviest = max(numbers, key=lambda i: weight(raw[i], rows[i]))
        longest = max(numbers, key=lambda i: raw[i])
        if raw[longest] <= raw[heaviest]:
            return heaviest
        most = self._search(heaviest).cost
        return longest if self._search(longest, most).cost < most else heaviest

    def _search(self, probe_side: int, most: float = inf) -> JoinSearch:
        if probe_side not in self.searches:
            known = [s.graph for s in self.searches.values()]
            graph = known[0] if known else JoinGraph(self.relations, tuple(dict.fromkeys(self.terms)), self.estimator)
            self.searches[probe_side] = JoinSearch(graph, probe_side, most)
        return self.searches[probe_side]

    def _put_early(self, probe_side: int, rows: list[float]) -> list[_Dependent]:
        """SEMI and ANTI joins on one relation go right above it; what is left stands above the inner joins."""
        late: list[_Dependent] = []
        for d in self.dependents:
            home = next((i for i, r in enumerate(self.relations) if d.needs <= column_ids(r)), None)
            if d.join.kind not in (JoinKind.SEMI, JoinKind.ANTI) or home is None or len(self.relations) == 1:
                late.append(d)
                continue
            joined = Join(self.relations[home], d.right, d.join.kind, d.join.condition)
            kept = self.estimator.rows(joined)
            if home == probe_side and (
                kept > tuning.join_order.early_selectivity * rows[home] or d.join.kind is JoinKind.ANTI
            ):
                late.append(d)
            else:
                self.relations[home], rows[home] = joined, kept
                self.searches.clear()
        return late

    def _inner_joins(self, probe_side: int) -> Plan:
        if len(self.relations) == 1:
            here = tuple(dict.fromkeys(self.terms))
            return Filter(self.relations[0], conjunction(here)) if here else self.relations[0]
        return self._search(probe_side).best()
