"""JSON of the rows of a group. What a row adds is a text, and the result these texts with commas between them."""

from __future__ import annotations

from collections.abc import Sequence

from gquery.errors import BindError
from gquery.expression.expr import Cast, Expr, Literal, SortKey
from gquery.expression.types import JSON, VARCHAR, DType
from gquery.functions.aggregate_parts import Parts
from gquery.functions.aggregate_record import Checked, Resolved
from gquery.functions.casts import cast
from gquery.functions.registry import call


def _text(x: Expr) -> Expr:
    return call("coalesce", cast(call("to_json", x), VARCHAR), Literal("null", VARCHAR))


def values(name: str, args: Sequence[Expr], order: tuple[SortKey, ...]) -> Checked:
    """A value as JSON, null for NULL."""
    if len(args) != 1:
        raise BindError(f"{name} takes one value, not {len(args)} arguments")
    return (_text(args[0]),), (), order


def pairs(name: str, args: Sequence[Expr], order: tuple[SortKey, ...]) -> Checked:
    """A name and a value, NULL where the name is."""
    if len(args) != 2:
        raise BindError(f"{name} takes a name and a value, not {len(args)} arguments")
    key = cast(call("to_json", cast(args[0], VARCHAR)), VARCHAR)
    joined = call("_concat_operator", call("_concat_operator", key, Literal(":", VARCHAR)), _text(args[1]))
    return (joined,), (), order


def texts(types: Sequence[DType]) -> Resolved | None:
    """JSON of texts."""
    return (types, JSON) if list(types) == [VARCHAR] else None


def array(p: Parts, text: Expr) -> Expr:
    """The list of all values."""
    return _within("[", _joined(p, text), "]")


def object_(p: Parts, text: Expr) -> Expr:
    """The object of all names and values."""
    return _within("{", _joined(p, text), "}")


def _joined(p: Parts, text: Expr) -> Expr:
    return p.part("string_agg", VARCHAR, text, Literal(",", VARCHAR), in_order=True)


def _within(begin: str, text: Expr, end: str) -> Expr:
    made = call("_concat_operator", call("_concat_operator", Literal(begin, VARCHAR), text), Literal(end, VARCHAR))
    return Cast(made, JSON)
