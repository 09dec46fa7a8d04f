"""UPDATE with FROM and DELETE with USING: the rows of other tables by which a table is changed.

Which row of the table meets one of the others is asked row by row, as EXISTS and LATERAL do, so that each row is there once
however many it meets. Of several an UPDATE takes one, as in DuckDB. Names are looked up as in the join of all these tables, where
one that two of them have is ambiguous.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from gquery.columns.table import TableSource
from gquery.planner.logical.nodes import Query
from gquery.sql.binding.forms import result_of
from gquery.sql.binding.limits import ROWID
from gquery.sql.binding.query import QueryScopes
from gquery.sql.ctes import Ctes
from gquery.sql.grammar.tokens import marked
from gquery.sql.named import column_named

CHANGED = marked("changed")
_NEW = marked("new")
_FOUND = marked("found")


def kept_beside(tree: exp.Select, binder: QueryScopes) -> Query:
    """The rows that DELETE leaves: those that meet none of the others."""
    binder.query(tree.copy(), None, Ctes())
    others = _others(tree, [exp.Literal.number(1)])
    rows = exp.Select(expressions=[exp.Star()]).from_(tree.args["from_"].this.copy(), copy=False)
    rows.set("with_", tree.args.get("with_"))
    return result_of(binder, rows.where(exp.Not(this=exp.Exists(this=others)), copy=False))


def rows_beside(tree: exp.Select, values: Mapping[int, exp.Expr], binder: QueryScopes) -> exp.Select:
    """All rows of UPDATE's table, with what is new in those that meet one of the others (`new_value`), and whether they do."""
    binder.query(tree.copy(), None, Ctes())
    new = [exp.alias_(value, f"{_NEW}{n}", quoted=True) for n, value in values.items()]
    first = _others(tree, [*new, exp.alias_(exp.true(), CHANGED, quoted=True)]).limit(1, copy=False)
    found = exp.Lateral(
        this=exp.Subquery(this=first), alias=exp.TableAlias(this=exp.to_identifier(_FOUND, quoted=True))
    )
    rows = exp.Select(expressions=[exp.Star()]).from_(tree.args["from_"].this.copy(), copy=False)
    rows.set("joins", [exp.Join(this=found, side="LEFT", on=exp.true())])
    return rows


def new_value(n: int) -> exp.Expr:
    """The new value of a column, by its place, over `rows_beside`."""
    return exp.column(exp.to_identifier(f"{_NEW}{n}", quoted=True))


def all_columns(table: TableSource, alias: str, binder: QueryScopes) -> list[exp.Expr]:
    """What a query of a table selects for another one around it to have all its names: its columns, and ``rowid``, which a star
    leaves out, where the text may name it."""
    if not binder.names_rowid or table.schema.find(ROWID) is not None:
        return [exp.Star()]
    return [exp.Star(), column_named(ROWID, alias)]


def _others(tree: exp.Select, outputs: list[exp.Expr]) -> exp.Select:
    """The query of the other tables' rows that one of the first table meets."""
    first, *joins = (j.copy() for j in tree.args["joins"])
    rows = exp.Select(expressions=outputs).from_(first.this, copy=False)
    rows.set("joins", joins)
    rows.set("where", tree.args["where"].copy() if tree.args.get("where") else None)
    return rows
