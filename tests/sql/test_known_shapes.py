"""Shapes that are found without lexing are those that the lexer finds, or none is found."""

from __future__ import annotations

import random
import re

import pytest

import gquery
from gquery import tuning
from gquery.errors import Error
from gquery.sql.cut import Shape, shape_of
from gquery.sql.known_shapes import KnownShapes
from gquery.sql.lexer import lex
from tests.fuzzing.grammar import Grammar
from tests.fuzzing.tape import Tape
from tpch import parameters, queries

_CONSTANT = re.compile(r"('[^']*'|\d+(?:\.\d+)?)")
_VALUES = [
    "0", "7", "123456789012", "1.5", "1.", ".5", "1e3", "1e-3", "1E+2", ".5e1", "1_000", "'x'", "''", "'it''s'", "'--'", "'/*'",
    "'a\nb'", "'\"'", "'$$'", "'é'", "'5'", "'\\'", "-4", "+4", "0x1F", "1__0", "1e", "1..2", "5a", "٣", "1٣", "'open", "'a''",
]  # fmt: skip
_PARTS = [
    *_VALUES, "a", "e", "E", "x", "date", "_1", "a1", "$1", "$", "$$", "$a$", "?", "?1", '"q"', '"a""b"', '"1"', '"\'"', '"', "'",
    ".", "..", ",", "(", ")", "[", "]", ":", "::", ":=", "=>", "-", "--", "/*", "*/", "/", "//", "**", "+", "=", "<>", "||", "~",
    "#", "@", "%", ";", "{", "}", "é", "\u00a0", " ", " ", " ", "\n", "\t", "\\", "\x00", "\x7f",
]  # fmt: skip


def _lexed(sql: str) -> Shape | None:
    try:
        return shape_of(lex(sql), sql)
    except Error:
        return None


def _asked(known: KnownShapes, sql: str) -> bool:
    """Whether the shape of a text is known, which is the lexer's then; it is known from here on where the lexer has one."""
    wanted = _lexed(sql)
    try:
        found = known.find(sql)
    except Error:  # of a number too large, which the lexer's shape has not, either
        found = None
    if found is not None:
        assert wanted is not None, repr(sql)
        assert (found.key, found.constants, found.starts) == (wanted.key, wanted.constants, wanted.starts), repr(sql)
    if wanted is not None:
        known.keep(sql, wanted)
    return found is not None


def _varied(sql: str, odds: float, rng: random.Random) -> str:
    """The text with values of all kinds in place of some of its constants."""
    parts = _CONSTANT.split(sql)
    for n in range(1, len(parts), 2):
        if rng.random() < odds:
            parts[n] = rng.choice(_VALUES)
    return "".join(parts)


@pytest.mark.parametrize(
    ("first", "second", "is_found"),
    [
        ("SELECT 1", "SELECT 2", True),
        ("SELECT 1", "SELECT 2.5", False),  # of another type
        ("SELECT 1", "SELECT '2'", False),
        ("SELECT 'a'", "SELECT 'it''s -'", True),
        ("SELECT 'a'", "SELECT 'a--b'", False),  # it might be a comment
        ("SELECT a - 1", "SELECT a -1", False),
        ("SELECT a -1", "SELECT a -22", True),
        ('SELECT "a1" + 1', 'SELECT "a1" + 2', True),
        ('SELECT "1"', 'SELECT "2"', False),
        ("SELECT a1 + 1", "SELECT a2 + 1", False),
        ("SELECT 1e3", "SELECT 25e-1", True),
        ("SELECT ?.5", "SELECT ?5", False),
        ("SELECT ?1", "SELECT ?2", False),
        ("SELECT $1", "SELECT $2", False),
        ("SELECT a .5", "SELECT a 5", False),
        ("SELECT 5", "SELECT ٣", False),  # a letter to the lexer
        ("SELECT e'5'", "SELECT e'6'", False),
        ("SELECT 'a' b", "SELECT 'a'' b", False),
        ("SELECT 'a' 5", "SELECT 'a' 'b'", False),
        ("SELECT date'2020-01-01'", "SELECT date'2021-01-01'", True),
    ],
)
def test_what_is_known(first: str, second: str, is_found: bool) -> None:
    known = KnownShapes()
    assert not _asked(known, first)
    assert _asked(known, second) == is_found


@pytest.mark.parametrize("seed", range(8))
def test_texts_of_all_parts(seed: int) -> None:
    """Short texts of a few parts each: many of them are cut alike."""
    rng = random.Random(seed)
    known = KnownShapes()
    found = 0
    for _ in range(2500):
        parts = [rng.choice(_PARTS) for _ in range(rng.randint(1, 5))]
        for _ in range(4):
            found += _asked(known, "".join(parts))
            at = rng.randrange(len(parts))
            parts[at] = rng.choice(_VALUES if parts[at] in _VALUES else _PARTS)
    assert found > 200


@pytest.mark.parametrize("seed", range(4))
def test_texts_with_other_constants(seed: int) -> None:
    """Queries of TPC-H and of the fuzzer, with values of all kinds in place of their constants."""
    rng = random.Random(seed)
    texts = [queries.sql(n) for n in queries.NUMBERS]
    texts += [Grammar(Tape(1000 * seed + n)).statement() for n in range(100)]
    known = KnownShapes()
    found = 0
    for sql in texts:
        _asked(known, sql)
        for _ in range(6):
            odds = rng.choice((0.05, 0.3, 1))
            found += _asked(known, _varied(sql, odds, rng))
    assert found > 30


def test_random_parameters_are_known() -> None:
    known = KnownShapes()
    for number in queries.NUMBERS:
        for seed in range(4):
            found = _asked(known, parameters.sql(number, seed, 0.01))
        assert found, number


def test_as_many_are_kept_as_plans() -> None:
    known = KnownShapes()
    for n in range(tuning.memory.plans + 1):
        _asked(known, f"SELECT a{n} + 1")
    assert not _asked(known, "SELECT a0 + 2")
    assert _asked(known, f"SELECT a{tuning.memory.plans} + 2")


def test_settings_and_parameters_are_no_part_of_it() -> None:
    """The same text with other settings or parameters is another question."""
    connection = gquery.connect()
    assert connection.sql("SELECT 1 + $a AS v", {"a": 2}).fetchall() == [(3,)]
    assert connection.sql("SELECT 1 + $a AS v", {"a": 2.5}).fetchall() == [(3.5,)]
    connection.sql("SET replay = false")
    assert connection.sql("SELECT 7 + $a AS v", {"a": 5}).fetchall() == [(12,)]
    assert connection.sql("SELECT 1.5 + $a AS v", {"a": 5}).fetchall()[0][0] == 6.5
