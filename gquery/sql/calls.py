"""Calls of functions, from sqlglot's nodes to a name and arguments.

`sqlglot_trees` marks the names of functions before sqlglot reads them, so that a call arrives as `exp.Anonymous`: the name as it
was typed, the arguments in the order in which they were typed. Only forms that have a grammar of their own are classes of
sqlglot's, and have an entry here: the name that `gquery.functions` declares for them, and its arguments.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from gquery.functions import is_aggregate
from gquery.functions.known import AGGREGATES
from gquery.sql.grammar.tokens import ABS, JSON, marked

Call = tuple[str, list[exp.Expr]]
# functions that are written without parentheses, where no column has the name
VALUES = frozenset((
    "current_catalog", "current_date", "current_role", "current_schema", "current_timestamp", "current_user",
    "localtime", "localtimestamp", "session_user", "user",
))  # fmt: skip
SESSION = frozenset(("current_schema", "getvariable", "nextval", "currval"))  # which tell of the session (`sql.binding.session`)
GROUPINGS = ("grouping", "grouping_id")  # which tell of a group which of the keys it has


def _some(*nodes: exp.Expr | None) -> list[exp.Expr]:
    return [n for n in nodes if n is not None]


def _trim(node: exp.Expr) -> Call:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    return name, _some(node.this, node.args.get("expression"))


def _extract(node: exp.Expr) -> Call:
    """EXTRACT takes a part's name, or a text."""
    return "date_part", [exp.Literal.string(node.name.lower()), node.expression]


def _named(node: exp.Expr) -> Call:
    """A call by name, of an arrow of JSON, or of the operator @."""
    name, args = node.name.lower(), list(node.expressions)
    if name == _ARROW:
        return "json_extract" if len(args) == 2 else "json_extract_string", args[:2]
    return ("abs", args) if name == _ABS else (name, args)


_ARROW, _ABS = marked(JSON), marked(ABS)
_FORMS: dict[type[exp.Expr], Callable[[exp.Expr], Call]] = {
    exp.Anonymous: _named,
    exp.Trim: _trim,
    exp.Extract: _extract,
    exp.Substring: lambda n: ("substring", _some(n.this, n.args.get("start"), n.args.get("length"))),
    exp.StrPosition: lambda n: ("strpos", _some(n.this, n.args.get("substr"))),  # POSITION(a IN b)
}


def is_call(node: exp.Expr) -> bool:
    """Whether a node is a call of a function, aggregates included."""
    return type(node) in _FORMS


def names_aggregate(name: str) -> bool:
    """Whether a name is that of an aggregate, here or in DuckDB alone: the error can say so."""
    return is_aggregate(name) or name in AGGREGATES


def is_aggregate_call(node: exp.Expr) -> bool:
    """Whether a node is the call of an aggregate or of GROUPING, what stands around it (FILTER, OVER, ...) left out."""
    if type(node) not in _FORMS:
        return False
    name, _ = function_call(node)
    return is_aggregate(name) or name in GROUPINGS


def function_call(node: exp.Expr) -> Call:
    """The name of a function in lower case, and its arguments."""
    return _FORMS[type(node)](node)
