"""The trees that sqlglot makes of statements, of texts that the grammar's reader leaves to it.

sqlglot reads past what it does not expect, and some words mean other things to it than to DuckDB. So its parser gets the tokens
as the reading of the text has them: names of functions as names, numbers and parameters as DuckDB reads them, parentheses where
its operators bind otherwise, names in place of expressions that were made already. What it raises is told in our words.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence
from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from gquery.errors import NotSupportedError, ParseError, point_at
from gquery.runtime.nesting import with_room
from gquery.sql.dialect import dialect
from gquery.sql.grammar.nodes import Made, name_of
from gquery.sql.grammar.tokens import AS_NAME, Edit, Reading
from gquery.sql.lexer import NUMBER, PARAMETER, SYMBOL, WORD, Lexed
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


def trees_of(
    text: str, tokens: Lexed, readings: Sequence[Reading | ParseError], made: Sequence[Made]
) -> list[exp.Expr]:
    """sqlglot's trees of the statements. What it raises is told in our words: where the text is wrong by DuckDB's grammar
    that says it, else sqlglot's own message."""
    read = [r for r in readings if isinstance(r, Reading)]
    instead = {m.start: (m.end, name_of(n)) for n, m in enumerate(made)}
    calls = {start for r in read for start in r.calls if start not in instead}
    frames = {start for r in read for start in r.frames}
    edits = [edit for r in read for edit in r.edits]
    seen = _seen(text, tokens, read)
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
    raise _told(error, text, readings)


def _seen(text: str, tokens: Lexed, read: Sequence[Reading]) -> str:
    """The text that sqlglot gets, of the same length: blank where it would stumble over what was read, a ``?`` for each parameter
    with a name or a number."""
    for r in read:
        for start, end in r.blanks:
            text = text[:start] + " " * (end - start) + text[end:]
    for n, kind in enumerate(tokens.kinds if "$" in text else ()):
        if kind == PARAMETER and text[tokens.starts[n]] != " ":
            # sqlglot would read ``$1+$`` as the beginning of a text, and ``1.`` of ``$1.a`` as a number
            start, behind = tokens.starts[n], tokens.ends[n] + 1
            text = f"{text[:start]}?{' ' * (behind - start - 1)}{text[behind:]}"
    return text


def _prepared(given: list[Token], calls: set[int], frames: set[int]) -> list[Token]:
    """sqlglot's tokens as its parser shall see them: GROUPS before a frame as a keyword, words for values as names, and names of
    functions that it does not know: it would put their arguments in places of its own, give other names to some, and drop what
    it does not expect. `restore` gives the names back."""

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


def _numbers(token: Token, tokens: Lexed, n: int) -> list[Token]:
    """What DuckDB reads in place of a token of sqlglot's: that takes ``1e3+1e3`` for the number ``1e3+1`` and a name, and
    ``.5`` for a dot and a 5."""
    result: list[Token] = []
    while not result or tokens.starts[n] <= token.end:
        kind = _TYPES.get(tokens.kinds[n] if tokens.kinds[n] != SYMBOL else tokens.words[n], TokenType.VAR)
        result.append(Token(kind, tokens.words[n], token.line, token.col, tokens.starts[n], tokens.ends[n]))
        n += 1
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


def _told(error: Exception, text: str, readings: Sequence[Reading | ParseError]) -> ParseError:
    """What is raised where sqlglot has raised an error: ours, if a statement is none by DuckDB's grammar."""
    for reading in readings:
        if isinstance(reading, ParseError):
            return reading
    if isinstance(error, SqlglotParseError):
        return _parse_error(error, text)
    message = _ANSI.sub("", str(error)).split("\n")[0]
    return ParseError(f"{message}\n{point_at(text, len(text.rstrip()))}")


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


def restore(nodes: list[exp.Expr]) -> None:
    """Give functions the names back that were typed."""
    for node in nodes:
        if type(node) is exp.Anonymous:
            name = node.args["this"]
            if isinstance(name, str) and name.startswith(_CALL):
                node.args["this"] = name[1:]
