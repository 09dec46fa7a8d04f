"""Nodes of sqlglot's tree for queries, made while the grammar is read; those of expressions are in `gquery.sql.grammar.nodes`.

Where all parts of a statement have their nodes, `Reading.tree` is the statement's, and sqlglot's parser is not asked at all. A
part that is None has a syntax of its own, which gives None: the statement is sqlglot's then, but for its plain expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from sqlglot import exp

from gquery.sql.grammar.nodes import node

T = TypeVar("T")
Parts = Sequence[exp.Expr | None]
Alias = tuple[bool, exp.Expr | None]
"""Whether there is an alias, and its node."""

_SET_OPERATIONS: dict[str, type[exp.Expr]] = {"union": exp.Union, "except": exp.Except, "intersect": exp.Intersect}
_TYPES = {
    "int": "INT", "integer": "INT", "smallint": "SMALLINT", "tinyint": "TINYINT", "bigint": "BIGINT", "double": "DOUBLE",
    "date": "DATE", "timestamp": "TIMESTAMPNTZ", "boolean": "BOOLEAN", "varchar": "TEXT", "text": "TEXT", "decimal": "DECIMAL",
    "numeric": "DECIMAL",
}  # fmt: skip


def whole(parts: Sequence[T | None]) -> list[T] | None:
    """The parts, if all are there."""
    return None if None in parts else [p for p in parts if p is not None]


# ---- queries -------------------------------------------------------------------------------------------------------------


def select(
    targets: list[exp.Expr] | None, is_distinct: bool, clauses: dict[str, exp.Expr | list[exp.Expr] | None]
) -> exp.Expr | None:
    """SELECT with its clauses in the order of the text."""
    if targets is None or None in clauses.values():
        return None
    distinct = exp.Distinct() if is_distinct else None
    return exp.Select(distinct=distinct, expressions=targets, limit=None, **clauses)


def clause(kind: type[exp.Expr], condition: exp.Expr | None) -> exp.Expr | None:
    """WHERE or HAVING."""
    return None if condition is None else node(kind, this=condition)


def group(keys: list[exp.Expr] | None) -> exp.Expr | None:
    return None if keys is None else exp.Group(expressions=keys)


def rollup(word: str, keys: Parts) -> exp.Expr | None:
    """ROLLUP or CUBE of keys."""
    found = whole(keys)
    return None if found is None else (exp.Rollup if word == "rollup" else exp.Cube)(expressions=found)


def order(keys: Parts) -> exp.Expr | None:
    found = whole(keys)
    return None if found is None else exp.Order(expressions=found)


def ordered(key: exp.Expr | None, descending: bool | None, nulls_first: bool) -> exp.Expr | None:
    """A key of ORDER BY."""
    return None if key is None else exp.Ordered(this=key, desc=descending, nulls_first=nulls_first)


def limit(word: str, count: exp.Expr | None) -> exp.Expr | None:
    """LIMIT or OFFSET with a number."""
    if not isinstance(count, exp.Literal):
        return None
    return node(exp.Limit if word == "limit" else exp.Offset, expression=count)


def with_clauses(query: exp.Expr | None, clauses: dict[str, exp.Expr | None]) -> exp.Expr | None:
    """A query with what stands behind it, and the CTEs before it as the last of these."""
    if query is None or None in clauses.values():
        return None
    for name, value in clauses.items():
        query.set(name, value)
    return query


def option(name: exp.Identifier | None, value: exp.Expr | None) -> exp.Expr | None:
    """SET of an option."""
    if name is None or value is None:
        return None
    made = node(exp.EQ, this=node(exp.Column, this=name), expression=value)
    return exp.Set(expressions=[node(exp.SetItem, this=made)], unset=False, tag=False)


def set_operation(word: str, left: exp.Expr | None, right: exp.Expr | None, is_distinct: bool) -> exp.Expr | None:
    if left is None or right is None:
        return None
    if isinstance(right, exp.SetOperation):  # an INTERSECT, which sqlglot puts into parentheses
        right = node(exp.Subquery, this=right)
    made = node(_SET_OPERATIONS[word], this=left, expression=right)
    made.args["distinct"] = is_distinct
    return made


def ctes(found: Parts, is_recursive: bool) -> exp.Expr | None:
    parts = whole(found)
    return None if parts is None else exp.With(expressions=parts, recursive=is_recursive)


def cte(
    name: exp.Expr | None, columns: list[exp.Expr] | None, query: exp.Expr | None, is_materialized: bool | None
) -> exp.Expr | None:
    """A CTE; ``columns``: the names of its columns, an empty list for none."""
    alias = table_alias(name, columns)
    if alias is None or query is None:
        return None
    made = node(exp.CTE, this=query, alias=alias)
    made.args["materialized"] = is_materialized
    return made


def subquery(query: exp.Expr | None) -> exp.Expr | None:
    """A query in parentheses."""
    return None if query is None else node(exp.Subquery, this=query)


def exists(query: exp.Expr | None) -> exp.Expr | None:
    return None if query is None else node(exp.Exists, this=query)


# ---- FROM ----------------------------------------------------------------------------------------------------------------


def table(names: Parts) -> exp.Expr | None:
    """A table by its name, behind those of its schema and catalog."""
    found = whole(names)
    if found is None or len(found) > 3:
        return None
    return node(exp.Table, **dict(zip(("this", "db", "catalog"), reversed(found), strict=False)))


def file(path: exp.Expr | None) -> exp.Expr | None:
    """A file by its path in quotes, which is the name of a table."""
    if not isinstance(path, exp.Literal):
        return None
    name = exp.Identifier(this=path.name, quoted=True)
    name._meta = path.meta
    return node(exp.Table, this=name)


def table_function(call: exp.Expr | None) -> exp.Expr | None:
    return None if call is None else node(exp.Table, this=call)


def table_alias(name: exp.Expr | None, columns: list[exp.Expr] | None) -> exp.Expr | None:
    if name is None or columns is None:
        return None
    return exp.TableAlias(this=name, columns=columns) if columns else node(exp.TableAlias, this=name)


def aliased(entry: exp.Expr | None, alias: Alias) -> exp.Expr | None:
    """An entry of FROM with its alias."""
    has_alias, found = alias
    if entry is not None and has_alias:
        if found is None:
            return None
        entry.args["alias"] = found
        found.parent, found.arg_key = entry, "alias"
    return entry


def join(
    entry: exp.Expr | None, words: dict[str, str], condition: tuple[str, exp.Expr | list[exp.Expr] | None] | None
) -> exp.Expr | None:
    """A join with an entry of FROM; ``words``: its method, side and kind; ``condition``: ON or USING, and what."""
    if entry is None:
        return None
    if condition is None:
        return exp.Join(this=entry, **words)
    name, value = condition
    return None if value is None else exp.Join(this=entry, **words, **{name: value})


# ---- values with a syntax of their own -------------------------------------------------------------------------------------


@cache
def _type_of(word: str) -> exp.DType | None:
    name = _TYPES.get(word)
    return None if name is None else exp.DType[name]


def data_type(word: str, arguments: list[exp.Expr] | None) -> exp.Expr | None:
    """A type by its name, with the numbers in its parentheses."""
    kind = _type_of(word)
    if kind is None or arguments is None or (arguments and kind is not exp.DType.DECIMAL):
        return None
    parts = [node(exp.DataTypeParam, this=a) for a in arguments]
    return exp.DataType(this=kind, expressions=parts, nested=False) if parts else exp.DataType(this=kind, nested=False)


def cast(value: exp.Expr | None, to: exp.Expr | None) -> exp.Expr | None:
    return None if value is None or to is None else node(exp.Cast, this=value, to=to)


def extract(part: str, value: exp.Expr | None) -> exp.Expr | None:
    """EXTRACT of a part that is a word."""
    if value is None or not part:
        return None
    return exp.Extract(this=exp.Var(this=part.upper()), expression=value)


def substring(value: exp.Expr | None, start: exp.Expr | None, length: exp.Expr | None) -> exp.Expr | None:
    """SUBSTRING with FROM and FOR."""
    if value is None or start is None or length is None:
        return None
    return node(exp.Substring, this=value, start=start, length=length)


def interval(amount: exp.Expr | None, unit: str) -> exp.Expr | None:
    """INTERVAL of a whole number in quotes and a unit."""
    if not unit or not isinstance(amount, exp.Literal) or not amount.is_string or not amount.name.isdecimal():
        return None
    return node(exp.Interval, this=amount, unit=exp.Var(this=unit.upper()))


def filtered(call: exp.Expr | None, condition: exp.Expr | None) -> exp.Expr | None:
    """A call with FILTER."""
    if call is None or condition is None:
        return None
    return node(exp.Filter, this=call, expression=node(exp.Where, this=condition))


def window(call: exp.Expr | None, partition: list[exp.Expr] | None, order: exp.Expr | None) -> exp.Expr | None:
    """A call with OVER, of which all is there but a frame."""
    if call is None or partition is None:
        return None
    return exp.Window(this=call, partition_by=partition, order=order, over="OVER")


def star(start: int, table: exp.Identifier | None = None) -> exp.Expr:
    """The star of a SELECT list, of all tables or one."""
    made = exp.Star()
    made._meta = {"start": start, "end": start}
    return made if table is None else node(exp.Column, this=made, table=table)
