"""Parsing: the statements of a text as trees of sqlglot's nodes, and errors that point into the text.

The grammar's reader (`sql.grammar`) makes the whole tree of a plain query; other trees sqlglot's parser makes (`sqlglot_trees`).
Names, scopes and types are ours (`sql.bind`): sqlglot's optimizer and types are wrong for decimals, literals and NULLs in
subqueries.
"""

from __future__ import annotations

import re
from dataclasses import field
from functools import partial

from sqlglot import exp

from gquery.errors import Error, NotSupportedError, ParseError, point_at
from gquery.runtime import collector
from gquery.runtime.nesting import with_room
from gquery.runtime.records import cached_property, dataclass
from gquery.sql.grammar import read
from gquery.sql.grammar.nodes import put_in_place
from gquery.sql.grammar.tokens import Reading
from gquery.sql.lexer import SYMBOL, Lexed, lex
from gquery.sql.methods import call_methods

_LEVEL = r"(?:analyze|bound|optimized|physical|pipelines|codegen|code|tree)\b"
_OPTION = rf"(?:{_LEVEL}|format\s+'?\w+'?)"
_EXPLAIN = rf"(?i)\s*explain\b(?:\s+({_LEVEL}))?(?:\s*\((\s*{_OPTION}(?:[\s,]+{_OPTION})*\s*)\))?"
_COMMENT = re.compile(r"\s*(?:--[^\n]*(?:\n|$)|/\*.*?\*/)", re.S)


@dataclass(frozen=True)
class Parsed:
    """One statement: sqlglot's tree, the text that its positions point into, EXPLAIN's options where it was there,
    and what our grammar read, an error where it is no statement. A tree that was made without a text has none. ``read`` are
    the nodes that sqlglot made, parents first: with names in place of the expressions that were made here."""

    tree: exp.Expr
    sql: str
    explain: tuple[str, ...] | None = None
    reading: Reading | ParseError | None = None
    tokens: Lexed | None = None
    first: int = 0
    behind: int = 0
    read: list[exp.Expr] = field(default_factory=list)

    @property
    def is_plain(self) -> bool:
        """Whether the grammar's reader has made all of the tree (`sql.grammar.query_nodes`): sqlglot's parser was not asked."""
        return isinstance(self.reading, Reading) and self.tree is self.reading.tree

    @cached_property
    def nodes(self) -> list[exp.Expr]:
        """The nodes of the tree as it is bound, parents first, and those that were put into it later."""
        return nodes_of(self.tree)

    def release(self) -> None:
        """Nobody reads the tree any more. Its nodes and their parents hold each other: the collector need not find them."""
        for node in self.nodes:
            node.parent = None
        for node in self.read:
            node.parent = None


def parse(sql: str, tokens: Lexed | None = None) -> list[Parsed]:
    """The statements of a text, in order; ``tokens`` are the text's where they are known.

    Raises ParseError, with the line and a caret.
    """
    text, explain = _strip_explain(sql) if "explain" in sql.lower() else (sql, None)  # it compiles an expression, 0.3 ms
    with collector.paused():  # trees stay
        return _parsed(sql, text, explain, lex(text) if tokens is None or text != sql else tokens)


def _parsed(sql: str, text: str, explain: tuple[str, ...] | None, tokens: Lexed) -> list[Parsed]:
    places = _statements(tokens)
    readings = [with_room(partial(read, text, tokens, *p)) for p in places]
    whole = [r.tree for r in readings if isinstance(r, Reading) and r.tree is not None]
    if readings and len(whole) == len(readings):  # there is nothing for sqlglot to read
        return [
            Parsed(tree, sql, explain if n == 0 else None, reading, tokens, first, behind)
            for n, (tree, reading, (first, behind)) in enumerate(zip(whole, readings, places, strict=True))
        ]
    from gquery.sql.sqlglot_trees import restore, trees_of  # plain statements do without

    made = [m for r in readings if isinstance(r, Reading) for m in r.made]
    trees = trees_of(text, tokens, readings, made)
    outlines = [nodes_of(tree) for tree in trees]
    if made:
        put_in_place([node for outline in outlines for node in outline], made)
    if any(isinstance(r, Reading) and r.has_methods for r in readings):
        for tree in trees:
            call_methods(tree)
        outlines = [nodes_of(tree) for tree in trees]
    statements = [
        Parsed(tree, sql, explain if n == 0 else None, reading, tokens, first, behind, outline)
        for n, (tree, reading, (first, behind), outline) in enumerate(zip(trees, readings, places, outlines, strict=True))
    ]
    for s in statements:
        restore(s.read)
        if isinstance(s.tree, exp.Command):
            from gquery.sql.grammar.statements import OWN  # which queries do without

            if isinstance(s.reading, ParseError) and tokens.words[s.first] in OWN:
                raise s.reading
            words = " ".join(tokens.words[s.first : min(s.first + 2, s.behind)]).upper()
            raise NotSupportedError(f"not supported: {words}\n{point_at(sql, tokens.starts[s.first])}")
    return statements


def _statements(tokens: Lexed) -> list[tuple[int, int]]:
    """The first token of each statement, and the one behind it."""
    ends = [n for n, word in enumerate(tokens.words) if word == ";" and tokens.kinds[n] == SYMBOL]
    ends.append(len(tokens.words) - 1)
    starts = [0, *(n + 1 for n in ends)]
    return [(first, behind) for first, behind in zip(starts, ends, strict=False) if first < behind]


def parse_one(sql: str) -> Parsed:
    """The only statement of a text; ParseError for none or several."""
    statements = parse(sql)
    if len(statements) != 1:
        raise ParseError(
            "there is no statement" if not statements else "there are several statements where one is expected"
        )
    return statements[0]


def nodes_of(tree: exp.Expr, closed: tuple[type[exp.Expr], ...] = ()) -> list[exp.Expr]:
    """The tree's nodes, breadth first, none below one of a ``closed`` class: sqlglot's own walk is three generators a node."""
    queue = [tree]
    for node in queue:  # which grows meanwhile
        if type(node) is exp.Identifier or type(node) is exp.Literal or (closed and isinstance(node, closed)):
            continue  # the first two are about half of a tree, and have none below them
        for value in node.args.values():
            if not value:  # most are None, False, or a list of nothing
                continue
            if value.__class__ is list:
                queue.extend([v for v in value if isinstance(v, exp.Expr)])
            elif isinstance(value, exp.Expr):
                queue.append(value)
    return queue


def without_explain(sql: str) -> str:
    """The text of a statement behind its EXPLAIN.

    >>> without_explain("EXPLAIN (ANALYZE, FORMAT html) SELECT 1")
    'SELECT 1'
    """
    return _strip_explain(sql)[0].strip()


def _strip_explain(sql: str) -> tuple[str, tuple[str, ...] | None]:
    """The text with a leading EXPLAIN blanked out, so that positions stay, and its options."""
    start = 0
    while comment := _COMMENT.match(sql, start):
        start = comment.end()
    match = re.compile(_EXPLAIN).match(sql, start)
    if match is None:
        return sql, None
    options = tuple(re.split(r"[\s,]+", f"{match[1] or ''} {match[2] or ''}".lower().strip()))
    blank = "".join(c if c == "\n" else " " for c in sql[: match.end()])
    return blank + sql[match.end() :], options if options != ("",) else ()


def position(node: exp.Expr | None) -> int | None:
    """Where a node begins in the SQL text: the least offset of the tokens below it that kept theirs."""
    if node is None:
        return None
    starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    return min(starts) if starts else None


def located(error: Error, sql: str, node: exp.Expr | None) -> Error:
    """The same error with the line and a caret at ``node``; as it is where it has them already."""
    place = position(node)
    if place is None or getattr(error, "position", None) is not None:
        return error
    made = type(error)(f"{error}\n{point_at(sql, place)}")
    made.position = place  # type: ignore[attr-defined]
    return made
