"""Binding of UNNEST: rows of the elements of lists, in FROM and in the SELECT list.

In FROM it is a table of one list, which may use columns of what stands on its left: then the pair of both is a dependent join,
which `planner.rules.decorrelate` makes rows of the left side's. In the SELECT list each call is a column of a node behind all
windows: lists that stand side by side are taken apart together, and NULLs stand in for those that are shorter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gquery.errors import BindError
from gquery.expression.expr import Column, Expr, Literal, new_column
from gquery.expression.nested_types import list_of
from gquery.expression.types import BIGINT, DType, Kind
from gquery.functions import call
from gquery.functions.registry import is_null_literal
from gquery.functions.structs import field_number
from gquery.planner.logical.nodes import Plan, Project, Query, Unnest, Values
from gquery.planner.logical.tree import has_subquery

CALLS = ("unnest", "generate_subscripts")


def list_to_unnest(name: str, args: Sequence[Expr]) -> Expr:
    """The list of which a call gives the elements."""
    if name == "generate_subscripts":
        if len(args) != 2 or not (args[0].dtype.is_list or is_null_literal(args[0])):
            raise BindError("generate_subscripts takes a list and the number 1")
        if any(map(is_null_literal, args)):
            return Literal(None, list_of(BIGINT))
        return call("range", Literal(1, BIGINT), call("add", call("len", args[0]), Literal(1, BIGINT)))
    if len(args) != 1:
        raise BindError(f"unnest takes one list, not {len(args)} arguments")
    (e,) = args
    if e.dtype.kind is Kind.NULL:
        return call("list_value")
    if not e.dtype.is_list:
        raise BindError(f"unnest takes a list, not a value of type {e.dtype}")
    return e


def unnest_table(e: Expr, has_ordinal: bool) -> Unnest:
    """The elements of a list as a table: their column, and one that numbers them if it is asked for."""
    ordinal = new_column("ordinality", BIGINT) if has_ordinal else None
    return Unnest(Values((), ((),)), ((new_column("unnest", _element(e.dtype)), e),), ordinal)


def json_table(name: str, args: Iterable[Expr]) -> Query:
    """The rows of `json_each` or `json_tree`."""
    from gquery.functions.jsonrows import json_rows

    rows = unnest_table(json_rows(name, [*args]), False)
    (of,) = rows.made
    made = tuple((new_column(name, dtype), field_number(of, n)) for n, (name, dtype) in enumerate(of.dtype.fields))
    return Query(Project(rows, made), tuple(c for c, _ in made), tuple(c.name for c, _ in made))


def _element(dtype: DType) -> DType:
    assert dtype.element is not None
    return dtype.element


class Unnested:
    """The lists that a SELECT takes apart, and the column of each one's elements."""

    def __init__(self) -> None:
        self._lists: list[tuple[Column, Expr]] = []

    def column(self, e: Expr, name: str) -> Column:
        """The column of a list's elements; equal lists share one."""
        found = next((c for c, known in self._lists if known == e and not has_subquery(e)), None)
        if found is None:
            found = new_column(name, _element(e.dtype))
            self._lists.append((found, e))
        return found

    def plan(self, plan: Plan) -> Plan:
        """A plan with rows for all elements."""
        return Unnest(plan, tuple(self._lists)) if self._lists else plan
