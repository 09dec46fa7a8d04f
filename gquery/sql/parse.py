"""Parsing: SQL text to sqlglot's tree, and errors that point into the text.

sqlglot parses only (``read="duckdb"``); names, scopes and types are ours (`sql.bind`). Its optimizer and its types are
not used: they are wrong for decimals, literals and NULLs in subqueries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from gquery.errors import Error, NotSupportedError, ParseError, point_at

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_GLUED = re.compile(r"([\d.]+[eE][+-]?\d+)([+-])(.+)")
_LEVEL = r"(?:analyze|bound|optimized|physical|pipelines|codegen|code|tree)\b"
_OPTION = rf"(?:{_LEVEL}|format\s+'?\w+'?)"
_EXPLAIN = re.compile(rf"\s*explain\b(?:\s+({_LEVEL}))?(?:\s*\((\s*{_OPTION}(?:[\s,]+{_OPTION})*\s*)\))?", re.I)
_COMMENT = re.compile(r"\s*(?:--[^\n]*(?:\n|$)|/\*.*?\*/)", re.S)


@dataclass(frozen=True)
class Parsed:
    """One statement: sqlglot's tree, the text that its positions point into, and EXPLAIN's options where it was
    there."""

    tree: exp.Expr
    sql: str
    explain: tuple[str, ...] | None = None


def parse(sql: str) -> list[Parsed]:
    """The statements of a text, in order.

    Raises ParseError, with the line and a caret.
    """
    text, explain = _strip_explain(sql)
    try:
        dialect = Dialect.get_or_raise("duckdb")
        trees = dialect.parser().parse(_numbered(dialect.tokenize(text)), text)
    except SqlglotParseError as e:
        raise _parse_error(e, sql) from None
    except SqlglotError as e:  # an unclosed string or the like
        message = _ANSI.sub("", str(e)).split("\n")[0]
        raise ParseError(f"{message}\n{point_at(sql, len(sql.rstrip()))}") from None
    except RecursionError:
        raise ParseError("the statement is nested too deeply") from None
    found = [t for t in trees if isinstance(t, exp.Expr) and not isinstance(t, exp.Semicolon)]
    statements = [Parsed(t, sql, explain if n == 0 else None) for n, t in enumerate(found)]
    for s in statements:
        if isinstance(s.tree, exp.Command):
            raise NotSupportedError(f"statement {s.tree.name.upper()}\n{point_at(sql, len(sql) - len(sql.lstrip()))}")
    return statements


def parse_one(sql: str) -> Parsed:
    """The only statement of a text; ParseError for none or several."""
    statements = parse(sql)
    if len(statements) != 1:
        raise ParseError(
            "there is no statement" if not statements else "there are several statements where one is expected"
        )
    return statements[0]


def tokenize(sql: str) -> list[Token]:
    """The tokens of a text that has been parsed."""
    return Dialect.get_or_raise("duckdb").tokenize(sql)


def _numbered(tokens: list[Token]) -> list[Token]:
    """The tokens with every ``?`` written as ``$1``, ``$2``, ... (the tree does not keep their order)."""
    result: list[Token] = []
    count = 0
    for t in tokens:
        if t.token_type == TokenType.PLACEHOLDER and t.text == "?":
            count += 1
            result.append(Token(TokenType.PARAMETER, "$", t.line, t.col, t.start, t.end))
            t = Token(TokenType.NUMBER, str(count), t.line, t.col, t.start, t.end)
        glued = _GLUED.fullmatch(t.text) if t.token_type == TokenType.NUMBER else None
        if glued is not None:  # sqlglot reads 1e3+1 as one number
            middle = t.start + len(glued[1])
            sign = TokenType.PLUS if glued[2] == "+" else TokenType.DASH
            result.append(Token(TokenType.NUMBER, glued[1], t.line, t.col, t.start, middle - 1))
            result.append(Token(sign, glued[2], t.line, t.col, middle, middle))
            t = Token(TokenType.NUMBER, glued[3], t.line, t.col, middle + 1, t.end)
        result.append(t)
    return result


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
    match = _EXPLAIN.match(sql, start)
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
