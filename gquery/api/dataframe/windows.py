"""Windows of expressions: the trees of ``OVER``, and how `Expression.over` puts partitions and an order into them.

What Polars calls an expression in the rows' order (`shift`, `cum_sum`, `rolling_mean`) is a window without a partition from the
beginning; `over` gives it one. Aggregates become windows over the whole partition by it, as in Polars: its order counts for those
that look at it (``first``, ``shift``, ``cum_sum``), and makes no running sum of a sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlglot import exp

from gquery.api.dataframe.expression import Expression, call, col, lift, merged, when
from gquery.errors import InterfaceError
from gquery.functions import is_aggregate
from gquery.functions.windows import WINDOWS


def window(function: Expression, spec: exp.WindowSpec | None = None, order: Sequence[exp.Expr] = ()) -> Expression:
    """A function over all rows, in an order or in theirs."""
    node = exp.Window(this=function.node, over="OVER", spec=spec)
    if order:
        node.set("order", exp.Order(expressions=list(order)))
    return Expression(node, function.names)


def framed(function: Expression, rows: int | None) -> Expression:
    """An aggregate over so many rows that end with each one; over all up to it for None."""
    bounds = {"start": "UNBOUNDED"} if rows is None else {"start": exp.Literal.number(rows - 1)}
    return window(function, exp.WindowSpec(kind="ROWS", start_side="PRECEDING", end="CURRENT ROW", **bounds))


def ranked(method: str, by: Expression, descending: bool) -> Expression:
    """`Expression.rank`: each value's place."""
    order = [exp.Ordered(this=by.node, desc=descending, nulls_first=False)]

    def ask(name: str) -> Expression:
        return Expression(window(call(name), order=order).node, by.names)

    peers = Expression(exp.Window(this=call("count").node, partition_by=[by.node], over="OVER"), by.names)
    match method:
        case "average":
            place = ask("rank") + (peers - 1) / 2
        case "min":
            place = ask("rank")
        case "max":
            place = ask("rank") + peers - 1
        case "dense":
            place = ask("dense_rank")
        case "ordinal":
            place = ask("row_number")
        case _:
            raise InterfaceError(f"there is no method {method!r} of rank: average, min, max, dense and ordinal")
    return when(by.is_not_null()).then(place)


def last_value(e: Expression) -> Expression:
    """The last value up to each row that is not NULL."""
    function = call("last_value", e)
    made = framed(function, None)
    made.node.set("this", exp.IgnoreNulls(this=function.node))
    return made


def next_value(e: Expression) -> Expression:
    """The next value from each row on that is not NULL."""
    function = call("first_value", e)
    bounds = {"start": "CURRENT ROW", "end": "UNBOUNDED", "end_side": "FOLLOWING"}
    made = window(function, exp.WindowSpec(kind="ROWS", **bounds))
    made.node.set("this", exp.IgnoreNulls(this=function.node))
    return made


def over(e: Expression, partition_by: Sequence[Any], order_by: Any, descending: bool) -> Expression:
    """`Expression.over`: the windows in an expression, and its aggregates as windows, over partitions and in an order."""
    keys = [k for p in partition_by for k in _columns(p)]
    order = [] if order_by is None else _columns(order_by)
    node = e.node.copy()
    found = list(_functions(node))
    if not found:
        raise InterfaceError(f"over takes an aggregate or a window function, which {e!r} does not have")
    for function in found:
        made = function if isinstance(function, exp.Window) else _windowed(function)
        if made is not function:
            node = _replaced(node, function, made)
        made.set("partition_by", [*made.args.get("partition_by", []), *(k.node.copy() for k in keys)])
        if order and made.args.get("order") is None:
            made.set("order", exp.Order(expressions=[_ordered(k, descending) for k in order]))
    return Expression(node, merged(x.names for x in (e, *keys, *order)))


def _columns(given: Any) -> list[Expression]:
    """Keys: names are columns."""
    if isinstance(given, list | tuple):
        return [k for g in given for k in _columns(g)]
    return [col(given) if isinstance(given, str) else lift(given)]


def _ordered(key: Expression, descending: bool) -> exp.Expr:
    if isinstance(key.node, exp.Ordered):
        return key.node.copy()
    return exp.Ordered(this=key.node.copy(), desc=descending, nulls_first=False)


def _functions(node: exp.Expr) -> Iterator[exp.Expr]:
    """The windows in a tree, and the aggregates and window functions that are in none."""
    is_call = isinstance(node, exp.Anonymous) and (is_aggregate(node.name.lower()) or node.name.lower() in WINDOWS)
    if is_call or isinstance(node, exp.Window | exp.Filter):
        yield node
    elif not isinstance(node, exp.Query | exp.Subquery):
        for below in list(node.iter_expressions()):
            yield from _functions(below)


def _windowed(function: exp.Expr) -> exp.Window:
    """An aggregate over all rows of the partition, or a window function."""
    if isinstance(function, exp.Anonymous) and function.name.lower() in WINDOWS:
        return exp.Window(this=function.copy(), over="OVER")
    ends = {"start": "UNBOUNDED", "start_side": "PRECEDING", "end": "UNBOUNDED", "end_side": "FOLLOWING"}
    return exp.Window(this=function.copy(), over="OVER", spec=exp.WindowSpec(kind="ROWS", **ends))


def _replaced(tree: exp.Expr, old: exp.Expr, new: exp.Expr) -> exp.Expr:
    if tree is old:
        return new
    old.replace(new)
    return tree
