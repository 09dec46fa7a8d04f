"""What gquery does not run, by the names that users know: one walk over the parsed statement that collects every reason
before binding begins. Whatever else the binder does not read is refused by `gquery.sql.closed`."""

from __future__ import annotations

from sqlglot import exp

from gquery.errors import NotSupportedError, point_at
from gquery.functions import is_aggregate
from gquery.sql.binding.lambdas import LAMBDAS
from gquery.sql.calls import function_call, is_call
from gquery.sql.parse import position

_NODES: dict[type[exp.Expr], str] = {
    exp.Unnest: "UNNEST",
    exp.Pragma: "PRAGMA",
    exp.Attach: "ATTACH",
}
# what `_reason` has a case for
_LOOKED_AT = (
    exp.Lambda, exp.Unnest, exp.Order, exp.Join, exp.CTE, exp.Create, exp.Drop,
)  # fmt: skip
_MADE = ("TABLE", "VIEW", "MACRO", "FUNCTION", "SCHEMA", "SEQUENCE")  # with CREATE; the grammar says what is wrong with one
_CALLS = (exp.Anonymous, exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


def check_supported(nodes: list[exp.Expr], sql: str) -> None:
    """Raises NotSupportedError with every construct of the statement that gquery does not run; a caret at the first."""
    reasons: dict[str, int | None] = {}
    for node in nodes:
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


_plain: dict[type[exp.Expr], bool] = {}


def _is_plain(kind: type[exp.Expr]) -> bool:
    """Whether nodes of a class are run whatever they hold: most of a statement are names, constants and operators."""
    found = _plain.get(kind)
    if found is None:
        found = _plain[kind] = kind not in _NODES and not issubclass(kind, _LOOKED_AT)
    return found


def _is_over_window(node: exp.Expr) -> bool:
    """Whether what stands among the arguments of a call stands in one with OVER."""
    above = node.parent
    while isinstance(above, _CALLS):
        above = above.parent
    return isinstance(above, exp.Window)


def _is_of_aggregate(node: exp.Expr) -> bool:
    """Whether what stands among the arguments of a call stands in one of an aggregate."""
    above = node.parent
    while isinstance(above, exp.IgnoreNulls | exp.RespectNulls):
        above = above.parent
    return above is not None and is_call(above) and is_aggregate(function_call(above)[0])


def _takes_lambda(call: exp.Expr | None) -> bool:
    return isinstance(call, exp.Columns) or (isinstance(call, exp.Anonymous) and call.name.lower() in LAMBDAS)


def _reason(node: exp.Expr) -> str | None:
    match node:
        case exp.Lambda() if not _takes_lambda(node.parent):
            return "lambda functions"
        case exp.Unnest() if isinstance(node.parent, exp.In):
            return None
        case exp.Order() if (
            isinstance(node.parent, _CALLS) and not _is_over_window(node) and not _is_of_aggregate(node)
        ):
            return "ORDER BY within a function that is no aggregate"
        case exp.CTE() if node.args.get("key_expressions"):
            return "USING KEY of a recursive query"
        case exp.Create() if node.kind not in _MADE:
            return f"CREATE {node.kind}"
        case exp.Drop() if node.kind not in _MADE:
            return f"DROP {node.kind}"
    return _NODES.get(type(node))
