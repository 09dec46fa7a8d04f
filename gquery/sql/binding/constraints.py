"""Binding of constraints and defaults: expressions when they are written, and queries that look for rows against them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from gquery.columns.table import TableSource
from gquery.errors import (
    BindError,
    ConversionError,
    IntegrityError,
    NotSupportedError,
    OutOfRangeError,
    did_you_mean,
)
from gquery.expression.expr import Call, Column, Expr, new_column
from gquery.expression.traverse import walk
from gquery.expression.types import DType
from gquery.functions import FUNCTIONS, cast
from gquery.planner.logical.nodes import Project, Query, Shared, Values
from gquery.planner.rules.draw_random import draws
from gquery.planner.rules.fix_moment import reads_clock
from gquery.runtime.records import dataclass
from gquery.sql.binding.forms import result_of
from gquery.sql.binding.query import QueryScopes
from gquery.sql.binding.returning import RowsOf, check_row
from gquery.sql.catalog import BoundRelation, Catalog
from gquery.sql.check import check
from gquery.sql.constraints import Check, Columns, Constraints, Key
from gquery.sql.ctes import Ctes
from gquery.sql.grammar.changes import DEFAULT
from gquery.sql.grammar.tokens import mark_of, marked
from gquery.sql.named import column_named
from gquery.sql.parse import located, parse_one
from gquery.sql.schemas import last

_NEW, _OLD = marked("new"), marked("old")


def parsed(text: str, clause: str, catalog: Catalog) -> exp.Expr:
    """The tree of an expression over a row, with the bodies of macros in place of their calls."""
    sql = f"SELECT {text}"
    statement = parse_one(sql)
    check(statement)
    if catalog.macros():
        from gquery.sql.macros import expand

        expand(statement, catalog)
    check_row(statement.nodes, sql, clause)
    (node,) = statement.tree.expressions
    assert isinstance(node, exp.Expr)
    return node


def default_tree(constraints: Constraints, column: str, catalog: Catalog) -> exp.Expr:
    """A column's default, which is NULL where it has none."""
    text = constraints.default(column)
    return exp.Null() if text is None else exp.Paren(this=parsed(text, "DEFAULT", catalog).unalias())


def bound_default(text: str, dtype: DType, catalog: Catalog) -> Expr:
    """The value of a default; BindError for one that is made of more than constants."""
    node = parsed(text, "DEFAULT", catalog)
    sql = f"SELECT {text}"
    try:
        query = QueryScopes(sql, catalog.stored(), None).query(exp.Select(expressions=[node]), None, Ctes())
    except BindError as error:
        column = node.find(exp.Column)
        raise error if column is None else located(
            BindError("DEFAULT cannot contain names of columns"), sql, column
        ) from None
    assert isinstance(query.plan, Project)
    return cast(dict(query.plan.exprs)[query.outputs[0]], dtype)


@dataclass(frozen=True)
class _Table:
    """A table that is not there yet: a query of its columns."""

    query: Query

    def bound_query(self) -> Query:
        """See `catalog.BoundRelation`."""
        return self.query


def checked(text: str, query: Query, table: str, catalog: Catalog) -> Check:
    """A condition of a table that has the columns of a query."""
    node = parsed(text, "CHECK", catalog)
    called = {p.name.lower() for c in node.find_all(exp.Column) for p in c.parts}  # s.x may be a field of s
    over = catalog.stored().over({table: _Table(query)})
    source = exp.Table(this=exp.to_identifier(table, quoted=True))
    result_of(QueryScopes(f"SELECT {text}", over, None), exp.Select(expressions=[_truth(node)]).from_(source, copy=False))
    return Check(text, frozenset(n.lower() for n in query.names if n.lower() in called))


def _truth(condition: exp.Expr) -> exp.Expr:
    return exp.Cast(this=exp.Paren(this=condition.unalias()), to=exp.DataType.build("BOOLEAN"))


def key_of(kind: str, columns: Sequence[str], types: Mapping[str, DType], table: str) -> Key:
    """A key of a table with these columns; BindError where it has none of that name, NotSupportedError for lists and the like."""
    names = tuple(c.lower() for c in columns)
    for name, column in zip(names, columns, strict=True):
        if name not in types:
            raise BindError(f"{kind.upper()}: table {table!r} has no column {column!r}.{did_you_mean(column, types)}")
        if types[name].is_nested or types[name].is_opaque:
            raise NotSupportedError(f"not supported: a key of type {types[name]}")
    if len(set(names)) < len(names):
        raise BindError(f"{kind.upper()} names a column twice")
    return Key(names, kind == "primary")


def with_defaults(tree: exp.Expr, columns: Sequence[str], constraints: Constraints, catalog: Catalog) -> None:
    """Puts defaults in the place of the word DEFAULT, in each row of VALUES for these columns."""
    for values in list(tree.find_all(exp.Values)):
        for row in values.expressions:
            given = row.expressions if isinstance(row, exp.Tuple) else [row]
            for name, value in zip(columns, given, strict=False):
                if is_default(value):
                    value.replace(default_tree(constraints, name, catalog))


def is_default(value: exp.Expr) -> bool:
    """Whether the word DEFAULT stands there."""
    return isinstance(value, exp.Column) and mark_of(value.name) == DEFAULT


@dataclass(frozen=True)
class Conditions:
    """The conditions of a table, none of which is false of a row, over columns that stand for the table's."""

    columns: tuple[Column, ...]
    exprs: tuple[Expr, ...]


def conditions_of(name: str, columns: Columns, constraints: Constraints, catalog: Catalog) -> Conditions | None:
    """The conditions of a table with these columns, for rows whose values are at hand; None where they may be others tomorrow:
    they draw, read the clock, or call a function that was created."""
    made = tuple(new_column(n, dtype) for n, dtype in columns)
    if not constraints.checks:
        return Conditions(made, ())
    over = Query(Values(made, ()), made, tuple(n for n, _ in columns))
    tests: list[exp.Expr] = [_truth(parsed(c.text, "CHECK", catalog)) for c in constraints.checks]
    query = _bound_over(exp.Select(expressions=tests), constraints.table or last(name), _Table(over), catalog)
    plan = query.plan
    if not isinstance(plan, Project) or not isinstance(plan.source, Shared) or reads_clock(plan) or draws(plan):
        return None
    assert plan.source.fields == tuple(range(len(made)))
    by_output: dict[Column, Expr] = dict(plan.exprs)
    exprs = tuple(by_output.get(c, c) for c in query.outputs)
    called = (x for e in exprs for x in walk(e) if isinstance(x, Call))
    if any(FUNCTIONS[x.function].unproved for x in called if x.function in FUNCTIONS):
        return None
    return Conditions(plan.source.columns, exprs)


def check_rows(name: str, rows: TableSource, constraints: Constraints, catalog: Catalog) -> None:
    """IntegrityError where new rows of a table are not what it asks of its rows."""
    fields = rows.schema.fields
    tested = [f.name for n, f in enumerate(fields) if f.name.lower() in constraints.not_null and rows.has_nulls(n)]
    if not rows.rows or not (tested or constraints.checks):
        return
    conditions: list[exp.Expr] = [exp.Is(this=column_named(n), expression=exp.Null()) for n in tested]
    conditions += [exp.Not(this=_truth(parsed(c.text, "CHECK", catalog))) for c in constraints.checks]
    found = [exp.Anonymous(this="count_if", expressions=[c]) for c in conditions]
    try:
        counts = _asked(exp.Select(expressions=found), name, rows, constraints, catalog)
    except (ConversionError, OutOfRangeError) as error:
        raise IntegrityError(f"CHECK of table {name!r} fails: {error}") from error
    said = [f"NOT NULL constraint failed: {name}.{n}" for n in tested]
    said += [f"CHECK constraint failed on table {name!r}: CHECK ({c.text})" for c in constraints.checks]
    for text, count in zip(said, counts, strict=True):
        if count:
            raise IntegrityError(f"{text} (rows: {count}); this statement has changed nothing")


def check_keys(
    name: str, rows: TableSource, constraints: Constraints, catalog: Catalog, existing: TableSource | None
) -> None:
    """IntegrityError where two rows, or a new one and one of those that are there, agree on a key."""
    places = {f.name.lower(): n for n, f in enumerate(rows.schema.fields)}
    for key in constraints.keys:
        columns = [column_named(rows.schema.fields[places[c]].name) for c in key.columns]
        given = [exp.Not(this=exp.Is(this=c.copy(), expression=exp.Null())) for c in columns]
        found: list[tuple[object, ...]] = []
        if not (len(columns) == 1 and rows.is_unique(places[key.columns[0]])):
            query = exp.Select(expressions=[_text(c) for c in columns]).where(*given).group_by(*[c.copy() for c in columns])
            many = exp.GT(this=exp.Anonymous(this="count", expressions=[exp.Star()]), expression=exp.Literal.number(1))
            found = _found(query.having(many).limit(1), {_NEW: rows}, catalog)
        if not found and existing is not None and existing.rows:
            shown = [exp.column(c.name, table=_NEW, quoted=True) for c in columns]
            same = [exp.EQ(this=c.copy(), expression=exp.column(c.name, table=_OLD, quoted=True)) for c in shown]
            query = exp.Select(expressions=[_text(c) for c in shown]).limit(1)
            old = exp.Table(this=exp.to_identifier(_OLD, quoted=True))
            query = query.from_(exp.Table(this=exp.to_identifier(_NEW, quoted=True)))
            query = query.join(old, on=exp.and_(*same), join_type="inner")
            found = _found(query, {_NEW: rows, _OLD: existing}, catalog)
        if found:
            shown_key = ", ".join(f"{c}: {v}" for c, v in zip(key.columns, found[0], strict=True))
            text = f"{key.kind} constraint failed: {name} has ({shown_key}) twice; this statement has changed nothing"
            raise IntegrityError(text)


def _text(column: exp.Expr) -> exp.Expr:
    """A value for a message: Python has not all of them."""
    return exp.Cast(this=column.copy(), to=exp.DataType(this=exp.DType.VARCHAR))


def _found(query: exp.Select, sources: Mapping[str, TableSource], catalog: Catalog) -> list[tuple[object, ...]]:
    """The rows of a query over tables that are given."""
    over = catalog.stored().over({n: RowsOf(s, None) for n, s in sources.items()})
    if query.args.get("from_") is None:
        query = query.from_(exp.Table(this=exp.to_identifier(_NEW, quoted=True)))
    assert catalog.rows is not None
    return catalog.rows(result_of(QueryScopes("", over, None), query))


def _asked(
    query: exp.Select, name: str, rows: TableSource, constraints: Constraints, catalog: Catalog
) -> tuple[object, ...]:
    """The one row of a query over rows that are called as the table is."""
    bound = _bound_over(query, constraints.table or last(name), RowsOf(rows, None), catalog)
    assert catalog.rows is not None
    return catalog.rows(bound)[0]


def _bound_over(query: exp.Select, called: str, rows: BoundRelation, catalog: Catalog) -> Query:
    """A query over rows that are called so."""
    table = exp.Table(this=exp.to_identifier(called, quoted=True))
    over = catalog.stored().over({called: rows})
    return result_of(QueryScopes("", over, None), query.from_(table, copy=False))
