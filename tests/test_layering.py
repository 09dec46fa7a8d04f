"""Pins who may import whom: a module imports from its own room and from rooms below, never upwards.

So kernels never import plans, the planner never imports operators, and imports for types alone count too (`tools.rooms`
names the layers). Libraries that need a GPU, and the compiler, are imported in few places, lazily.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from tests.support.paths import ROOT
from tools.rooms import (
    LAYERS,
    MODULES,
    PICTURE,
    UPWARD,
    arrows,
    arrows_from_outside,
    circles,
    imports,
    module_name,
    modules,
    picture,
    room,
    rooms_of,
)

LAZY = {"numba", "cupy", "cupyx", "cuda", "pandas", "polars", "duckdb"}
MOST_ARROWS, MOST_ARROWS_OF_ALL = 127, 153  # 13 of them are the cluster's: it packs what other rooms have made
CIRCLES = {  # a module of each
    "api.connection": "a connection makes relations, a relation asks its connection",
    "device.device": "a device copies long arrays through page-locked buffers, which are the device's",
    "expression.expr": "a subquery's expression holds its plan",
    "kernels.render": "constants are evaluated by a kernel, and a kernel is rendered from constants",
    "shell.shell": "the shell runs dot commands, which are handed the shell",
}
COMPILERS = {"numba", "cupy", "cupyx", "cuda", "llvmlite"}
STRANGERS = {("sql", "kernels"), ("operators", "sql"), ("execution", "sql"), ("operators", "io"), ("kernels", "io")}


def test_imports_go_downwards() -> None:
    assert [said for path in MODULES for said in _wrong_rooms(path)] == []


def _wrong_rooms(path: Path) -> Iterator[str]:
    own = room(module_name(path))
    for other, imported in rooms_of(path):
        if own == other or (own, other) in UPWARD:
            continue
        text = f"{module_name(path)} ({own}) imports {imported}"
        if LAYERS.index(other) >= LAYERS.index(own):
            yield f"{text}, which is above"
        if (own, other) in STRANGERS:
            yield f"{text}: {own} does not know {other}"


def test_upward_imports_are_there() -> None:
    """What is allowed and no longer used is struck from the list."""
    graph = arrows()
    assert all(b in graph[a] for a, b in UPWARD) and len(UPWARD) < 5


def test_arrows_are_few() -> None:
    """Of the package, and with the folders beside it: what one room knows of others can be held in mind."""
    inside, outside = arrows(), arrows_from_outside()
    assert sum(map(len, inside.values())) <= MOST_ARROWS
    assert sum(map(len, (inside | outside).values())) <= MOST_ARROWS_OF_ALL


def test_no_circle_of_modules() -> None:
    """No module imports, when it is loaded, one that imports it: each can be read, and loaded, from the ground up."""
    TopologicalSorter(modules()).prepare()  # raises CycleError, which names the circle


def test_circles_are_known() -> None:
    """Modules that import each other inside functions, or for types alone, are few and each has a reason."""
    for circle in circles():
        assert len(circle & set(CIRCLES)) == 1, f"imports at any time go in a circle: {sorted(circle)}"
    assert len(circles()) == len(CIRCLES), "what is untied is struck from the list"


def test_the_picture_of_the_rooms_is_true() -> None:
    """`python -m tools.rooms --write` draws it anew."""
    if os.environ.get("GQUERY_UPDATE_GOLDEN"):
        PICTURE.write_text(picture())
    assert PICTURE.read_text() == picture(), "`python -m tools.rooms --write` draws it anew"


def test_compilers_are_imported_by_targets_and_device_alone() -> None:
    assert [said for path in MODULES for said in _wrong_libraries(path)] == []


def _wrong_libraries(path: Path) -> Iterator[str]:
    own = module_name(path)
    places = tuple(f"kernels.targets.{name}" for name in ("cpu", "cuda", "cubin", "intrinsics", "user_entry"))
    allowed = own in ("device.device", "device.arena", "kernels.lowering.intrinsics") or own.startswith(places)
    for imported, when in imports(path):
        top = imported.split(".")[0]
        if when == "types" or allowed:
            continue
        if top in COMPILERS:
            yield f"{own} imports {imported}"
        if when == "eager" and top in LAZY:
            yield f"{own} imports {imported} when it is loaded"


def test_import_is_light() -> None:
    """``import gquery`` brings neither a compiler nor a GPU library, and answers a first query without them."""
    code = (
        "import sys, gquery; gquery.connect(device='python').sql('SELECT 1').fetchall();"
        f"print([m for m in {sorted(LAZY)} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
