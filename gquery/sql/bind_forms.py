"""Statements that are more than a query: PREPARE, EXECUTE, DEALLOCATE and COPY, made of what the grammar read of them."""

from __future__ import annotations

from sqlglot import exp

from gquery.errors import BindError, CatalogError, Error
from gquery.expression.nested_types import known_type
from gquery.planner.logical.nodes import Query
from gquery.planner.logical.separate import separate
from gquery.runtime.records import replace
from gquery.sql.bind_query import QueryScopes
from gquery.sql.bind_sets import retyped
from gquery.sql.ctes import Ctes
from gquery.sql.grammar_tokens import Form
from gquery.sql.parse import located
from gquery.sql.statement import CopyTo, Deallocate, DropMacro, Execute, Prepare, SetOption, Statement, Transaction


def formed(form: Form, tree: exp.Expr, binder: QueryScopes) -> Statement:
    """The statement that a form and the query in it stand for."""
    match form.kind:
        case "prepare":
            _check(form, tree, binder)
            return Prepare(form.name, form.text, form.names)
        case "execute":
            return Execute(form.name, _arguments(tree, binder) if form.names else None, form.names)
        case "deallocate":
            return Deallocate(form.name)
        case "begin" | "commit" | "rollback":
            return Transaction(form.kind)
        case "macro":
            from gquery.sql.macros import macro_of

            return macro_of(form, binder.sql, binder.catalog)
        case "drop_macro":
            return DropMacro(form.name, bool(dict(form.options)["exists"]))
        case "set":
            return SetOption(form.name.lower(), form.text)
        case "reset":
            return SetOption(form.name.lower(), None)
        case _:
            return CopyTo(result_of(binder, tree), form.name, form.options)


def _check(form: Form, tree: exp.Expr, binder: QueryScopes) -> None:
    """What is wrong with a statement whatever its parameters are: without any all of it, else tables that are not there."""
    changes = dict(form.options).get("changes")
    if changes is not None:
        binder.catalog.table(str(changes))
    binder.parameters = dict.fromkeys(form.names)
    if not form.names:
        binder.query(tree, None, Ctes())
        return
    try:
        binder.query(tree, None, Ctes())
    except CatalogError:
        raise
    except Error:  # of a type that NULL does not have, say
        return


def _arguments(tree: exp.Expr, binder: QueryScopes) -> Query:
    """A query of one row: the values of the arguments."""
    call = tree.expressions[0]
    nested = call.find(exp.Query)
    if nested is not None:
        raise located(BindError("an argument of EXECUTE cannot be a subquery"), binder.sql, nested)
    return result_of(binder, exp.Select(expressions=[a.copy() for a in call.expressions]))


def result_of(binder: QueryScopes, tree: exp.Expr) -> Query:
    """A query whose columns all have a type that a table can hold: a NULL of no type is an INTEGER, in lists as well."""
    query = binder.query(tree, None, Ctes())
    query = Query(separate(query.plan), query.outputs, query.names)
    made = retyped(query, [known_type(c.dtype) for c in query.outputs])
    return replace(made, asked=tuple(binder.asked))
