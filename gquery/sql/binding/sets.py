"""Binding of set operations: UNION, INTERSECT and EXCEPT over queries that are bound already.

The sides agree on columns first: by place, or by name. UNION is a UnionAll, and the groups of its rows without ALL. INTERSECT
and EXCEPT are SEMI and ANTI joins of the left side's distinct rows, in which NULLs are equal; with ALL, of rows that are
numbered among their equals.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from gquery.columns.table import TableSource
from gquery.errors import BindError
from gquery.expression.expr import Column, Expr, Literal, new_column
from gquery.expression.nested_types import known_type
from gquery.expression.promotion import common_type
from gquery.expression.traverse import conjunction
from gquery.expression.types import JSON, NULL, VARCHAR, DType, Kind
from gquery.functions import call, cast
from gquery.planner.logical.nodes import Aggregate, Join, JoinKind, Plan, Project, Query, Scan, UnionAll
from gquery.sql.binding.limits import numbered
from gquery.sql.order_keys import check_key
from gquery.sql.parse import located


def chain(node: exp.SetOperation) -> list[exp.Expr]:
    """The sides of a chain of one UNION, INTERSECT or EXCEPT: all that can be done at once. EXCEPT takes from its left."""
    sides: list[exp.Expr] = []
    walk: exp.Expr = node
    while _continues(walk, node):
        sides.append(walk.expression)
        walk = walk.this
        if not isinstance(node, exp.Union):
            break
    return [walk, *reversed(sides)]


def _continues(walk: exp.Expr, node: exp.SetOperation) -> bool:
    return type(walk) is type(node) and _kind(walk) == _kind(node) and (walk is node or not _has_modifiers(walk))


def _kind(node: exp.Expr) -> tuple[bool, bool]:
    """Whether rows are distinct, whether columns meet by name."""
    return bool(node.args.get("distinct")), bool(node.args.get("by_name"))


def _has_modifiers(node: exp.Expr) -> bool:
    return any(node.args.get(k) is not None for k in ("order", "limit", "offset", "with_"))


def combined(node: exp.SetOperation, queries: Sequence[Query], sql: str) -> Query:
    """The query of a chain whose sides are bound."""
    name = node.key.upper()
    try:
        sides = by_name(queries) if node.args.get("by_name") else by_place(queries, name)
    except BindError as error:
        raise located(error, sql, node) from None
    if node.args.get("distinct") or not isinstance(node, exp.Union):
        check_key(sides[0].outputs, name if not isinstance(node, exp.Union) else "UNION without ALL", node, sql)
    match node:
        case exp.Union():
            made = union(sides)
            return distinct(made) if node.args.get("distinct") else made
        case exp.Intersect():
            kind = JoinKind.SEMI
        case _:
            kind = JoinKind.ANTI
    if node.args.get("distinct"):
        return common(distinct(sides[0]), sides[1], kind)
    left, right = (_numbered(q) for q in sides)  # equal rows are told apart by their numbers
    found = common(left, right, kind)
    return Query(_without_number(found), found.outputs[:-1], sides[0].names)


def union(sides: Sequence[Query]) -> Query:
    """UNION ALL of queries with the same types."""
    first = sides[0]
    columns = tuple(
        new_column(n, c.dtype, any(q.outputs[i].nullable for q in sides))
        for i, (n, c) in enumerate(zip(first.names, first.outputs, strict=True))
    )
    return Query(UnionAll(tuple(q.plan for q in sides), tuple(q.outputs for q in sides), columns), columns, first.names)


def appended(tables: Sequence[TableSource]) -> Query:
    """All rows of tables that have the same columns, in their order. A column without a type becomes one of INTEGERs."""
    sides = []
    for table in tables:
        columns = tuple(new_column(f.name, f.dtype, f.nullable) for f in table.schema)
        query = Query(Scan(table, columns, tuple(range(len(columns)))), columns, table.schema.names)
        sides.append(retyped(query, [known_type(c.dtype) for c in columns]))
    return union(sides) if len(sides) > 1 else sides[0]


def distinct(query: Query) -> Query:
    """Each row once."""
    keys = tuple((new_column(c.name, c.dtype, c.nullable), c) for c in query.outputs)
    return Query(Aggregate(query.plan, keys, ()), tuple(c for c, _ in keys), query.names)


def common(left: Query, right: Query, kind: JoinKind) -> Query:
    """The rows of the left side that the right side has (SEMI), or has not (ANTI)."""
    pairs = zip(left.outputs, right.outputs, strict=True)
    equal = conjunction(tuple(call("is_not_distinct_from", a, b) for a, b in pairs))
    return Query(Join(left.plan, right.plan, kind, equal), left.outputs, left.names)


def _numbered(query: Query) -> Query:
    plan, number = numbered(query.plan, query.outputs)
    return Query(plan, (*query.outputs, number), (*query.names, number.name))


def _without_number(query: Query) -> Plan:
    return Project(query.plan, tuple((c, c) for c in query.outputs[:-1]))


# ---- columns that meet -----------------------------------------------------------------------------------------------


def by_place(queries: Sequence[Query], name: str) -> list[Query]:
    """The sides with the same types, column by column."""
    first = queries[0]
    for q in queries[1:]:
        if len(q.outputs) != len(first.outputs):
            raise BindError(f"the sides of {name} have {len(first.outputs)} and {len(q.outputs)} columns")
    types = [_common_type([q.outputs[i] for q in queries], name) for i in range(len(first.outputs))]
    return [retyped(q, types) for q in queries]


def by_name(queries: Sequence[Query]) -> list[Query]:
    """The sides of UNION BY NAME: each has the columns of all, NULL where it has none of that name."""
    places: list[dict[str, Column]] = []
    names: dict[str, str] = {}
    for q in queries:
        own: dict[str, Column] = {}
        for n, c in zip(q.names, q.outputs, strict=True):
            if n.lower() in own:
                raise BindError(f"UNION BY NAME of a query with two columns {n!r}")
            own[n.lower()] = c
            names.setdefault(n.lower(), n)
        places.append(own)
    types = {low: _common_type([own[low] for own in places if low in own], "UNION") for low in names}
    made = [
        _with_columns(q, [(n, types[low], own.get(low)) for low, n in names.items()])
        for q, own in zip(queries, places, strict=True)
    ]
    return [Query(q.plan, q.outputs, tuple(names.values())) for q in made]


def _common_type(columns: Sequence[Column], name: str) -> DType:
    if any(c.dtype == JSON for c in columns):
        return JSON  # which values of any type can be
    dtype = NULL
    for c in columns:
        both = common_type(dtype, c.dtype)
        if both is None and VARCHAR in (dtype, c.dtype):
            both = VARCHAR
        if both is None:
            raise BindError(f"{name} cannot mix values of type {dtype} and {c.dtype}")
        dtype = both
    return dtype


def retyped(query: Query, types: Sequence[DType]) -> Query:
    """The query with columns of these types."""
    if all(c.dtype == t for c, t in zip(query.outputs, types, strict=True)):
        return query
    return _with_columns(query, list(zip(query.names, types, query.outputs, strict=True)))


def _with_columns(query: Query, columns: Sequence[tuple[str, DType, Column | None]]) -> Query:
    """The query with columns of those names and types; NULL for those that it has not."""
    exprs: list[tuple[Column, Expr]] = []
    for name, dtype, c in columns:
        value: Expr = cast(c, dtype) if c is not None and c.dtype.kind is not Kind.NULL else Literal(None, dtype)
        exprs.append((c, c) if c is not None and value is c else (new_column(name, dtype, value.nullable), value))
    return Query(Project(query.plan, tuple(exprs)), tuple(c for c, _ in exprs), tuple(n for n, _, _ in columns))
