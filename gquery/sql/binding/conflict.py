"""INSERT OR and ON CONFLICT: queries that tell new rows by whether the table has a row of the same key.

Of several new rows of one key the first counts, as in DuckDB. A row with NULL in a key meets none.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from sqlglot import exp

from gquery.columns.table import TableSource
from gquery.errors import BindError, NotSupportedError
from gquery.planner.logical.nodes import Query
from gquery.runtime.records import replace
from gquery.sql.binding.constraints import default_tree, parsed
from gquery.sql.binding.forms import is_true, result_of
from gquery.sql.binding.query import QueryScopes
from gquery.sql.binding.returning import RowsOf
from gquery.sql.catalog import Catalog
from gquery.sql.constraints import Constraints, Key
from gquery.sql.grammar.tokens import marked
from gquery.sql.named import column_named, identifier, table_named
from gquery.sql.schemas import last
from gquery.sql.statement import Conflict

_NEW, _NUMBER, EXCLUDED = marked("new"), marked("number"), "excluded"


def conflict_of(said: Conflict, names: Sequence[str], table: str, own: Constraints) -> Conflict:
    """The conflict of a table's key that is meant; BindError where there is none. REPLACE is an update of the columns that the
    INSERT names."""
    keys = own.keys
    if said.target:
        keys = tuple(k for k in keys if {*k.columns} == {c.lower() for c in said.target})[:1]
    if not keys:
        what = f"({', '.join(said.target)}) is no PRIMARY KEY or UNIQUE" if said.target else "it has no key"
        raise BindError(f"ON CONFLICT of table {table!r}: {what}")
    if len(keys) > 1:
        if said.kind == "nothing":
            raise NotSupportedError("not supported: ON CONFLICT DO NOTHING without columns, of a table of several keys")
        raise BindError(f"ON CONFLICT of table {table!r}, which has several keys, needs the columns of one")
    key = keys[0]
    others = [n for n in names if n.lower() not in key.columns]
    sets = tuple((n, f"{EXCLUDED}.{_quoted(n)}") for n in others) if said.kind == "replace" else said.sets
    return replace(said, sets=sets, key=key)


def first_rows(rows: TableSource, key: Key, catalog: Catalog) -> Query:
    """Of the new rows of one key the first."""
    parts = [column_named(c) for c in key.columns]
    number = exp.Window(this=exp.Anonymous(this="row_number", expressions=[]), partition_by=parts)
    numbered = exp.Select(expressions=[exp.Star(), exp.alias_(number, _NUMBER, quoted=True)]).from_(table_named(_NEW))
    kept: exp.Expr = exp.EQ(this=column_named(_NUMBER), expression=exp.Literal.number(1))
    for c in key.columns:
        kept = exp.Or(this=kept, expression=exp.Is(this=column_named(c), expression=exp.Null()))
    query = exp.Select(expressions=[column_named(n) for n in rows.schema.names]).from_(numbered.subquery(identifier(_NEW)))
    return _bound(query.where(kept), rows, catalog)


def added(name: str, rows: TableSource, key: Key, catalog: Catalog) -> Query:
    """The new rows of which the table has none of the same key."""
    return _bound(_added(name, rows, key), rows, catalog)


def merged(
    name: str, rows: TableSource, conflict: Conflict, table: TableSource, own: Constraints, catalog: Catalog
) -> Query:
    """All rows of the table, those that a new one meets with new values, and behind them the new rows that meet none; with a
    column that says which are changed or new."""
    assert conflict.key is not None
    fields = {f.name.lower(): f for f in table.schema.fields}
    for column, _ in conflict.sets:
        if column.lower() not in fields:
            raise BindError(f"ON CONFLICT: table {name!r} has no column {column!r}.")
    own_name = last(name)

    def said(text: str) -> exp.Expr:
        return _over(parsed(text, "ON CONFLICT", catalog), own_name, fields)

    hit: exp.Expr = exp.Not(this=exp.Is(this=column_named(conflict.key.columns[0], EXCLUDED), expression=exp.Null()))
    if conflict.where:
        hit = exp.And(this=hit, expression=exp.Paren(this=said(conflict.where)))
    hit = is_true(hit)
    values = {c.lower(): text for c, text in conflict.sets}
    made: list[exp.Expr] = []
    for low, f in fields.items():
        value: exp.Expr = column_named(f.name, own_name)
        if low in values:
            text = values[low]
            new = default_tree(own, low, catalog) if text is None else said(text)
            new = exp.Cast(this=exp.Paren(this=new), to=exp.DataType.build(str(f.dtype), dialect="duckdb"))
            value = exp.Case(ifs=[exp.If(this=hit.copy(), true=new)], default=value)
        made.append(exp.alias_(value, f.name, quoted=True))
    on = _same(conflict.key, own_name, EXCLUDED)
    changed = exp.Select(expressions=[*made, exp.alias_(hit, _NUMBER, quoted=True)]).from_(table_named(name))
    changed = changed.join(exp.alias_(table_named(_NEW), EXCLUDED, table=True), on=on, join_type="left")
    new_rows = _added(name, rows, conflict.key)
    new_rows.append("expressions", exp.alias_(exp.true(), _NUMBER, quoted=True))
    return _bound(exp.Union(this=changed, expression=new_rows, distinct=False), rows, catalog)


def _added(name: str, rows: TableSource, key: Key) -> exp.Select:
    query = exp.Select(expressions=[column_named(n, _NEW) for n in rows.schema.names]).from_(table_named(_NEW))
    found = exp.Select(expressions=[exp.Literal.number(1)]).from_(table_named(name)).where(_same(key, last(name), _NEW))
    return query.where(exp.Not(this=exp.Exists(this=found)))


def _over(node: exp.Expr, table: str, columns: Container[str]) -> exp.Expr:
    """An expression in which names alone are columns of the table, and not of the new rows."""
    node = node.unalias().copy()
    for c in list(node.find_all(exp.Column)):
        if not c.table and c.name.lower() in columns:
            c.set("table", identifier(table))
    return node


def _same(key: Key, a: str, b: str) -> exp.Expr:
    return exp.and_(*[exp.EQ(this=column_named(c, a), expression=column_named(c, b)) for c in key.columns])


def _bound(query: exp.Query, rows: TableSource, catalog: Catalog) -> Query:
    over = catalog.stored().over({_NEW: RowsOf(rows, None)})
    try:
        return result_of(QueryScopes("", over, None), query)
    except BindError as error:  # whose place is none in the text
        raise BindError(f"ON CONFLICT: {str(error).partition(chr(10))[0]}") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
