"""From sqlglot's function nodes back to a name and arguments.

sqlglot parses many functions into classes of their own, some with arguments in another order; `function_call` gives for
all of them the name that `gquery.functions` declares, and the arguments in that function's order.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from gquery.functions import RESOLVERS, is_aggregate

Call = tuple[str, list[exp.Expr]]
# names under which operators are declared, which are no functions of DuckDB's
OPERATORS = frozenset((
    "eq", "ne", "lt", "le", "gt", "ge", "is_distinct_from", "is_not_distinct_from", "int_divide", "modulo", "negate",
    "like", "ilike", "bit_and", "bit_or", "logical_and", "logical_or",
))  # fmt: skip


def _text(node: exp.Expr | None, default: str = "day") -> exp.Expr:
    return exp.Literal.string((node.name if node is not None else default).lower())


def _some(*nodes: exp.Expr | None) -> list[exp.Expr]:
    return [n for n in nodes if n is not None]


def _trim(node: exp.Expr) -> Call:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    return name, _some(node.this, node.args.get("expression"))


def _pad(node: exp.Expr) -> Call:
    name = "lpad" if node.args.get("is_left") else "rpad"
    return name, _some(node.this, node.expression, node.args.get("fill_pattern"))


def _truncate(node: exp.Expr) -> Call:
    return "date_trunc", [_text(node.args.get("unit")), node.this]


def _difference(node: exp.Expr) -> Call:
    return "date_diff", [_text(node.args.get("unit")), node.expression, node.this]


_SPECIAL: dict[type[exp.Expr], Callable[[exp.Expr], Call]] = {
    exp.Trim: _trim,
    exp.Pad: _pad,
    exp.TimestampTrunc: _truncate,
    exp.DateTrunc: _truncate,
    exp.DateDiff: _difference,
    exp.Extract: lambda n: ("date_part", [_text(n.this), n.expression]),
    exp.StrPosition: lambda n: ("strpos", _some(n.this, n.args.get("substr"))),
    exp.UnixToTime: lambda n: ("epoch_ms", [n.this]),
    exp.TimeToUnix: lambda n: ("epoch", [n.this]),
    exp.DateFromParts: lambda n: ("make_date", _some(n.args.get("year"), n.args.get("month"), n.args.get("day"))),
    exp.TimeToStr: lambda n: ("strftime", _some(n.this, n.args.get("format"))),
    exp.DayOfWeekIso: lambda n: ("isodow", [n.this]),
    exp.RegexpLike: lambda n: ("regexp_matches", _some(n.this, n.expression, n.args.get("flag"))),
    exp.RegexpFullMatch: lambda n: ("regexp_full_match", _some(n.this, n.expression)),
    exp.BitwiseXor: lambda n: ("xor", [n.this, n.expression]),
    exp.Log: lambda n: ("log", _some(n.this, n.args.get("expression"))),
}


def is_foreign_aggregate(name: str) -> bool:
    """Whether other engines have an aggregate of that name, which is no function here: the error can say so."""
    known = exp.FUNCTION_BY_NAME.get(name.upper())
    return known is not None and issubclass(known, exp.AggFunc) and name not in RESOLVERS


def function_call(node: exp.Expr) -> Call:
    """The name of a function in lower case, and its arguments."""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return node.name.lower(), list(node.expressions)
    special = _SPECIAL.get(type(node))
    if special is not None:
        return special(node)
    names = [n.lower() for n in type(node).sql_names()] if isinstance(node, exp.Func) else [type(node).__name__.lower()]
    candidates = [*names, *(n.replace("_", "") for n in names)]
    name = next((n for n in candidates if n in RESOLVERS or is_aggregate(n)), names[0])
    return name, _arguments(node)


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    args: list[exp.Expr] = []
    for key in node.arg_types:
        value = node.args.get(key)
        if isinstance(value, exp.Var):
            args.append(exp.Literal.string(value.name))
        elif isinstance(value, exp.Expr):
            args.append(value)
        elif isinstance(value, list):
            args.extend(v for v in value if isinstance(v, exp.Expr))
    return args
