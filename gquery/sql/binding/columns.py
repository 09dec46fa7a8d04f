"""COLUMNS(...) and ``* LIKE``: an entry of the SELECT list, or a condition, for each column of a choice.

An expression with COLUMNS stands for copies of itself, in each of which another column is in its place. The columns are known
when FROM is bound: a copy holds the bound column (`column_of`), as its name alone may mean several.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from sqlglot import exp

from gquery.errors import BindError, NotSupportedError, did_you_mean
from gquery.expression.expr import Expr
from gquery.sql.calls import function_call, is_call
from gquery.sql.grammar.tokens import JSON, marked
from gquery.sql.parse import nodes_of

Star = Callable[[str | None], list[tuple[str, Expr]]]
_META = "gquery column"


def column_of(node: exp.Expr) -> Expr | None:
    """The column that was put in the place of COLUMNS."""
    meta = node._meta
    return None if meta is None else meta.get(_META)


def column_node(name: str, column: Expr) -> exp.Column:
    """A column of a tree that is bound already."""
    made = exp.column(exp.to_identifier(name, quoted=True))
    made.meta[_META] = column
    return made


def expanded(node: exp.Expr, star: Star, named: bool) -> list[exp.Expr]:
    """The copies that an expression with COLUMNS stands for; itself where it has none. BindError where no column is meant.
    ``named``: each copy has the name of its column, where it is given no other."""
    calls = _calls(node)
    if not calls:
        return [node]
    if any(c.this != calls[0].this for c in calls):
        raise BindError("all COLUMNS of one expression have to be the same")
    found = list(_chosen(calls[0].this, star))
    if not found:
        raise BindError(f"no column is meant by {calls[0].sql('duckdb')}")
    if any(unpacked := [bool(c.args.get("unpack")) for c in calls]):
        if not all(unpacked):
            raise BindError("COLUMNS and *COLUMNS cannot stand in one expression")
        return [_unpacked(node, [(name, column) for name, column, _ in found])]
    made = ((name, _copy(node, name, column, match)) for name, column, match in found)
    return [c if not named or isinstance(c, exp.Alias) else exp.alias_(c, name, quoted=True) for name, c in made]


def by_function(node: exp.Expr, star: Star, keeps: Callable[[list[exp.Expr]], list[bool]]) -> exp.Expr:
    """An expression with names in place of functions: ``COLUMNS(lambda c: c LIKE 'a%')`` means the columns for whose names the
    function is true, which ``keeps`` tells of the function's body with each name in it."""
    if not any(_function(c.this) for c in _calls(node)):
        return node
    node = node.copy()
    for call in _calls(node):
        if (said := _function(call.this)) is not None:
            names = [name for name, _ in star(None)]
            kept = keeps([_with_name(*said, name) for name in names])
            chosen = [exp.Literal.string(name) for name, is_kept in zip(names, kept, strict=True) if is_kept]
            call.set("this", exp.Array(expressions=chosen))
    return node


def _function(what: exp.Expr) -> tuple[str, exp.Expr] | None:
    """The parameter and the body of a function; an arrow without the word lambda is read as that of JSON."""
    match what:
        case exp.Lambda(expressions=[parameter]):
            return parameter.name.lower(), what.this
        case exp.Anonymous(expressions=[exp.Column() as parameter, body]) if what.name == marked(JSON) and not parameter.table:
            return parameter.name.lower(), body
    return None


def _with_name(parameter: str, body: exp.Expr, name: str) -> exp.Expr:
    def put(node: exp.Expr) -> exp.Expr:
        is_bare = isinstance(node, exp.Identifier) and not isinstance(node.parent, exp.Column)
        is_own = is_bare or (isinstance(node, exp.Column) and not node.table)
        return exp.Literal.string(name) if is_own and node.name.lower() == parameter else node

    return body.copy().transform(put)


def like_star(node: exp.Expr) -> tuple[exp.Star, Callable[[str], bool]] | None:
    """The ``*`` of ``* LIKE pattern`` and the names that it keeps."""
    if isinstance(node, exp.Not):
        inner = like_star(node.this)
        return None if inner is None else (inner[0], lambda name: not inner[1](name))
    if isinstance(node, exp.Star) and (pattern := node.args.get("ilike")) is not None:
        star, negated, flags = node, False, re.IGNORECASE | re.DOTALL
    elif isinstance(node, exp.Like | exp.ILike | exp.SimilarTo | exp.Glob) and isinstance(node.this, exp.Star):
        star, pattern, negated = node.this, node.expression, bool(node.args.get("negate"))
        flags = re.IGNORECASE | re.DOTALL if isinstance(node, exp.ILike) else re.DOTALL
    else:
        return None
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise NotSupportedError("not supported: * LIKE a pattern that is no constant")
    text = pattern.name
    if isinstance(node, exp.Glob):
        return star, lambda name: fnmatchcase(name, text)
    known = _pattern(text if isinstance(node, exp.SimilarTo) else _of_like(text), flags)
    return star, lambda name: (known.fullmatch(name) is not None) != negated


def _of_like(text: str) -> str:
    return "".join({"%": ".*", "_": "."}.get(c) or re.escape(c) for c in text)


def _chosen(what: exp.Expr, star: Star) -> Iterator[tuple[str, Expr, re.Match[str] | None]]:
    """The columns that are meant, with what a regular expression found in their names."""
    match what:
        case exp.Star() | exp.Column(this=exp.Star()):
            asked, table = (what.this, what.table) if isinstance(what, exp.Column) else (what, None)
            dropped = {c.name.lower() for c in asked.args.get("except_") or ()}
            renamed = {a.this.name.lower(): a.alias for a in asked.args.get("rename") or ()}
            if asked.args.get("replace"):
                raise NotSupportedError("not supported: COLUMNS(* REPLACE ...)")
            columns = star(table)
            _check_named(dropped, [n for n, _ in columns])
            kept = [(name, c) for name, c in columns if name.lower() not in dropped]
            yield from ((renamed.get(name.lower(), name), c, None) for name, c in kept)
        case exp.Literal() if what.is_string:
            pattern = _pattern(what.name, re.NOFLAG)
            yield from ((name, c, m) for name, c in star(None) if (m := pattern.search(name)) is not None)
        case exp.Array() if all(isinstance(e, exp.Literal) and e.is_string for e in what.expressions):
            columns = star(None)
            wanted = {e.name.lower(): e.name for e in what.expressions}
            _check_named(wanted, [n for n, _ in columns])
            yield from ((name, c, None) for name, c in columns if name.lower() in wanted)
        case _:
            raise NotSupportedError("not supported: COLUMNS of anything but *, a regular expression or a list of names")


def _check_named(wanted: Iterable[str], names: Sequence[str]) -> None:
    """BindError for a name (in lower case) that no column has."""
    missing = sorted(set(wanted) - {n.lower() for n in names})
    if missing:
        raise BindError(f"COLUMNS: there is no column {missing[0]!r}.{did_you_mean(missing[0], names)}")


def _pattern(text: str, flags: re.RegexFlag) -> re.Pattern[str]:
    try:
        return re.compile(text, flags)
    except re.error as error:
        raise BindError(f"{text!r} is no regular expression: {error}") from None


def _calls(node: exp.Expr) -> list[exp.Columns]:
    """The COLUMNS of an expression; those of its subqueries are theirs."""
    return [n for n in nodes_of(node, (exp.Query, exp.Subquery)) if isinstance(n, exp.Columns)]


def _copy(node: exp.Expr, name: str, column: Expr, match: re.Match[str] | None) -> exp.Expr:
    made = node.copy()
    for call in _calls(made):
        new = column_node(name, column)
        if call is made:
            return new
        call.replace(new)
    if isinstance(made, exp.Alias) and "\\" in made.alias:
        made.set("alias", exp.to_identifier(_name(made.alias, name, match), quoted=True))
    return made


def _name(alias: str, name: str, match: re.Match[str] | None) -> str:
    """An alias with what a regular expression found: all of it for ``\\0``, the first group for ``\\1``. Without one ``\\0`` is
    the column's name."""

    def put(mark: re.Match[str]) -> str:
        if mark[1] == "\\":
            return "\\"
        if not mark[1].isdigit():
            raise BindError(f"the name {alias!r} has a backslash before what is neither a number nor a backslash")
        if match is not None:
            return (match[int(mark[1])] or "") if int(mark[1]) <= len(match.groups()) else ""
        if mark[1] != "0":
            raise BindError(f"the name {alias!r} has {mark[0]}: COLUMNS without a regular expression has \\0 alone")
        return name

    return re.sub(r"\\([0-9]|.?)", put, alias, flags=re.DOTALL)


def _unpacked(node: exp.Expr, columns: list[tuple[str, Expr]]) -> exp.Expr:
    """An expression with all columns as arguments where ``*COLUMNS`` stood."""
    made = node.copy()
    for call in _calls(made):
        around, key = call.parent, call.arg_key or ""
        if around is None or not isinstance(around.args.get(key), list):
            raise BindError("*COLUMNS stands among the arguments of a function, or in a list")
        nodes: list[exp.Expr] = [column_node(name, column) for name, column in columns]
        if is_call(around) and function_call(around)[0] == "struct_pack":
            names = [exp.to_identifier(name, quoted=True) for name, _ in columns]
            nodes = [exp.PropertyEQ(this=n, expression=c) for n, c in zip(names, nodes, strict=True)]
        others = around.args[key]
        at = next(n for n, other in enumerate(others) if other is call)
        around.set(key, [*others[:at], *nodes, *others[at + 1 :]])
    return made
