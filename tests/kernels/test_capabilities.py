"""Who plans for a target, writes its kernels or runs them asks what it can do, and never what it is called."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from gquery.kernels.targets import TARGETS
from gquery.kernels.targets.capabilities import capabilities

PACKAGE = Path(__file__).resolve().parents[2] / "gquery"
ROOMS = ("planner", "operators", "distributed", "execution", "profile")


def test_every_target_says_what_it_can_do() -> None:
    assert [capabilities(name).name for name in TARGETS] == list(TARGETS)


def _is_name(node: ast.AST) -> bool:
    """Whether a target's name stands here, alone or in a collection."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_is_name(e) for e in node.elts)
    return isinstance(node, ast.Constant) and node.value in TARGETS


def comparisons(text: str) -> Iterator[int]:
    """The lines of a module that compare with a target's name."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Compare(left=left, comparators=others) if any(_is_name(n) for n in (left, *others)):
                yield node.lineno
            case ast.MatchValue(value=value) if _is_name(value):
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr="startswith" | "endswith"), args=args) if any(map(_is_name, args)):
                yield node.lineno


@pytest.mark.parametrize("room", ROOMS)
def test_no_name_is_compared(room: str) -> None:
    files = sorted((PACKAGE / room).rglob("*.py"))
    assert files
    found = [f"{path.relative_to(PACKAGE)}:{line}" for path in files for line in comparisons(path.read_text())]
    assert not found


def test_a_comparison_is_found() -> None:
    text = (
        'a == "cuda"\nb in ("cpu", "x")\nmatch c:\n    case "python":\n        pass\nd.startswith("cuda")\nf("cuda")\n'
    )
    assert sorted(comparisons(text)) == [1, 2, 4, 6]
