"""Keys of ORDER BY and GROUP BY: places in the SELECT list, direction, and types that have an order."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from gquery.errors import BindError, NotSupportedError
from gquery.expression.expr import Expr, SortKey
from gquery.functions.opaque import refuse_opaque
from gquery.sql.definitions import MACRO
from gquery.sql.parse import located


def ordinal(node: exp.Expr, count: int, clause: str, sql: str) -> int | None:
    """The position (from 0) of the result column that an integer in GROUP BY or ORDER BY stands for; else None. ORDER BY
    takes no other constant."""
    sign = ""
    while isinstance(node, exp.Paren | exp.Neg) and MACRO not in (node._meta or ()):  # what a macro gives is a value
        sign += "-" if isinstance(node, exp.Neg) else ""
        node = node.this
    if not isinstance(node, exp.Literal | exp.Null):
        return None
    text = node.name.replace("_", "")
    if isinstance(node, exp.Null) or node.is_string or not text.isdigit():
        if clause == "ORDER BY":
            typed = node.sql("duckdb") if isinstance(node, exp.Null) or node.is_string else node.name
            raise located(BindError(f"ORDER BY {sign}{typed} is neither a column nor a position"), sql, node)
        return None
    index = int(f"{sign[:1]}{text}")
    if not 1 <= index <= count:
        raise located(BindError(f"{clause} {index}: there are {count} result columns"), sql, node)
    return index - 1


def check_key(keys: Iterable[Expr], what: str, node: exp.Expr, sql: str) -> None:
    """NotSupportedError for a key whose values gquery only carries: it can neither compare nor sort them."""
    keys = tuple(keys)
    try:
        refuse_opaque(keys, what)
    except NotSupportedError as error:
        raise located(error, sql, node) from None


def sort_key(expr: Expr, node: exp.Ordered, sql: str) -> SortKey:
    """A key with its direction; NULLs come last unless NULLS FIRST is written, in both directions."""
    check_key((expr,), "ORDER BY", node, sql)
    return SortKey(expr, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def keys_of(order: exp.Expr | None) -> list[exp.Ordered]:
    """The keys of an ORDER BY, if there is one."""
    return [o for o in order.expressions if isinstance(o, exp.Ordered)] if order is not None else []
