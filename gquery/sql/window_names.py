"""The name of a result column that is a window function: the call as DuckDB prints it, with the window that a name stands for."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from gquery.sql.definitions import MACRO

Name = Callable[[exp.Expr], str]


def window_name(node: exp.Window, name: Name) -> str:
    """``sum(x) OVER (PARTITION BY a ORDER BY b DESC)``; ``name`` gives those of the parts."""
    partition, order, frame = resolved(node)
    parts = []
    if partition:
        parts.append(f"PARTITION BY {', '.join(map(name, partition))}")
    if order is not None:
        parts.append(f"ORDER BY {keys_name(order, name)}")
    if frame is not None:
        parts.append(_frame(frame, name))
    return f"{_call(node.this, name)} OVER ({' '.join(parts)})"


def resolved(
    node: exp.Expr, seen: tuple[exp.Expr, ...] = ()
) -> tuple[list[exp.Expr], exp.Expr | None, exp.Expr | None]:
    """The partition, order and frame of a window, with those of the one that it names, as far as that is there."""
    own = node.args.get("partition_by") or [], node.args.get("order"), node.args.get("spec")
    name, select = node.args.get("alias"), node.find_ancestor(exp.Select)
    definitions = (select.args.get("windows") or ()) if select is not None else ()
    base = next((d for d in definitions if name is not None and d.name.lower() == name.name.lower()), None)
    if base is None or any(base is s for s in seen):
        return own
    below = resolved(base, (*seen, base))
    return own[0] or below[0], own[1] or below[1], own[2] or below[2]


def keys_name(order: exp.Expr, name: Name) -> str:
    """The keys of an ORDER BY."""
    keys = []
    for key in order.expressions:
        nulls = " NULLS FIRST" if key.args.get("nulls_first") else ""
        keys.append(name(key.this) + (" DESC" if key.args.get("desc") else "") + nulls)
    return ", ".join(keys)


def _call(node: exp.Expr, name: Name) -> str:
    """The call before OVER. DuckDB prints ``count(*)`` as ``count()`` there, and no quotes around names."""
    if isinstance(node, exp.Filter) and MACRO not in (node._meta or ()):
        return f"{_call(node.this, name)} FILTER (WHERE {name(node.expression.this)})"
    text = name(node)
    if text.startswith('"'):
        text = text[1:].replace('"', "", 1)
    return "count()" if text == "count_star()" else text


def _frame(frame: exp.Expr, name: Name) -> str:
    start = _bound(frame.args.get("start"), frame.args.get("start_side"), name)
    end = _bound(frame.args.get("end"), frame.args.get("end_side"), name)
    exclude = frame.args.get("exclude")
    excluded = f" EXCLUDE {exclude.name.upper()}" if exclude is not None and exclude.name.upper() != "NO OTHERS" else ""
    return f"{frame.args['kind'].upper()} BETWEEN {start} AND {end}{excluded}"


def _bound(node: exp.Expr | str | None, side: str | None, name: Name) -> str:
    if node is None or node == "CURRENT ROW":
        return "CURRENT ROW"
    return f"{node if isinstance(node, str) else name(node)} {(side or '').upper()}"
