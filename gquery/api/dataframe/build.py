"""From the trees of a relation's method to a bound query.

What a method is given may be an expression or SQL text; a text keeps its place, so that an error in it points there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlglot import exp

from gquery.api.dataframe.expression import Expression, lit
from gquery.api.dataframe.selectors import expanded
from gquery.errors import ParseError
from gquery.planner.logical.nodes import Query
from gquery.sql.bind import bind
from gquery.sql.catalog import Catalog
from gquery.sql.check import check
from gquery.sql.parse import Parsed, parse_one
from gquery.sql.statement import SelectStatement

_TEXT = "gquery_text"  # key in a node's meta: the text that it was parsed from


def expressions(given: Any, columns: tuple[str, ...]) -> list[Expression]:
    """What one argument of a method stands for: an expression, a column's name, or SQL text with one or more entries of a
    SELECT list; a list of those."""
    if isinstance(given, list | tuple):
        return [e for item in given for e in expressions(item, columns)]
    if not isinstance(given, str):
        return expanded(lit(given), columns)
    if given.lower() in (c.lower() for c in columns):
        return [Expression(exp.Column(this=exp.to_identifier(given, quoted=True)))]
    return [Expression(node) for node in _fragment("SELECT ", given, "expressions")]


def sort_terms(given: Any, columns: tuple[str, ...], descending: bool, nulls_first: bool) -> list[Expression]:
    """Keys of ORDER BY; text may say ASC, DESC, NULLS FIRST and NULLS LAST itself."""
    if isinstance(given, list | tuple):
        return [e for item in given for e in sort_terms(item, columns, descending, nulls_first)]
    if isinstance(given, str) and given.lower() not in (c.lower() for c in columns):
        nodes = [n for order in _fragment("SELECT 1 ORDER BY ", given, "order") for n in order.expressions]
        return [Expression(n) for n in _kept_places(nodes, given)]
    keys = [Expression(e.node.unalias(), e.names) for e in expressions(given, columns)]
    return [
        e if isinstance(e.node, exp.Ordered) else e.desc(nulls_first) if descending else e.asc(nulls_first)
        for e in keys
    ]


def _fragment(head: str, text: str, clause: str) -> list[exp.Expr]:
    """The nodes of a clause of ``head`` and the text; ParseError where the text goes on beyond that clause."""
    parsed = parse_one(head + text)
    tree = parsed.tree
    allowed = {"expressions", clause}
    if not isinstance(tree, exp.Select) or any(v and k not in allowed for k, v in tree.args.items()):
        raise ParseError(f"an expression is expected, not {text!r}")
    check(parsed)
    found = tree.args[clause]
    nodes: list[exp.Expr] = found if isinstance(found, list) else [found]
    for node in nodes:
        _shift(node, -len(head))
    return _kept_places(nodes, text)


def _kept_places(nodes: list[exp.Expr], text: str) -> list[exp.Expr]:
    for node in nodes:
        node.meta[_TEXT] = text
    return nodes


def _shift(node: exp.Expr, by: int) -> None:
    for n in node.walk():
        if "start" in n.meta:
            n.meta["start"] += by
            n.meta["end"] += by


def bind_tree(tree: exp.Expr, names: Mapping[str, Any], catalog: Catalog) -> Query:
    """The query of a tree, whose tables may be ``names`` or those of the catalog."""
    tree = tree.copy()
    places: dict[str, int] = {}
    text = ""
    for node in tree.walk():
        part = node.meta.pop(_TEXT, None)
        if part is None:
            continue
        if part not in places:  # all texts in one line: positions count from its begin
            text += ", " if text else ""
            places[part] = len(text)
            text += part
        _shift(node, places[part])
    statement = bind(Parsed(tree, text), catalog.over(names))
    assert isinstance(statement, SelectStatement)
    return statement.query


def columns_of(names: tuple[str, ...], table: str = "self") -> list[exp.Expr]:
    """The columns of a relation as entries of a SELECT list."""
    return [column(n, table) for n in names]


def column(name: str, table: str) -> exp.Expr:
    """One column of a relation."""
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True))


def conjunction(terms: Sequence[exp.Expr]) -> exp.Expr:
    """All terms, of which there is one at least, with AND between them."""
    result = terms[0]
    for term in terms[1:]:
        result = exp.And(this=result, expression=term)
    return result


def other_columns(names: Sequence[str], own: Sequence[str], gone: Collection[str], suffix: str) -> list[exp.Expr]:
    """The columns of a join's other side as entries of a SELECT list, but for those that are ``gone``, by their names in lower
    case. One whose name stands among a side's ``own`` gets the suffix."""
    taken = {n.lower() for n in own}
    entries: list[exp.Expr] = []
    for n in names:
        if n.lower() in gone:
            continue
        name = n
        while name.lower() in taken:
            name += suffix or "_right"
        taken.add(name.lower())
        entry = column(n, "other")
        entries.append(entry if name == n else exp.Alias(this=entry, alias=exp.to_identifier(name, quoted=True)))
    return entries


def select(entries: list[exp.Expr], table: str = "self", **clauses: Any) -> exp.Select:
    """``SELECT entries FROM table`` with further clauses."""
    return exp.Select(expressions=entries, from_=exp.From(this=exp.to_table(table)), **clauses)


def imploded(e: Expression) -> Expression:
    """A list of the values of a column that stands for itself; any other expression as it is."""
    node = e.node.this if isinstance(e.node, exp.Alias) else e.node
    if not isinstance(node, exp.Column):
        return e
    return Expression(node, e.names).implode().alias(e.node.alias or node.name)
