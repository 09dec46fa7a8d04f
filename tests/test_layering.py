"""Pins who may import whom: a module imports from its own package and from lower layers, never upwards.

Layers are those of the README's picture, lowest first. So kernels never import plans, rules never import operators, and
sql knows logical plans alone. Libraries that need a GPU, and the compiler, are imported in few places, lazily.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "gquery"
MODULES = sorted(PACKAGE.rglob("*.py"))

PLANS = ("planner.logical", "planner.tree", "planner.shared", "planner.proofs", "planner.statistics", "planner.verify")
# A module's layer is that of the longest name here that it is or lies in.
LAYERS: dict[str, int] = {
    name: layer
    for layer, names in enumerate(
        (
            (
                "dtypes",
                "errors",
                "arguments",
                "config",
                "stopwatch",
                "interrupt",
                "nesting",
                "exact",
                "device_faults",
                "recent",
                "arrow_compute",
            ),
            ("expr", "functions"),
            (
                "table",
                "device",
                "arrow",
                "buffers",
                "spread",
                "encode",
                "encode_strings",
                "assemble",
                "assemble_strings",
                "parallel",
                "import_arrow",
                "upload",
                "owned_text",
                "ownership",
                "sources",
                "files",
                "footers",
                "io",
                "io_parquet",
                "io_text",
                "csv_dialect",
                "display",
                "opaque",
                "arrow_names",
                *PLANS,
            ),
            ("kernels", "sql", "planner.rules"),
            ("operators", "planner.optimizer", "planner.physical", "planner.verify_program"),
            ("planner.lower", "planner.pipeline", "planner.explain"),
            ("distributed", "measure"),
            ("execution",),
            (
                "frame",
                "dataframe",
                "session",
                "planned",
                "boundary",
                "startup",
                "readers",
                "file_options",
                "dbapi",
                "output",
                "outlets",
                "result_column",
                "preview",
                "shell",
                "profile",
                "notebook",
                "",
            ),
        ),
        1,
    )
    for name in names
}
LAZY = {"numba", "cupy", "cupyx", "cuda", "pandas", "polars", "duckdb"}
COMPILERS = {"numba", "cupy", "cupyx", "cuda", "llvmlite"}
STRANGERS = 4  # the packages of this layer do not know each other


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(name: str) -> int:
    name = "planner.lower" if name.startswith("planner.lower_") else name
    while name not in LAYERS:
        name, _, last = name.rpartition(".")
        assert last, "every module lies in a layer"
    return LAYERS[name]


def room(name: str) -> str:
    return "planner.rules" if name.startswith("planner.rules") else name.split(".")[0]


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every imported module, and whether that happens when this one is loaded; imports for types alone do not count."""

    def visit(node: ast.AST, eager: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, eager) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}: imports are absolute"
                yield from _names(child, eager)
            elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            else:
                yield from visit(child, eager and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    yield from visit(ast.parse(path.read_text()), True)


def _names(node: ast.ImportFrom, eager: bool) -> Iterator[tuple[str, bool]]:
    """``from gquery.planner import logical`` imports the module logical, ``from gquery.expr import Expr`` expr."""
    assert node.module is not None
    folder = ROOT / Path(*node.module.split("."))
    for alias in node.names:
        inner = folder / alias.name
        is_module = inner.with_suffix(".py").exists() or inner.is_dir()
        yield (f"{node.module}.{alias.name}" if is_module else node.module), eager


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_go_downwards(path: Path) -> None:
    own = module_name(path)
    for imported, _ in imports(path):
        if imported.split(".")[0] != "gquery":
            continue
        other = imported.removeprefix("gquery").lstrip(".")
        text = f"{own} (layer {layer(own)}) imports {other} (layer {layer(other)})"
        assert layer(other) <= layer(own), text
        assert layer(own) != STRANGERS or layer(other) != STRANGERS or room(own) == room(other), text


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_compilers_are_imported_by_targets_and_device_alone(path: Path) -> None:
    own = module_name(path)
    places = tuple(f"kernels.targets.{name}" for name in ("cpu", "cuda", "cubin", "intrinsics"))
    allowed = own == "device" or own.startswith(places)
    for imported, eager in imports(path):
        top = imported.split(".")[0]
        assert allowed or top not in COMPILERS, f"{own} imports {imported}"
        assert allowed or not (eager and top in LAZY), f"{own} imports {imported} when it is loaded"


def test_import_is_light() -> None:
    """``import gquery`` brings neither a compiler nor a GPU library, and answers a first query without them."""
    code = (
        "import sys, gquery; gquery.connect(device='python').sql('SELECT 1').fetchall();"
        f"print([m for m in {sorted(LAZY)} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
