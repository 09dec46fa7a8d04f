"""Arguments of other types: a function takes a text for a number, or a date for a text, only where DuckDB does.

The cases are the functions' examples with each constant written as a text, and with columns of other types in its place.
There a text that several declarations of a function would take is an error, as which is meant would be a guess. A run takes
a share of the columns; ``GQUERY_VALUES=all`` (``make values``) takes them all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import gquery
from gquery.functions import EXAMPLES

STEP = 1 if os.environ.get("GQUERY_VALUES") == "all" else 6
TABLE = """CREATE TABLE t AS SELECT 2::INTEGER AS i, 1.5::DOUBLE AS f, 1.25::DECIMAL(5, 2) AS d, 'ab' AS s,
DATE '2020-01-02' AS dt, TIMESTAMP '2020-01-02 03:04:05' AS ts, true AS b"""
_CONSTANT = re.compile(r"(?:DATE|TIMESTAMP) ('[^']*')|(?<![\w'.])(\d+(?:\.\d+)?)(?![\w'.])|('[^']*')", re.I)
_OF_A_TYPE = re.compile(r"(INTERVAL|DECIMAL|VARCHAR)\W*(\d+,\s*)?$|::$", re.I)
# what gquery takes all the same: docs/reference/duckdb.md
_KNOWN = (
    "coalesce(NULL, '2', 3)",
    "greatest('1', NULL, 3)",
    "regexp_extract('abc', '(b)(c)', '2')",
    "regexp_extract('abc', '(b)(c)', i)",
    "strftime(DATE '1995-03-17', s)",
    "try_strptime('x', s)",
)


def as_texts(sql: str) -> Iterator[str]:
    """The expression with each of its numbers, dates and timestamps written as a text.

    >>> list(as_texts("mod(7, 2) + 1"))
    ["mod('7', 2) + 1", "mod(7, '2') + 1", "mod(7, 2) + '1'"]
    """
    for before, found, behind in _constants(sql):
        if not found[3]:
            yield f"{before}{found[1] or repr(found[2])}{behind}"


def as_columns(sql: str) -> Iterator[str]:
    """The expression with each of its constants replaced by a column of each type."""
    for before, _, behind in _constants(sql):
        for column in ("i", "f", "d", "s", "dt", "ts", "b"):
            yield f"{before}{column}{behind}"


def _constants(sql: str) -> Iterator[tuple[str, re.Match[str], str]]:
    for found in _CONSTANT.finditer(sql):
        before = sql[: found.start()]
        if not _OF_A_TYPE.search(before):
            yield before, found, sql[found.end() :]


def answer(engine: Any, sql: str) -> Any:
    try:
        return engine.sql(f"SELECT {sql} FROM t").fetchall()[0][0]
    except (gquery.Error, duckdb.Error) as error:
        return error


@pytest.fixture
def engines() -> Iterator[tuple[Any, Any]]:
    with gquery.connect(device="python") as mine, duckdb.connect(config={"threads": 1}) as theirs:
        mine.execute(TABLE)
        theirs.execute(TABLE)
        yield mine, theirs


@pytest.mark.parametrize("made", [as_texts, as_columns])
def test_an_argument_is_taken_where_duckdb_takes_it(made: Any, engines: tuple[Any, Any]) -> None:
    cases = list(dict.fromkeys(c for _, sql, _ in EXAMPLES for c in made(sql) if c not in _KNOWN))
    assert len(cases) > 100
    for sql in cases[:: STEP if made is as_columns else 1]:
        got, want = (answer(e, sql) for e in engines)
        assert not isinstance(got, gquery.InternalError), f"{sql}: {got}"
        if not isinstance(got, gquery.Error):
            assert not isinstance(want, duckdb.Error), f"{sql} is {got!r}: {want}"
            assert got == want or got == pytest.approx(want), sql


@pytest.mark.parametrize("sql", _KNOWN)
def test_what_is_known_is_so_still(sql: str, engines: tuple[Any, Any]) -> None:
    mine, theirs = (answer(e, sql) for e in engines)
    assert not isinstance(mine, gquery.Error) and isinstance(theirs, duckdb.Error)
