"""What pages, docstrings and comments name is there: names between single backticks, paths, options of commands."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("[!_]*/*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
_FOLDERS = ("gquery", "tpch", "tools", "tests", "benchmarks")
CODE = [p for f in _FOLDERS for p in sorted((ROOT / f).rglob("*.py")) if p != Path(__file__).resolve()]
LACKING = ROOT / "docs/reference/duckdb.md"  # its functions are those that gquery does not have
_BLOCK = re.compile(r"```.*?```", re.S)
_TICKED = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_NAME = re.compile(r"[A-Za-z_][\w.]*(?:\(\))?")
_PATH = re.compile(r"[a-z_]\w*(?:/[\w.*]+)+/?")
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]+")
_DOTTED = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)\.(\w+)")
_PLACEHOLDERS = frozenset(("its_name", "GQUERY_NAME"))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _said(text: str) -> list[str]:
    """What stands between single backticks, outside blocks of code."""
    return _TICKED.findall(_BLOCK.sub("", text))


@cache
def _names() -> set[str]:
    """The words of the code, but for those between backticks, and of its paths."""
    found = set(_PLACEHOLDERS)
    for path in CODE:
        found |= _words(_TICKED.sub("", path.read_text()))
        found.update(path.relative_to(ROOT).with_suffix("").parts)
    return found


def _unknown(text: str) -> list[str]:
    """Names between backticks that stand nowhere else: neither in the code nor in an example of the text."""
    examples = _words("".join(_BLOCK.findall(text)))
    return [s for s in _said(text) if _NAME.fullmatch(s) and _words(s) - _names() - examples]


def _leads_nowhere(path: str) -> bool:
    """Whether a path, which may begin in ``gquery`` and leave out ``.py``, leads to no file and no folder."""
    path = path.rstrip("/")
    return not any(next(base.glob(path + end), None) for base in (ROOT, ROOT / "gquery") for end in ("", ".py"))


@cache
def _members() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """By the name of each class and module of gquery the names that it makes, and by that of a class those of its bases."""
    made, bases = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for path in (ROOT / "gquery").rglob("*.py"):
        tree = ast.parse(path.read_text())
        module = ".".join(path.relative_to(ROOT / "gquery").with_suffix("").parts)
        made[module.removesuffix(".__init__")] |= _made(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                made[node.name] |= _made(node)
                bases[node.name].update(ast.unparse(b).partition("[")[0].rpartition(".")[2] for b in node.bases)
    return made, bases


def _made(tree: ast.AST) -> set[str]:
    found = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    found |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return found | {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}


def _lacks(dotted: str) -> bool:
    """Whether ``Class.member`` or ``room.module.member`` names a class or module of gquery, which has no such member."""
    made, bases = _members()
    of, member = dotted.rsplit(".", 1)
    of = of.removeprefix("gquery.")
    if of not in made or f"{of}.{member}" in made:
        return False
    classes, seen = [of], set[str]()
    while classes:
        if (name := classes.pop()) not in seen:
            seen.add(name)
            classes += bases.get(name, ())
    return not any(member in made[name] for name in seen if name in made)


def test_an_unknown_name_is_found() -> None:
    text = "See `lower_join` and `lower_the_join`, ``left``, and\n```\nmade_here\n```\n`made_here`."
    assert _unknown(text) == ["lower_the_join"]
    assert _leads_nowhere("execution/runners") and not _leads_nowhere("execution/runner")


def test_a_member_that_is_not_there_is_found() -> None:
    assert not _lacks("Connection.sql") and not _lacks("gquery.sql.parse.Parsed") and not _lacks("sql.parse")
    assert _lacks("Connection.sequel") and _lacks("sql.parse.Parse")


def test_members_in_docstrings_and_comments() -> None:
    said = [(p, s) for p in CODE for s in _said(p.read_text()) if _DOTTED.fullmatch(s)]
    assert [(p, s) for p, s in said if _lacks(s)] == []


def test_names_in_docstrings_and_comments() -> None:
    assert [(p, names) for p in CODE if (names := _unknown(p.read_text()))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_names_in_pages(page: Path) -> None:
    text = page.read_text()
    assert page == LACKING or _unknown(text) == []
    paths = [s for s in _said(text) if _PATH.fullmatch(s) and _PLACEHOLDERS.isdisjoint(_words(s))]
    assert [s for s in paths if _leads_nowhere(s)] == []


def test_options_in_pages() -> None:
    known = {"--strict"}  # of mypy
    for path in CODE:
        known.update(_OPTION.findall(path.read_text()))
    assert [(p, unknown) for p in PAGES if (unknown := set(_OPTION.findall(p.read_text())) - known)] == []
