"""GROUP BY ALL: which entries of a SELECT list are keys; and where aggregates stand.

A key is an entry without an aggregate that reads a column. So a constant beside an aggregate leaves one group, of no rows too,
and constants alone leave none: DuckDB then groups nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from gquery.planner.logical.tree import used_columns
from gquery.sql.binding.columns import column_of
from gquery.sql.binding.expr import ExprBinder
from gquery.sql.calls import is_aggregate_call
from gquery.sql.definitions import ARGUMENT, CALL


def is_key_of_all(node: exp.Expr, binder: ExprBinder, aliases: Mapping[str, exp.Expr]) -> bool:
    """Whether GROUP BY ALL groups by an entry; ``binder`` binds expressions over the rows."""
    return not has_aggregate(node) and _reads_column(node, binder, aliases)


def _reads_column(node: exp.Expr, binder: ExprBinder, aliases: Mapping[str, exp.Expr]) -> bool:
    """Whether an expression reads a column, or an entry before it that does; also a subquery a column that it does not make."""
    if node.find(exp.Query) is not None:
        return bool(used_columns(binder.bind(node)))
    if isinstance(node, exp.Column):
        meant = None if node.table else aliases.get(node.name.lower())
        if meant is None or column_of(node) is not None or binder.scope.find(node.name, None) is not None:
            return True
        return _reads_column(meant, binder, aliases)
    return any(_reads_column(n, binder, aliases) for n in node.iter_expressions())


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate stands in an expression, outside its subqueries, or among the arguments of a macro that has some."""
    kind = type(node)
    if kind is exp.Column or kind is exp.Literal or kind is exp.Identifier:  # most; the call of a macro is none of them
        return False
    if node._meta is not None and (call := node._meta.get(CALL)) is not None:
        for inner in node.walk():
            if (inner._meta or {}).get(ARGUMENT) == call and is_aggregate_call(inner):
                return True
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    if isinstance(node, exp.Window):  # what it calls is over a window; its parts may be of groups
        call = node.this
        while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
            if isinstance(call, exp.Filter) and has_aggregate(call.expression):
                return True
            call = call.this
        parts = [n for n in node.iter_expressions() if n is not node.this]
        return any(has_aggregate(n) for n in (*call.iter_expressions(), *parts))
    return is_aggregate_call(node) or any(has_aggregate(n) for n in node.iter_expressions())
