"""Regular expressions are RE2's, as in DuckDB: patterns and subjects of a generator, compared with it.

Some three hundred calls run here; ``GQUERY_REGEX=4000`` takes as many patterns, of five calls each.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

import gquery
from gquery.errors import DataError
from tests.support.harness import assert_error, assert_same

COUNT = int(os.environ.get("GQUERY_REGEX", "60"))
SUBJECTS = 12
_ATOMS = (
    "a", "b", "ab", ".", "é", "[ab]", "[^a]", r"\d", r"\w", r"\s", r"\.", "(a)", "(b|c)", "(?:ab)", "(?P<x>a|é)", "(?i)B",
    r"\Qa.b\E", "[[:alpha:]]", "[]a]", r"[\]b]", r"\x61", r"\p{L}", "^", "$", r"\b", "a{2}", "(a(b)?)", "", "(?s).", "x|",
)  # fmt: skip
_REPEATS = ("", "", "", "*", "+", "?", "*?", "+?", "{1,2}")
_REWRITES = ("", "x", "[\\0]", "<\\1>", "\\2\\1", "\\", "\\q", "\\\\", "é$1")
_OPTIONS = ("", "i", "s", "c", "m", "g", "gi", "l", "n", "p", "is", "ci")


def pattern(rng: random.Random) -> str:
    """A pattern; one in ten is broken."""
    made = "".join(rng.choice(_ATOMS) + rng.choice(_REPEATS) for _ in range(rng.randint(1, 4)))
    return made + rng.choice(("(", "[", ")", "\\", "**", "(?<")) if rng.random() < 0.1 else made


def subject(rng: random.Random) -> str | None:
    if rng.random() < 0.1:
        return None
    return "".join(rng.choice("aabbcAB é.1 \n漢x]") for _ in range(rng.randint(0, 7)))


def calls(rng: random.Random) -> Iterator[str]:
    """Calls of each function with one pattern."""
    p, new, options = (s.replace("'", "''") for s in (pattern(rng), rng.choice(_REWRITES), rng.choice(_OPTIONS)))
    plain = options.replace("g", "")
    yield f"regexp_matches(s, '{p}', '{plain}')"
    yield f"regexp_full_match(s, '{p}')"
    yield f"s ~ '{p}'"
    yield f"regexp_replace(s, '{p}', '{new}', '{options}')"
    yield f"regexp_extract(s, '{p}', {rng.randint(0, 3)})"


def test_random_patterns_match_as_in_duckdb() -> None:
    rng = random.Random(COUNT)
    with gquery.connect(device="python") as engine, duckdb.connect(config={"threads": 1}) as oracle:
        for _ in range(COUNT):
            table = pa.table({"s": pa.array([subject(rng) for _ in range(SUBJECTS)], pa.string())})
            engine.register("t", table)
            oracle.register("t", table)
            for sql in calls(rng):
                want: object
                try:
                    want = [row[0] for row in oracle.execute(f"SELECT {sql} FROM t").fetchall()]
                except duckdb.Error:
                    with pytest.raises(DataError):
                        engine.sql(f"SELECT {sql} FROM t").fetchall()
                    continue
                got = [row[0] for row in engine.sql(f"SELECT {sql} FROM t").fetchall()]
                assert got == want, sql


_ANCHORED = (
    "^a", "^a*", "^", "^^a", "^(a|b)+c?", "^a|b", "^(?:a|b)|c", "^(a)(b)?$", "^[|]a", r"^a\|b", r"^\(a|b", r"^\Qa|\E",
    "^*a", "^?a", "^{0,1}b", r"\Aa", r"\A*a", "(?m)^a", "(?m:^a)", "^a(?m)^b", "^a\n(?m:^b)", "(?i)^A", "(?s)^a.",
    "^(?i:A|B)", "^a)|(b", "^[^]|]b|a", "(^a|b)", "^a.*$", r"^\s*(a+)", "^$", "^(?P<m>a)", "^(b|^a)",
)  # fmt: skip


@pytest.mark.parametrize("options", ["", "i", "s", "c", "m", "l", "g"])
def test_the_first_match_of_patterns_with_anchors(options: str) -> None:
    rng = random.Random(7)
    made = ["".join(rng.choice("aabc|\n (") for _ in range(rng.randint(0, 6))) for _ in range(60)]
    table = pa.table({"s": pa.array([*made, "a\nb", "aa", "", None])})
    with gquery.connect(device="python") as engine, duckdb.connect(config={"threads": 1}) as oracle:
        engine.register("t", table)
        oracle.register("t", table)
        for p in _ANCHORED:
            for new in ("<\\0>", "\\1\\1") if options in ("", "g") else ("<\\0>",):
                sql = f"SELECT regexp_replace(s, '{p}', '{new}', '{options}') FROM t"
                try:
                    want = oracle.execute(sql).fetchall()
                except duckdb.Error:
                    with pytest.raises(DataError):
                        engine.sql(sql).fetchall()
                    continue
                assert engine.sql(sql).fetchall() == want, sql


def test_patterns_may_be_columns() -> None:
    tables = {
        "t": pa.table(
            {
                "s": ["aab", "xyz", None, "b", "Ä"],
                "p": ["a+", "^y", "a", None, "(?i)ä"],
                "n": ["-", "\\0", "", "x", "y"],
            }
        )
    }
    assert_same(
        "SELECT s, regexp_matches(s, p), regexp_replace(s, p, n, 'g'), regexp_extract(s, p), s ~ p FROM t", tables
    )
    assert_same("SELECT regexp_matches('aab', p), s SIMILAR TO 'a+b|x.z' FROM t", tables)


def test_no_pattern_takes_long() -> None:
    subjects = pa.table({"s": ["a" * 5000 + "!"] * 20})
    with gquery.connect(device="python") as engine:
        engine.register("t", subjects)
        start = time.perf_counter()
        assert engine.sql("SELECT count(*) FROM t WHERE regexp_matches(s, '(a+)+$')").fetchall() == [(0,)]
        assert time.perf_counter() - start < 5


def test_a_pattern_that_is_none_is_one_error() -> None:
    tables = {"t": pa.table({"s": ["a", "b"], "p": ["a", "("]})}
    assert_error("SELECT regexp_matches(s, '(') FROM t", tables, DataError, "missing )")
    assert_error("SELECT regexp_matches(s, p) FROM t", tables, DataError, "missing )")
    assert_error("SELECT regexp_matches(s, 'a', 'z') FROM t", tables, DataError, "option")
    assert_error("SELECT regexp_extract(s, 'a', 12) FROM t", tables, DataError, "0 to 9")
