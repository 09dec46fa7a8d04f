"""Decorrelation by the domain: a correlated plan that nothing simpler takes is computed once for all outer values."""

from __future__ import annotations

from gquery.errors import NotSupportedError
from gquery.expression.expr import (
    TRUE,
    AggregateCall,
    Call,
    Case,
    Column,
    Expr,
    IsNull,
    Literal,
    Not,
    SortKey,
    new_column,
)
from gquery.expression.traverse import conjunction, conjuncts
from gquery.expression.types import BIGINT, BOOLEAN
from gquery.expression.windows import WindowCall
from gquery.functions import declaration
from gquery.planner.logical.aggregate_joins import moved
from gquery.planner.logical.equal_columns import equal
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
    Query,
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
from gquery.planner.logical.shared import new_definition
from gquery.planner.logical.tree import (
    column_ids,
    free_columns,
    fresh_copy,
    map_expressions,
    remap_expr,
    with_sources,
)
from gquery.planner.rules.limit_into_sort import limit_into_sort
from gquery.runtime.records import replace


def by_domain(plan: Apply, right: Plan, outer: frozenset[int]) -> Plan:
    """Apply(left, right) as a join of left with the right side computed for all distinct outer values; where some of these are
    lists, which are no keys, for each row of the left side."""
    is_by_row = any(c.dtype.is_opaque for c in plan.left.columns if c.id in outer)
    domain = _Rows(plan.left, outer) if is_by_row else _Domain(plan.left, outer)
    dependent, names = domain.push(right)
    matches = tuple(equal(c, names[c.id], True) for c in domain.columns if domain.is_key(c))
    condition = conjunction((*conjuncts(plan.condition), *matches))
    joined = Join(domain.left, dependent, plan.kind, condition, plan.mark)
    return joined if not is_by_row else Project(joined, tuple((c, c) for c in plan.columns))


class _Domain:
    """D, the distinct values of some columns of a plan; each use of D is a copy with columns of its own."""

    def __init__(self, left: Plan, outer: frozenset[int]) -> None:
        self.outer = outer
        self.columns = tuple(c for c in left.columns if c.id in outer)
        self.left = left

    @property
    def _source(self) -> Plan:
        """A part of the left side that makes all these columns will do: D may hold more values than are asked for."""
        left = self.left
        while isinstance(left, Join):
            if self.outer <= column_ids(left.left) and left.kind is not JoinKind.FULL:
                left = left.left
            elif self.outer <= column_ids(left.right) and left.kind is JoinKind.INNER:
                left = left.right
            else:
                break
        return left

    def is_key(self, c: Column) -> bool:
        """Whether an outer column tells the rows of D apart, with others."""
        return True

    def _keys(self, names: dict[int, Column]) -> dict[int, Column]:
        return {c.id: names[c.id] for c in self.columns if self.is_key(c)}

    def make(self) -> tuple[Plan, dict[int, Column]]:
        """A new D, and its column for every outer column."""
        copy, columns = fresh_copy(self._source)
        names = {c.id: new_column(c.name, c.dtype, c.nullable) for c in self.columns}
        # as nullable as the left side gives them: a join in the copy may fill them with NULLs
        keys = tuple((names[c.id], Column(columns[c.id].id, c.name, c.dtype, c.nullable)) for c in self.columns)
        return Aggregate(copy, keys, ()), names

    def push(self, plan: Plan) -> tuple[Plan, dict[int, Column]]:
        """``plan`` for every row of D: its own columns and D's."""
        if not free_columns(plan) & self.outer:
            d, names = self.make()
            if isinstance(plan, Values) and not plan.columns and len(plan.rows) == 1:
                return d, names
            return Join(plan, d, JoinKind.INNER, TRUE), names
        match plan:
            case Filter(source=s, predicate=p):
                new, names = self.push(s)
                return Filter(new, remap_expr(p, names)), names
            case Project(source=s, exprs=exprs):
                new, names = self.push(s)
                carried = tuple((c, c) for c in names.values())
                return Project(new, tuple((c, remap_expr(e, names)) for c, e in exprs) + carried), names
            case Sort(source=s, limit=None, offset=0):
                new, names = self.push(s)  # the order within one outer row, which a list or a first value may take
                return Sort(new, _by(plan.keys, names)), names
            case Aggregate():
                return self._aggregate(plan)
            case Window(source=s):
                new, names = self.push(s)
                plan = map_expressions(with_sources(plan, (new,)), lambda e: remap_expr(e, names))
                assert isinstance(plan, Window)
                return replace(plan, partition=(*plan.partition, *self._keys(names).values())), names
            case Unnest(source=s):
                new, names = self.push(s)
                return map_expressions(with_sources(plan, (new,)), lambda e: remap_expr(e, names)), names
            case Join():
                return self._join(plan)
            case UnionAll():
                return self._union(plan)
            case Sort() | Limit():
                return self._limit(plan)
            case Values():
                return self._values(plan)
            case Fixpoint():
                raise NotSupportedError("a recursive query that uses columns of the query around it")
            case Scan() | Range() | Shared() | WorkingTable() | Apply():
                raise AssertionError("a leaf uses no outer column, and inner Applies are gone")

    def _aggregate(self, plan: Aggregate) -> tuple[Plan, dict[int, Column]]:
        new, below = self.push(plan.source)
        names = {i: new_column(c.name, c.dtype, c.nullable) for i, c in below.items()}
        by = tuple((names[i], c) for i, c in self._keys(below).items())
        others = [(names[i], below[i]) for i in below if all(c is not names[i] for c, _ in by)]
        passed = tuple((c, AggregateCall("dependent_value", (e,), e.dtype)) for c, e in others)
        keys = tuple((c, remap_expr(e, below)) for c, e in plan.keys)
        calls = tuple((c, moved(a, below)) for c, a in plan.aggregates)
        if keys:
            return Aggregate(new, keys + by, calls + passed), names
        # without keys there is a row for every row of D, also where the group is empty
        inner = {c.id: inner_column(c, a) for c, a in calls}
        grouped = Aggregate(new, by, tuple((inner[c.id], a) for c, a in calls))
        d, outer = self.make()
        matches = tuple(equal(c, names[i], True) for i, c in self._keys(outer).items())
        join = Join(d, grouped, JoinKind.LEFT, conjunction(matches))
        out = tuple((c, empty_group(inner[c.id], a)) for c, a in calls)
        return Project(join, out + tuple((c, c) for c in outer.values())), outer

    def _join(self, plan: Join) -> tuple[Plan, dict[int, Column]]:
        in_left = bool(free_columns(plan.left) & self.outer)
        in_right = bool(free_columns(plan.right) & self.outer)
        if plan.kind is JoinKind.INNER and not (in_left and in_right):
            if in_right:
                right, names = self.push(plan.right)
                left = plan.left
            else:
                left, names = self.push(plan.left)
                right = plan.right
            return Join(left, right, plan.kind, remap_expr(plan.condition, names)), names
        left, names = self.push(plan.left)
        if not in_right and plan.kind is not JoinKind.FULL:
            return replace(plan, left=left, condition=remap_expr(plan.condition, names)), names
        right, others = self.push(plan.right)
        same = tuple(equal(c, others[i], True) for i, c in self._keys(names).items())
        condition = conjunction((*conjuncts(remap_expr(plan.condition, names)), *same))
        join = replace(plan, left=left, right=right, condition=condition)
        if plan.kind is not JoinKind.FULL:
            return join, names
        both = {i: new_column(c.name, c.dtype, True) for i, c in names.items()}
        nullable = {c.id: c for c in join.columns}
        merged = tuple(
            (both[i], Case(((Not(IsNull(a := nullable[names[i].id])), a),), nullable[others[i].id])) for i in names
        )
        return Project(join, tuple((c, c) for c in join.columns) + merged), both

    def _union(self, plan: UnionAll) -> tuple[Plan, dict[int, Column]]:
        names = {c.id: new_column(c.name, c.dtype, c.nullable) for c in self.columns}
        pushed = [self.push(s) for s in plan.sources]
        inputs = tuple(
            row + tuple(below[c.id] for c in self.columns) for row, (_, below) in zip(plan.inputs, pushed, strict=True)
        )
        columns = plan.columns + tuple(names[c.id] for c in self.columns)
        return UnionAll(tuple(p for p, _ in pushed), inputs, columns), names

    def _values(self, plan: Values) -> tuple[Plan, dict[int, Column]]:
        """Constant rows that use outer columns: one projection of D for each."""
        rows: list[Plan] = []
        inputs: list[tuple[Column, ...]] = []
        for row in plan.rows:
            d, names = self.make()
            columns = tuple(new_column(c.name, c.dtype, c.nullable) for c in plan.columns)
            exprs = tuple((c, remap_expr(e, names)) for c, e in zip(columns, row, strict=True))
            rows.append(Project(d, exprs + tuple((names[c.id], names[c.id]) for c in self.columns)))
            inputs.append(columns + tuple(names[c.id] for c in self.columns))
        out = {c.id: new_column(c.name, c.dtype, c.nullable) for c in self.columns}
        union = UnionAll(tuple(rows), tuple(inputs), plan.columns + tuple(out[c.id] for c in self.columns))
        return union, out

    def _limit(self, plan: Sort | Limit) -> tuple[Plan, dict[int, Column]]:
        """LIMIT within a correlated subquery: ``ORDER BY key LIMIT 1`` is any of the rows that hold the least key; others
        number the rows of each outer value."""
        if isinstance(plan, Limit) and (sorted_first := limit_into_sort(plan)) is not None:
            return self.push(sorted_first)
        pushed, outer = self.push(plan.source)
        if plan.limit == 0:
            return Filter(pushed, Literal(0, BOOLEAN)), outer
        keys = _by(plan.keys, outer) if isinstance(plan, Sort) else ()
        values = [c for c in plan.columns if not any(k.expr == c for k in keys)]
        is_plain = not isinstance(self, _Rows) and plan.limit == 1 and not plan.offset
        if not is_plain or len(values) > 1 or len(keys) > 1 or any(_nulls_lead(k) for k in keys):
            return self._numbered(plan, pushed, outer), outer
        rows, columns = fresh_copy(pushed)
        names = {i: new_column(c.name, c.dtype, c.nullable) for i, c in outer.items()}
        if keys:
            others, copied = fresh_copy(pushed)
            by = {i: new_column(c.name, c.dtype, c.nullable) for i, c in outer.items()}
            key = keys[0].expr
            least = new_column("least", key.dtype, True)
            call = AggregateCall("max" if keys[0].descending else "min", (remap_expr(key, copied),), key.dtype)
            group = Aggregate(others, tuple((by[i], copied[outer[i].id]) for i in outer), ((least, call),))
            same = tuple(equal(columns[outer[i].id], by[i], True) for i in outer)
            rows = Join(rows, group, JoinKind.INNER, conjunction((*same, equal(remap_expr(key, columns), least, True))))
        return (
            Aggregate(
                rows,
                tuple((names[i], columns[c.id]) for i, c in outer.items()),
                tuple((c, AggregateCall("any_value", (columns[c.id],), c.dtype)) for c in plan.columns),
            ),
            names,
        )

    def _numbered(self, plan: Sort | Limit, pushed: Plan, outer: dict[int, Column]) -> Plan:
        keys = plan.keys if isinstance(plan, Sort) else ()
        order = _by(keys, outer)
        number = new_column("row_number", BIGINT, False)
        call = WindowCall("row_number", (), BIGINT, False)
        rows = Window(pushed, tuple(self._keys(outer).values()), order, ((number, call),))
        terms = [Call("gt", (number, Literal(plan.offset, BIGINT)), BOOLEAN, False)]
        if plan.limit is not None:
            terms.append(Call("le", (number, Literal(plan.offset + plan.limit, BIGINT)), BOOLEAN, False))
        kept = (*plan.columns, *outer.values())
        made = Project(Filter(rows, conjunction(tuple(terms))), tuple((c, c) for c in kept))
        return Sort(made, order) if order else made


class _Rows(_Domain):
    """D as the rows of the left side themselves, which are numbered and computed once: numbers are the keys."""

    def __init__(self, left: Plan, outer: frozenset[int]) -> None:
        if free_columns(left):
            raise NotSupportedError("not supported: lists in a subquery within a subquery that uses columns around it")
        copy, columns = fresh_copy(left)
        number = new_column("row_number", BIGINT, False)
        rows = Window(copy, (), (), ((number, WindowCall("row_number", (), BIGINT, False)),))
        outputs = (*(replace(columns[c.id], nullable=c.nullable) for c in left.columns), number)
        self._definition = new_definition(Query(rows, outputs, tuple(c.name for c in outputs)), "rows", True)
        self._number = new_column("row_number", BIGINT, False)
        made = (*left.columns, self._number)
        super().__init__(Shared(self._definition, made, tuple(range(len(made)))), outer | {self._number.id})

    def is_key(self, c: Column) -> bool:
        return c.id == self._number.id

    def make(self) -> tuple[Plan, dict[int, Column]]:
        names = {c.id: new_column(c.name, c.dtype, c.nullable) for c in self.columns}
        fields = tuple(n for n, c in enumerate(self.left.columns) if c.id in names)
        return Shared(self._definition, tuple(names[c.id] for c in self.columns), fields), names


def _by(keys: tuple[SortKey, ...], names: dict[int, Column]) -> tuple[SortKey, ...]:
    return tuple(SortKey(remap_expr(k.expr, names), k.descending, k.nulls_first) for k in keys)


def _nulls_lead(key: SortKey) -> bool:
    return key.nulls_first and key.expr.nullable


def inner_column(c: Column, call: AggregateCall) -> Column:
    return new_column(c.name, c.dtype, call.nullable)


def empty_group(c: Column, call: AggregateCall) -> Expr:
    """The value over no rows where the grouped aggregate found none: 0 for counts, NULL for most others."""
    c = Column(c.id, c.name, c.dtype, True)
    nothing = declaration(call).of_nothing
    return c if nothing is None else Case(((IsNull(c), Literal(nothing, c.dtype)),), c)
