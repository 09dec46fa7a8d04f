"""Binding of window functions: calls with OVER, the windows that they name, their frames.

A SELECT has one `Windows`. Its `ExprBinder`s hand it the calls that they meet, in the SELECT list, in QUALIFY and in ORDER BY,
and get columns; behind WHERE, GROUP BY and HAVING it puts nodes that make them, one for all calls of the same partition and
order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from sqlglot import exp

from gquery.errors import BindError
from gquery.expression.expr import TRUE, Column, Expr, IsNull, Literal, SortKey, new_column
from gquery.expression.traverse import pinned
from gquery.expression.types import NULL
from gquery.expression.windows import WHOLE_PARTITION, WindowCall, WindowFrame, shape
from gquery.functions import case
from gquery.functions.aggregates import is_aggregate
from gquery.functions.registry import call as operator
from gquery.functions.windows import (
    WINDOW_ALIASES,
    WINDOWS,
    Modifiers,
    is_of_no_type,
    is_window_function,
    over_parts,
    window_call,
)
from gquery.planner.logical.nodes import Plan, Window
from gquery.planner.logical.tree import has_subquery, remap_expr
from gquery.runtime.records import replace
from gquery.sql.binding.expr import ExprBinder
from gquery.sql.binding.quantiles import QUANTILES, at_fractions
from gquery.sql.binding.unnest import Unnested
from gquery.sql.call_parts import call_parts
from gquery.sql.collation import sort_node
from gquery.sql.order_keys import check_key, sort_key
from gquery.sql.parse import located


def _over_rows(e: Expr, _: exp.Expr) -> Expr:
    """An expression of a query without groups."""
    return e


class Windows:
    """The window functions of one SELECT. ``lift`` turns an expression over rows into one over groups, in a grouped query."""

    def __init__(self, sql: str, definitions: Iterable[exp.Expr], made: set[int]) -> None:
        """``made``: gets the ids of the columns of all calls."""
        self.sql, self._ids = sql, made
        self.lift: Callable[[Expr, exp.Expr], Expr] = _over_rows
        self.definitions = self._named(definitions)
        self._nodes: dict[Hashable, tuple[tuple[Expr, ...], tuple[SortKey, ...]]] = {}
        self._calls: dict[Hashable, list[tuple[Column, WindowCall]]] = {}
        self._columns: dict[Hashable, Column] = {}

        self.unnested = Unnested()

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def unnest(self, e: Expr, node: exp.Expr) -> Expr:
        """The column of the elements of a list, which is made behind all windows."""
        return self.unnested.column(self.lift(e, node), "unnest")

    def plan(self, plan: Plan) -> Plan:
        """A plan with the columns of all calls, behind which none is bound; windows without an order, which need none, come
        first."""
        self.lift = _over_rows  # it holds who holds this, and all is bound
        for key, (partition, order) in sorted(self._nodes.items(), key=lambda node: bool(node[1][1])):
            plan = Window(plan, partition, order, tuple(self._calls[key]))
        return plan

    # ---- definitions -------------------------------------------------------------------------------------------------

    def _named(self, definitions: Iterable[exp.Expr]) -> Mapping[str, exp.Expr]:
        named: dict[str, exp.Expr] = {}
        for node in definitions:
            if node.name.lower() in named:
                raise located(BindError(f"window {node.name!r} is defined twice"), self.sql, node)
            named[node.name.lower()] = node
        return named

    def _resolved(
        self, node: exp.Expr, seen: tuple[exp.Expr, ...] = ()
    ) -> tuple[list[exp.Expr], exp.Expr | None, exp.Expr | None]:
        """The partition, order and frame of a window, with those of the window that it extends."""
        own = node.args.get("partition_by") or [], node.args.get("order"), node.args.get("spec")
        name = node.args.get("alias")
        if name is None:
            return own
        base = self.definitions.get(name.name.lower())
        if base is None or any(base is s for s in (node, *seen)):
            raise located(BindError(f"window {name.name!r} does not exist"), self.sql, name)
        partition, order, frame = self._resolved(base, (node, *seen))
        if not any(own) and node.args.get("over") is not None and not _is_in_parentheses(name, self.sql):
            return partition, order, frame
        problem = (
            f"cannot override PARTITION BY of window {name.name!r}" if own[0]
            else f"cannot override ORDER BY of window {name.name!r}" if own[1] is not None and order is not None
            else f"cannot extend window {name.name!r}, which has a frame" if frame is not None
            else None
        )  # fmt: skip
        if problem is not None:
            raise located(BindError(problem), self.sql, node)
        return partition, own[1] if order is None else order, own[2]

    # ---- calls -------------------------------------------------------------------------------------------------------

    def bind(self, node: exp.Expr, binder: ExprBinder) -> Expr:
        """The value of a call with OVER."""
        call = call_parts(node.this)
        if not is_window_function(call.name):
            window_call(call.name, ())  # which says why
        inner = ExprBinder(binder.query, binder.scope, "a window function", binder.aggregates, binder.aliases)
        partition_by, order_by, spec = self._resolved(node)
        partition = [self._value(inner, n) for n in partition_by]
        check_key(partition, "PARTITION BY", node, self.sql)
        order = self._keys(inner, order_by)
        from gquery.sql.binding.frame import bound_frame, without_peers  # queries without windows do without

        frame, order = bound_frame(spec, order, lambda n: self._value(inner, n), self.sql)
        partition = [e for e in dict.fromkeys(partition) if not isinstance(e, Literal)]
        if not (frame.start.amount is not None or frame.end.amount is not None) or frame.unit != "range":
            order = tuple(k for k in order if not isinstance(k.expr, Literal) and k.expr not in partition)
        frame = frame if order else without_peers(frame)
        args = [self._value(inner, a) for a in call.args]
        kept = None if call.where is None else self.lift(inner.condition(call.where), call.where)
        said = Modifiers(call.distinct, kept, self._keys(inner, call.order), call.ignore_nulls)
        if said.order and call.name in (*WINDOWS, *WINDOW_ALIASES) and frame == WHOLE_PARTITION:
            order = said.order  # of all rows of a partition: the order inside the call is the one that counts
        if (said.order == order and is_aggregate(call.name)) or call.name in QUANTILES:
            said = replace(said, order=())  # of quantiles DuckDB takes it in groups alone
        over = (tuple(partition), order)
        return at_fractions(call.name, args, lambda a: self._made(call.name, a, frame, said, over))

    def _made(
        self,
        name: str,
        args: Sequence[Expr],
        frame: WindowFrame,
        said: Modifiers,
        over: tuple[tuple[Expr, ...], tuple[SortKey, ...]],
    ) -> Expr:
        if is_of_no_type(name, args) and (len(args) < 3 or args[2].dtype == NULL):
            window_call(name, args, frame, said)  # which refuses what it does not take
            return Literal(None, NULL)
        parts = over_parts(name, args, frame, said)
        if parts is not None:
            result, calls = parts
            return remap_expr(result, {c.id: self._column(call, name, over) for call, c in calls.items()})
        call = window_call(name, args, frame, said)
        if call.function not in WINDOWS or len(call.args) < 3:
            return self._column(call, name, over)
        # lag and lead with a default: it is the row's own where there is no other
        value, offset, default = call.args
        found = self._column(window_call(name, (value, offset), frame, said), name, over)
        other: Expr = found
        if value.nullable and not call.ignore_nulls:
            other = self._column(window_call(name, (TRUE, offset), frame, said), name, over)
        branches: list[tuple[Expr, Expr]] = [(IsNull(other), default)]
        if call.ignore_nulls and not (isinstance(offset, Literal) and offset.value):
            branches.insert(0, (operator("eq", offset, Literal(0, offset.dtype)), found))  # the row itself, NULL or not
        if offset.nullable:
            branches.insert(0, (IsNull(offset), Literal(None, call.dtype)))
        return case(branches, found)

    def _value(self, binder: ExprBinder, node: exp.Expr) -> Expr:
        e = self.lift(binder.bind(node), node)
        return pinned(e) if isinstance(e, Literal) else e

    def _keys(self, binder: ExprBinder, order: exp.Expr | None) -> tuple[SortKey, ...]:
        keys: dict[Expr, SortKey] = {}
        for node in order.expressions if order is not None else ():
            if isinstance(node.this, exp.Var) and node.this.name.upper() == "ALL":
                raise located(BindError("a window has no ORDER BY ALL"), self.sql, node)
            key = sort_key(self._value(binder, sort_node(node.this)), node, self.sql)
            keys.setdefault(key.expr, key)
        return tuple(keys.values())

    def _column(self, call: WindowCall, name: str, over: tuple[tuple[Expr, ...], tuple[SortKey, ...]]) -> Column:
        """The column of a call; equal calls share one, unless they have subqueries, whose plans are never equal."""
        over_exprs = (*over[0], *(k.expr for k in over[1]))
        node: Hashable = object() if any(map(has_subquery, over_exprs)) else over
        exprs = tuple(call.expressions)
        key: Hashable = object() if any(map(has_subquery, exprs)) else (node, shape(call), exprs)
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = new_column(name, call.dtype, call.nullable)
            self._ids.add(column.id)
            self._nodes.setdefault(node, over)
            self._calls.setdefault(node, []).append((column, call))
        return column


def _is_in_parentheses(name: exp.Expr, sql: str) -> bool:
    """Whether a window is named as ``OVER (name)``, which copies it, and not as ``OVER name``."""
    return sql[: name.meta["start"]].rstrip().endswith("(")
