"""Binding: a parsed statement and the catalog give a `Statement` of logical plans.

`bind` is the way from SQL to plans. It resolves names through `scope`, types expressions through `binding.expr` and
`gquery.functions`, and refuses what is not supported with every reason at once. A view or CTE is bound once; each use of
it, as of a table, has columns of its own, so that no two nodes of a plan make the same column id.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from gquery.errors import BindError, CatalogError, NotSupportedError, ParseError
from gquery.planner.logical.nodes import Limit, Query
from gquery.runtime.nesting import with_room
from gquery.runtime.records import replace as replaced
from gquery.sql.binding.forms import formed, result_of, set_option
from gquery.sql.binding.query import QueryScopes
from gquery.sql.catalog import Catalog
from gquery.sql.check import check, check_used
from gquery.sql.cut import TextSlots
from gquery.sql.grammar.tokens import Reading
from gquery.sql.named import table_name
from gquery.sql.names import unique_names
from gquery.sql.parse import Parsed, located, parse_one
from gquery.sql.schemas import schema_of
from gquery.sql.statement import (
    CreateTable,
    CreateView,
    DropTable,
    DropView,
    Explain,
    SelectStatement,
    Statement,
)
from gquery.sql.types import Parameters


def bind(
    sql: str | Parsed, catalog: Catalog, parameters: Parameters = None, slots: TextSlots | None = None
) -> Statement:
    """The statement that a text stands for; with ``slots``, constants and parameters are slots where they can be.

    Raises ParseError, BindError, CatalogError, NotSupportedError, or ConversionError for a literal that does not
    convert; all but those of a damaged catalog name the place.
    """
    parsed = parse_one(sql) if isinstance(sql, str) else sql
    check_used(parsed, parameters)
    with_room(lambda: check(parsed))
    if catalog.macros():
        from gquery.sql.macros import expand  # with three modules more, where there are none

        with_room(lambda: expand(parsed, catalog))
    if slots is not None:
        slots.cut(parsed)
    statement = with_room(lambda: _statement(parsed, catalog, parameters, slots))
    return statement if parsed.explain is None else Explain(parsed.explain, statement)


def bind_query(sql: str, catalog: Catalog, parameters: Parameters = None) -> Query:
    """The query of a SELECT; BindError for any other statement."""
    statement = bind(sql, catalog, parameters)
    if not isinstance(statement, SelectStatement):
        raise BindError("a query is expected here")
    return statement.query


def _statement(parsed: Parsed, catalog: Catalog, parameters: Parameters, slots: TextSlots | None) -> Statement:
    tree = parsed.tree
    is_view = isinstance(tree, exp.Create) and tree.kind == "VIEW"  # lives longer than its creator's variables
    if is_view:
        try:
            catalog = catalog.stored(schema_of(catalog.schemas.new(_table_name(_target(tree)))))
        except CatalogError as error:
            raise located(error, parsed.sql, tree) from None
    binder = QueryScopes(parsed.sql, catalog, parameters, slots)
    written = not parsed.is_plain and (not parsed.read or any(type(n) is exp.Columns for n in parsed.read))
    binder.has_columns = written or bool(catalog.macros())  # in whose bodies it may stand
    if isinstance(parsed.reading, Reading) and parsed.reading.form is not None:
        from gquery.sql.binding.changes import CHANGES, changed

        make = changed if parsed.reading.form.kind in CHANGES else formed
        return make(parsed.reading.form, tree, binder)
    match tree:
        case exp.Query() | exp.Values():
            return SelectStatement(result_of(binder, tree))
        case exp.Create():
            return _create(binder, parsed, tree)
        case exp.Drop():
            return _drop(tree)
        case exp.Set():
            return _set(tree)
        case _:
            raise located(NotSupportedError(f"not supported: statement {tree.key.upper()}"), parsed.sql, tree)


def _create(binder: QueryScopes, parsed: Parsed, tree: exp.Create) -> Statement:
    target, columns = tree.this, ()
    if isinstance(target, exp.Schema):
        if any(not isinstance(c, exp.Identifier) for c in target.expressions):
            raise located(NotSupportedError("not supported: column definitions with AS"), parsed.sql, target)
        columns, target = tuple(c.name for c in target.expressions), target.this
    name, replace, exists = _new_name(target, binder), bool(tree.args.get("replace")), bool(tree.args.get("exists"))
    query = result_of(binder, tree.expression)
    if len(columns) > len(query.names):
        raise located(
            BindError(f"{len(columns)} column names for a query of {len(query.names)} columns"), parsed.sql, tree
        )
    names = columns + query.names[len(columns) :]
    said = tree.find(exp.WithDataProperty)
    if said is not None and said.args["no"]:
        query = replaced(query, plan=Limit(query.plan, 0))
    if tree.kind == "VIEW":
        return CreateView(name, _query_text(parsed), columns, replace, exists)
    return CreateTable(name, with_names(query, unique_names(names)), replace, exists)


def with_names(query: Query, names: tuple[str, ...]) -> Query:
    """A query with other names of its columns."""
    return Query(query.plan, query.outputs, names, query.asked, query.drawn)


def _query_text(parsed: Parsed) -> str:
    """What stands behind the AS of a CREATE VIEW."""
    tokens, depth = parsed.tokens, 0
    assert tokens is not None  # a view is made by SQL alone
    for n in range(parsed.first, parsed.behind):
        match tokens.kinds[n], tokens.words[n]:
            case "symbol", "(":
                depth += 1
            case "symbol", ")":
                depth -= 1
            case "word", "as" if depth == 0:
                return parsed.sql[tokens.ends[n] + 1 : tokens.ends[parsed.behind - 1] + 1].strip()
    raise ParseError("CREATE VIEW without AS")


def _target(tree: exp.Expr) -> exp.Expr:
    """The name of what is made, without that of columns."""
    made: exp.Expr = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    return made


def _new_name(node: exp.Expr, binder: QueryScopes) -> str:
    """The name of a table to make, whose schema is there."""
    name = _table_name(node)
    try:
        binder.catalog.schemas.new(name)
    except CatalogError as error:
        raise located(error, binder.sql, node) from None
    return name


def _table_name(node: exp.Expr) -> str:
    if not isinstance(node, exp.Table):
        raise BindError("a table name is expected here")
    return table_name(node)


def _drop(tree: exp.Drop) -> Statement:
    tables = tree.args.get("tables") or [tree.this]
    if len(tables) != 1:
        raise NotSupportedError("not supported: DROP of several tables at once")
    name, exists = _table_name(tables[0]), bool(tree.args.get("exists"))
    return DropView(name, exists) if tree.kind == "VIEW" else DropTable(name, exists)


def _set(tree: exp.Set) -> Statement:
    items = tree.expressions
    if len(items) != 1 or not isinstance(items[0].this, exp.EQ):
        raise NotSupportedError("not supported: SET of anything but one name = value")
    pair = items[0].this
    return set_option(pair.this.name.lower(), _option_value(pair.expression))


def _option_value(node: exp.Expr) -> Any:
    match node:
        case exp.Literal() if node.is_string:
            return node.name
        case exp.Literal():
            return float(node.name) if set(node.name) & set(".eE") else int(node.name)
        case exp.Boolean():
            return bool(node.this)
        case exp.Null():
            return None
        case exp.Neg():
            return -_option_value(node.this)
        case _:
            name = node.name
            return None if name.lower() == "default" else name
