"""Binding of recursive CTEs: ``first UNION [ALL] step``, in which the step reads the rows of the round before.

The first part gives names and types. BLOBs go from round to round as their hexadecimal digits. UNION without ALL keeps what is
new: a round's distinct rows that are not among all rows so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from sqlglot import exp

from gquery import tuning
from gquery.errors import BindError, NotSupportedError, ParseError
from gquery.expression.expr import Column, Expr, Literal, new_column
from gquery.expression.types import INTEGER, VARCHAR, DType, Kind
from gquery.functions import call, cast
from gquery.planner.logical.nodes import Fixpoint, JoinKind, Project, Query, WorkingTable
from gquery.planner.logical.separate import separate
from gquery.planner.logical.tree import free_columns
from gquery.sql.binding.sets import common, distinct
from gquery.sql.ctes import Cte, Ctes, Queries, reads
from gquery.sql.order_keys import check_key
from gquery.sql.parse import located

_numbers = count(1)
_MODIFIERS = {"order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET"}


def recursive_query(queries: Queries, cte: Cte) -> Query:
    """The query of a CTE that reads itself."""
    node, name, sql = cte.node, cte.name.lower(), queries.sql
    while isinstance(node, exp.Paren | exp.Subquery) and isinstance(node.this, exp.Query):
        node = node.this
    if not isinstance(node, exp.Union) or node.args.get("by_name") or reads(node.this, name):
        what = f"the recursive query {cte.name!r} may read itself on the right side of one UNION or UNION ALL alone"
        raise located(BindError(what), sql, node)
    for key, word in _MODIFIERS.items():
        if node.args.get(key) is not None:
            raise located(ParseError(f"{word} in a recursive query is not allowed"), sql, node)
    visible = cte.visible.with_clause(node.args.get("with_"), cte.parent, sql)
    first = queries.query(node.this, cte.parent, visible)
    types = [INTEGER if c.dtype.kind is Kind.NULL else c.dtype for c in first.outputs]
    for c, dtype in zip(first.outputs, types, strict=True):
        if dtype.is_opaque and dtype.kind is not Kind.BLOB:
            text = f"not supported: column {c.name!r} of type {dtype} in a recursive query"
            raise located(NotSupportedError(text), sql, node)
    first = _held(_typed(first, types))
    number = next(_numbers)
    names = (*cte.columns, *first.names[len(cte.columns) :])
    columns = tuple(new_column(n, c.dtype, True) for n, c in zip(names, first.outputs, strict=False))
    outputs = tuple(new_column(n, t, True) for n, t in zip(names, types, strict=False))
    rows = Query(WorkingTable(number, columns, tuple(range(len(columns)))), outputs, first.names)
    entry = Cte(cte.name, node, cte.columns, visible, cte.parent, working=rows)
    step = queries.query(node.expression, cte.parent, Ctes({**visible.entries, name: entry}))
    if len(step.outputs) != len(types):
        sides = f"{len(types)} and {len(step.outputs)} columns"
        raise located(BindError(f"the sides of the recursive query {cte.name!r} have {sides}"), sql, node)
    step = _held(_typed(step, types))
    if node.args.get("distinct"):
        check_key(columns, "UNION without ALL", node, sql)
        first = distinct(first)
        step = distinct(step)
        for level in range(tuning.recursion.levels):
            seen = tuple(new_column(c.name, c.dtype, True) for c in columns)
            rows_seen = WorkingTable(number, seen, tuple(range(len(seen))), level)
            step = common(step, Query(rows_seen, seen, first.names), JoinKind.ANTI)
    step = Query(separate(step.plan), step.outputs, first.names)
    if free_columns(step.plan) or free_columns(first.plan):
        raise located(
            NotSupportedError("not supported: a recursive query that uses columns of the query around it"), sql, node
        )
    made = tuple(new_column(c.name, c.dtype, True) for c in columns)
    return _shown(Query(Fixpoint(first.plan, first.outputs, step, made, number), made, first.names), types)


def working_use(rows: Query) -> Query:
    """The rows of the round before under columns of one use's own."""
    plan = rows.plan
    assert isinstance(plan, WorkingTable)
    columns = tuple(new_column(c.name, c.dtype, True) for c in plan.columns)
    made = Query(WorkingTable(plan.number, columns, plan.fields), columns, rows.names)
    return _shown(made, [c.dtype for c in rows.outputs])


def _held(query: Query) -> Query:
    """The query with BLOBs as their digits: what lists and their like lie in is not known between rounds."""
    return _changed(query, [VARCHAR if c.dtype.kind is Kind.BLOB else c.dtype for c in query.outputs], "hex")


def _shown(query: Query, types: Sequence[DType]) -> Query:
    """The query with BLOBs in place of their digits."""
    return _changed(query, types, "unhex")


def _changed(query: Query, types: Sequence[DType], function: str) -> Query:
    """The query with what a function makes of the columns that have other types."""
    exprs: list[tuple[Column, Expr]] = []
    for c, dtype in zip(query.outputs, types, strict=True):
        is_same = (c.dtype.kind is Kind.BLOB) == (dtype.kind is Kind.BLOB)
        exprs.append((c, c) if is_same else (new_column(c.name, dtype, c.nullable), call(function, c)))
    if all(c is e for c, e in exprs):
        return query
    return Query(Project(query.plan, tuple(exprs)), tuple(c for c, _ in exprs), query.names)


def _typed(query: Query, types: list[DType]) -> Query:
    """The query with columns of these types."""
    exprs: list[tuple[Column, Expr]] = []
    for c, dtype in zip(query.outputs, types, strict=True):
        value: Expr = Literal(None, dtype) if c.dtype.kind is Kind.NULL else cast(c, dtype)
        exprs.append((c, c) if value is c else (new_column(c.name, dtype, value.nullable), value))
    if all(c is e for c, e in exprs) and tuple(c.id for c in query.plan.columns) == tuple(c.id for c, _ in exprs):
        return query
    return Query(Project(query.plan, tuple(exprs)), tuple(c for c, _ in exprs), query.names)
