"""Few rows out of many that a query asks for in several places are found once.

    Join inner on item = k and q < a          Join inner on item = k and q < a
      Join semi on item = id                    Project item = item', q = q'
        Scan sales (item, q)                      Project item', q'               the same plan twice:
        Filter items                    =>          Join semi on item' = id'      lowering computes it once
      Aggregate by k = item: a = avg(q)               Scan sales, Filter items
        Join semi on item = id                  Aggregate by k = item: a = avg(q)
          Scan sales (item, q)                    Project item = item", q = q"
          Filter items                              Project item", q"
                                                      Join semi on item" = id"
                                                        Scan sales, Filter items

Two joins are the same where they pair the same rows by the same conditions, whichever columns they read for others; one
that gives all columns that are asked for takes the place of both. Text that a row finds in one row of another table is
not among them: it is looked up again, behind the few rows. Done where the rows are few against those that are read to
find them: writing them down is cheap then, reading everything again is not. It comes after pruning, which would make the
copies different again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gquery import tuning
from gquery.expression.expr import Column, new_column
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    Query,
    Scan,
    Shared,
    UnionAll,
)
from gquery.planner.logical.properties import many_to_one
from gquery.planner.logical.tree import (
    canonical,
    column_ids,
    expression_key,
    expressions,
    fresh_copy,
    used_columns,
    walk,
    with_sources,
)

_KINDS = (JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI)

Values = dict[int, Any]  # column id: where its value comes from, the same in joins that are the same
Shape = tuple[Any, Values]


def share_rows(query: Query) -> Query | None:
    """The query with joins that find the same few rows as copies of one."""
    least = tuning.semi_joins.shared_least_rows
    scanned = Counter(id(n.source) for n in walk(query.plan) if isinstance(n, Scan) and n.source.rows >= least)
    if not scanned or max(scanned.values()) < 2:
        return None
    new = _Sharing(query).plan()
    return None if new is query.plan else replace(query, plan=new)


def is_reduction(plan: Plan, estimator: Estimator) -> bool:
    """Whether a join leaves few rows of the table that streams through it."""
    rows, node = estimator.rows(plan), plan
    while not isinstance(node, Scan):
        if not isinstance(node, Join | Filter | Project):
            return False
        node = node.sources[0]
    limits = tuning.semi_joins
    return node.source.rows >= limits.shared_least_rows and rows <= limits.shared_share * node.source.rows


@dataclass(frozen=True)
class _Found:
    """A join, where its columns' values come from, and which of them are asked for."""

    join: Join
    values: Values
    asked: dict[Any, Column]

    def home(self, value: Any) -> tuple[int, Join | None]:
        """The join on the way down the left side whose right side a value comes from, if it finds a row in one row there;
        and how far down it stands."""
        node: Plan = self.join
        depth = 0
        while isinstance(node, Filter) or (isinstance(node, Join) and value[0] == 0):
            if isinstance(node, Join):
                value, depth = value[1], depth + 1
            node = node.sources[0]
        found = isinstance(node, Join) and node.kind is JoinKind.INNER and many_to_one(node)
        return depth, node if found and isinstance(node, Join) else None

    @cached_property
    def lookups(self) -> tuple[Join, ...]:
        """The joins, lowest first, whose right side is looked up again behind the shared rows, which are small without its
        text."""
        homes = [self.home(v) for v, c in self.asked.items() if c.dtype.is_string]
        by_id = {id(join): (depth, join) for depth, join in homes if join is not None}
        return tuple(join for _, join in sorted(by_id.values(), key=lambda h: -h[0]))

    @cached_property
    def carried(self) -> dict[Any, Column]:
        """What the shared rows have to give for this join: what is not looked up, and the keys of what is."""
        again = {id(join) for join in self.lookups}
        used = {i for join in self.lookups for i in used_columns(join.condition)}
        keys = {self.values[c.id]: c for join in self.lookups for c in join.left.columns if c.id in used}
        return {v: c for v, c in (keys | self.asked).items() if id(self.home(v)[1]) not in again}


class _Sharing:
    """One query: which of its joins are the same, and what is asked of them."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.estimator = Estimator()
        self.estimator.rows(query.plan)
        self.shapes: dict[int, Shape | None] = {}
        self.alike: dict[Any, list[_Found]] = {}
        self.places: Counter[Any] = Counter()
        self.keys: dict[int, Any] = {}
        self.copies: dict[Any, dict[int, Plan]] = {}
        self.needs: dict[int, frozenset[int]] = {}

    def plan(self) -> Plan:
        self._need(self.query.plan, frozenset(c.id for c in self.query.outputs))
        self._find(self.query.plan, set(), False)
        return self._replaced(self.query.plan)

    def _replaced(self, plan: Plan) -> Plan:
        """The plan with joins that stand in several places as copies of one; what is inside them goes with them."""
        key = self.keys.get(id(plan))
        if key is not None and self.places[key] > 1:
            if key not in self.copies:
                self.copies[key] = _as_one(self.alike[key])
            if id(plan) in self.copies[key]:
                return self.copies[key][id(plan)]
        return with_sources(plan, tuple([self._replaced(s) for s in plan.sources]))

    def _need(self, plan: Plan, needed: frozenset[int]) -> None:
        """The columns of each join that are used above it."""
        if isinstance(plan, Join):
            self.needs[id(plan)] = needed & column_ids(plan)
        match plan:
            case Project(exprs=exprs):
                below = frozenset[int]().union(*(used_columns(e) for c, e in exprs if c.id in needed))
            case UnionAll(inputs=inputs):
                below = frozenset(c.id for row in inputs for c in row)
            case _:
                below = needed.union(*(used_columns(e) for e in expressions(plan)))
        for s in plan.sources:
            self._need(s, below)

    def _find(self, plan: Plan, known: set[Any], is_copy: bool) -> None:
        """The joins that leave few rows, by what they pair. What stands in an aggregate that is shared anyway is rewritten as
        the first of its kind is, but is no reason to."""
        if isinstance(plan, Aggregate):
            key = canonical(plan)
            is_copy = is_copy or key in known
            known.add(key)
        if isinstance(plan, Join) and plan.kind in _KINDS and is_reduction(plan, self.estimator):
            shape = self._shape(plan)
            needed = self.needs[id(plan)]
            asked = {} if shape is None else {shape[1][c.id]: c for c in plan.columns if c.id in needed}
            if shape is not None and len(asked) == len(needed):
                self.alike.setdefault(shape[0], []).append(_Found(plan, shape[1], asked))
                self.places[shape[0]] += not is_copy
                self.keys[id(plan)] = shape[0]
        for s in plan.sources:
            self._find(s, known, is_copy)

    def _shape(self, plan: Plan) -> Shape | None:
        if id(plan) not in self.shapes:
            self.shapes[id(plan)] = self._made_shape(plan)
        return self.shapes[id(plan)]

    def _made_shape(self, plan: Plan) -> Shape | None:
        """What rows a plan gives, and where each column comes from; None for plans that are not compared."""
        below = [self._shape(s) for s in plan.sources]
        if any(s is None for s in below):
            return None
        parts = [s for s in below if s is not None]
        values: Values = (
            parts[0][1]
            if len(parts) == 1
            else {i: (n, v) for n, (_, given) in enumerate(parts) for i, v in given.items()}
        )

        def key(e: Any) -> Any:
            return expression_key(e, lambda c: values.get(c.id, ("unknown", c.id)))

        match plan:
            case Scan(source, columns, fields):
                return ("scan", id(source)), {c.id: f for c, f in zip(columns, fields, strict=True)}
            case Shared(definition, columns, fields):
                return ("shared", definition.number), {c.id: f for c, f in zip(columns, fields, strict=True)}
            case Filter(predicate=p):
                return ("filter", parts[0][0], key(p)), values
            case Project(exprs=exprs):
                return parts[0][0], {c.id: values[e.id] if isinstance(e, Column) else key(e) for c, e in exprs}
            case Join(kind=kind, condition=condition, mark=None):
                return ("join", kind, parts[0][0], parts[1][0], key(condition)), values
            case Aggregate(keys=keys, aggregates=calls):
                by = tuple(key(e) for _, e in keys)
                made = [
                    (a.function, a.distinct, tuple(key(x) for x in a.args), a.filter and key(a.filter))
                    for _, a in calls
                ]
                named = {c.id: ("group", n) for n, c in enumerate(plan.columns)}
                return ("aggregate", parts[0][0], by, tuple(made)), named
            case _:
                return None


def _giving(plan: Plan, values: dict[Any, Column], given: dict[Any, Column]) -> Plan | None:
    """The plan with more columns of the tables that it reads, like these; they are entered into ``given``."""
    for value, like in values.items():
        found = _with_column(plan, value, like)
        if found is None:
            return None
        plan, given[value] = found
    return plan


def _with_column(plan: Plan, value: Any, like: Column) -> tuple[Plan, Column] | None:
    """The plan with the column that a value comes from, and that column."""
    match plan:
        case Scan(source, columns, fields) if isinstance(value, int):
            column = new_column(like.name, like.dtype, like.nullable)
            return Scan(source, (*columns, column), (*fields, value)), column
        case Shared(definition, columns, fields) if isinstance(value, int):
            column = new_column(like.name, like.dtype, like.nullable)
            return Shared(definition, (*columns, column), (*fields, value)), column
        case Filter(source=s):
            below = _with_column(s, value, like)
            return below and (with_sources(plan, (below[0],)), below[1])
        case Join(left=left, right=right) if isinstance(value, tuple) and value[0] in (0, 1):
            side, at = value
            below = _with_column((left, right)[side], at, like)
            if below is None or (side and plan.kind is not JoinKind.INNER):
                return None
            return with_sources(plan, (left, below[0]) if side else (below[0], right)), below[1]
        case _:
            return None


def _as_one(found: list[_Found]) -> dict[int, Plan]:
    """Joins that pair the same rows as copies of one that gives all that is asked of any; as they were where none can."""
    wanted: dict[Any, Column] = {}
    for f in reversed(found):
        wanted.update(f.carried)
    for f in found:
        given = {f.values[c.id]: c for c in reversed(f.join.columns)}
        source = _giving(f.join, {v: c for v, c in wanted.items() if v not in given}, given)
        if source is not None:
            passed = {given[v].id for v in wanted}
            one = Project(source, tuple((c, c) for c in source.columns if c.id in passed))
            return {id(g.join): _reading(g, one, given) for g in found}
    return {}


def _reading(found: _Found, one: Project, given: dict[Any, Column]) -> Plan:
    """What takes the place of a join: a copy of the shared rows under its own names, joined anew for text."""
    copy, names = fresh_copy(one)
    plan: Plan = Project(copy, tuple((c, names[given[v].id]) for v, c in found.carried.items()))
    for join in found.lookups:
        plan = Join(plan, join.right, JoinKind.INNER, join.condition)
    return plan
