"""RETURNING: a list of expressions over the rows that a statement adds, changes or takes away.

It is a query of its own, over a table of these rows, which is there once the statement has made them. So an error in it leaves
all as it was: they are put in place behind it.
"""

from __future__ import annotations

from sqlglot import exp

from gquery.columns.table import TableSource
from gquery.errors import BindError, NotSupportedError
from gquery.expression.expr import Column, Expr, IsNull, Literal, Not, new_column
from gquery.expression.types import BOOLEAN, VARCHAR
from gquery.functions import call, is_aggregate
from gquery.planner.logical.nodes import Filter, Plan, Project, Query, Scan
from gquery.runtime.records import dataclass, replace
from gquery.sql.binding.forms import result_of
from gquery.sql.binding.query import QueryScopes
from gquery.sql.calls import function_call, is_call
from gquery.sql.catalog import BoundRelation, Catalog
from gquery.sql.check import check
from gquery.sql.macros import expand
from gquery.sql.parse import Parsed, located, parse_one
from gquery.sql.schemas import joined
from gquery.sql.statement import Returning

_WORD = "returning"
MERGE_ACTION = "merge_action"


@dataclass(frozen=True)
class RowsOf:
    """The rows of a table; of one whose last column says so, those that are changed, or those that are not. Of a MERGE it
    says what is done with a row: those that are changed have it with ``has_action``, those that are left do not go."""

    source: TableSource
    changed: bool | None
    has_action: bool = False

    def bound_query(self) -> Query:
        """See `catalog.BoundRelation`."""
        columns = tuple(new_column(f.name, f.dtype, f.nullable) for f in self.source.schema)
        plan: Plan = Scan(self.source, columns, tuple(range(len(columns))))
        names = tuple(self.source.schema.names)
        if self.changed is None:
            return Query(plan, columns, names)
        if columns[-1].dtype == VARCHAR:
            return self._of_merge(plan, columns, names)
        mark: Expr = call("coalesce", columns[-1], Literal(False, BOOLEAN))
        return Query(Filter(plan, mark if self.changed else Not(mark)), columns[:-1], names[:-1])

    def _of_merge(self, plan: Plan, columns: tuple[Column, ...], names: tuple[str, ...]) -> Query:
        done = columns[-1]
        if self.changed and self.has_action:
            return Query(Filter(plan, Not(IsNull(done))), columns, (*names[:-1], MERGE_ACTION))
        kept = Not(IsNull(done)) if self.changed else call("is_distinct_from", done, Literal("DELETE", VARCHAR))
        return Query(Filter(plan, kept), columns[:-1], names[:-1])


def left(rows: TableSource) -> Query:
    """The rows that stay of a table whose last column says which go."""
    return RowsOf(rows, False).bound_query()


def returned(returning: Returning, catalog: Catalog, rows: TableSource, is_marked: bool = False) -> Query:
    """The list over rows of a table, or over those that the last column says are changed."""
    before = "".join(c if c == "\n" else " " for c in returning.sql[: returning.start])
    listed = returning.sql[returning.start + len(_WORD) : returning.behind]
    parsed = replace(parse_one(f"{before}{'SELECT':{len(_WORD)}}{listed}"), sql=returning.sql)
    check(parsed)
    expand(parsed, catalog)
    check_row(parsed.nodes, returning.sql, "RETURNING")
    tree = parsed.tree
    assert isinstance(tree, exp.Select)
    for column in parsed.nodes:  # the rows have the name of the table, and no schema
        if isinstance(column, exp.Column) and joined([p.name for p in column.parts[:-1]]).lower() == returning.name.lower():
            column.set("db", None)
    source: BoundRelation = RowsOf(rows, True if is_marked else None)
    if returning.of_merge and rows.schema.find(MERGE_ACTION) is None and _names_action(parsed):
        source = RowsOf(rows, True, True) if is_marked else _WithAction(rows)
    table = exp.Table(this=exp.to_identifier(returning.name, quoted=True))
    alias = exp.to_identifier(returning.alias, quoted=True)
    binder = QueryScopes(returning.sql, catalog.over({returning.name: source}), None)
    return result_of(binder, tree.from_(exp.alias_(table, alias, table=True), copy=False))


@dataclass(frozen=True)
class _WithAction:
    """The rows that a table has before a MERGE, as it returns them: what its RETURNING is checked by."""

    source: TableSource

    def bound_query(self) -> Query:
        """See `catalog.BoundRelation`."""
        rows = RowsOf(self.source, None).bound_query()
        action = new_column(MERGE_ACTION, VARCHAR, True)
        pairs: list[tuple[Column, Expr]] = [*((c, c) for c in rows.outputs), (action, Literal(None, VARCHAR))]
        return Query(Project(rows.plan, tuple(pairs)), (*rows.outputs, action), (*rows.names, MERGE_ACTION))


def _names_action(parsed: Parsed) -> bool:
    """Whether a list asks for what MERGE does with a row, which is a column that ``*`` does not have: it is told to."""
    if not any(isinstance(n, exp.Column) and n.name.lower() == MERGE_ACTION for n in parsed.nodes):
        return False
    for node in parsed.nodes:
        if isinstance(node, exp.Columns):
            raise located(NotSupportedError("not supported: COLUMNS beside merge_action"), parsed.sql, node)
        if isinstance(node, exp.Star):
            dropped = node.args.get("except_") or []
            if any(c.name.lower() == MERGE_ACTION for c in dropped):
                raise located(BindError(f"* has no column {MERGE_ACTION!r}"), parsed.sql, node)
            node.set("except_", [*dropped, exp.to_identifier(MERGE_ACTION)])
    return True


def check_row(nodes: list[exp.Expr], sql: str, clause: str) -> None:
    """BindError for what in a clause is made of more than the row, as in DuckDB."""
    for node in nodes[1:]:
        what = (
            "subqueries" if isinstance(node, exp.Query)
            else "window functions" if isinstance(node, exp.Window)
            else "parameters" if isinstance(node, exp.Placeholder | exp.Parameter)
            else None
        )  # fmt: skip
        if what is None and is_call(node):
            name, _ = function_call(node)
            what = "aggregates" if is_aggregate(name) else "UNNEST" if name == "unnest" else None
        if what is not None:
            raise located(BindError(f"{clause} cannot contain {what}"), sql, node)
