"""ALTER TABLE of fields of structs: rows are converted to a type with a field more, less, or of another name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from gquery.columns.table import TableSource
from gquery.errors import BindError, CatalogError, did_you_mean
from gquery.expression.nested_types import field_at, known_type, list_of, struct_of
from gquery.expression.types import DType
from gquery.sql.binding.constraints import bound_default
from gquery.sql.binding.forms import result_of
from gquery.sql.binding.query import QueryScopes
from gquery.sql.binding.sets import retyped
from gquery.sql.grammar.tokens import Form
from gquery.sql.named import table_named
from gquery.sql.statement import ChangeTable

_Fields = list[tuple[str, DType]]
_Change = Callable[[_Fields, "int | None"], _Fields]


def of_field(form: Form, tree: exp.Expr, binder: QueryScopes, table: TableSource) -> ChangeTable | None:
    """The table with another type of a column; None where IF EXISTS or IF NOT EXISTS leaves nothing to do."""
    column, options = form.names[0], dict(form.options)
    fields = options["fields"]
    assert isinstance(fields, tuple)
    schema, is_quiet = table.schema.fields, bool(options.get("if_column"))
    place = next((n for n, f in enumerate(schema) if f.name.lower() == column.lower()), None)
    if place is None:
        if is_quiet and form.text == "drop":
            return None
        hint = did_you_mean(column, tuple(f.name for f in schema))
        raise BindError(f"ALTER TABLE: table {form.name!r} has no column {column!r}.{hint}")
    types = [known_type(f.dtype) for f in schema]
    if is_quiet and _has(types[place], fields) == (form.text == "add"):
        return None
    own = binder.catalog.constraints(form.name)
    own.check_free(column, "change its fields", keys=False)
    query = result_of(binder, exp.Select(expressions=[exp.Star()]).from_(table_named(form.name), copy=False))
    for change in _changes(form, tree, binder, fields[-1]):
        types[place] = _changed(types[place], fields, change)
        query = retyped(query, types)
    if (default := own.default(column)) is not None:
        bound_default(default, types[place], binder.catalog)
    return ChangeTable(form.name, table, query, own)


def _changes(form: Form, tree: exp.Expr, binder: QueryScopes, name: str) -> list[_Change]:
    """What is done with the fields of a struct, one after the other. Structs are converted by names, or by places where one has
    no names: so fields lose their names before one gets another."""

    def added(fields: _Fields, at: int | None) -> _Fields:
        if at is not None:
            raise CatalogError(f"there is a field {name!r} already")
        (made,) = result_of(binder, exp.Select(expressions=[tree.expressions[0].copy()])).outputs
        return [*fields, (name, known_type(made.dtype))]

    def dropped(fields: _Fields, at: int | None) -> _Fields:
        if at is None:
            raise CatalogError(f"there is no field {name!r}")
        if len(fields) == 1:
            raise CatalogError(f"{name!r} is the only field of its struct")
        return [f for n, f in enumerate(fields) if n != at]

    if form.text != "rename":
        return [added if form.text == "add" else dropped]
    names: list[str] = []

    def unnamed(fields: _Fields, at: int | None) -> _Fields:
        new = form.names[1]
        if at is None:
            raise CatalogError(f"there is no field {name!r}")
        if new.lower() in (n.lower() for n, _ in fields):
            raise CatalogError(f"there is a field {new!r} already")
        names.extend(new if n == at else known for n, (known, _) in enumerate(fields))
        return [("", dtype) for _, dtype in fields]

    return [unnamed, lambda fields, at: [(n, dtype) for n, (_, dtype) in zip(names, fields, strict=True)]]


def _changed(dtype: DType, path: Sequence[str], change: _Change) -> DType:
    """A type in which the fields of a struct are changed, which is at the end of a path but for its last name."""
    if dtype.is_list and dtype.element is not None and path[0].lower() == "element" and len(path) > 1:
        return list_of(_changed(dtype.element, path[1:], change))
    if not dtype.is_struct:
        raise BindError(f"a value of type {dtype} has no field {path[0]!r}: it is no struct")
    at, fields = field_at(dtype, path[0]), list(dtype.fields)
    if len(path) == 1:
        return struct_of(change(fields, at))
    if at is None:
        raise CatalogError(f"there is no field {path[0]!r}")
    fields[at] = fields[at][0], _changed(fields[at][1], path[1:], change)
    return struct_of(fields)


def _has(dtype: DType, path: Sequence[str]) -> bool:
    for name in path:
        at = field_at(dtype, name) if dtype.is_struct else None
        if at is None:
            return False
        dtype = dtype.fields[at][1]
    return True
