"""What turns rows into columns and columns into rows: PIVOT, UNPIVOT, SUMMARIZE, DESCRIBE and SHOW.

The grammar writes each as a SELECT whose list begins with a marked column (`gquery.sql.grammar.pivot`). `reshaped` takes the
rows of its FROM clause, and gives the rows that the form makes of them and what is left of the SELECT: ``*`` of those, ORDER BY
and LIMIT. No plan has a node of its own for them: PIVOT is an aggregate with a filter for each column, UNPIVOT a join with a
table of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from gquery.expression.expr import FALSE, Expr, Literal, new_column
from gquery.expression.nested_types import known_type, list_of
from gquery.expression.types import BOOLEAN, VARCHAR
from gquery.planner.logical.nodes import Plan, Values
from gquery.sql.binding.expr import ExprBinder
from gquery.sql.ctes import Queries
from gquery.sql.grammar.tokens import mark_of
from gquery.sql.names import unique_names
from gquery.sql.reshaped_rows import Part, Relation, value_rows
from gquery.sql.schemas import DATABASE, MAIN, last, schema_of
from gquery.sql.scope import Scope, ScopeRelation

_KEPT = ("order", "limit", "offset")


def form_of(node: exp.Select) -> str:
    """What a SELECT was made of by the grammar; "" for one that stands in the text."""
    first = node.expressions[0] if node.expressions else None
    return mark_of(first.name) if isinstance(first, exp.Column) else ""


def reshaped(query: Queries, node: exp.Select, plan: Plan, scope: Scope) -> tuple[Plan, Scope, exp.Select]:
    """The rows that a form makes of those of its FROM clause, and the SELECT over them; of no form everything as it is."""
    form = form_of(node)
    if not form:
        return plan, scope, node
    from gquery.sql.binding.pivot import pivot
    from gquery.sql.binding.summary import described, summary
    from gquery.sql.binding.unpivot import unpivot

    made: Relation
    parts = _parts(node.expressions[1:])
    match form:
        case "pivot":
            made = pivot(query, node, parts, plan, scope)
        case "unpivot" | "unpivot_nulls":
            made = unpivot(query, parts, plan, scope, keeps_nulls=form == "unpivot_nulls")
        case "summarize":
            made = summary(query, plan, scope)
        case "describe":
            made = described(query, plan, scope)
        case "tables":
            made = _tables(query)
        case "all_tables":
            made = _all_tables(query)
        case _:
            raise AssertionError(form)
    plan, names, columns = made
    rest = exp.Select(expressions=[exp.Star()], **{k: node.args[k] for k in _KEPT if node.args.get(k) is not None})
    return plan, Scope(scope.parent, [ScopeRelation("", unique_names(names), columns)]), rest


def _parts(nodes: Sequence[exp.Expr]) -> list[Part]:
    """What stands behind the marks of the list, with their names."""
    return [(mark_of(mark.name), node) for mark, node in zip(nodes[::2], nodes[1::2], strict=True)]


def _all_tables(query: Queries) -> Relation:
    """Tables and views with the names and types of their columns, none of a view that cannot be bound any more."""
    from gquery.functions import cast
    from gquery.sql.binding.catalog import columns_in  # what few statements ask

    binder = ExprBinder(query, Scope(), "SHOW ALL TABLES")

    def texts(values: Iterable[str]) -> Expr:
        return cast(binder.bind(exp.Array(expressions=[exp.Literal.string(v) for v in values])), list_of(VARCHAR))

    rows: list[tuple[Expr, ...]] = []
    for name in sorted(query.catalog.names(), key=lambda n: (schema_of(n), last(n))):  # by bytes, as DuckDB
        found = columns_in(query, name)
        types = texts(str(known_type(dtype)) for _, dtype in found)
        place = (DATABASE, schema_of(name), last(name))
        rows.append((*(Literal(t, VARCHAR) for t in place), texts(n for n, _ in found), types, FALSE))
    kinds = (VARCHAR, VARCHAR, VARCHAR, list_of(VARCHAR), list_of(VARCHAR), BOOLEAN)
    names = ("database", "schema", "name", "column_names", "column_types", "temporary")
    columns = tuple(new_column(n, kind, False) for n, kind in zip(names, kinds, strict=True))
    return value_rows(columns, rows), names, columns


def _tables(query: Queries) -> Relation:
    shown = query.catalog.schemas
    names = sorted(last(n) for n in query.catalog.names() if schema_of(n).lower() in (MAIN, shown.current))
    column = new_column("name", VARCHAR, False)
    return Values((column,), tuple((Literal(n, VARCHAR),) for n in names)), ("name",), (column,)
