"""Parsing: SQL text to sqlglot's tree, and errors that point into the text.

sqlglot parses only (`sql.dialect`); names, scopes and types are ours (`sql.bind`). Its optimizer and its types are
not used: they are wrong for decimals, literals and NULLs in subqueries.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from gquery.errors import Error, NotSupportedError, ParseError, point_at
from gquery.runtime import collector
from gquery.runtime.nesting import with_room
from gquery.runtime.records import dataclass
from gquery.sql.grammar import read
from gquery.sql.grammar.nodes import Made, name_of, put_in_place
from gquery.sql.grammar.tokens import AS_NAME, Edit, Reading
from gquery.sql.lexer import NUMBER, PARAMETER, SYMBOL, WORD, Lexed, lex
from gquery.sql.methods import call_methods
from gquery.sql.tokens import tokens_of, with_names

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_TYPES = {NUMBER: TokenType.NUMBER, WORD: TokenType.VAR, "+": TokenType.PLUS, "-": TokenType.DASH}
_PUT = {
    "(": TokenType.L_PAREN, ")": TokenType.R_PAREN, ",": TokenType.COMMA, "from": TokenType.FROM,
    "select": TokenType.SELECT, "*": TokenType.STAR, "as": TokenType.ALIAS, "null": TokenType.NULL,
    ".": TokenType.DOT,
}  # fmt: skip
_CALL = "\x1f"  # before the name of a function that is called
_VALUES = frozenset((  # words that are functions to sqlglot, and to DuckDB columns first, then functions
    TokenType.CURRENT_CATALOG, TokenType.CURRENT_DATE, TokenType.CURRENT_DATETIME, TokenType.CURRENT_ROLE,
    TokenType.CURRENT_SCHEMA, TokenType.CURRENT_TIME, TokenType.CURRENT_TIMESTAMP, TokenType.CURRENT_USER,
    TokenType.LOCALTIME, TokenType.LOCALTIMESTAMP, TokenType.SESSION_USER,
))  # fmt: skip
_LEVEL = r"(?:analyze|bound|optimized|physical|pipelines|codegen|code|tree)\b"
_OPTION = rf"(?:{_LEVEL}|format\s+'?\w+'?)"
_EXPLAIN = rf"(?i)\s*explain\b(?:\s+({_LEVEL}))?(?:\s*\((\s*{_OPTION}(?:[\s,]+{_OPTION})*\s*)\))?"
_COMMENT = re.compile(r"\s*(?:--[^\n]*(?:\n|$)|/\*.*?\*/)", re.S)


class _Quiet(threading.local, logging.Filter):
    """Keeps what sqlglot logs while gquery parses off the user's screen: it is told by an error, or is none."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1

    def filter(self, record: logging.LogRecord) -> bool:
        return not self.depth


_quiet = _Quiet()
logging.getLogger("sqlglot").addFilter(_quiet)


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
    made = [m for r in readings if isinstance(r, Reading) for m in r.made]
    trees = _trees(text, tokens, readings, made)
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
        _restore(s.read)
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


def _trees(
    text: str, tokens: Lexed, readings: Sequence[Reading | ParseError], made: Sequence[Made]
) -> list[exp.Expr]:
    """sqlglot's trees of the statements. What it raises is told in our words: where the text is wrong by DuckDB's grammar
    that says it, else sqlglot's own message."""
    from gquery.sql.dialect import dialect  # plain statements do without

    read = [r for r in readings if isinstance(r, Reading)]
    instead = {m.start: (m.end, name_of(n)) for n, m in enumerate(made)}
    calls = {start for r in read for start in r.calls if start not in instead}
    frames = {start for r in read for start in r.frames}
    edits = [edit for r in read for edit in r.edits]
    seen = text
    for start, end in (blank for r in read for blank in r.blanks):
        seen = seen[:start] + " " * (end - start) + seen[end:]
    for n, kind in enumerate(tokens.kinds if "$" in text else ()):
        if kind == PARAMETER and seen[tokens.starts[n]] != " ":
            # sqlglot would read ``$1+$`` as the beginning of a text, and ``1.`` of ``$1.a`` as a number
            start, behind = tokens.starts[n], tokens.ends[n] + 1
            seen = f"{seen[:start]}?{' ' * (behind - start - 1)}{seen[behind:]}"
    names: dict[int, tuple[int, str]] = {}
    for r in read:
        names |= {start: (end, f"{_CALL}+") for start, end in r.pluses.items()}
        names |= {start: (end, "") for start, end in r.typed.items()}

    def parsed() -> list[exp.Expr | None]:
        with _quiet:
            given, is_lexed = tokens_of(text, tokens, instead) if seen is text else (dialect().tokenize(seen), False)
            given = given if is_lexed else with_names(_relexed(given, tokens), instead)
            prepared = _prepared(given, calls, frames)
            prepared = _in_parentheses(prepared, names) if names else prepared
            return dialect().parser().parse(_edited(prepared, edits) if edits else prepared, text)

    try:
        parses = with_room(parsed)
    except NotSupportedError:
        raise
    except Exception as e:  # whatever sqlglot raises: none of it may leave
        error: Exception = e
    else:
        trees = [t for t in parses if isinstance(t, exp.Expr) and not isinstance(t, exp.Semicolon)]
        if len(trees) == len(readings):
            return trees
        error = SqlglotError("it cannot be told where the statements end")
    for reading in readings:
        if isinstance(reading, ParseError):
            raise reading
    if isinstance(error, SqlglotParseError):
        raise _parse_error(error, text)
    message = _ANSI.sub("", str(error)).split("\n")[0]
    raise ParseError(f"{message}\n{point_at(text, len(text.rstrip()))}")


def parse_one(sql: str) -> Parsed:
    """The only statement of a text; ParseError for none or several."""
    statements = parse(sql)
    if len(statements) != 1:
        raise ParseError(
            "there is no statement" if not statements else "there are several statements where one is expected"
        )
    return statements[0]


def _prepared(given: list[Token], calls: set[int], frames: set[int]) -> list[Token]:
    """sqlglot's tokens as its parser shall see them: GROUPS before a frame as a keyword, words for values as names, and names of
    functions that it does not know: it would put their arguments in places of its own, give other names to some, and drop what
    it does not expect. `_restore` gives the names back."""

    def prepared(t: Token) -> Token:
        if t.start in calls:
            return Token(TokenType.VAR, _CALL + t.text, t.line, t.col, t.start, t.end)
        kind = TokenType.ROWS if t.start in frames else TokenType.VAR
        return Token(kind, t.text, t.line, t.col, t.start, t.end)

    changed = calls | frames
    return [prepared(t) if t.start in changed or t.token_type in _VALUES else t for t in given]


def _relexed(given: list[Token], tokens: Lexed) -> list[Token]:
    """sqlglot's own tokens as the lexer has them: numbers as DuckDB reads them, and every ``?`` written as ``$1``, ``$2``, ...
    (the tree does not keep their order), ``?2`` as ``$2``, ``?name`` as ``$name``."""
    numbers = {start: n for n, start in enumerate(tokens.starts) if tokens.kinds[n] == NUMBER}
    parameters = {
        s: (w, e)
        for s, e, w, k in zip(tokens.starts, tokens.ends, tokens.words, tokens.kinds, strict=True)
        if k == PARAMETER
    }
    result: list[Token] = []
    count, read = 0, -1
    for t in given:
        kind = t.token_type
        if t.start <= read:  # a part of a number
            continue
        number = numbers.get(t.start)
        if number is not None and (kind != TokenType.NUMBER or t.end != tokens.ends[number]):
            result += _numbers(t, tokens, number)
            read = result[-1].end
            continue
        if kind == TokenType.PLACEHOLDER and t.text == "?":
            word, read = parameters[t.start]
            count += word == "?"
            result.append(Token(TokenType.PARAMETER, "$", t.line, t.col, t.start, t.start))
            shown = word[1:] or str(count)
            type_ = TokenType.NUMBER if shown.isdigit() else TokenType.VAR
            t = Token(type_, shown, t.line, t.col, t.start, read)
        result.append(t)
    return result


def _in_parentheses(given: list[Token], names: dict[int, tuple[int, str]]) -> list[Token]:
    """The tokens with parentheses where sqlglot's parser reads otherwise. ``names``: where the first token of something
    stands, where its last ends, and a name. ``+a`` becomes a call of a function named ``+``, as the parser drops a plus
    before a value; ``VARCHAR 'x'::DATE`` has none, and is ``(VARCHAR 'x')::DATE``, where the parser casts the text first."""
    result: list[Token] = []
    ends: list[int] = []
    for t in given:
        while ends and ends[-1] < t.start:
            result.append(Token(TokenType.R_PAREN, ")", t.line, t.col, ends[-1], ends.pop()))
        if t.start in names:
            end, name = names[t.start]
            ends.append(end)
            if name:
                result.append(Token(TokenType.VAR, name, t.line, t.col, t.start, t.end))
            result.append(Token(TokenType.L_PAREN, "(", t.line, t.col, t.start, t.end))
            if name:
                continue  # it stands for the plus
        result.append(t)
    if ends:
        last = given[-1]
        result += [Token(TokenType.R_PAREN, ")", last.line, last.col, end, end) for end in reversed(ends)]
    return result


def _edited(given: list[Token], edits: Sequence[Edit]) -> list[Token]:
    """The tokens with words in place of some of them. A word that was put in has a place, for errors, and no text there."""
    before: dict[int, list[str]] = {}
    instead: dict[int, list[str]] = {}
    for edit in edits:
        (before if edit.is_before else instead).setdefault(edit.start, []).extend(edit.words)
    result: list[Token] = []
    places = sorted(before, reverse=True)  # some of them are those of tokens that are hidden
    for t in given:
        at = t.start
        words = []
        while places and places[-1] <= at:
            words += before.pop(places.pop())
        words += instead.get(at, [])
        result += [Token(_PUT.get(w, TokenType.VAR), w.removeprefix(AS_NAME), t.line, t.col, at, at - 1) for w in words]
        if at not in instead:
            result.append(t)
        else:
            instead[at] = []  # it may be several of sqlglot's
    last = given[-1]
    behind = [(_PUT.get(w, TokenType.VAR), w.removeprefix(AS_NAME)) for words in before.values() for w in words]
    return result + [Token(kind, w, last.line, last.col, last.end, last.end - 1) for kind, w in behind]


def _numbers(token: Token, tokens: Lexed, n: int) -> list[Token]:
    """What DuckDB reads in place of a token of sqlglot's: that takes ``1e3+1e3`` for the number ``1e3+1`` and a name, and
    ``.5`` for a dot and a 5."""
    result: list[Token] = []
    while not result or tokens.starts[n] <= token.end:
        kind = _TYPES.get(tokens.kinds[n] if tokens.kinds[n] != SYMBOL else tokens.words[n], TokenType.VAR)
        result.append(Token(kind, tokens.words[n], token.line, token.col, tokens.starts[n], tokens.ends[n]))
        n += 1
    return result


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


def _restore(nodes: list[exp.Expr]) -> None:
    """Give functions the names back that were typed."""
    for node in nodes:
        if type(node) is exp.Anonymous:
            name = node.args["this"]
            if isinstance(name, str) and name.startswith(_CALL):
                node.args["this"] = name[1:]


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


def _parse_error(e: SqlglotParseError, sql: str) -> ParseError:
    first: dict[str, Any] = e.errors[0] if e.errors else {}
    message = _ANSI.sub("", str(first.get("description") or e)).split("\n")[0].rstrip(".")
    line, column = first.get("line"), first.get("col")
    if line is None or column is None:
        return ParseError(message)
    lines = sql.split("\n")
    word = str(first.get("highlight") or "")
    # sqlglot counts the column of a token's last character, from 1
    position = sum(len(text) + 1 for text in lines[: line - 1]) + max(0, column - len(word))
    near = f" near {word!r}" if word else ""
    return ParseError(f"{message}{near}\n{point_at(sql, position)}")


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
