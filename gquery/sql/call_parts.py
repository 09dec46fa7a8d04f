"""A call as it is written, taken apart: what stands around it, and around its arguments."""

from __future__ import annotations

from sqlglot import exp

from gquery.errors import BindError, NotSupportedError
from gquery.runtime.records import dataclass
from gquery.sql.calls import function_call, is_call

_WITHIN = {"percentile_cont": 1, "percentile_disc": 1, "mode": 0}  # how many arguments each has beside its order
_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)


@dataclass(frozen=True)
class CallParts:
    """The function of a call, its arguments, and what stands beside them."""

    name: str
    args: list[exp.Expr]
    distinct: bool
    where: exp.Expr | None
    order: exp.Expr | None
    ignore_nulls: bool | None


def call_parts(node: exp.Expr) -> CallParts:
    """A call taken apart: FILTER and WITHIN GROUP stand around it, the rest around its first or last argument."""
    where: exp.Expr | None = None
    ignore: bool | None = None
    order: exp.Expr | None = None
    within: exp.Expr | None = None
    while isinstance(node, _AROUND):
        match node:
            case exp.Filter():
                where = node.expression.this
            case exp.WithinGroup():
                within = node.expression
            case _:
                ignore = isinstance(node, exp.IgnoreNulls)
        node = node.this
    if not is_call(node):
        raise NotSupportedError(f"not supported: {node.sql('duckdb')} OVER")
    name, args = function_call(node)
    args = list(args)
    while args and isinstance(args[-1], exp.IgnoreNulls | exp.RespectNulls | exp.Order):
        last = args.pop()
        if isinstance(last, exp.Order):
            order = last
        else:
            ignore = isinstance(last, exp.IgnoreNulls)
        if last.this is not None:
            args.append(last.this)
    distinct = bool(args) and isinstance(args[0], exp.Distinct)
    if distinct:
        args = [*args[0].expressions, *args[1:]]
    if name == "count" and len(args) == 1 and isinstance(args[0], exp.Star):
        args = []
    if name == "count" and distinct and len(args) == 1 and isinstance(args[0], exp.Tuple):
        args = list(args[0].expressions)
    elif name == "count" and distinct and len(args) > 1:
        raise BindError("count takes one argument; of rows write count(DISTINCT (a, b))")
    if within is not None:
        args, order = _within(name, args, within), within
    return CallParts(name, args, distinct, where, order, ignore)


def _within(name: str, args: list[exp.Expr], order: exp.Expr) -> list[exp.Expr]:
    """The arguments of a call whose value is what WITHIN GROUP orders by."""
    if name not in _WITHIN:
        raise BindError(f"{name} takes no WITHIN GROUP, which {', '.join(_WITHIN)} take")
    if len(args) != _WITHIN[name]:
        raise BindError(
            f"{name} takes {_WITHIN[name] or 'no'} argument{'s' * (_WITHIN[name] != 1)} before WITHIN GROUP"
        )
    if len(order.expressions) != 1:
        raise BindError("WITHIN GROUP takes one key in its ORDER BY")
    return [order.expressions[0].this, *args]
