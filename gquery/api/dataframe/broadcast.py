"""Aggregates beside rows: where a method gives a row for each row, an aggregate is one over all of them, as in Polars.

SQL has ``OVER ()`` for that, and QUALIFY where a filter asks for a window; nobody has to write them here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlglot import exp

from gquery.api.dataframe.expression import Expression, merged
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


def with_inner(
    relation: Any, keys: Sequence[Expression], entries: Sequence[Expression]
) -> tuple[Any, list[Expression]]:
    """Aggregates of aggregates: the inner ones become columns of the relation, the same in each row of a group. The relation with
    them, and the entries that read them."""
    if not any(_inner(e.node) for e in entries):
        return relation, list(entries)
    columns: list[Expression] = []
    made = []
    for e in entries:
        node = e.node.copy()
        for inner in _inner(node):
            name = f"gquery_inner_{len(columns)}"
            over = exp.Window(this=inner.copy(), over="OVER")
            if keys:
                over.set("partition_by", [k.node.unalias().copy() for k in keys])
            columns.append(Expression(over, merged(x.names for x in (e, *keys))).alias(name))
            inner.replace(exp.column(exp.to_identifier(name, quoted=True)))
        one = Expression(node, e.names)
        made.append(one if isinstance(node, exp.Alias) or not columns else one.alias(column_name(e.node)))
    return relation.with_columns(*columns), made


def _inner(node: exp.Expr) -> list[exp.Expr]:
    """The aggregates in what aggregates are of."""
    return [inner for outer in _aggregates(node) for part in _parts(outer) for inner in _aggregates(part)]


def _parts(call: exp.Expr) -> Iterator[exp.Expr]:
    """What stands in an aggregate's call and around it."""
    for below in call.iter_expressions():
        if isinstance(call, _AROUND) and below is call.this:
            yield from _parts(below)
        else:
            yield below


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
