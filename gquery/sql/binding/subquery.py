"""Binding of IN, of subqueries in expressions, and of comparisons with ANY, ALL and rows of values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from gquery.errors import BindError, NotSupportedError
from gquery.expression.expr import (
    FALSE,
    TRUE,
    Case,
    Column,
    Expr,
    In,
    InSubquery,
    IsNull,
    Literal,
    Not,
    ScalarSubquery,
    SortKey,
    new_column,
)
from gquery.expression.traverse import conjunction, disjunction
from gquery.expression.types import BOOLEAN, NULL, DType, Kind
from gquery.functions import aggregate, call, cast, unified
from gquery.functions.casts import unify
from gquery.functions.comparison_keys import comparable
from gquery.functions.user import UserFunction
from gquery.planner.logical.nodes import Aggregate, Plan, Project, Query, Sort
from gquery.sql.binding.interned import Interned
from gquery.sql.binding.lambdas import in_one_list
from gquery.sql.cut import TextSlots
from gquery.sql.scope import Calls, Scope
from gquery.sql.types import Parameters, integer_literal

if TYPE_CHECKING:
    from gquery.sql.catalog import Catalog

QUANTIFIED: dict[type[exp.Expr], str] = {
    exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge",
}  # fmt: skip
ROWS: dict[type[exp.Expr], str] = {**QUANTIFIED, exp.NullSafeEQ: "eq", exp.NullSafeNEQ: "ne"}
_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


def list_value(node: exp.Expr | None) -> exp.Expr | None:
    """The list that stands in ANY (list), SOME (list) or ALL (list), which is neither written there nor a query."""
    match node:
        case exp.Any(this=exp.Paren(this=exp.Expr() as value)) if not isinstance(value, exp.Query | exp.Subquery):
            return value
        case exp.Anonymous(expressions=[value]) if node.name.lower() in ("all", "some"):
            return None if isinstance(value, exp.Query | exp.Subquery) else value
        case _:
            return None


def listed(node: exp.Expr | None) -> list[exp.Expr] | None:
    """What is listed in ANY [...], SOME [...] or ALL [...], the last two of which are a function's calls in the tree."""
    match node:
        case exp.Any(this=exp.Paren(this=exp.Array() as items) | (exp.Array() as items)):
            pass
        case exp.Anonymous(expressions=[exp.Array() as items]) if node.name.lower() in ("all", "some"):
            pass
        case _:
            return None
    made = list(items.expressions)
    return None if isinstance(made[0] if made else None, exp.Comprehension) else made  # which is a list, and no value of it


class QueryBinder(Protocol):
    """What an expression needs of the query around it: to bind a subquery, the text, the parameters, the slots, and
    the scopes of calls of macros."""

    sql: str
    parameters: Parameters
    slots: TextSlots | None
    calls: Calls
    interned: Interned
    catalog: Catalog
    drawing: dict[str, str]  # by sequence, which of its functions the statement has called

    def subquery(self, node: exp.Expr, scope: Scope) -> Query: ...

    def function(self, name: str) -> UserFunction | None: ...

class SubqueryBinder(ABC):
    """The base of `binding.expr.ExprBinder`, whose `bind` it uses for operands."""

    query: QueryBinder
    scope: Scope

    @abstractmethod
    def entered(self, node: exp.Expr) -> exp.Expr:
        """See `ExprBinder.entered`."""

    @abstractmethod
    def bind(self, node: exp.Expr) -> Expr:
        """The typed expression of a node."""

    def _of_session(self, name: str, args: Sequence[exp.Expr]) -> Expr:
        """The call of one of `sql.calls.SESSION`."""
        from gquery.sql.binding.session import of_session

        return of_session(name, [self.bind(a) for a in args], self.query)

    def _in(self, node: exp.In) -> Expr:
        query = node.args.get("query")
        left = node.this
        while isinstance(left, exp.Paren):
            left = self.entered(left).this
        if query is not None:
            nodes = left.expressions if isinstance(left, exp.Tuple) else [left]
            return self._in_query([self.bind(n) for n in nodes], query)
        if node.args.get("unnest") is not None:
            raise NotSupportedError("not supported: IN UNNEST")
        if node.args.get("field") is not None:
            return _within(self.bind(left), self.bind(node.args["field"].expressions[0]))
        if isinstance(left, exp.Tuple):
            equal = [exp.EQ(this=left, expression=row) for row in node.expressions]
            return disjunction(tuple(self.bind(e) for e in equal))
        if not node.expressions:
            raise BindError("IN of an empty list")
        found = unified([self.bind(left), *(self.bind(n) for n in node.expressions)], "IN", comparing=True)
        values = [comparable(v) for v in found]
        arg, items = values[0], values[1:]
        if arg.dtype == NULL:
            return Literal(None, BOOLEAN)
        constants = [v for v in items if isinstance(v, Literal) and not v.is_null]
        if len(constants) == len(items):
            distinct = tuple(dict.fromkeys(constants))
            return In(arg, distinct) if len(distinct) > 1 else call("eq", arg, items[0])
        return disjunction(tuple(call("eq", arg, v) for v in items))

    def _in_query(self, args: list[Expr], node: exp.Expr) -> Expr:
        query = self.query.subquery(node, self.scope)
        if len(query.outputs) != len(args):
            raise BindError(f"the subquery of IN has {len(query.outputs)} columns where {len(args)} are compared")
        targets: list[tuple[Column, Expr]] = []
        casted: list[Expr] = []
        for a, c in zip(args, query.outputs, strict=True):
            dtype = _met_in((a, c), ordering=True)
            if dtype is None:
                raise BindError(f"cannot compare {a.dtype} with {c.dtype} in IN; an explicit CAST is required")
            casted.append(comparable(cast(a, dtype)))
            value = comparable(cast(c, dtype))
            targets.append((c, c) if value is c else (new_column(c.name, value.dtype, value.nullable), value))
        return InSubquery(tuple(casted), _projected(query.plan, targets))

    def _key(self, node: exp.Expr) -> Column | None:
        """The key of GROUP BY that is written as a node: outside of aggregates it means that."""
        scope = self.scope
        return None if scope.grouped is None or scope.written is None else scope.written(node)

    def _scalar(self, node: exp.Expr) -> Expr:
        """The only value of a query."""
        if (key := self._key(node)) is not None:
            return key
        query = self.query.subquery(node, self.scope)
        if len(query.outputs) != 1:
            raise BindError(f"a subquery in an expression gives one column, this one gives {len(query.outputs)}")
        return ScalarSubquery(_projected(query.plan, [(c, c) for c in query.outputs]))

    def _array(self, node: exp.Expr) -> Expr:
        """``ARRAY(query)``: the values of its only column, in its order."""
        query = self.query.subquery(node, self.scope)
        if len(query.outputs) != 1:
            raise BindError(f"ARRAY takes a query of one column, this one gives {len(query.outputs)}")
        return ScalarSubquery(in_one_list(*_in_order(query.plan, query.outputs[0])))

    def _quantified(self, node: exp.Expr) -> Expr:
        """``x op ANY (query)`` and ``x op ALL (query)``, from IN, min, max and counts."""
        quantifier = node.expression
        op, query = QUANTIFIED[type(node)], quantifier.this
        if isinstance(node.this, exp.Tuple):
            found = self._in_query([self.bind(n) for n in node.this.expressions], query)
            if (op, isinstance(quantifier, exp.All)) not in (("eq", False), ("ne", True)):
                raise NotSupportedError("not supported: rows compared with ANY and ALL but by = ANY and <> ALL")
            return found if op == "eq" else Not(found)
        x = self.bind(node.this)
        if isinstance(quantifier, exp.All):
            return self._all(op, x, query)
        if op == "eq":
            return self._in_query([x], query)
        return Not(self._all(_NEGATED[op], x, query))

    def _all(self, op: str, x: Expr, query: exp.Expr) -> Expr:
        """``x op ALL (query)``: TRUE over no row; FALSE where the least or greatest value already fails; else NULL
        where a NULL is among the values."""
        match op:
            case "ne":
                return Not(self._in_query([x], query))
            case "eq":
                tests = {"max": "ge", "min": "le"}
            case "gt" | "ge":
                tests = {"max": op}
            case _:
                tests = {"min": op}
        rows, values, *extremes = self._over(query, tuple(tests))
        parts = zip(tests.values(), extremes, strict=True)
        holds = conjunction(tuple(call(test, *_met((x, e), "a comparison")) for test, e in parts))
        branches = (
            (call("eq", rows, integer_literal(0)), TRUE),
            (Not(holds), FALSE),
            (call("gt", rows, values), Literal(None, BOOLEAN)),
        )
        return Case(branches, holds)

    def _over(self, node: exp.Expr, functions: tuple[str, ...]) -> list[Expr]:
        """How many rows a subquery of one column has, and how many values, and what these functions make of the values."""
        query = self.query.subquery(node, self.scope)
        if len(query.outputs) != 1:
            raise BindError(f"a subquery that is compared gives one column, this one gives {len(query.outputs)}")
        calls = [aggregate("count", ()), *(aggregate(f, query.outputs) for f in ("count", *functions))]
        made = tuple((new_column(c.function, c.dtype, c.nullable), c) for c in calls)
        plan = Aggregate(query.plan, (), made)
        found: list[Expr] = [ScalarSubquery(plan, n) for n in range(len(made))]
        is_untyped = query.outputs[0].dtype.kind is Kind.NULL
        return [*found[:2], *(Literal(None, NULL) for _ in functions)] if is_untyped else found

    def _listed(self, node: exp.Expr, items: list[exp.Expr]) -> Expr:
        """``x op ANY [a, b]`` and ``x op ALL [a, b]``: one of the comparisons holds, or all of them do."""
        op = QUANTIFIED[type(node)]
        x, *values = _met([self.bind(node.this), *(self.bind(n) for n in items)], "ANY")
        tests = tuple(call(op, x, v) for v in values)
        if node.expression.name.lower() == "all":
            return conjunction(tests) if tests else TRUE
        return disjunction(tests) if tests else FALSE

    def _over_list(self, node: exp.Expr, items: exp.Expr) -> Expr:
        """``x op ANY (list)`` and ``x op ALL (list)``: as of a subquery with the list's elements, none for NULL."""
        op, is_all = QUANTIFIED[type(node)], node.expression.name.lower() == "all"
        if (op, is_all) not in (("eq", False), ("ne", True)):
            elements = exp.Select(expressions=[exp.Anonymous(this="unnest", expressions=[items.copy()])])
            quantifier = exp.All(this=elements) if is_all else exp.Any(this=elements)
            return self._quantified(type(node)(this=node.this.copy(), expression=quantifier))
        x, xs = self.bind(node.this), self.bind(items)
        if xs.dtype.kind is Kind.NULL:  # there is no element, as in `unnest`
            return TRUE if is_all else FALSE
        if not xs.dtype.is_list:
            raise BindError(f"{'ALL' if is_all else 'ANY'} takes a list or a query, not a value of type {xs.dtype}")
        rows, values = call("len", xs), call("list_count", xs)
        unknown = disjunction((IsNull(x), call("lt", values, rows)))
        found = Case(
            (
                (call("coalesce", call("list_contains", xs, x), FALSE), TRUE),
                (call("eq", call("coalesce", rows, integer_literal(0)), integer_literal(0)), FALSE),
                (unknown, Literal(None, BOOLEAN)),
            ),
            FALSE,
        )
        return Not(found) if is_all else found

    def _rows_compared(self, node: exp.Expr) -> Expr:
        """Rows are compared value by value, the first that differ decide. Here NULLs are equal, and greater than all else."""
        left, right = node.this.expressions, node.expression.expressions
        if len(left) != len(right):
            raise BindError(f"a row of {len(left)} values is compared with one of {len(right)}")
        op = ROWS[type(node)]
        pairs = [_met([self.bind(a), self.bind(b)], "a comparison") for a, b in zip(left, right, strict=True)]
        same = [call("is_not_distinct_from", a, b) for a, b in pairs]
        if op in ("eq", "ne"):
            equal = conjunction(tuple(same))
            return equal if op == "eq" else Not(equal)
        if op in ("gt", "le"):
            pairs = [[b, a] for a, b in pairs]
        less = [conjunction((*same[:n], _is_less(a, b))) for n, (a, b) in enumerate(pairs)]
        is_less = disjunction(tuple(less))
        return is_less if op in ("lt", "gt") else Not(is_less)


def _within(x: Expr, of: Expr) -> Expr:
    """``x IN y`` of a value: whether a list contains an element, a map a key, a text another."""
    name = "list_contains" if of.dtype.is_list else "map_contains" if of.dtype.kind is Kind.MAP else "contains"
    return call(name, of, x)


def _met_in(exprs: Sequence[Expr], ordering: bool = False) -> DType | None:
    """The type that values of rows, of a list and of a subquery are compared by: of decimals that of a column of them all, whose
    whole digits win over places. Two values that are compared by themselves keep all places."""
    dtype = unify(exprs, comparing=True, ordering=ordering)
    return unify(exprs) or dtype if dtype is not None and dtype.is_decimal else dtype


def _met(exprs: Sequence[Expr], what: str) -> list[Expr]:
    """The expressions cast to the type of `_met_in`; BindError, naming ``what`` they meet in, where there is none."""
    dtype = _met_in(exprs)
    return unified(exprs, what, comparing=True) if dtype is None else [cast(e, dtype) for e in exprs]


def _is_less(a: Expr, b: Expr) -> Expr:
    """Whether a value of a row is less than another, where NULL is the greatest."""
    return conjunction((Not(IsNull(a)), disjunction((IsNull(b), call("lt", a, b)))))


def _in_order(plan: Plan, column: Column) -> tuple[Plan, Expr, tuple[SortKey, ...]]:
    """Rows, a value of them and keys by which it has the order of a sorted plan's column, wherever the plan goes."""
    value = {c.id: e for c, e in plan.exprs}[column.id] if isinstance(plan, Project) else column
    below = plan.source if isinstance(plan, Project) else plan
    if not isinstance(below, Sort):
        return plan, column, ()
    return below if below.limit is not None or below.offset else below.source, value, below.keys


def _projected(plan: Plan, targets: list[tuple[Column, Expr]]) -> Plan:
    """The plan with exactly these columns."""
    if tuple(c.id for c, e in targets if c is e) == tuple(c.id for c in plan.columns) and len(targets) == len(
        plan.columns
    ):
        return plan
    return Project(plan, tuple(targets))
