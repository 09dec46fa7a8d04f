"""ALTER TABLE: the query of the rows that a table is to have, with one column more, less, or other than before.

`gquery.api.changes` runs it as it runs UPDATE: another table takes the place of the one before, whose readers read on.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from gquery.columns.table import TableSource
from gquery.errors import BindError, CatalogError, did_you_mean
from gquery.expression.nested_types import known_type
from gquery.expression.types import DType
from gquery.planner.logical.nodes import Query
from gquery.runtime.records import replace
from gquery.sql.binding.constraints import bound_default, default_tree, key_of
from gquery.sql.binding.forms import result_of
from gquery.sql.binding.query import QueryScopes
from gquery.sql.calls import function_call, is_call
from gquery.sql.constraints import Constraints, columns_of
from gquery.sql.grammar.tokens import Form, marked
from gquery.sql.named import column_named, table_named
from gquery.sql.parse import located
from gquery.sql.schemas import last
from gquery.sql.statement import AlterTable, ChangeTable, RenameTable

_MADE = marked("made")


def altered(form: Form, tree: exp.Expr, binder: QueryScopes) -> AlterTable | RenameTable:
    """The statement that a form of `gquery.sql.grammar.alter` stands for."""
    options = dict(form.options)
    if options["if_exists"] and binder.catalog.lookup(form.name) is None:
        return AlterTable(None)
    table = binder.catalog.table(form.name)
    if form.text == "rename_table":
        return RenameTable(form.name, form.names[0])
    if form.text == "add_key":
        return AlterTable(_with_key(form, table, binder))
    at = {f.name.lower(): n for n, f in enumerate(table.schema.fields)}
    place = at.get(form.names[0].lower())
    if "fields" in options:
        from gquery.sql.binding.alter_fields import of_field  # few statements change one

        return AlterTable(of_field(form, tree, binder, table))
    if options.get("if_column") and (place is None) == (form.text == "drop"):
        return AlterTable(None)
    if form.text == "add":
        _check_free(form.names[0], form.name, place is None)
    elif place is None:
        hint = did_you_mean(form.names[0], tuple(f.name for f in table.schema.fields))
        raise BindError(f"ALTER TABLE: table {form.name!r} has no column {form.names[0]!r}.{hint}")
    own = binder.catalog.constraints(form.name)
    new = _constraints(form, own, None if place is None else known_type(table.schema.fields[place].dtype), binder)
    is_asked = "default" in options or "not_null" in options
    query = None if is_asked and form.text == "alter" else _query(form, tree, binder, table, at, new)
    if form.text == "add" and query is not None:
        _constraints(form, own, query.outputs[-1].dtype, binder)
    return AlterTable(ChangeTable(form.name, table, query, own, new=new))


def _with_key(form: Form, table: TableSource, binder: QueryScopes) -> ChangeTable:
    """The table with a primary key, which its rows are held against."""
    own = binder.catalog.constraints(form.name)
    types = {name.lower(): dtype for name, dtype in columns_of(table)}
    key = key_of("primary", form.names, types, form.name)
    named = own if own.table else replace(own, table=last(form.name))
    return ChangeTable(form.name, table, None, own, new=named.with_key(key), changed=key.columns)


def _constraints(form: Form, own: Constraints, dtype: DType | None, binder: QueryScopes) -> Constraints:
    """What the table asks of its rows then; ``dtype`` is the column's type, where it is there."""
    options, column = dict(form.options), form.names[0]
    match form.text:
        case "drop":
            return own.without(column)
        case "rename":
            return own.renamed(column, form.names[1])
        case "alter" if "default" not in options and "not_null" not in options:
            own.check_free(column, "change its type")
            return own
    if "not_null" in options:
        return own.with_not_null(column, bool(options["not_null"]))
    text = options.get("default")
    if isinstance(text, str) and dtype is not None:
        bound_default(text, dtype, binder.catalog)
    return own.with_default(column, text if isinstance(text, str) else None)


def _query(
    form: Form, tree: exp.Expr, binder: QueryScopes, table: TableSource, at: dict[str, int], new: Constraints
) -> Query:
    columns = [(f.name, column_named(f.name)) for f in table.schema.fields]
    name, value = form.names[0], tree.expressions[1] if len(tree.expressions) > 1 else None
    match form.text:
        case "add":
            columns.append((name, column_named(_MADE)))
        case "drop":
            if len(columns) == 1:
                raise CatalogError(f"{name!r} is the only column of table {form.name!r}: DROP TABLE drops it")
            del columns[at[name.lower()]]
        case "rename":
            renamed = form.names[1]
            _check_free(renamed, form.name, at.get(renamed.lower()) in (None, at[name.lower()]))
            columns[at[name.lower()]] = (renamed, column_named(name))
        case _:
            own = table.schema.fields[at[name.lower()]].name
            value = column_named(own) if value is None else value
            columns[at[name.lower()]] = (own, column_named(_MADE))
    made: list[exp.Expr] = [exp.Star()]
    if form.text in ("add", "alter"):
        if form.text == "add":
            value = default_tree(new, name, binder.catalog)
        assert value is not None
        _check_rows(value, binder)
        typed = exp.Cast(this=value.copy(), to=tree.expressions[0].args["to"].copy())
        made.append(exp.alias_(typed, _MADE, quoted=True))
    source = table_named(form.name)
    rows = exp.Select(expressions=made).from_(source, copy=False)
    query = exp.Select(expressions=[exp.alias_(c, n, quoted=True) for n, c in columns])
    return result_of(
        binder, query.from_(rows.subquery(exp.to_identifier(last(form.name), quoted=True), copy=False), copy=False)
    )


def _check_free(name: str, table: str, is_free: bool) -> None:
    if not is_free:
        raise CatalogError(f"table {table!r} has a column {name!r} already")


def _check_rows(value: exp.Expr, binder: QueryScopes) -> None:
    """A table keeps as many rows as it has. (An aggregate beside ``*`` is an error as in any query.)"""
    for node in _unnests(value):
        raise located(BindError("ALTER TABLE cannot unnest"), binder.sql, node)


def _unnests(value: exp.Expr) -> Iterator[exp.Expr]:
    for node in value.find_all(exp.Expr):
        if isinstance(node, exp.Unnest) or (is_call(node) and function_call(node)[0] == "unnest"):
            yield node
