"""Modules of functions that are imported when one of their names is first asked for, whoever asks and in whichever way."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gquery
from gquery.functions.registry import _LATER, _REST, AT_ONCE, RESOLVERS

PACKAGE = Path(gquery.__file__).parent
BEGIN = """
import sys, gquery
from gquery.functions import registry
db = gquery.connect("python")
assert not registry._is_whole and "gquery.functions.strings" not in sys.modules
"""


def told(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", BEGIN + code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_names_that_are_answered_at_once() -> None:
    """What the others declare is nothing of theirs, and changes neither their order nor their signatures."""
    code = """
from gquery.functions.registry import AT_ONCE, LIST_RESOLVERS, RESOLVERS, SIGNATURES, declare_all
tables = (RESOLVERS, LIST_RESOLVERS, SIGNATURES)
before = {(n, k): list(t.get(k, ())) for n, t in enumerate(tables) for k in AT_ONCE}
declare_all()
print(before == {(n, k): list(t.get(k, ())) for n, t in enumerate(tables) for k in AT_ONCE})
"""
    assert told(code) == "True"
    assert RESOLVERS.keys() >= AT_ONCE


def test_nobody_else_imports_them() -> None:
    """In which order they are imported decides which declaration of a name is tried first."""
    rest = {f"gquery.functions.{name}" for name in _REST}
    behind = rest | {f"gquery.functions.{name}" for name in _LATER}
    found = []
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                imported = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)} & rest
                found += [(name, other) for other in imported if name not in behind]
    assert found == []


ASKED = [
    ("db.sql(\"SELECT substring('abc', 2), [1, 2][1], {'a': 3}.a\").fetchall()", "[('bc', 1, 3)]"),
    ("db.sql(\"SELECT year(DATE '2024-01-02') + 1, DATE '2024-01-31' + make_time(10, 0, 0)\").fetchall()",
     "[(2025, datetime.datetime(2024, 1, 31, 10, 0))]"),
    ("db.sql(\"SELECT 'a' || 'b', [1] || [2], -abs(-3), 7 // 2, 'x' IN ('x')\").fetchall()", "[('ab', [1, 2], -3, 3, True)]"),
    ("db.sql(\"SELECT json_extract('[1, 2]', '$[1]')\").fetchall()", "[('2',)]"),
    ("registry.FUNCTIONS['reverse'].name, registry.FUNCTIONS.get('no such')", "reverse None"),
    ("registry.FUNCTIONS.get('reverse').name, registry.is_declared('sqrt'), registry.is_declared('no')", "reverse True False"),
    ("'reverse' in dir(gquery.fn), 'reverse' in dir(gquery.col('a')), callable(gquery.fn.sin)", "True True True"),
]  # fmt: skip
REFUSED = [
    ("db.sql('SELECT sqrrt(4)')", 'Did you mean "sqrt"'),
    ("db.sql('SELECT sqrt(4) OVER ()')", "sqrt is no aggregate and no window function"),
    ("db.sql('SELECT sqrt(1, 2)')", "candidate: sqrt(DOUBLE) -> DOUBLE"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "answer"), ASKED)
def test_who_asks_first_is_answered(asked: str, answer: str) -> None:
    assert told(f"print({asked})") == answer


@pytest.mark.parametrize(("asked", "said"), REFUSED)
def test_who_asks_first_is_told(asked: str, said: str) -> None:
    code = f"try:\n    {asked}\nexcept gquery.Error as e:\n    print(e)"
    assert said in told(code)
