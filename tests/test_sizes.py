"""Files and functions stay small enough to read in one go."""

from __future__ import annotations

import ast
import statistics

from tests.support.paths import ROOT

FILES = sorted((ROOT / "gquery").rglob("*.py"))
MOST_LINES, MOST_LINES_OF_FUNCTION, MEDIAN = 400, 60, 150
MOST_PARAMETERS = 6
MORE_PARAMETERS = {  # kernels pass registers: there are no records in them
    "connect": "what a user says of a connection, by keywords",
    "radix_partition": "what it moves, where to, and how it is cut",
    "range_i128": "each bound is two words",
}


def test_files_are_short() -> None:
    lines = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in FILES}
    long = {name: count for name, count in lines.items() if count > MOST_LINES}
    assert long == {}, "split it where it has a seam"
    assert statistics.median(lines.values()) < MEDIAN


def test_functions_are_short_and_have_few_parameters() -> None:
    lines: dict[str, int] = {}
    many: set[str] = set()
    for path in FILES:  # one after the other: the collector would go through the nodes of all that are kept
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                lines[f"{path.name}: {node.name}"] = (node.end_lineno or 0) - node.lineno + 1
                many |= {node.name} if len(_parameters(node)) > MOST_PARAMETERS else set()
    assert {name: count for name, count in lines.items() if count > MOST_LINES_OF_FUNCTION} == {}
    assert many == set(MORE_PARAMETERS)


def _parameters(node: ast.FunctionDef) -> list[str]:
    """The names of the parameters, those of an object or class itself aside."""
    every = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return every[1:] if every[:1] in (["self"], ["cls"]) else every
