"""Our dialect for sqlglot's parser is DuckDB's of the sqlglot that is installed, but for what writes SQL."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.duckdb import DuckDB

from gquery.sql.dialect import GqueryDialect, dialect
from gquery.sql.sqlglot_keywords import TAKEN
from gquery.sql.tokens import _vocabulary
from tests.support.paths import TESTS
from tpch import queries

# of the classes: the first are made for the writing of SQL, or name the class itself
_WRITING = {"Generator", "generator_class", "INVERSE_TIME_MAPPING", "INVERSE_TIME_TRIE", "EXPRESSION_METADATA"}
_THEMSELVES = {"Tokenizer", "tokenizer_class", "jsonpath_tokenizer_class", "to_json_path"}
TEXTS = [
    *[queries.sql(n) for n in queries.NUMBERS],
    *[part for path in sorted((TESTS / "differential").glob("*.sql")) for part in path.read_text().split(";\n")],
]


def _settings(of: type) -> dict[str, object]:
    return {
        name: getattr(of, name) for name in dir(of) if not name.startswith("__") and not callable(getattr(of, name))
    }


def test_its_settings_are_those_of_duckdb() -> None:
    ours, theirs = _settings(GqueryDialect), _settings(DuckDB)
    for name in _WRITING | _THEMSELVES:
        ours.pop(name, None)
        theirs.pop(name, None)
    assert (ours.pop("INDEX_OFFSET"), theirs.pop("INDEX_OFFSET")) == (0, 1)  # the binder counts places itself
    assert ours == theirs
    assert GqueryDialect.parser_class is DuckDB.parser_class


def test_its_tokenizer_has_the_settings_of_duckdb() -> None:
    ours, theirs = _settings(GqueryDialect.Tokenizer), _settings(DuckDB.Tokenizer)
    assert ours.pop("_KEYWORD_TRIE") != theirs.pop("_KEYWORD_TRIE")  # made of the next
    words, others = dict(GqueryDialect.Tokenizer.KEYWORDS), dict(DuckDB.Tokenizer.KEYWORDS)
    assert {k for k in others if k not in words} == {"?::", "??"}  # a parameter and a cast, and two parameters
    ours["KEYWORDS"], theirs["KEYWORDS"] = words, {k: v for k, v in others.items() if k in words}
    assert ours == theirs


def test_words_that_mean_more_than_a_name() -> None:
    """Those of the tokenizer, and the first of its phrases, as far as they are words of our lexer's."""
    found = _vocabulary()
    known = {*found.types, *found.phrases, *found.others}
    assert {w for w in known if re.fullmatch(r"[a-z_]\w*", w)} == TAKEN


def test_texts_have_the_same_tokens_and_trees() -> None:
    theirs = Dialect.get_or_raise("duckdb")
    for sql in TEXTS:
        tokens = theirs.tokenize(sql)
        assert [(t.token_type, t.text, t.start) for t in dialect().tokenize(sql)] == [
            (t.token_type, t.text, t.start) for t in tokens
        ]
        assert _told(dialect(), sql) == _told(theirs, sql), sql


def _told(of: Dialect, sql: str) -> str:
    try:
        return repr(of.parse(sql))
    except Exception as error:
        return str(error)


@pytest.mark.parametrize("path", ["'$.a[0]'", "'/a/0'", "'$.a[#-1]'", "'a'", "1"])
def test_paths_into_json_are_read_alike(path: str) -> None:
    made = exp.Literal(this=path.strip("'"), is_string=path[0] == "'")
    assert dialect().to_json_path(made.copy()) == Dialect.get_or_raise("duckdb").to_json_path(made.copy())


def test_a_query_does_not_import_the_generator_of_duckdb() -> None:
    code = """
import sys, gquery
gquery.connect("python").sql("SELECT a + 1 AS b FROM (VALUES (1)) t(a) WHERE a = 1 ORDER BY b").fetchall()
assert "sqlglot.parsers.duckdb" in sys.modules and "sqlglot.generators.duckdb" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
