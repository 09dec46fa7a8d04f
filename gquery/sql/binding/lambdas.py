"""Lambda functions over lists: ``list_transform(xs, lambda x: x + 1)``, ``list_filter(xs, lambda x, i: i > 1)`` and both as one,
``[x + 1 FOR x IN xs IF x > 1]``.

They stand for a subquery over the elements, so that the body is an expression as any other, of columns around it too:

    list_transform(xs, lambda x: x + a)   =>   (SELECT list(x + a ORDER BY i) FROM unnest(xs) WITH ORDINALITY u(x, i))

with an empty list where there is no element, and NULL for NULL. Of a list of few values that are written out, the body is written
out for each, so that kernels compute it:

    list_transform([a, b], lambda x: x + 1)   =>   [a + 1, b + 1]
    list_filter([a, b], lambda x: x > 1)      =>   _list_kept(a, b, a > 1, b > 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from gquery import tuning
from gquery.errors import BindError
from gquery.expression.expr import Call, Case, Column, Expr, IsNull, Literal, Not, ScalarSubquery, SortKey, new_column
from gquery.expression.traverse import substitute
from gquery.expression.types import BIGINT, Kind
from gquery.functions import aggregate, call, case, cast
from gquery.functions.chance import draws
from gquery.functions.registry import is_null_literal, make
from gquery.planner.logical.nodes import Aggregate, Filter, Plan, Project
from gquery.planner.logical.tree import has_subquery
from gquery.sql.binding.unnest import list_to_unnest, unnest_table
from gquery.sql.scope import Scope, ScopeRelation

_TRANSFORMS = ("list_transform", "array_transform", "list_apply", "array_apply", "apply")
_FILTERS = ("list_filter", "array_filter", "filter")
LAMBDAS = frozenset((*_TRANSFORMS, *_FILTERS))
BindBody = Callable[[exp.Expr, Scope, bool], Expr]  # of a body that sees a scope; whether it is a condition


def over_elements(name: str, xs: Expr, node: exp.Lambda, bind: BindBody, scope: Scope) -> Expr:
    """The list that a lambda function makes of the elements of another, which was bound in a scope. Both go into a plan of their
    own, where a grouped query does not look for its keys: they are over its groups at once."""
    names = tuple(p.name for p in node.expressions)
    if not 1 <= len(names) <= 2:
        raise BindError(
            f"{name}: a lambda function has the element, and its place if you like, not {len(names)} parameters"
        )
    if is_null_literal(xs):
        return xs
    xs = xs if scope.grouped is None else scope.grouped(xs)
    rows = unnest_table(list_to_unnest("unnest", [xs]), True)
    element, place = rows.made
    body = _with_columns(node.this, frozenset(n.lower() for n in names))
    own = Scope(scope, [ScopeRelation("", names, (element, place)[: len(names)])])
    bound = _over_groups(scope, lambda: bind(body, own, name in _FILTERS))
    if isinstance(xs, Call) and (each := _written_out(xs, bound, element, place)) is not None:
        return make("_list_kept", (*xs.args, *each), xs.dtype) if name in _FILTERS else call("list_value", *each)
    source: Plan = Filter(rows, bound) if name in _FILTERS else rows
    value = element if name in _FILTERS else bound
    return case([(_is_there(xs), ScalarSubquery(in_one_list(source, value, [SortKey(place)])))], None)


def _over_groups(scope: Scope, bind: Callable[[], Expr]) -> Expr:
    """What is bound, over the groups of a grouped query. It is bound over rows first, as a key that is no column is found in the
    whole; names within its own subqueries have to mean groups from the beginning."""
    grouped, scope.grouped = scope.grouped, None
    try:
        bound = bind()
    finally:
        scope.grouped = grouped
    if grouped is None:
        return bound
    return bind() if has_subquery(bound) else grouped(bound)


def _written_out(xs: Call, body: Expr, element: Column, place: Column | None) -> list[Expr] | None:
    """A body over each value of a list; None where it has to stay over columns, as its subqueries, or calls of chance, are those
    of a row."""
    parts = (*xs.args, body)
    most = tuning.rewrites.most_written_values
    if xs.function != "list_value" or len(xs.args) > most or any(a.dtype != element.dtype for a in xs.args):
        return None
    if body.dtype.kind in (Kind.NULL, Kind.INTERVAL, Kind.OPAQUE) or any(has_subquery(e) or draws(e) for e in parts):
        return None
    places = [] if place is None else [place.id]
    return [
        substitute(body, {element.id: value} | dict.fromkeys(places, Literal(n, BIGINT)))
        for n, value in enumerate(xs.args, 1)
    ]


def _is_there(xs: Expr) -> Expr:
    """Whether a list is not NULL. One that `over_elements` has made of another is where that one is: to ask it itself would be to
    make it twice, and lists of lists of lists so many times more."""
    match xs:
        case Case(((Not(IsNull()) as test, ScalarSubquery(Project(Aggregate(keys=()), exprs))),), Literal(value=None)):
            match exprs:
                case ((_, Case(((Not(IsNull(some)), same),), empty)),) if some == same and not empty.nullable:
                    return test  # `in_one_list` makes none that is NULL
    return Not(IsNull(xs))


def in_one_list(plan: Plan, value: Expr, order: Sequence[SortKey]) -> Plan:
    """One row: the list of a value of each row, without elements where there is none."""
    made = aggregate("list", [value], order=order)
    some, column = new_column("list", made.dtype, True), new_column("list", made.dtype, True)
    filled = call("coalesce", some, cast(call("list_value"), made.dtype))
    return Project(Aggregate(plan, (), ((some, made),)), ((column, filled),))


def comprehension(
    node: exp.Comprehension, bind: Callable[[exp.Expr], Expr], body: BindBody, scope: Scope
) -> Expr:
    """``[x + 1 FOR x IN xs IF x > 1]``."""
    xs, condition = bind(node.args["iterator"]), node.args.get("condition")
    if condition is not None:
        xs = over_elements("list_filter", xs, exp.Lambda(this=condition, expressions=[node.expression]), body, scope)
    return over_elements("list_transform", xs, exp.Lambda(this=node.this, expressions=[node.expression]), body, scope)


def _with_columns(body: exp.Expr, names: frozenset[str]) -> exp.Expr:
    """A body in which its parameters are columns: sqlglot leaves them as names."""

    def column(node: exp.Expr) -> exp.Expr:
        is_name = isinstance(node, exp.Identifier) and not isinstance(node.parent, exp.Column)
        return exp.Column(this=node.copy()) if is_name and node.name.lower() in names else node

    return body.copy().transform(column)
