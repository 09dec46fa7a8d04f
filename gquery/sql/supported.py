"""What gquery does not run: one walk over the parsed statement that collects every reason before binding begins."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from gquery.errors import NotSupportedError, point_at
from gquery.sql.bind_files import is_option
from gquery.sql.parse import position

_NODES: dict[type[exp.Expr], str] = {
    exp.Window: "window functions (OVER)",
    exp.Qualify: "QUALIFY",
    exp.GroupingSets: "GROUPING SETS",
    exp.Rollup: "ROLLUP",
    exp.Cube: "CUBE",
    exp.Pivot: "PIVOT and UNPIVOT",
    exp.TableSample: "TABLESAMPLE",
    exp.Lateral: "LATERAL",
    exp.Except: "EXCEPT",
    exp.Intersect: "INTERSECT",
    exp.Array: "lists",
    exp.Struct: "structs",
    exp.Map: "maps",
    exp.Columns: "COLUMNS(...)",
    exp.Unnest: "UNNEST",
    exp.Lambda: "lambda functions",
    exp.WithinGroup: "WITHIN GROUP",
    exp.Collate: "COLLATE",
    exp.AtTimeZone: "AT TIME ZONE",
    exp.Insert: "INSERT",
    exp.Update: "UPDATE",
    exp.Delete: "DELETE",
    exp.Merge: "MERGE",
    exp.Alter: "ALTER",
    exp.Copy: "COPY",
    exp.Pragma: "PRAGMA",
    exp.Transaction: "transactions",
    exp.Commit: "transactions",
    exp.Rollback: "transactions",
    exp.Attach: "ATTACH",
    exp.Use: "USE",
}
# what `sql.bind*` reads of these nodes: a clause that is none of it must not be passed over in silence
_READ: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        {
            "with_",
            "expressions",
            "distinct",
            "from_",
            "joins",
            "where",
            "group",
            "having",
            "order",
            "limit",
            "offset",
            "qualify",
        }
    ),
    exp.Union: frozenset({"with_", "this", "expression", "distinct", "order", "limit", "offset", "by_name"}),
    exp.Subquery: frozenset(
        {"with_", "this", "alias", "joins", "order", "limit", "offset", "wrapped", "pivots", "sample"}
    ),
    exp.Table: frozenset({"this", "alias", "db", "catalog", "joins", "pivots", "sample"}),
    exp.Join: frozenset({"this", "side", "kind", "method", "on", "using"}),
    exp.Group: frozenset({"expressions", "all"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Cast: frozenset({"this", "to", "safe"}),
    exp.TryCast: frozenset({"this", "to", "safe"}),
    exp.Star: frozenset({"except_", "replace", "rename"}),
    exp.Is: frozenset({"this", "expression", "negate"}),
    exp.In: frozenset({"this", "expressions", "query", "unnest", "field"}),
    exp.Between: frozenset({"this", "low", "high", "symmetric"}),
    exp.Distinct: frozenset({"expressions", "on"}),
    exp.CTE: frozenset({"this", "alias", "materialized"}),
}
# what `_reason` has a case for
_LOOKED_AT = (exp.Array, exp.Struct, exp.Unnest, exp.Distinct, exp.Limit, exp.Join, exp.Union, exp.Create, exp.Drop)
_LIST_ARGUMENTS = (exp.ReadParquet, exp.ReadCSV)


def check_supported(tree: exp.Expr, sql: str) -> None:
    """Raises NotSupportedError with every construct of the statement that gquery does not run; a caret at the first."""
    reasons: dict[str, int | None] = {}
    for node in _nodes(tree):
        reason = None if _is_plain(type(node)) else _reason(node)
        if reason is not None:
            where = position(node) if position(node) is not None else position(node.parent)
            known = reasons.get(reason)
            if reason not in reasons or (where is not None and (known is None or where < known)):
                reasons[reason] = where
    if reasons:
        raise not_supported(reasons, sql)


def not_supported(reasons: dict[str, int | None], sql: str) -> NotSupportedError:
    """One error for all reasons, each at a position or nowhere."""
    places = [p for p in reasons.values() if p is not None]
    caret = f"\n{point_at(sql, min(places))}" if places else ""
    if len(reasons) == 1:
        message = f"not supported: {next(iter(reasons))}{caret}"
    else:
        message = "not supported:" + "".join(f"\n  - {r}" for r in reasons) + caret
    error = NotSupportedError(message)
    error.position = min(places, default=None)  # type: ignore[attr-defined]
    return error


def _nodes(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The tree's nodes, breadth first: sqlglot's own walk is three generators a node."""
    queue = [tree]
    for node in queue:  # which grows meanwhile
        yield node
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                queue.append(value)
            elif isinstance(value, list):
                queue.extend([v for v in value if isinstance(v, exp.Expr)])


_plain: dict[type[exp.Expr], bool] = {}


def _is_plain(kind: type[exp.Expr]) -> bool:
    """Whether nodes of a class are run whatever they hold: most of a statement are names, constants and operators."""
    found = _plain.get(kind)
    if found is None:
        found = _plain[kind] = kind not in _NODES and kind not in _READ and not issubclass(kind, _LOOKED_AT)
    return found


def _reason(node: exp.Expr) -> str | None:
    match node:
        case exp.Array() if isinstance(node.parent, (*_LIST_ARGUMENTS, exp.Anonymous)):
            return None
        case exp.Array() | exp.Struct() if is_option(node):  # of a table function that reads files
            return None
        case exp.Unnest() if isinstance(node.parent, exp.In):
            return None
        case exp.Distinct() if node.args.get("on") is not None:
            return "DISTINCT ON"
        case exp.Limit() if (options := node.args.get("limit_options")) is not None and options.args.get("percent"):
            return "LIMIT with a percentage"
        case exp.Join() if (node.args.get("method") or "").upper() == "ASOF":
            return "ASOF joins"
        case exp.Join() if (node.kind or "").upper() == "POSITIONAL":
            return "POSITIONAL joins"
        case exp.Union() if node.args.get("by_name"):
            return "UNION BY NAME"
        case exp.Create() if not (node.kind in ("TABLE", "VIEW") and node.expression is not None):
            return f"CREATE {node.kind}" if node.kind not in ("TABLE", "VIEW") else f"CREATE {node.kind} without AS"
        case exp.Drop() if node.kind not in ("TABLE", "VIEW"):
            return f"DROP {node.kind}"
    if type(node) in _NODES:
        return _NODES[type(node)]
    read = _READ.get(type(node))
    unread = [k for k, v in node.args.items() if v and k not in read] if read is not None else []
    return f"{unread[0].strip('_').upper().replace('_', ' ')} of {node.key.upper()}" if unread else None
