"""What a SELECT list and a GROUP BY consist of while they are bound: items, and the scope behind a grouping."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from gquery.errors import BindError
from gquery.expression.expr import AggregateCall, Column, Expr, new_column
from gquery.expression.traverse import with_children
from gquery.functions import has_result
from gquery.planner.logical.tree import has_subquery
from gquery.runtime.records import dataclass
from gquery.sql.scope import Scope


@dataclass
class Item:
    """One entry of the SELECT list: its name, and either the node to bind or an expression that ``*`` gave, under a name of
    its own where it was renamed."""

    name: str
    node: exp.Expr | None
    expr: Expr | None = None
    is_renamed: bool = False

    @property
    def is_aliased(self) -> bool:
        """Whether the statement gives the name."""
        return self.is_renamed or isinstance(self.node, exp.Alias)

    @property
    def bound(self) -> Expr:
        assert self.expr is not None
        return self.expr


class ByExpr:
    """A mapping by expression. Those with subqueries are told apart by identity: their plans are never equal, and a
    table need not be hashable."""

    def __init__(self) -> None:
        self._equal: dict[Expr, Column] = {}
        self._same: list[tuple[Expr, Column]] = []

    def get(self, e: Expr) -> Column | None:
        """The column of an expression."""
        if has_subquery(e):
            return next((c for known, c in self._same if known is e), None)
        return self._equal.get(e)

    def put(self, e: Expr, column: Column) -> None:
        """Sets the column of an expression that has none."""
        if has_subquery(e):
            self._same.append((e, column))
        else:
            self._equal.setdefault(e, column)


class GroupedScope:
    """The keys and aggregates of a grouped query, and the way of an expression over rows to one over groups."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.keys: list[tuple[Column, Expr]] = []
        self.aggregates: list[tuple[Column, AggregateCall]] = []
        self._by_expr = ByExpr()
        self._by_call: dict[AggregateCall, Column] = {}
        self._own = scope.own_ids()
        self._made: set[int] = set()

    def add(self, call: AggregateCall, name: str) -> Column:
        """The column of an aggregate; equal calls share one."""
        shareable = not any(has_subquery(e) for e in call.expressions)
        found = self._by_call.get(call) if shareable else None
        if found is not None:
            return found
        column = new_column(name, call.dtype, call.nullable and not (self.keys and has_result(call)))
        self.aggregates.append((column, call))
        if shareable:
            self._by_call[call] = column
        self._made.add(column.id)
        return column

    def add_key(self, expr: Expr, name: str) -> Column:
        """The column of a key; equal keys share one."""
        found = self._by_expr.get(expr)
        if found is not None:
            return found
        column = new_column(name, expr.dtype, expr.nullable)
        self.keys.append((column, expr))
        self._by_expr.put(expr, column)
        self._made.add(column.id)
        return column

    def lift(self, e: Expr) -> Expr:
        """``e`` over the groups' columns; BindError for a column that is neither a key nor inside an aggregate."""
        return self._lift(e, {})

    def _lift(self, e: Expr, done: dict[int, Expr]) -> Expr:
        """``done``: what was made of expressions with children, by identity."""
        if (known := done.get(id(e))) is not None:
            return known
        key = self._by_expr.get(e)
        if key is not None:
            return key
        if isinstance(e, Column) and e.id in self._own and e.id not in self._made:
            raise BindError(f"column {e.name!r} must be in GROUP BY or inside an aggregate function")
        kids = e.children
        if not kids:
            return e
        lifted = done[id(e)] = with_children(e, tuple(self._lift(k, done) for k in kids))
        return lifted


def columns_by_expr(pairs: Iterable[tuple[Expr, Column]]) -> ByExpr:
    made = ByExpr()
    for e, c in pairs:
        made.put(e, c)
    return made
