"""INSERT, UPDATE, DELETE and CREATE TABLE with columns: the query of the rows that are appended, or that the table is to have.

A table does not change: another takes its place, so that who reads the one before reads on. `gquery.api.changes` runs them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from gquery.columns.table import TableSource
from gquery.errors import BindError, NotSupportedError, did_you_mean
from gquery.expression.expr import Expr, Literal, new_column
from gquery.expression.nested_types import known_type
from gquery.expression.types import DType
from gquery.functions import cast, is_aggregate
from gquery.planner.logical.nodes import Project, Query
from gquery.planner.logical.separate import separate
from gquery.runtime.records import replace
from gquery.sql.binding.changes_from import all_columns, kept_beside, new_value, rows_beside
from gquery.sql.binding.forms import is_true, result_of, with_numbers
from gquery.sql.binding.query import QueryScopes
from gquery.sql.calls import function_call, is_call
from gquery.sql.constraints import NONE, Constraints, columns_of
from gquery.sql.ctes import Ctes
from gquery.sql.grammar.tokens import Form, marked
from gquery.sql.inserted_values import constant_rows, parameters_of
from gquery.sql.named import table_named
from gquery.sql.parse import located
from gquery.sql.schemas import last
from gquery.sql.statement import AppendRows, ChangeTable, Conflict, CreateTable, Returning, Statement

CHANGES = frozenset(("alter", "copy_from", "define", "insert", "update", "delete", "merge"))  # kinds of forms
_CHANGED = marked("changed")


def changed(form: Form, tree: exp.Expr, binder: QueryScopes) -> Statement:
    """The statement that a form of `gquery.sql.grammar.changes` and its query stand for."""
    if form.kind == "define":
        return _defined(form, tree, binder)
    if form.kind == "insert":
        return _inserted(form, tree, binder, binder.catalog.shape(form.name))
    if form.kind == "copy_from":
        from gquery.sql.binding.copy import rows_of_file

        table = binder.catalog.shape(form.name)
        insert, rows = rows_of_file(form, table)
        return _inserted(insert, rows, binder, table)
    if form.kind == "alter":
        from gquery.sql.binding.alter import altered

        return altered(form, tree, binder)
    table = binder.catalog.table(form.name)
    own = binder.catalog.constraints(form.name)
    _check_ctes(form, tree)
    if form.kind == "merge":
        from gquery.sql.binding.merge import merged

        returning = _returning(form, form.text, binder, table)
        return replace(merged(form, tree, binder, table, own), returning=returning)
    if form.kind == "update":
        returning = _returning(form, form.text, binder, table)
        new = _updated(form, tree, binder, table)
        return ChangeTable(form.name, table, new, own, True, returning=returning, changed=form.names)
    alias = tree.args["from_"].this.alias_or_name
    returning = _returning(form, alias, binder, table)
    if returning is None:
        return ChangeTable(form.name, table, _kept(form, tree, binder), own)
    rows, _ = _changed_rows(form, alias, tree, binder, {}, table)
    marked = _marked(rows, alias, {}, tree, binder, table)
    return ChangeTable(form.name, table, marked, own, True, goes=True, returning=returning)


def _check_ctes(form: Form, tree: exp.Expr) -> None:
    """NotSupportedError where a CTE hides the table that is changed from the query of its rows."""
    ctes = tree.args.get("with_")
    if ctes is not None and any(c.alias.lower() == last(form.name).lower() for c in ctes.expressions):
        raise NotSupportedError(f"not supported: a CTE with the name of the table that is changed, {form.name!r}")


def _returning(form: Form, alias: str, binder: QueryScopes, table: TableSource) -> Returning | None:
    """The RETURNING of a statement. It is bound over the rows that there are, too, for its errors to be the first."""
    place = dict(form.options).get("returning")
    if place is None:
        return None
    from gquery.sql.binding.returning import returned

    assert isinstance(place, tuple)
    made = Returning(binder.sql, place[0], place[1], form.name, alias, form.kind == "merge")
    returned(made, binder.catalog, table)
    return made


def _defined(form: Form, tree: exp.Expr, binder: QueryScopes) -> CreateTable:
    """A table without rows."""
    assert isinstance(tree, exp.Select)
    _check_once(form.names, "CREATE TABLE")
    query = result_of(binder, tree.limit(0, copy=False))
    options = dict(form.options)
    query = replace(query, names=form.names)
    constraints = _constraints(form, query, binder)
    return CreateTable(form.name, query, "replace" in options, "exists" in options, constraints)


def _constraints(form: Form, query: Query, binder: QueryScopes) -> Constraints:
    """What a new table asks of its rows."""
    from gquery.sql.binding.constraints import bound_default, checked, key_of

    types = {n.lower(): c.dtype for n, c in zip(form.names, query.outputs, strict=True)}
    made = Constraints(last(form.name))
    said = dict(form.options).get("constraints", ())
    assert isinstance(said, tuple)
    for kind, columns, text in said:
        match kind:
            case "not":
                made = made.with_not_null(columns[0], True)
            case "default":
                bound_default(text, types[columns[0].lower()], binder.catalog)
                made = made.with_default(columns[0], text)
            case "primary" | "unique":
                made = made.with_key(key_of(kind, columns, types, form.name))
            case _:
                made = replace(made, checks=(*made.checks, checked(text, query, last(form.name), binder.catalog)))
    return NONE if made == Constraints(last(form.name)) else made


def _inserted(form: Form, tree: exp.Expr, binder: QueryScopes, table: TableSource) -> AppendRows:
    """The rows of a query, as the table's columns have them."""
    fields = table.schema.fields
    types = tuple(known_type(f.dtype) for f in fields)
    own = binder.catalog.constraints(form.name)
    written: list[exp.Expr] = []
    at = _places(form.names, form.name, table, "INSERT") if form.names else range(len(fields))
    if dict(form.options)["marked"]:
        from gquery.sql.binding.constraints import with_defaults

        with_defaults(tree, [fields[n].name for n in at], own, binder.catalog)
    if isinstance(tree, exp.Values):
        written = [*tree.expressions]
        tree = _typed_rows(tree, [types[n] for n in at])
    new = binder.query(tree, None, Ctes())
    options = dict(form.options)
    all_names = tuple(f.name for f in fields)
    names = form.names or (new.names if options["by_name"] else all_names[:1] if options["default"] else all_names)
    places = _places(names, form.name, table, "INSERT")
    if len(new.outputs) != len(names):
        raise BindError(f"INSERT into {len(names)} columns of {form.name!r} has rows of {len(new.outputs)} values")
    returning = _returning(form, last(form.name), binder, table)
    conflict = options["conflict"]
    assert conflict is None or isinstance(conflict, Conflict)
    if conflict is not None:
        from gquery.sql.binding.conflict import conflict_of

        conflict = conflict_of(conflict, names, form.name, own)
    given: dict[int, Expr] = {} if options["default"] else dict(zip(places, new.outputs, strict=True))
    values = _row(given, table, own, binder)
    can_wait = bool(written) and returning is None and conflict is None and not binder.catalog.has_sequences
    constants = constant_rows(new.plan, places, values) if can_wait else None
    new = replace(new, plan=separate(new.plan), asked=tuple(binder.asked))
    made = tuple((new_column(f.name, e.dtype, True), e) for f, e in zip(fields, values, strict=True))
    rows = Query(Project(new.plan, made), tuple(c for c, _ in made), tuple(f.name for f in fields), asked=new.asked)
    rows = with_numbers(rows, binder.catalog)
    parameters = None if constants is None else parameters_of(written, places, len(fields))
    return AppendRows(form.name, columns_of(table), rows, own, constants, parameters, returning, conflict)


def _row(given: dict[int, Expr], table: TableSource, own: Constraints, binder: QueryScopes) -> tuple[Expr, ...]:
    """The values of all columns where some are given: of the others their defaults."""
    out = []
    for n, field in enumerate(table.schema.fields):
        dtype = known_type(field.dtype)
        if n not in given and (text := own.default(field.name)) is not None:
            from gquery.sql.binding.constraints import bound_default

            out.append(bound_default(text, dtype, binder.catalog))
        else:
            out.append(cast(given.get(n, Literal(None, dtype)), dtype))
    return tuple(out)


def _typed_rows(values: exp.Values, types: Sequence[DType]) -> exp.Values:
    """VALUES with each value cast to its column's type: a type that all rows have in common may keep less of a value."""
    made = values.copy()
    for row in made.expressions:
        if isinstance(row, exp.Tuple) and len(row.expressions) == len(types):
            row.set("expressions", [_cast(v, t) for v, t in zip(row.expressions, types, strict=True)])
    return made


def _cast(value: exp.Expr, dtype: DType) -> exp.Cast:
    return exp.Cast(this=value.copy(), to=exp.DataType.build(str(dtype), dialect="duckdb"))


def _kept(form: Form, tree: exp.Expr, binder: QueryScopes) -> Query:
    """The rows that DELETE leaves: those of which its condition is not true."""
    if dict(form.options)["others"]:
        assert isinstance(tree, exp.Select)
        return kept_beside(tree, binder)
    where = tree.args.get("where")
    condition = exp.false() if where is None else exp.Not(this=is_true(where.this))
    tree.set("where", exp.Where(this=condition))
    return result_of(binder, tree)


def _updated(form: Form, tree: exp.Expr, binder: QueryScopes, table: TableSource) -> Query:
    """All rows, with new values in those of which the condition is true, and a column that says which these are."""
    places = _places(form.names, form.name, table, "UPDATE")
    _check_one_row(tree, binder)
    values = dict(zip(places, tree.expressions, strict=True))
    if dict(form.options)["marked"]:
        from gquery.sql.binding.constraints import default_tree, is_default

        own, fields = binder.catalog.constraints(form.name), table.schema.fields
        defaults = {n: default_tree(own, fields[n].name, binder.catalog) for n, v in values.items() if is_default(v)}
        values |= defaults
    cast_values: dict[int, exp.Expr] = {n: _cast(v, table.schema.fields[n].dtype) for n, v in values.items()}
    rows, made = _changed_rows(form, form.text, tree, binder, cast_values, table)
    return _marked(rows, form.text, made, tree, binder, table)


def _marked(
    rows: exp.Select, alias: str, made: dict[int, exp.Expr], tree: exp.Expr, binder: QueryScopes, table: TableSource
) -> Query:
    """All rows of a table with new values, and the column that says which are changed; CTEs are those of ``tree``."""
    columns: list[exp.Expr] = []
    for n, f in enumerate(table.schema.fields):
        own: exp.Expr = exp.column(exp.to_identifier(f.name, quoted=True), table=exp.to_identifier(alias, quoted=True))
        if n in made:
            own = exp.Case(ifs=[exp.If(this=_flag(), true=made[n])], default=own)
        columns.append(exp.alias_(own, f.name, quoted=True))
    query = exp.Select(expressions=[*columns, _flag()])
    query = query.from_(rows.subquery(exp.to_identifier(alias, quoted=True), copy=False), copy=False)
    query.set("with_", tree.args.get("with_"))
    return result_of(binder, query)


def _check_one_row(tree: exp.Expr, binder: QueryScopes) -> None:
    """BindError for a new value that is made of more than its row, but by a subquery."""
    for value in tree.expressions:
        for node in value.walk(prune=lambda n: isinstance(n, exp.Query)):
            is_window = isinstance(node, exp.Window)
            if is_window or (is_call(node) and is_aggregate(function_call(node)[0])):
                what = "window functions" if is_window else "aggregates"
                raise located(BindError(f"UPDATE cannot contain {what}, but in a subquery"), binder.sql, node)


def _changed_rows(
    form: Form, alias: str, tree: exp.Expr, binder: QueryScopes, values: dict[int, exp.Expr], table: TableSource
) -> tuple[exp.Select, dict[int, exp.Expr]]:
    """All rows of the table with a column that says which are changed, and the new values over them."""
    if dict(form.options)["others"]:
        assert isinstance(tree, exp.Select)
        return rows_beside(tree, values, binder), {n: new_value(n) for n in values}
    where = tree.args.get("where")
    is_changed = exp.true() if where is None else is_true(where.this)
    columns = all_columns(table, alias, binder) if values else [exp.Star()]
    rows = exp.Select(expressions=[*columns, exp.alias_(is_changed, _CHANGED, quoted=True)])
    source: exp.Expr = table_named(form.name)
    if alias != last(form.name):
        source = exp.alias_(source, alias, quoted=True, table=True)
    return rows.from_(source, copy=False), values


def _flag() -> exp.Column:
    return exp.column(exp.to_identifier(_CHANGED, quoted=True))


def _places(names: Sequence[str], of: str, table: TableSource, statement: str) -> list[int]:
    """The places of columns; BindError for one that is not there, or there twice."""
    _check_once(names, statement)
    at = {f.name.lower(): n for n, f in enumerate(table.schema.fields)}
    for name in names:
        if name.lower() not in at:
            hint = did_you_mean(name, tuple(f.name for f in table.schema.fields))
            raise BindError(f"{statement}: table {of!r} has no column {name!r}.{hint}")
    return [at[name.lower()] for name in names]


def _check_once(names: Sequence[str], statement: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise BindError(f"{statement} names column {name!r} twice")
        seen.add(name.lower())
