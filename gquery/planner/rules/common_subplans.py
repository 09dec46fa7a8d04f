"""Common subplan elimination: what a query computes in several places becomes one definition with several uses.

    Join inner on item = k and q < a          Join inner on item = k and q < a
      Join semi on item = id                    Shared (item, q)
        Scan sales (item, q)                    Aggregate by k = item': a = avg(q')
        Filter items                    =>        Shared (item', q')
      Aggregate by k = item': a = avg(q')     once: Project item, q
        Join semi on item' = id'                Join semi on item = id
          Scan sales (item', q')                  Scan sales (item, q)
          Filter items                            Filter items

CTEs and views are `Shared` from the start (`gquery.sql`). This pass finds what was written twice, and what other rules
copied or made equal. It looks at the query and all its definitions at once, in four steps.

1. **Find.** Subplans that give the same rows have the same number, whichever columns they read (`row_shapes`). Candidates
   are aggregates and joins; only those that look alike without their expressions (`Outlines`) are compared.
2. **Decide.** A definition costs that its rows are written and read again; it saves all computations but one. It pays
   where its rows are few against those that they come from (aggregates, joins that leave few rows of a large table), and
   where each use would write the rows anyway (a build side that holds several rows a key, or text). What only filters and
   projects is not shared: reading the table again costs no more. Nor are join tables: that two joins build the same one
   is only seen when their layout is chosen (`planner.common_builds`).
3. **Count**, from above: what stands in a shared subplan is computed once already.
4. **Replace.** The definition gives all columns that any place asks for. Text that a row finds in one row of another table
   is not written with the rows: each use joins it again, behind the few rows (late materialization).

It is the last rule: others would make the places different again, pruning above all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from gquery import tuning
from gquery.expression.expr import Column
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import (
    Aggregate,
    Definition,
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
from gquery.planner.logical.shared import definitions, new_definition, rebuilt
from gquery.planner.logical.tree import column_ids, expressions, fresh_copy, used_columns, walk, with_sources
from gquery.planner.rules.row_shapes import Origin, Origins, Outlines, Shape, Shapes, reading, side_of
from gquery.runtime.records import cached_property, dataclass, replace

_KINDS = (JoinKind.INNER, JoinKind.SEMI, JoinKind.ANTI)

Columns = frozenset[int]


def common_subplans(query: Query) -> Query | None:
    """The query with each subplan that it computes in several places, and that is worth it, as a definition."""
    order = definitions(query.plan)
    if not _reads_twice([*(d.plan for d in order), query.plan]):  # most queries do not
        return None
    search = _Search(query, order)
    new = search.query() if search.repeated else query
    return None if new is query else new


def _reads_twice(plans: list[Plan]) -> bool:
    """Whether two leaves may give the same rows."""
    met: set[int | type[Plan]] = set()
    for plan in plans:
        for node in walk(plan):
            if not node.sources:
                leaf = id(node.source) if isinstance(node, Scan) else type(node)
                if leaf in met:
                    return True
                met.add(leaf)
    return False


@dataclass(frozen=True)
class _Place:
    """A candidate where it stands: where its columns' values come from, and which of them are asked for. It is worth sharing
    if it leaves few rows, or if its rows are written here whatever is decided."""

    plan: Plan
    rows: int
    origins: Origins
    asked: dict[Origin, Column]
    is_written: bool
    estimator: Estimator

    @cached_property
    def is_small(self) -> bool:
        """Whether it leaves few rows. Estimated where several places give them, and none is written anyway."""
        return isinstance(self.plan, Aggregate) or _is_reduction(self.plan, self.estimator)

    def home(self, origin: Origin) -> tuple[int, Join | None]:
        """The join on the way down the left side whose right side a value comes from, if it finds one row there; and how far
        down it stands."""
        node, depth = self.plan, 0
        while isinstance(node, Filter | Join):
            if isinstance(node, Join):
                there = side_of(origin)
                if there is None or there[0] != 0:
                    break
                origin, depth = there[1], depth + 1
            node = node.sources[0]
        found = isinstance(node, Join) and node.kind is JoinKind.INNER and many_to_one(node)
        return depth, node if found and isinstance(node, Join) else None

    @cached_property
    def late(self) -> tuple[Join, ...]:
        """The joins, lowest first, that are made again behind the shared rows, which are small without their text."""
        if isinstance(self.plan, Aggregate) or not self.is_small:
            return ()
        homes = [self.home(v) for v, c in self.asked.items() if c.dtype.is_string]
        by_id = {id(join): (depth, join) for depth, join in homes if join is not None}
        return tuple(join for _, join in sorted(by_id.values(), key=lambda h: -h[0]))

    @cached_property
    def carried(self) -> dict[Origin, Column]:
        """What the definition has to give for this place: what is not joined late, and the keys of what is."""
        if not self.late:
            return self.asked
        again = {id(join) for join in self.late}
        used = {i for join in self.late for i in used_columns(join.condition)}
        keys = {self.origins[c.id]: c for join in self.late for c in join.left.columns if c.id in used}
        return {v: c for v, c in (keys | self.asked).items() if id(self.home(v)[1]) not in again}


@dataclass(frozen=True)
class _Made:
    """A definition, and the position of each origin among its outputs."""

    definition: Definition
    position: dict[Origin, int]

    def use(self, place: _Place) -> Plan:
        """What takes a place: the rows under the place's columns, joined anew for text."""
        fields = tuple(self.position[v] for v in place.carried)
        outputs = [self.definition.outputs[f] for f in fields]
        columns = [
            Column(c.id, c.name, c.dtype, o.nullable) for c, o in zip(place.carried.values(), outputs, strict=True)
        ]
        plan: Plan = Shared(self.definition, tuple(columns), fields)
        for join in place.late:
            plan = Join(plan, join.right, JoinKind.INNER, join.condition)
        return plan


class _Search:
    """One query: its candidates, those that are shared, and the definitions that are made of them."""

    def __init__(self, query: Query, order: tuple[Definition, ...]) -> None:
        self.old = query
        self.order = order
        self.outlines = Outlines()
        self.repeated = self._repeated()  # no plan with another outline gives the rows of a second one
        self.estimator = Estimator()
        self.shapes = Shapes()
        self.common: set[int] = set()  # the rows that several candidates give
        self.above: set[int] = set()  # the plans that such candidates are, or stand in, by identity
        self.places: dict[int, _Place] = {}  # by identity of the plan
        self.found: dict[int, list[_Place]] = {}  # by number of the rows
        self.shared: set[int] = set()
        self.made: dict[int, _Made | None] = {}  # None: no place can give what all ask for

    def _repeated(self) -> set[int]:
        """The outlines that several candidates have, or several definitions."""
        of = self.outlines.of
        roots = [*(d.plan for d in self.order), self.old.plan]
        candidates = Counter([of(n) for root in roots for n in walk(root) if _is_candidate(n)])
        whole = Counter([of(d.plan) for d in self.order])
        return {outline for counted in (candidates, whole) for outline, count in counted.items() if count > 1}

    def query(self) -> Query:
        same = self._same()
        roots = [(d.plan, d.outputs) for d in self.order if d.number not in same] + [(self.old.plan, self.old.outputs)]
        self.common = self._common([plan for plan, _ in roots])
        if not same and not self.common:  # most of those that read a table twice
            return self.old
        for plan, outputs in roots:
            if self._note_above(plan):
                self._find(plan, frozenset(c.id for c in outputs), False)
        self._decide([plan for plan, _ in roots])
        if not same and not self.shared:
            return self.old
        changed = dict(same)
        for d in self.order:
            if d.number not in same and (plan := self._replaced(d.plan, False)) is not d.plan:
                changed[d.number] = replace(d, plan=plan)
        plan = self._replaced(self.old.plan, False)
        return self.old if plan is self.old.plan and not changed else replace(self.old, plan=rebuilt(plan, changed))

    def _same(self) -> dict[int, Definition]:
        """For each definition that computes the same as an earlier one, that one."""
        first: dict[Hashable, Definition] = {}
        same: dict[int, Definition] = {}
        for d in self.order:
            shape = self._shape(d.plan)
            if shape is not None:
                known = first.setdefault((shape.rows, tuple(shape.origins[c.id] for c in d.outputs)), d)
                if known is not d:
                    same[d.number] = known
                    self.shapes.definitions[d.number] = known.number
        return same

    def _common(self, roots: list[Plan]) -> set[int]:
        """The rows that several candidates give: what else is asked of a place costs more than this."""
        candidates = [n for root in roots for n in walk(root) if _is_candidate(n)]
        counted = Counter([shape.rows for n in candidates if (shape := self._shape(n)) is not None])
        return {rows for rows, count in counted.items() if count > 1}

    def _note_above(self, plan: Plan) -> bool:
        """Whether a plan has such candidates; which others below it have some."""
        shape = self._shape(plan) if _is_candidate(plan) else None
        found = shape is not None and shape.rows in self.common
        for s in plan.sources:
            found = self._note_above(s) or found
        if found:
            self.above.add(id(plan))
        return found

    def _shape(self, plan: Plan) -> Shape | None:
        """The shape of a plan that may have the rows of another one; None for others."""
        return self.shapes.of(plan) if self.outlines.of(plan) in self.repeated else None

    # ---- finding and deciding

    def _find(self, plan: Plan, needed: Columns, is_written: bool) -> None:
        """Enter all candidates; ``is_written``: the rows are written whatever is decided."""
        place = self._place(plan, needed, is_written)
        if place is not None:
            self.places[id(plan)] = place
            self.found.setdefault(place.rows, []).append(place)
        if self.above.isdisjoint(map(id, plan.sources)):
            return
        below = _needed_below(plan, needed)
        for n, s in enumerate(plan.sources):
            if id(s) not in self.above:
                continue
            written = n == 1 and isinstance(plan, Join) and _is_written(plan, needed)
            self._find(s, below, written or (is_written and isinstance(plan, Project)))

    def _place(self, plan: Plan, needed: Columns, is_written: bool) -> _Place | None:
        if not _is_candidate(plan):
            return None
        shape = self._shape(plan)
        if shape is None or shape.rows not in self.common:
            return None
        needed = needed & column_ids(plan)
        if isinstance(plan, Aggregate):
            every = {shape.origins[c.id]: c for c in plan.columns}
            return _Place(plan, shape.rows, shape.origins, every, False, self.estimator)
        asked = {shape.origins[c.id]: c for c in plan.columns if c.id in needed}
        if len(asked) < len(needed):
            return None
        return _Place(plan, shape.rows, shape.origins, asked, is_written, self.estimator)

    def _decide(self, roots: list[Plan]) -> None:
        """Which candidates are shared: those that are computed several times still when the others are computed once."""
        worth = {n for n, of in self.found.items() if len(of) > 1 and all(p.is_written or p.is_small for p in of)}
        self.shared = worth
        for _ in range(tuning.rewrites.sharing_rounds if worth else 0):
            counted: Counter[int] = Counter()
            for plan in roots:
                self._count(plan, worth, counted, False)
            shared = {n for n in worth if counted[n] > 1}
            if shared == self.shared:
                return
            self.shared = shared

    def _count(self, plan: Plan, worth: set[int], counted: Counter[int], in_join: bool) -> None:
        place = self.places.get(id(plan))
        if place is not None and place.rows in worth and not (in_join and isinstance(plan, Join)):
            counted[place.rows] += 1
            if place.rows in self.shared:
                if counted[place.rows] > 1:
                    return
                in_join = in_join or isinstance(plan, Join)
        for s in plan.sources:
            self._count(s, worth, counted, in_join)

    # ---- replacing

    def _shared_place(self, plan: Plan, in_join: bool) -> _Place | None:
        """A place that a definition takes; joins within a shared join stay where they are."""
        place = self.places.get(id(plan))
        if place is None or place.rows not in self.shared or (in_join and isinstance(plan, Join)):
            return None
        return place

    def _replaced(self, plan: Plan, in_join: bool) -> Plan:
        place = self._shared_place(plan, in_join)
        if place is None:
            return with_sources(plan, tuple([self._replaced(s, in_join) for s in plan.sources]))
        if place.rows not in self.made:
            self.made[place.rows] = self._made(self.found[place.rows])
        made = self.made[place.rows]
        if made is None:
            return with_sources(plan, tuple([self._replaced(s, True) for s in plan.sources]))
        return made.use(place)

    def _made(self, places: list[_Place]) -> _Made | None:
        """The definition that gives what all places ask for, made of the first that can."""
        wanted: dict[Origin, Column] = {}
        for p in reversed(places):
            wanted.update(p.carried)
        for p in places:
            known = {p.origins[c.id]: c for c in reversed(p.plan.columns)}
            plan = reading(p.plan, wanted, known)
            if plan is None:
                continue
            plan = with_sources(plan, tuple([self._replaced(s, isinstance(plan, Join)) for s in plan.sources]))
            given = {known[v].id for v in wanted}
            kept = tuple(c for c in plan.columns if c.id in given)
            if len(kept) < len(plan.columns):
                plan = Project(plan, tuple((c, c) for c in kept))
            copy, names = fresh_copy(plan)
            nullable = {c.id: c.nullable for c in copy.columns}
            outputs = tuple(replace(names[c.id], nullable=nullable[names[c.id].id]) for c in kept)
            at = {c.id: n for n, c in enumerate(kept)}
            query = Query(copy, outputs, tuple(c.name for c in outputs))
            return _Made(new_definition(query), {v: at[known[v].id] for v in wanted})
        return None


def _is_candidate(plan: Plan) -> bool:
    return isinstance(plan, Aggregate) or (isinstance(plan, Join) and plan.kind in _KINDS)


def _needed_below(plan: Plan, needed: Columns) -> Columns:
    """The columns of a plan's sources that are used above them. A projection stays whole, so it reads what nothing above it
    asks for too, where no rule has taken that out."""
    match plan:
        case Project(exprs=exprs):
            return frozenset[int]().union(*(used_columns(e) for _, e in exprs))
        case UnionAll(inputs=inputs):
            return frozenset(c.id for row in inputs for c in row)
        case _:
            return needed.union(*(used_columns(e) for e in expressions(plan)))


def _is_written(join: Join, needed: Columns) -> bool:
    """Whether a join writes its right side's rows down. One that finds one row a key may put them into its table at once, but
    not their text."""
    if join.kind not in (JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL):
        return False
    return not many_to_one(join) or any(c.dtype.is_string and c.id in needed for c in join.right.columns)


def _is_reduction(plan: Plan, estimator: Estimator) -> bool:
    """Whether a join leaves few rows of the table that streams through it."""
    rows, node = estimator.rows(plan), plan
    while not isinstance(node, Scan):
        if not isinstance(node, Join | Filter | Project):
            return False
        node = node.sources[0]
    limits = tuning.semi_joins
    return node.source.rows >= limits.shared_least_rows and rows <= limits.shared_selectivity * node.source.rows
