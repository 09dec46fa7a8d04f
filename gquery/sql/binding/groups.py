"""What a SELECT list and a GROUP BY consist of while they are bound: items, and the scope behind a grouping."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from gquery.errors import BindError
from gquery.expression.expr import AggregateCall, Case, Column, Expr, Literal, new_column
from gquery.expression.traverse import with_children
from gquery.expression.types import BIGINT
from gquery.functions import call, may_give_null
from gquery.planner.logical.nodes import GroupingSets
from gquery.planner.logical.tree import has_subquery
from gquery.runtime.records import dataclass
from gquery.sql.order_keys import ordinal
from gquery.sql.scope import Scope


@dataclass
class Item:
    """One entry of the SELECT list: its name, and either the node to bind or an expression that ``*`` gave, under a name of
    its own where it was renamed."""

    name: str
    node: exp.Expr | None
    expr: Expr | None = None
    is_renamed: bool = False
    key: Column | None = None  # of a grouping set that names the entry, by its position or its alias

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
        """Sets the column of an expression."""
        if has_subquery(e):
            self._same.insert(0, (e, column))
        else:
            self._equal[e] = column


class GroupedScope:
    """The keys and aggregates of a grouped query, and the way of an expression over rows to one over groups."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.keys: list[tuple[Column, Expr]] = []
        self.aggregates: list[tuple[Column, AggregateCall]] = []
        self.sets: GroupingSets | None = None
        self._by_expr, self._by_itself = ByExpr(), ByExpr()
        self._written: list[tuple[exp.Expr, Column]] = []
        self._written_at: dict[int, Column] = {}  # by the identity of the node, the last of each
        self._written_kinds: set[type] = set()
        self._by_call: dict[AggregateCall, Column] = {}
        self._groupings: set[Expr] = set()  # over the groups' columns already: their numbers are no keys
        self._own = scope.own_ids()
        self._made: set[int] = set()

    def add(self, call: AggregateCall, name: str) -> Column:
        """The column of an aggregate; equal calls share one."""
        shareable = not any(has_subquery(e) for e in call.expressions)
        found = self._by_call.get(call) if shareable else None
        if found is not None:
            return found
        column = new_column(name, call.dtype, may_give_null(call, self._has_rows))
        self.aggregates.append((column, call))
        if shareable:
            self._by_call[call] = column
        self._made.add(column.id)
        return column

    @property
    def _has_rows(self) -> bool:
        """Whether each group has a row."""
        return bool(self.keys) and (self.sets is None or () not in self.sets.sets)

    def add_key(self, expr: Expr, name: str, nullable: bool = False, item: Item | None = None) -> Column:
        """The column of a key; equal keys share one, but for those of grouping sets that name an ``item`` of the SELECT list:
        of two entries that are the same each is NULL by itself. What else equals them is the last of them. ``nullable``: it is
        missing from some grouping set."""
        found = self._by_itself.get(expr) if item is None else item.key
        if found is not None:
            return found
        column = new_column(name, expr.dtype, nullable or expr.nullable)
        self.keys.append((column, expr))
        self._by_expr.put(expr, column)
        if item is None:
            self._by_itself.put(expr, column)
        self._made.add(column.id)
        return column

    def write(self, node: exp.Expr, column: Column) -> None:
        """Remembers how a key is written."""
        self._written.append((node, column))
        self._written_at[id(node)] = column
        self._written_kinds.add(type(node))

    def written(self, node: exp.Expr, of_columns: bool = False) -> Column | None:
        """The key that is written the same way: needed for keys with subqueries, which are never equal when bound, and for those
        that GROUPING names, which are ``of_columns`` too."""
        kind = type(node)
        if kind not in self._written_kinds:
            return None
        if isinstance(node, exp.Column) and not of_columns:
            return self._written_at.get(id(node))
        for key, column in reversed(self._written):
            if key is node or (type(key) is kind and key == node):
                return column
        return None

    def set_sets(self, sets: Sequence[Sequence[Column]]) -> None:
        """Groups by each of these sets of keys."""
        place = {c.id: n for n, (c, _) in enumerate(self.keys)}
        positions = tuple(tuple(sorted({place[c.id] for c in s})) for s in sets)
        mask = new_column("grouping", BIGINT, False)
        self.sets = GroupingSets(positions, mask)
        self._made.add(mask.id)

    def grouping(self, nodes: Sequence[exp.Expr], keys: Sequence[Expr]) -> Expr:
        """GROUPING(keys), written as ``nodes``: a bit for each key, the last the lowest: 1 where it is not in the set of the
        group."""
        place = {c.id: n for n, (c, _) in enumerate(self.keys)}
        result: Expr = Literal(0, BIGINT)
        for weight, (node, key) in enumerate(zip(reversed(nodes), reversed(keys), strict=True)):
            column = self.written(node, of_columns=True) or self._by_expr.get(key)
            if column is None or column.id not in place:
                raise BindError("an argument of GROUPING must be a key of GROUP BY")
            if self.sets is not None:
                bit = call("_bit_and", self.sets.mask, Literal(1 << place[column.id], BIGINT))
                test = call("ne", bit, Literal(0, BIGINT))
                one = Case(((test, Literal(1 << weight, BIGINT)),), Literal(0, BIGINT))
                result = one if weight == 0 else call("add", one, result)
        if self.sets is not None:
            self._groupings.add(result)
        return result

    def lift(self, e: Expr) -> Expr:
        """``e`` over the groups' columns; BindError for a column that is neither a key nor inside an aggregate."""
        return self._lift(e, {})

    def _lift(self, e: Expr, done: dict[int, Expr]) -> Expr:
        """``done``: what was made of expressions with children, by identity."""
        if (known := done.get(id(e))) is not None:
            return known
        if e in self._groupings:
            return e
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


def named_item(
    key: exp.Expr, items: Sequence[Item], aliases: Mapping[str, exp.Expr], scope: Scope, sql: str
) -> Item | None:
    """The entry of the SELECT list whose position or alias a key is."""
    index = ordinal(key, len(items), "GROUP BY", sql)
    if index is not None:
        return items[index]
    if not isinstance(key, exp.Column) or key.table or scope.find(key.name, None) is not None:
        return None
    node = aliases.get(key.name.lower())
    return next((i for i in items if isinstance(i.node, exp.Alias) and i.node.this is node), None)


def columns_by_expr(pairs: Iterable[tuple[Expr, Column]]) -> ByExpr:
    made = ByExpr()
    for e, c in pairs:
        if made.get(e) is None:
            made.put(e, c)
    return made
