"""PIVOT: one column for each value of what is pivoted on, an aggregate over the rows that have it.

Values are compared by their texts, as in DuckDB: a constant whose text is not that of any value of the column's type matches no
row. Where the statement names no values they are asked of the data: a query of its own, which runs while the statement is bound,
as the names and number of its columns follow from it. What was asked is noted (`Queries.ask`), so that a plan is kept for as
long as that answer stands.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import product
from math import prod

from sqlglot import exp

from gquery import tuning
from gquery.errors import BindError, NotSupportedError, OutOfRangeError
from gquery.expression.expr import FALSE, AggregateCall, Column, Expr, IsNull, Literal, Not, SortKey, new_column
from gquery.expression.interval import comparison_key
from gquery.expression.traverse import conjunction, transform, walk
from gquery.expression.types import VARCHAR, DType, Kind
from gquery.functions import call, cast
from gquery.functions.aggregates import declaration
from gquery.functions.texts import text_of, value_of
from gquery.planner.logical.nodes import Aggregate, Filter, Limit, Plan, Project, Query, Sort, Values
from gquery.planner.logical.tree import free_columns
from gquery.runtime.records import dataclass, replace
from gquery.sql.binding.expr import ExprBinder
from gquery.sql.binding.groups import GroupedScope
from gquery.sql.ctes import Queries
from gquery.sql.grouping_sets import keys_of
from gquery.sql.names import column_name
from gquery.sql.parse import located
from gquery.sql.reshaped_rows import Part, Relation
from gquery.sql.scope import Scope, ScopeRelation

# beside integers: a value has one text, and a text one value
_EXACT = (Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.DECIMAL)


@dataclass(frozen=True)
class _Choice:
    """What an entry of ON is, and the values that become columns: their names, and a text for each expression."""

    exprs: tuple[Expr, ...]
    values: tuple[tuple[str, tuple[str | None, ...]], ...]


@dataclass(frozen=True)
class _Target:
    """An entry of USING: its expression over the only aggregate in it, whose column that is. ``of_nothing``: what the aggregate
    is over no rows, where another one tells."""

    name: str
    expr: Expr
    column: Column
    call: AggregateCall
    of_nothing: int | None = None


def pivot(query: Queries, node: exp.Select, parts: Sequence[Part], plan: Plan, scope: Scope) -> Relation:
    """The rows of a PIVOT over a FROM clause."""
    return _Pivot(query, node, plan, scope).bind(parts)


class _Pivot:
    """One PIVOT, bound over what it pivots."""

    def __init__(self, query: Queries, node: exp.Select, plan: Plan, scope: Scope) -> None:
        self.query, self.node, self.plan, self.scope = query, node, plan, scope

    def bind(self, parts: Sequence[Part]) -> Relation:
        using = [n for mark, n in parts if mark == "using"]
        on = _columns_of(parts)
        keys = self._keys(using, [n for n, _ in on])
        choices = [self._choice(n, given) for n, given in on]
        self._check_count(choices, len(using))
        targets = [self._target(n) for n in using]
        if on and not using:
            targets = [replace(self._target(exp.Anonymous(this="count", expressions=[exp.Star()])), name="")]
        is_named = len(targets) > 1 or any(isinstance(n, exp.Alias) for n in using)
        if _is_wide(choices, targets):
            keys, choices, targets = self._grouped_once(keys, choices, targets)
        groups = GroupedScope(self.scope)
        columns = [groups.add_key(e, name) for name, e in keys]
        made: list[tuple[str, Expr]] = []
        for values in product(*(c.values for c in choices)):
            pairs = zip(choices, values, strict=True)
            tests = tuple(_is_text(e, t) for c, (_, texts) in pairs for e, t in zip(c.exprs, texts, strict=True))
            before = ["_".join(name for name, _ in values)] if values else []
            for target in targets:
                filtered = groups.add(replace(target.call, filter=conjunction(tests) if tests else None), target.name)
                named = [*before, target.name] if is_named or not before else before
                made.append(("_".join(named), _over(target, filtered)))
        if not columns and not made:
            raise self._located(BindError("PIVOT finds no values, and there are no other columns"), self.node)
        return self._relation(groups, columns, made)

    def _grouped_once(
        self, keys: Sequence[tuple[str, Expr]], choices: Sequence[_Choice], targets: Sequence[_Target]
    ) -> tuple[list[tuple[str, Expr]], list[_Choice], list[_Target]]:
        """All of it over rows that are grouped already: by the keys and by what is pivoted on. Of such groups a cell has one,
        whose aggregate is taken as it is."""
        groups = GroupedScope(self.scope)
        own = [(name, groups.add_key(e, name)) for name, e in keys]
        exprs = [[groups.add_key(_as_key(e), "on") for e in c.exprs] for c in choices]
        calls = [groups.add(t.call, t.name) for t in targets]
        self.plan = Aggregate(self.plan, tuple(groups.keys), tuple(groups.aggregates))
        self.scope = Scope(None, [ScopeRelation("", tuple(c.name for c in self.plan.columns), self.plan.columns)])
        picks = [AggregateCall("max" if _has_order(c.dtype) else "any_value", (c,), c.dtype) for c in calls]
        return (
            [(name, column) for name, column in own],
            [replace(c, exprs=tuple(e)) for c, e in zip(choices, exprs, strict=True)],
            [
                replace(t, call=pick, of_nothing=declaration(t.call).of_nothing)
                for t, pick in zip(targets, picks, strict=True)
            ],
        )

    def _relation(self, groups: GroupedScope, keys: Sequence[Column], made: Sequence[tuple[str, Expr]]) -> Relation:
        plan: Plan = Aggregate(self.plan, tuple(groups.keys), tuple(groups.aggregates))
        outputs = [(new_column(name, e.dtype, e.nullable), e) for name, e in made]
        plan = Project(plan, (*((k, k) for k in keys), *outputs))
        return plan, (*(k.name for k in keys), *(n for n, _ in made)), (*keys, *(c for c, _ in outputs))

    def _located(self, error: BindError | NotSupportedError | OutOfRangeError, node: exp.Expr) -> Exception:
        return located(error, self.query.sql, node)

    def _keys(self, using: Sequence[exp.Expr], on: Sequence[exp.Expr]) -> list[tuple[str, Expr]]:
        """What GROUP BY names; without it all columns that nothing else of the PIVOT uses, and none if it has no ON."""
        group = self.node.args.get("group")
        binder = ExprBinder(self.query, self.scope, "GROUP BY")
        if group is not None:
            named = [n for e in group.expressions for n in keys_of(e)]
            return [(self.scope.spelling(n.name), binder.bind(n)) for n in named]
        used = {c.name.lower() for n in (*using, *on) for c in n.find_all(exp.Column)}
        rest = [(name, e) for name, e in self.scope.star() if name.lower() not in used] if on else []
        for name, _ in rest:
            binder.bind(exp.column(exp.to_identifier(name, quoted=True)))  # a name of two columns means neither
        return rest

    def _target(self, node: exp.Expr) -> _Target:
        inner = node.this if isinstance(node, exp.Alias) else node
        groups = GroupedScope(self.scope)
        e = ExprBinder(self.query, self.scope, "USING", groups).bind(inner)
        if len(groups.aggregates) != 1:
            count = len(groups.aggregates) or "none"
            raise self._located(BindError(f"USING takes expressions of one aggregate, and this has {count}"), node)
        column, aggregate = groups.aggregates[0]
        if any(isinstance(x, Column) and x != column for x in walk(e)):
            raise self._located(BindError("USING: columns can only stand within an aggregate"), node)
        if aggregate.filter is not None:
            raise self._located(NotSupportedError("not supported: FILTER within USING"), node)
        return _Target(column_name(node), e, column, aggregate)

    # ---- values ------------------------------------------------------------------------------------------------------

    def _choice(self, node: exp.Expr, given: Sequence[Part]) -> _Choice:
        """An entry of ON with its values."""
        if node.find(exp.Query) is not None:
            raise self._located(BindError("PIVOT ON takes no subquery"), node)
        exprs = tuple(ExprBinder(self.query, self.scope, "ON").bind(n) for n in keys_of(node))
        if not given or given[0][0] == "values":
            texts = self._found(exprs, node) if not given else self._listed(given[0][1], exprs, node)
            return _Choice(exprs, tuple((t, (t,)) for t in texts))
        made: list[tuple[str, tuple[str | None, ...]]] = []
        seen: set[Hashable] = set()
        for _, value in given:
            inner = value.this if isinstance(value, exp.Alias) else value
            constants = [self._constant(n) for n in keys_of(inner)]
            own = tuple(text for text, _ in constants)
            if len(own) != len(exprs):
                raise self._located(BindError(f"IN: {len(own)} values for {len(exprs)} columns"), value)
            same = own if len(own) > 1 else _value_key(*constants[0])  # rows have values of one type in DuckDB
            if same in seen:
                raise self._located(BindError(f"IN names the value {_named(own)!r} twice"), value)
            seen.add(same)
            made.append((value.alias if isinstance(value, exp.Alias) else _named(own), own))
        return _Choice(exprs, tuple(made))

    def _listed(self, given: exp.Expr, exprs: Sequence[Expr], node: exp.Expr) -> list[str]:
        """The values that a query gives, in its order."""
        subquery = self.query.query(given, self.scope, self.query.visible)
        if len(subquery.outputs) != 1 or len(exprs) != 1:
            raise self._located(BindError("IN: a query of one column is expected here"), node)
        return list(dict.fromkeys(t for (t,) in self._asked(subquery, node) if t is not None))

    def _constant(self, node: exp.Expr) -> tuple[str | None, DType]:
        """The text of a constant in IN, or of a cast of one, and its type; a name stands for itself."""
        if isinstance(node, exp.Column) and not node.table and isinstance(node.this, exp.Identifier):
            return str(node.name), VARCHAR
        e = ExprBinder(self.query, Scope(), "IN").bind(node)
        if isinstance(e, Literal):
            return None if e.is_null else text_of(e.value, e.dtype), e.dtype
        if not isinstance(node, exp.Cast):
            raise self._located(BindError("IN of a PIVOT takes constants"), node)
        column = new_column("value", e.dtype, True)
        rows = Project(Values((), ((),)), ((column, e),))
        return self._asked(Query(rows, (column,), ("value",)), node)[0][0], e.dtype

    def _found(self, exprs: Sequence[Expr], node: exp.Expr) -> list[str]:
        """The values that there are, without NULL, in the order of their texts."""
        if len(exprs) > 1:
            raise self._located(NotSupportedError("not supported: a row of columns in ON without its values"), node)
        (e,) = exprs
        key = _as_key(e)
        column = new_column("value", key.dtype, key.nullable)
        rows: Plan = Filter(self.plan, Not(IsNull(e))) if e.nullable else self.plan
        named = new_column("text", VARCHAR, key.nullable)
        rows = Project(Aggregate(rows, ((column, key),), ()), ((named, cast(column, VARCHAR)),))
        rows = Sort(rows, (SortKey(named, False, False),))
        return [str(t) for (t,) in self._asked(Query(rows, (named,), ("text",)), node)]

    def _asked(self, query: Query, node: exp.Expr) -> list[tuple[str | None]]:
        """The texts that a query gives now, more of them than a PIVOT can have columns at most."""
        if free_columns(query.plan):
            raise self._located(BindError("PIVOT: name the values of a query that depends on the one around it"), node)
        (column,) = query.outputs
        text = new_column("text", VARCHAR, column.nullable)
        plan = Project(query.plan, ((text, cast(column, VARCHAR)),))
        limited = Limit(plan, tuning.rewrites.most_pivot_columns + 1)
        return [(row[0],) for row in self.query.ask(Query(limited, (text,), ("text",)), node)]

    def _check_count(self, choices: Sequence[_Choice], aggregates: int) -> None:
        if _cells(choices) * max(aggregates, 1) > tuning.rewrites.most_pivot_columns:
            text = f"not supported: PIVOT into more than {tuning.rewrites.most_pivot_columns} columns"
            raise self._located(NotSupportedError(text), self.node)


def _cells(choices: Sequence[_Choice]) -> int:
    return prod(len(c.values) for c in choices)


def _is_wide(choices: Sequence[_Choice], targets: Sequence[_Target]) -> bool:
    """Whether rows are grouped before they are told apart by cells: each test then sees a group, and no row. What an aggregate of
    parts is over no rows is not known here."""
    cells = _cells(choices) if choices else 0
    if any(declaration(t.call).parts is not None for t in targets):
        return False
    return cells > tuning.rewrites.most_pivot_tests or (cells > 1 and any(t.call.distinct for t in targets))


def _over(target: _Target, filtered: Column) -> Expr:
    """The expression of a target over the aggregate of a cell."""
    value: Expr = filtered
    if target.of_nothing is not None:
        value = call("coalesce", filtered, Literal(target.of_nothing, filtered.dtype))
    return transform(target.expr, lambda x: value if x == target.column else x)


def _as_key(e: Expr) -> Expr:
    """What groups by a value: itself where it is told by its type, else its text."""
    return e if _is_exact(e.dtype) else cast(e, VARCHAR)


def _has_order(dtype: DType) -> bool:
    return dtype.is_numeric or dtype.is_temporal or dtype.kind is Kind.BOOLEAN


def _columns_of(parts: Sequence[Part]) -> list[tuple[exp.Expr, list[Part]]]:
    """What stands in ON, each with the values that are named behind it."""
    found: list[tuple[exp.Expr, list[Part]]] = []
    for mark, node in parts:
        if mark == "on":
            found.append((node, []))
        elif mark in ("value", "values"):
            found[-1][1].append((mark, node))
    return found


def _named(texts: Sequence[str | None]) -> str:
    return "_".join("NULL" if t is None else t for t in texts)


def _is_exact(dtype: DType) -> bool:
    return dtype.is_integer or dtype.kind in _EXACT


def _is_text(e: Expr, text: str | None) -> Expr:
    """Whether CAST(e AS VARCHAR) is a text: by e's own type where that has one text for each value."""
    if text is None:
        return IsNull(e)
    if _is_exact(e.dtype):
        value = value_of(text, e.dtype)
        return FALSE if value is None or text_of(value, e.dtype) != text else call("eq", e, Literal(value, e.dtype))
    return call("eq", cast(e, VARCHAR), Literal(text, VARCHAR))


def _value_key(text: str | None, dtype: DType) -> Hashable:
    """What two constants of IN have in common if they are one value: 1, TRUE and 1::BIGINT, a month and 30 days, all zeros; not 1
    and '1', nor 1 and 1.0. (DuckDB's values are the same if their hashes and their values are.)"""
    if text is None:
        return None
    match dtype.kind:
        case Kind.INTERVAL:
            return Kind.INTERVAL, comparison_key(value_of(text, dtype))
        case Kind.REAL | Kind.DOUBLE | Kind.DECIMAL:
            return (dtype.kind, text) if text == "nan" or float(text) else (Kind.BIGINT, "0")
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return Kind.TIMESTAMP, text.removesuffix("+00")
        case Kind.BOOLEAN:
            return Kind.BIGINT, "1" if text == "true" else "0"
        case _:
            return (Kind.BIGINT if dtype.is_integer else dtype.kind), text
