"""Texts that the lexer takes apart at once have the tokens that it finds one by one."""

from __future__ import annotations

import random

import pytest

from gquery.errors import ParseError
from gquery.sql.lexer import Lexed, _one_by_one, _plain
from tests.support.mutation_pools import pools
from tpch import queries

TEXTS = [*[queries.sql(n) for n in queries.NUMBERS], *[sql for pool in pools() for sql in pool.statements]]
PUT_IN = [
    "'", "''", '"', "--", "/*", "*/", "e'x'", "x'1'", "n", "$1", "?", "$$", "&", "U&'x'", ".5", "1.", "1..2", "1e5", "1_0", "::",
    ":=", "=>", "->", "->>", "<=", "=-", "+-", " ", "\n", "\t", "\x1c", "\x00", "\u00e9", "\u00a0", "a$b", "#", "@", "`", "\\",
    "'a' 'b'", "'a'\n'b'", "a'b'", "E'", "!=", "<>", "==", "//", "**", "||", "~~", "[", "{", "e 'x'", "e", '"a""b"', "1a", "<>-1",
]  # fmt: skip


def one_by_one(sql: str) -> Lexed | ParseError:
    try:
        return _one_by_one(sql)
    except ParseError as error:
        return error


@pytest.mark.parametrize("seed", range(8))
def test_texts_with_anything_put_in_have_the_same_tokens(seed: int) -> None:
    rng = random.Random(seed)
    plain = 0
    for _ in range(2000):
        sql = rng.choice(TEXTS)
        if len(sql) > 300:
            start = rng.randrange(len(sql) - 200)
            sql = sql[start : start + 200]
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            place = rng.randrange(len(sql) + 1)
            sql = sql[:place] + rng.choice(PUT_IN) + sql[place + rng.choice((0, 0, 1, 3)) :]
        if (found := _plain(sql)) is not None:
            plain += 1
            assert found == one_by_one(sql), sql
    assert plain > 400


def test_whole_queries_are_plain() -> None:
    assert all(_plain(sql) == _one_by_one(sql) for sql in TEXTS[: len(queries.NUMBERS)])
