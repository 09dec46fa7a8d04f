"""Files and functions stay small enough to read in one go."""

from __future__ import annotations

import ast
import statistics
from pathlib import Path

import pytest

from tests.support.paths import ROOT

FILES = sorted((ROOT / "gquery").rglob("*.py"))
MOST_LINES, MOST_LINES_OF_FUNCTION, MEDIAN = 400, 60, 150
MOST_PARAMETERS = 6
MORE_PARAMETERS = {  # kernels pass registers: there are no records in them
    "connect": "what a user says of a connection, by keywords",
    "radix_partition": "what it moves, where to, and how it is cut",
    "range_i128": "each bound is two words",
}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_is_short(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= MOST_LINES, f"{lines} lines: split it where it has a seam"


def test_most_files_are_much_shorter() -> None:
    assert statistics.median(len(p.read_text().splitlines()) for p in FILES) < MEDIAN


def test_functions_are_short() -> None:
    long = {
        f"{path.name}: {node.name}": node.end_lineno - node.lineno + 1
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None
    }
    assert {name: lines for name, lines in long.items() if lines > MOST_LINES_OF_FUNCTION} == {}


def test_functions_have_few_parameters() -> None:
    many = {
        node.name
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and len(_parameters(node)) > MOST_PARAMETERS
    }
    assert many == set(MORE_PARAMETERS)


def _parameters(node: ast.FunctionDef) -> list[str]:
    """The names of the parameters, those of an object or class itself aside."""
    every = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return every[1:] if every[:1] in (["self"], ["cls"]) else every
