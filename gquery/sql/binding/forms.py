"""Statements that are more than a query: PREPARE, EXECUTE, DEALLOCATE and COPY, made of what the grammar read of them."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from gquery.errors import BindError, CatalogError, Error, NotSupportedError
from gquery.expression.nested_types import known_type
from gquery.planner.logical.nodes import Query
from gquery.planner.logical.separate import separate
from gquery.runtime.records import replace
from gquery.sql.binding.query import QueryScopes
from gquery.sql.binding.sets import retyped
from gquery.sql.catalog import Catalog
from gquery.sql.ctes import Ctes
from gquery.sql.grammar.tokens import Form
from gquery.sql.parse import located
from gquery.sql.schemas import MAIN
from gquery.sql.statement import (
    CopyTo,
    CreateSchema,
    CreateSequence,
    Deallocate,
    DropMacro,
    DropSchema,
    DropSequence,
    Execute,
    Prepare,
    SetOption,
    SetVariable,
    Statement,
    Transaction,
    UseSchema,
)


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
        case "schema":
            return CreateSchema(form.name, bool(dict(form.options)["exists"]))
        case "drop_schema":
            options = dict(form.options)
            return DropSchema(form.name, bool(options["exists"]), bool(options["cascade"]))
        case "sequence":
            from gquery.sql.sequences import sequence_of

            options = dict(form.options)
            made = sequence_of(form.name, options)
            return CreateSequence(made, bool(options["replace"]), bool(options["exists"]))
        case "drop_sequence":
            return DropSequence(form.name, bool(dict(form.options)["exists"]))
        case "variable":
            query = result_of(binder, tree)
            if len(query.outputs) != 1:
                raise BindError(f"SET VARIABLE takes one value, {len(query.outputs)} are given")
            return SetVariable(form.name, query)
        case "reset_variable":
            return SetVariable(form.name, None)
        case "use":
            return UseSchema(form.name)
        case "set":
            return set_option(form.name.lower(), form.text)
        case "reset":
            return set_option(form.name.lower(), None)
        case _:
            return CopyTo(result_of(binder, tree), form.name, form.options)


def set_option(name: str, value: Any) -> SetOption | UseSchema:
    """What SET of an option is; that of a schema is another statement."""
    if name not in ("schema", "search_path"):
        return SetOption(name, value)
    path = [p.strip() for p in str(value or MAIN).split(",")]
    if len(path) > 1 and [p.lower() for p in path[1:]] != [MAIN]:
        raise NotSupportedError("not supported: a search path of several schemas, but of one and main")
    return UseSchema(path[0])


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
    return with_numbers(replace(made, asked=tuple(binder.asked)), binder.catalog)


def with_numbers(query: Query, catalog: Catalog) -> Query:
    """The query with numbers in place of what it draws of sequences."""
    if not catalog.has_sequences:
        return query
    from gquery.sql.sequences import numbered

    return numbered(query, catalog.sequences)


def is_true(condition: exp.Expr) -> exp.Expr:
    """Whether a condition is TRUE, tested as filters do: what follows in an AND behind what is NULL or FALSE is not computed."""
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=exp.true())], default=exp.false())
