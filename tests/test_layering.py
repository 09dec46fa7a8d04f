"""Pins who may import whom: a module imports from its own room and from rooms below, never upwards.

So kernels never import plans, the planner never imports operators, and imports for types alone count too. Libraries that
need a GPU, and the compiler, are imported in few places, lazily.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Literal

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "gquery"
MODULES = sorted(PACKAGE.rglob("*.py"))
When = Literal["eager", "lazy", "types"]

# Lowest first, one layer a room: files of the package's root are rooms of their own.
LAYERS = (
    "errors", "settings", "tuning", "runtime", "expression", "device", "functions", "columns", "io", "kernels", "planner", "sql",
    "operators", "result", "distributed", "execution", "profile", "api", "", "shell", "__main__",
)  # fmt: skip
UPWARD = {
    (
        "",
        "shell",
    ): "``%load_ext gquery`` calls the package, the cell magic stands beside the shell that it shares code with",
    ("expression", "planner"): "a subquery's expression holds its plan, which it never looks into (a type alone)",
}
LAZY = {"numba", "cupy", "cupyx", "cuda", "pandas", "polars", "duckdb"}
COMPILERS = {"numba", "cupy", "cupyx", "cuda", "llvmlite"}
STRANGERS = {("sql", "kernels"), ("operators", "sql"), ("execution", "sql"), ("operators", "io"), ("kernels", "io")}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(name: str) -> str:
    return name.split(".")[0]


def imports(path: Path) -> Iterator[tuple[str, When]]:
    """Every imported module, and when: as this one is loaded, as a function runs, or never (for types alone)."""

    def visit(node: ast.AST, when: When) -> Iterator[tuple[str, When]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, when) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}: imports are absolute"
                yield from _names(child, when)
            elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                yield from visit(child, "types")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from visit(child, "lazy")
            else:
                yield from visit(child, when)

    yield from visit(ast.parse(path.read_text()), "eager")


def _names(node: ast.ImportFrom, when: When) -> Iterator[tuple[str, When]]:
    """``from gquery.planner import logical`` imports the module logical, ``from gquery.expression.expr import Expr`` expr."""
    assert node.module is not None
    folder = ROOT / Path(*node.module.split("."))
    for alias in node.names:
        inner = folder / alias.name
        is_module = inner.with_suffix(".py").exists() or inner.is_dir()
        yield (f"{node.module}.{alias.name}" if is_module else node.module), when


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_go_downwards(path: Path) -> None:
    own = room(module_name(path))
    for imported, _ in imports(path):
        if imported.split(".")[0] != "gquery":
            continue
        other = room(imported.removeprefix("gquery").lstrip("."))
        if own == other or (own, other) in UPWARD:
            continue
        assert LAYERS.index(other) < LAYERS.index(own), (
            f"{module_name(path)} ({own}) imports {imported}, which is above"
        )
        assert (own, other) not in STRANGERS, f"{own} does not know {other}: {module_name(path)} imports {imported}"


def test_upward_imports_are_there() -> None:
    """What is allowed and no longer used is struck from the list."""
    found = {
        (room(module_name(path)), room(imported.removeprefix("gquery").lstrip(".")))
        for path in MODULES
        for imported, _ in imports(path)
        if imported.split(".")[0] == "gquery"
    }
    assert set(UPWARD) <= found and len(UPWARD) < 5


def test_no_circle_of_modules() -> None:
    """No module imports, when it is loaded, one that imports it: each can be read, and loaded, from the ground up."""
    graph = {
        module_name(path): {
            name.removeprefix("gquery").lstrip(".")
            for name, kind in imports(path)
            if kind == "eager" and name.split(".")[0] == "gquery"
        }
        for path in MODULES
    }
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_compilers_are_imported_by_targets_and_device_alone(path: Path) -> None:
    own = module_name(path)
    places = tuple(f"kernels.targets.{name}" for name in ("cpu", "cuda", "cubin", "intrinsics"))
    allowed = own == "device.device" or own.startswith(places)
    for imported, when in imports(path):
        top = imported.split(".")[0]
        if when == "types":
            continue
        assert allowed or top not in COMPILERS, f"{own} imports {imported}"
        assert allowed or not (when == "eager" and top in LAZY), f"{own} imports {imported} when it is loaded"


def test_import_is_light() -> None:
    """``import gquery`` brings neither a compiler nor a GPU library, and answers a first query without them."""
    code = (
        "import sys, gquery; gquery.connect(device='python').sql('SELECT 1').fetchall();"
        f"print([m for m in {sorted(LAZY)} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
