"""PIVOT: one column for each value of what is pivoted on, an aggregate over the rows that have it.

Values are compared by their texts, as in DuckDB: a constant whose text is not that of any value of the column's type matches no
row. Where the statement names no values they are asked of the data: a query of its own, which runs while the statement is bound,
as the names and number of its columns follow from it. What was asked is noted (`Queries.ask`), so that a plan is kept for as
long as that answer stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from sqlglot import exp

from gquery import tuning
from gquery.errors import BindError, NotSupportedError, OutOfRangeError
from gquery.expression.expr import FALSE, AggregateCall, Column, Expr, IsNull, Literal, Not, SortKey, new_column
from gquery.expression.traverse import conjunction, transform, walk
from gquery.expression.types import VARCHAR, DType, Kind
from gquery.functions import call, cast
from gquery.functions.texts import text_of, value_of
from gquery.planner.logical.nodes import Aggregate, Filter, Limit, Plan, Project, Query, Sort
from gquery.planner.logical.tree import free_columns
from gquery.runtime.records import dataclass, replace
from gquery.sql.bind_expr import ExprBinder
from gquery.sql.bind_groups import GroupedScope
from gquery.sql.ctes import Queries
from gquery.sql.grouping_sets import keys_of
from gquery.sql.names import column_name
from gquery.sql.parse import located
from gquery.sql.reshaped_rows import Part, Relation
from gquery.sql.scope import Scope

_EXACT = (
    Kind.BOOLEAN,
    Kind.DATE,
    Kind.TIMESTAMP,
    Kind.DECIMAL,
)  # beside integers: a value has one text, and a text one value


@dataclass(frozen=True)
class _Value:
    """A value of what is pivoted on: its name, and the rows that have it."""

    name: str
    predicate: Expr


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
        groups = GroupedScope(self.scope)
        keys = [groups.add_key(e, name) for name, e in self._keys(using, [n for n, _ in on])]
        made: list[tuple[str, Expr]] = []
        choices = [self._values(n, given) for n, given in on]
        self._check_count(choices, len(using))
        targets = [self._aggregate(n) for n in using] if using or not on else []
        if on and not using:
            targets = [("", *self._aggregate(exp.Anonymous(this="count", expressions=[exp.Star()]))[1:])]
        is_named = len(targets) > 1 or any(isinstance(n, exp.Alias) for n in using)
        for choice in product(*choices):
            predicate = conjunction(tuple(v.predicate for v in choice)) if choice else None
            before = ["_".join(v.name for v in choice)] if choice else []
            for name, e, column, aggregate in targets:
                filtered = groups.add(replace(aggregate, filter=predicate), name)
                own = transform(e, lambda x, c=column, f=filtered: f if x == c else x)  # type: ignore[misc]
                made.append(("_".join([*before, name] if is_named or not before else before), own))
        if not keys and not made:
            raise self._located(BindError("PIVOT finds no values, and there are no other columns"), self.node)
        return self._relation(groups, keys, made)

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

    def _aggregate(self, node: exp.Expr) -> tuple[str, Expr, Column, AggregateCall]:
        """An entry of USING: its name, its expression, and the only aggregate in that."""
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
        return column_name(node), e, column, aggregate

    # ---- values ------------------------------------------------------------------------------------------------------

    def _values(self, node: exp.Expr, given: Sequence[Part]) -> list[_Value]:
        """The values of an entry of ON that are made columns."""
        if node.find(exp.Query) is not None:
            raise self._located(BindError("PIVOT ON takes no subquery"), node)
        nodes = keys_of(node)
        exprs = [ExprBinder(self.query, self.scope, "ON").bind(n) for n in nodes]
        if not given:
            return self._found(exprs, node)
        if given[0][0] == "values":
            subquery = self.query.query(given[0][1], self.scope, self.query.visible)
            if len(subquery.outputs) != 1 or len(exprs) != 1:
                raise self._located(BindError("IN: a query of one column is expected here"), node)
            texts = [t for (t,) in self._asked(subquery, node) if t is not None]
            return [_Value(t, _is_text(exprs[0], t)) for t in dict.fromkeys(texts)]
        made: list[_Value] = []
        seen: set[tuple[str | None, ...]] = set()
        for _, value in given:
            inner = value.this if isinstance(value, exp.Alias) else value
            own = tuple(self._constant(n) for n in keys_of(inner))
            if len(own) != len(exprs):
                raise self._located(BindError(f"IN: {len(own)} values for {len(exprs)} columns"), value)
            if own in seen:
                raise self._located(BindError(f"IN names the value {_named(own)!r} twice"), value)
            seen.add(own)
            name = value.alias if isinstance(value, exp.Alias) else _named(own)
            made.append(_Value(name, conjunction(tuple(map(_is_text, exprs, own)))))
        return made

    def _constant(self, node: exp.Expr) -> str | None:
        """The text of a constant in IN; a name stands for itself."""
        if isinstance(node, exp.Column) and not node.table and isinstance(node.this, exp.Identifier):
            return str(node.name)
        e = ExprBinder(self.query, Scope(), "IN").bind(node)
        if not isinstance(e, Literal):
            raise self._located(BindError("IN of a PIVOT takes constants"), node)
        return None if e.is_null else text_of(e.value, e.dtype)

    def _found(self, exprs: Sequence[Expr], node: exp.Expr) -> list[_Value]:
        """The values that there are, without NULL, in the order of their texts."""
        if len(exprs) > 1:
            raise self._located(NotSupportedError("not supported: a row of columns in ON without its values"), node)
        (e,) = exprs
        text = cast(e, VARCHAR)
        key = e if _is_exact(e.dtype) else text
        column = new_column("value", key.dtype, key.nullable)
        rows: Plan = Filter(self.plan, Not(IsNull(e))) if e.nullable else self.plan
        named = new_column("text", VARCHAR, key.nullable)
        rows = Project(Aggregate(rows, ((column, key),), ()), ((named, cast(column, VARCHAR)),))
        rows = Sort(rows, (SortKey(named, False, False),))
        texts = [str(t) for (t,) in self._asked(Query(rows, (named,), ("text",)), node)]
        return [_Value(t, _is_text(e, t)) for t in texts]

    def _asked(self, query: Query, node: exp.Expr) -> list[tuple[str | None]]:
        """The texts that a query gives now, more of them than a PIVOT can have columns at most."""
        if free_columns(query.plan):
            raise self._located(BindError("PIVOT: name the values of a query that depends on the one around it"), node)
        (column,) = query.outputs
        text = new_column("text", VARCHAR, column.nullable)
        plan = Project(query.plan, ((text, cast(column, VARCHAR)),))
        limited = Limit(plan, tuning.rewrites.most_pivot_columns + 1)
        return [(row[0],) for row in self.query.ask(Query(limited, (text,), ("text",)), node)]

    def _check_count(self, choices: Sequence[Sequence[_Value]], aggregates: int) -> None:
        count = max(aggregates, 1)
        for values in choices:
            count *= len(values)
        if count > tuning.rewrites.most_pivot_columns:
            text = f"not supported: PIVOT into more than {tuning.rewrites.most_pivot_columns} columns"
            raise self._located(NotSupportedError(text), self.node)


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
