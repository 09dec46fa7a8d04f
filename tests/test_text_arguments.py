"""Constants that are written as texts: a function takes a text for a number or a date only where DuckDB does.

There a text that several declarations of a function would take is an error, as which is meant would be a guess.
"""

from __future__ import annotations

import re
from typing import Any

import duckdb
import pytest

import gquery
from gquery.functions import EXAMPLES

_CONSTANT = re.compile(r"(?:DATE|TIMESTAMP) ('[^']*')|(?<![\w'.])(\d+(?:\.\d+)?)(?![\w'.])", re.I)
_OF_A_TYPE = re.compile(r"(INTERVAL|DECIMAL|VARCHAR)\W*(\d+,\s*)?$|::$", re.I)
# what gquery takes all the same: docs/reference/duckdb.md
_KNOWN = ("coalesce(NULL, '2', 3)", "greatest('1', NULL, 3)", "regexp_extract('abc', '(b)(c)', '2')")


def as_texts(sql: str) -> list[str]:
    """The expression with each of its constants written as a text.

    >>> as_texts("mod(7, 2) + 1")
    ["mod('7', 2) + 1", "mod(7, '2') + 1", "mod(7, 2) + '1'"]
    """
    made: list[str] = []
    for found in _CONSTANT.finditer(sql):
        before = sql[: found.start()]
        if before.count("'") % 2 == 0 and not _OF_A_TYPE.search(before):
            made.append(f"{before}{found[1] or repr(found[2])}{sql[found.end() :]}")
    return made


def answer(engine: Any, sql: str) -> Any:
    try:
        return engine.sql(f"SELECT {sql}").fetchall()[0][0]
    except (gquery.Error, duckdb.Error) as error:
        return error


def test_a_text_is_taken_where_duckdb_takes_it() -> None:
    cases = [made for _, sql, _ in EXAMPLES for made in as_texts(sql) if made not in _KNOWN]
    assert len(cases) > 100
    with gquery.connect(device="python") as mine, duckdb.connect(config={"threads": 1}) as theirs:
        for sql in cases:
            got, want = answer(mine, sql), answer(theirs, sql)
            assert not isinstance(got, gquery.InternalError), f"{sql}: {got}"
            if not isinstance(got, gquery.Error):
                assert not isinstance(want, duckdb.Error), f"{sql} is {got!r}: {want}"
                assert got == want or got == pytest.approx(want), sql


@pytest.mark.parametrize("sql", _KNOWN)
def test_what_is_known_is_so_still(sql: str) -> None:
    with gquery.connect(device="python") as mine, duckdb.connect() as theirs:
        assert not isinstance(answer(mine, sql), gquery.Error)
        assert isinstance(answer(theirs, sql), duckdb.Error)
