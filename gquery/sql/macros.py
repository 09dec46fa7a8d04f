"""Macros: calls are expanded in a statement's tree before it is bound, as in DuckDB.

A call becomes the body's tree with the trees of its arguments in place of the names of parameters; a call in FROM becomes a
subquery. So a body may have aggregates, windows and subqueries, an argument stands as often as its parameter does, and names
in a body mean what they mean where the call stands. A column of an argument means what it means there as well: in a subquery or
a lambda function of a body it is marked with the number of the call, whose binder knows it (`binding.expr`). Nodes of a body get
the place of the call, at which errors point.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from sqlglot import exp

from gquery.errors import BindError
from gquery.expression.types import Schema
from gquery.sql.calls import is_aggregate_call
from gquery.sql.catalog import Catalog
from gquery.sql.check import check
from gquery.sql.definitions import ARGUMENT, CALL, MACRO, Macro
from gquery.sql.grammar.tokens import Form
from gquery.sql.named import table_name
from gquery.sql.names import column_name
from gquery.sql.parse import Parsed, located, nodes_of, parse_one
from gquery.sql.pieces import parsed_piece
from gquery.sql.statement import CreateMacro

_NULLS = (exp.IgnoreNulls, exp.RespectNulls)
_AROUND = (exp.Window, exp.Filter, exp.WithinGroup, *_NULLS)
_CLOSED = (exp.Query, exp.Lambda, exp.Comprehension)  # where names can mean others than outside
_calls = itertools.count(1)


def macro_of(form: Form, sql: str, catalog: Catalog) -> CreateMacro:
    """What CREATE MACRO makes, of the texts of its bodies."""
    options = dict(form.options)
    said = options["bodies"]
    assert isinstance(said, tuple)
    bodies = tuple(_body(form.name, b, sql, catalog) for b in said)
    if len({m.is_table for m in bodies}) > 1:
        raise BindError(f"macro {form.name!r} has bodies that are tables, and others that are values")
    if len({len(m.parameters) for m in bodies}) < len(bodies):
        raise BindError(f"macro {form.name!r} has two bodies of as many parameters")
    return CreateMacro(form.name, bodies, bool(options.get("replace")), bool(options["exists"]))


_Said = tuple[tuple[tuple[str, str | None], ...], bool, int, int]
"""Parameters with the texts of their defaults, whether a body is a query, and where its text begins and ends."""


def _body(name: str, said: _Said, sql: str, catalog: Catalog) -> Macro:
    parameters, is_table, start, end = said
    names = tuple(n for n, _ in parameters)
    defaults = {n.lower(): _default(n, text) for n, text in parameters if text is not None}
    parsed = parsed_piece(sql, start, end, "" if is_table else "SELECT ")
    for node in parsed.nodes:
        if isinstance(node, exp.Placeholder | exp.Parameter):
            raise located(BindError("a macro has no parameters but its own"), sql, node)
        if isinstance(node, exp.Literal) and sql[(node.meta.get("start") or 0) :][:1] == ".":
            node.set("this", f".{node.name.partition('.')[2]}")  # whose text is not there any more when it is bound
    body = parsed.tree if is_table else parsed.tree.expressions[0].pop()
    made = Macro(name, names, defaults, body, is_table)
    if not is_table:
        if isinstance(made.body, exp.Alias):
            raise located(BindError("the body of a macro has no alias"), sql, made.body)
        _check_names(made, sql, catalog)
    return made


def _default(name: str, text: str) -> exp.Expr:
    sql = f"SELECT {text}"
    parsed = parse_one(sql)
    check(parsed)
    if any(isinstance(n, exp.Column) for n in parsed.nodes):
        raise BindError(f"the default of parameter {name!r} cannot contain column names")
    for node in parsed.nodes:
        node._meta = None  # it has no place in the text of a call
    (made,) = parsed.tree.expressions
    assert isinstance(made, exp.Expr)
    return made


def _check_names(macro: Macro, sql: str, catalog: Catalog) -> None:
    """A body is of its parameters alone, but within subqueries; there no column of a table has the name of one."""
    known = {p.lower() for p in macro.parameters}
    for node in nodes_of(macro.body):
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            continue
        first = node.parts[0].name.lower()
        queries = [q for q in _above(node) if isinstance(q, exp.Query)]
        if not queries and first not in known and not _of_lambda(node):
            words = f"there is no parameter {node.parts[0].name!r} of macro {macro}"
            raise located(BindError(words), sql, node)
        if first in known and len(node.parts) == 1:
            for table in (t for q in queries for t in q.find_all(exp.Table)):
                found = None if isinstance(table.this, exp.Anonymous) else catalog.lookup(table_name(table))
                columns = getattr(found, "schema", None)  # of a view it is a name
                if isinstance(columns, Schema) and columns.find(first) is not None:
                    words = f"parameter {first!r} of macro {macro.name!r} has the name of a column of {table.name!r}"
                    raise located(BindError(words), sql, node)


def _above(node: exp.Expr) -> Iterator[exp.Expr]:
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def _of_lambda(node: exp.Column) -> bool:
    """Whether a name is that of a parameter of a lambda function, or of a comprehension, around it."""
    name = node.parts[0].name.lower()
    for above in _above(node):
        if isinstance(above, exp.Lambda) and any(p.name.lower() == name for p in above.expressions):
            return True
        if isinstance(above, exp.Comprehension) and name in {n.name.lower() for n in above.expression.walk()}:
            return True
    return False


def expand(parsed: Parsed, catalog: Catalog) -> None:
    """Puts the bodies of macros in the places of their calls, in the statement's tree."""
    if expand_in(parsed.tree, parsed.sql, catalog):
        parsed.nodes[:] = nodes_of(parsed.tree)


def expand_in(tree: exp.Expr, sql: str, catalog: Catalog) -> bool:
    """The same in a tree; whether there was such a call."""
    entries = catalog.macros()
    return bool(entries) and _Expander(entries, sql).within(tree, ())


class _Expander:
    def __init__(self, entries: Mapping[str, tuple[Macro, ...]], sql: str) -> None:
        self._entries, self._sql = entries, sql

    def within(self, tree: exp.Expr, used: tuple[str, ...]) -> bool:
        """Expands the calls below a node; ``used``: the macros whose bodies are around it. Whether there were some."""
        queue, is_changed = [tree], False
        for node in queue:  # which grows meanwhile
            for value in tuple(node.args.values()):
                for child in value if isinstance(value, list) else (value,):
                    if not isinstance(child, exp.Expr):
                        continue
                    made = self._made(child, used)
                    if made is None:
                        queue.append(child)
                    else:
                        child.replace(made)
                        is_changed = True
        return is_changed

    def _made(self, node: exp.Expr, used: tuple[str, ...]) -> exp.Expr | None:
        """What stands for a node that is the call of a macro."""
        call = node.this if isinstance(node, exp.Table) else node
        if not isinstance(call, exp.Anonymous) or call.name.lower() not in self._entries:
            return None
        is_table = isinstance(node, exp.Table)
        if not is_table and isinstance(call.parent, exp.Table | exp.Lateral | exp.From | exp.Join) and call.arg_key == "this":
            return None  # f(x) in FROM, where values are no tables
        bodies = [m for m in self._entries[call.name.lower()] if m.is_table == is_table]
        if not bodies:
            return None  # it has another meaning, or none
        name = call.name.lower()
        try:
            if name in used:
                raise BindError(f"macro {call.name!r} calls itself")
            is_windowed = _is_windowed(call)
            if _around(call) is not None and not is_windowed:
                raise BindError(f"FILTER and the like are of aggregates, and {call.name!r} is a macro: its body has them")
            if any(isinstance(a, exp.Distinct | exp.Order | exp.Star) for a in call.expressions):
                raise BindError(f"DISTINCT, ORDER BY and * are no arguments of a macro: {call.name!r}")
            shown = column_name(call)
            macro, given = _chosen(bodies, call)
            body = macro.body.unnest()
            if is_windowed and (not isinstance(body, exp.Func | exp.Filter) or isinstance(body, exp.Cast | exp.Case)):
                raise BindError(f"OVER behind macro {call.name!r}, whose body is no call of an aggregate")
        except BindError as error:
            raise located(error, self._sql, call) from None
        holder = exp.Tuple(expressions=[*given.values()])  # calls among the arguments are replaced in it
        self.within(holder, used)
        given = dict(zip(given, holder.expressions, strict=True))
        place = {k: v for k, v in (call._meta or {}).items() if k in ("start", "end")}
        made, number = _placed(body if is_windowed else macro.body, place), next(_calls)
        root: exp.Expr = (exp.Subquery if is_table else exp.Window if is_windowed else exp.Paren)(this=made)
        _substitute(root, given, number, is_table)
        self.within(root, (*used, name))
        root = root.this.pop() if is_windowed else root
        root._meta = {MACRO: shown, CALL: number, **place}
        for key in ("alias", "joins", "sample") if is_table else ():
            if node.args.get(key):
                root.set(key, node.args[key])
        return root


def _around(call: exp.Expr) -> exp.Expr | None:
    """OVER, FILTER, WITHIN GROUP, IGNORE NULLS or RESPECT NULLS of a call. The last two stand within the parentheses of another
    call too, behind its last argument: then they are of that call."""
    above = call.parent
    if not isinstance(above, _AROUND) or above.this is not call:
        return None
    return None if isinstance(above, _NULLS) and _around(above) is None else above


def _is_windowed(call: exp.Expr) -> bool:
    """Whether OVER stands behind a call: then it stands behind its body."""
    return isinstance(call.parent, exp.Window) and call.parent.this is call


def _chosen(bodies: list[Macro], call: exp.Expr) -> tuple[Macro, dict[str, exp.Expr]]:
    """The body that takes the arguments of a call, and what stands for each parameter."""
    placed = [a for a in call.expressions if not isinstance(a, exp.PropertyEQ | exp.Kwarg)]
    named = {a.this.name.lower(): a.expression for a in call.expressions if isinstance(a, exp.PropertyEQ | exp.Kwarg)}
    for macro in sorted(bodies, key=lambda m: len(m.parameters)):
        names = [p.lower() for p in macro.parameters]
        given = dict(zip(names, placed, strict=False)) | named
        is_twice = any(n in named for n in names[: len(placed)])
        given |= {n: d.copy() for n, d in macro.defaults.items() if n not in given}
        if len(placed) <= len(names) and not is_twice and given.keys() == set(names):
            return macro, given
    raise BindError(f"macro {call.name!r} does not take these arguments; there is {' and '.join(map(str, bodies))}")


def _placed(body: exp.Expr, place: dict[str, int]) -> exp.Expr:
    """A copy of a body, at the place of a call."""
    made = body.copy()
    for node in nodes_of(made):
        if node._meta is not None and "start" in node._meta:
            node._meta = {**{k: v for k, v in node._meta.items() if k not in ("start", "end")}, **place}
    return made


def _substitute(root: exp.Expr, given: Mapping[str, exp.Expr], call: int, is_table: bool) -> None:
    """Puts arguments in place of parameters below a node: of ``p``, and of the first part of ``p.field``."""
    tables = {t.alias_or_name.lower() for t in root.find_all(exp.Table, exp.Subquery, exp.Values)}
    for node in nodes_of(root):
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            continue
        first, *fields = node.parts
        if first.name.lower() not in given or _of_lambda(node) or (fields and first.name.lower() in tables):
            continue
        made = given[first.name.lower()].copy()
        if is_table or any(isinstance(a, _CLOSED) for a in _above(node)):
            _mark(made, call)
        for part in fields:
            made = exp.Dot(this=exp.Paren(this=made), expression=part.copy())
        node.replace(made)


def _mark(argument: exp.Expr, call: int) -> None:
    """Marks the columns and aggregates of an argument, but what its own subqueries and lambda functions may mean."""
    for node in nodes_of(argument):
        is_own = isinstance(node, exp.Column) or (is_aggregate_call(node) and _around(node) is None)
        if is_own and not any(isinstance(a, _CLOSED) for a in _above(node)):
            node._meta = {ARGUMENT: call} | (node._meta or {})
