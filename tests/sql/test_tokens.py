"""Tokens made of the lexer's are those that sqlglot's own tokenizer finds, or none are made."""

from __future__ import annotations

import random
import re

import pytest
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token

from gquery.errors import ParseError
from gquery.sql import tokens
from gquery.sql.lexer import lex
from tpch import queries

TEXTS = [queries.sql(n) for n in queries.NUMBERS]
_PARTS = re.compile(r"""\w+|'[^']*'|"[^"]*"|[^\w\s]|\s+""")
_OTHERS = [
    *" \n()-><=*/|:.;%^&", "  ", "1", "1.5", "1e3", ".5", "x", "'a''b'", '"q"', '"a""b"', "by", "order", "group", "double",
    "char varying", "primary key", "fetch", "execute", "user-defined", "similar to", "::", "||", "->>", "**", "''",
]  # fmt: skip


def _is_made(sql: str) -> bool | None:
    """Whether tokens are made of a text, which then are sqlglot's; None where it is none."""
    try:
        lexed = lex(sql)
    except ParseError:
        return None
    made = None if tokens._SPECIAL.search(sql) else tokens._made(sql, lexed, {})
    if made is None:
        return False
    assert list(map(_known, made)) == list(map(_known, Dialect.get_or_raise("duckdb").tokenize(sql))), sql
    return True


def _known(t: Token) -> tuple[object, ...]:
    return (t.token_type, t.text, t.line, t.col, t.start, t.end, t.comments)


@pytest.mark.parametrize("sql", [*TEXTS, "SELECT 1", "select\n\n a.b from \"t\"\n;select 'a''b'::date"])
def test_tokens_of_usual_texts_are_made(sql: str) -> None:
    assert _is_made(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 -- one",
        "SELECT /* */ 1",
        "SELECT ?",
        "SELECT $1",
        "SELECT {'a': 1}",
        "SELECT 'é'",
        "SELECT 1e3",
        "SELECT a <-1",
    ],
)
def test_others_are_left_to_sqlglot(sql: str) -> None:
    assert _is_made(sql) is False


def test_whatever_is_made_is_right() -> None:
    """Pieces of queries with words and symbols in between, left out, and doubled."""
    random_ = random.Random(5)
    pool = [part for sql in TEXTS for part in _PARTS.findall(sql)] + _OTHERS * 20 + list(tokens._vocabulary().types)
    made = 0
    for _ in range(4000):
        parts = _PARTS.findall(random_.choice(TEXTS))
        first = random_.randrange(len(parts))
        parts = parts[first : first + 30]
        for _ in range(random_.randrange(5)):
            at = random_.randrange(len(parts) + 1)
            parts[at : at + random_.randrange(2)] = [random_.choice(pool)]
        made += _is_made("".join(parts)) is True
    assert made > 2000
