"""Aggregates beside rows: where a method gives a row for each row, an aggregate is one over all of them, as in Polars.

SQL has ``OVER ()`` for that, and QUALIFY where a filter asks for a window; nobody has to write them here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from gquery.api.dataframe.expression import Expression
from gquery.sql.calls import is_aggregate_call
from gquery.sql.group_all import has_aggregate
from gquery.sql.names import column_name

_AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_OTHER_ROWS = (exp.Query, exp.Subquery)


def broadcast(entries: Sequence[Expression]) -> list[Expression]:
    """The same entries, each aggregate in them over all rows. Names stay what they were."""
    return [_broadcast(e) if has_aggregate(e.node) else e for e in entries]


def beside_rows(entries: Sequence[Expression]) -> list[Expression]:
    """Entries of a SELECT list: aggregates alone make one row, and beside an entry with a value a row they are broadcast."""
    is_mixed = any(has_aggregate(e.node) for e in entries) and any(_has_rows(e.node) for e in entries)
    return broadcast(entries) if is_mixed else list(entries)


def has_window(node: exp.Expr) -> bool:
    """Whether a window stands in an expression, outside its subqueries."""
    if isinstance(node, _OTHER_ROWS):
        return False
    return isinstance(node, exp.Window) or any(has_window(n) for n in node.iter_expressions())


def _broadcast(entry: Expression) -> Expression:
    node = entry.node.copy()
    name = None if isinstance(node, exp.Alias | exp.Ordered) else column_name(node)
    for call in list(_aggregates(node)):
        over = exp.Window(this=call.copy(), over="OVER")
        if call is node:
            node = over
        else:
            call.replace(over)
    made = Expression(node, entry.names)
    return made if name is None else made.alias(name)


def _aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregates that are in no window, with what stands around their calls."""
    if isinstance(node, (exp.Window, *_OTHER_ROWS)):
        return
    call = node
    while isinstance(call, _AROUND):
        call = call.this
    if is_aggregate_call(call):
        yield node
        return
    for below in list(node.iter_expressions()):
        yield from _aggregates(below)


def _has_rows(node: exp.Expr) -> bool:
    """Whether an expression has a value for each row: it reads a column outside its aggregates."""
    if isinstance(node, _OTHER_ROWS) or is_aggregate_call(node):
        return False
    if isinstance(node, _AROUND):
        return _has_rows(node.this)
    return isinstance(node, exp.Column | exp.Star | exp.Window) or any(_has_rows(n) for n in node.iter_expressions())
