"""The rooms of the package, who imports whom among them, and their picture in the docs.

    python -m tools.rooms            rooms, arrows, upward arrows, circles, and the rooms that each one imports
    python -m tools.rooms --write    docs/screens/rooms.svg anew

A room is a folder of ``gquery`` or a module of its root; the folders beside it that are not tests count as rooms, too. An arrow
is one room's import of another, whenever it happens and for types alone too. The picture is of the package alone, and leaves out
arrows that a longer way implies.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Literal, get_args

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "gquery"
PICTURE = ROOT / "docs" / "screens" / "rooms.svg"
MODULES = sorted(PACKAGE.rglob("*.py"))
When = Literal["eager", "lazy", "types"]
EAGER: tuple[When, ...] = ("eager",)

# Lowest first, one layer a room: files of the package's root are rooms of their own.
LAYERS = (
    "errors", "tuning", "runtime", "settings", "expression", "device", "functions", "columns", "io", "kernels", "planner", "sql",
    "operators", "result", "distributed", "execution", "cluster", "profile", "api", "", "shell", "__main__",
)  # fmt: skip
OUTSIDE = ("tpch", "benchmarks", "tools")
UPWARD = {
    ("", "shell"): "``%load_ext gquery`` calls the package; the cell magic stands beside the shell, whose code it uses",
    ("expression", "planner"): "a subquery's expression holds its plan, which it never looks into (a type alone)",
}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(name: str) -> str:
    return name.split(".")[0]


@cache
def imports(path: Path) -> tuple[tuple[str, When], ...]:
    """Every imported module, and when: as this one is loaded, as a function runs, or never (for types alone)."""

    def visit(node: ast.AST, when: When) -> Iterator[tuple[str, When]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, when) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}: imports are absolute"
                yield from _names(child, when)
            elif isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
                yield from visit(child, "types")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from visit(child, "lazy")
            else:
                yield from visit(child, when)

    return tuple(visit(ast.parse(path.read_text()), "eager"))


def _names(node: ast.ImportFrom, when: When) -> Iterator[tuple[str, When]]:
    """``from gquery.planner import logical`` imports the module logical, ``from gquery.expression.expr import Expr`` expr."""
    assert node.module is not None
    folder = ROOT / Path(*node.module.split("."))
    for alias in node.names:
        inner = folder / alias.name
        is_module = inner.with_suffix(".py").exists() or inner.is_dir()
        yield (f"{node.module}.{alias.name}" if is_module else node.module), when


def rooms_of(path: Path) -> Iterator[tuple[str, str]]:
    """The rooms that a module imports, each with the module that it imports there."""
    for imported, _ in imports(path):
        if imported.split(".")[0] == "gquery":
            yield room(imported.removeprefix("gquery").lstrip(".")), imported


def arrows() -> dict[str, set[str]]:
    """Each room with the rooms that it imports."""
    found: dict[str, set[str]] = {name: set() for name in LAYERS}
    for path in MODULES:
        own = room(module_name(path))
        found[own] |= {other for other, _ in rooms_of(path) if other != own}
    return found


def arrows_from_outside() -> dict[str, set[str]]:
    """Each folder beside the package with the rooms and folders that it imports."""
    return {
        folder: {
            room(name.removeprefix("gquery").lstrip(".")) if top == "gquery" else top
            for path in (ROOT / folder).rglob("*.py")
            for name, _ in imports(path)
            if (top := name.split(".")[0]) != folder and (top == "gquery" or top in (*OUTSIDE, "tests"))
        }
        for folder in OUTSIDE
    }


def modules(when: Collection[When] = EAGER) -> dict[str, set[str]]:
    """Each module with the modules of the package that it imports when it is loaded, or else at these times."""
    return {
        module_name(path): {
            name.removeprefix("gquery").lstrip(".")
            for name, at in imports(path)
            if at in when and name.split(".")[0] == "gquery"
        }
        for path in MODULES
    }


def circles() -> list[set[str]]:
    """Modules that reach each other by imports at any time, those in functions and for types alone too; largest first."""
    graph = modules(get_args(When))
    reached: dict[str, set[str]] = {}
    for name in graph:
        found, stack = set(), [name]
        while stack:
            for other in graph.get(stack.pop(), ()):
                if other not in found:
                    found.add(other)
                    stack.append(other)
        reached[name] = found
    sets = {frozenset(o for o in reached[n] if n in reached.get(o, ())) for n in graph if n in reached[n]}
    return sorted(map(set, sets), key=lambda s: (-len(s), min(s)))


def title(name: str) -> str:
    """The first sentence of a room's docstring."""
    path = PACKAGE / f"{name}.py" if name and not (PACKAGE / name).is_dir() else PACKAGE / name / "__init__.py"
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return text.split("\n\n")[0].replace("\n", " ").split(". ")[0].rstrip(".").replace("``", "").replace("`", "")


def needed(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The downward arrows that no longer way implies."""
    down = {a: {b for b in bs if LAYERS.index(b) < LAYERS.index(a)} for a, bs in graph.items()}
    reached: dict[str, set[str]] = {}
    for name in LAYERS:
        reached[name] = down[name].union(*(reached[b] for b in down[name]))
    return {a: {b for b in bs if not any(b in reached[c] for c in bs if c != b)} for a, bs in down.items()}


HIGH, GAP, WIDE, LEFT = 34, 12, 640, 190


def picture() -> str:
    """The rooms from the ground up, as SVG: arrows on the left go down to what is used, red ones on the right go up."""
    graph = arrows()
    y = {name: (len(LAYERS) - 1 - n) * (HIGH + GAP) + 10 for n, name in enumerate(LAYERS)}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDE + 130}" height="{len(LAYERS) * (HIGH + GAP) + 10}" '
        'font-family="sans-serif">',
        '<defs><marker id="end" markerWidth="7" markerHeight="7" refX="6" refY="3.5" orient="auto">'
        '<path d="M0,0L7,3.5L0,7Z" fill="#667"/></marker></defs>',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for name in LAYERS:
        lines += [
            f'<rect x="{LEFT}" y="{y[name]}" width="{WIDE}" height="{HIGH}" rx="4" fill="#eef3f8" stroke="#456"/>',
            f'<text x="{LEFT + 10}" y="{y[name] + 22}" font-size="14" font-weight="bold">{name or "gquery"}</text>',
            f'<text x="{LEFT + 110}" y="{y[name] + 22}" font-size="12">{escape(_short(title(name)))}</text>',
        ]
    for a, others in needed(graph).items():
        for b in sorted(others, key=LAYERS.index):
            lines.append(_arc(LEFT, y[a] + 21, y[b] + 13, -1, "#667"))
    for a, b in sorted(UPWARD):
        lines.append(_arc(LEFT + WIDE, y[a] + 13, y[b] + 21, 1, "#c33"))
    return "\n".join([*lines, "</svg>", ""])


def _short(text: str, most: int = 84) -> str:
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + " …"


def _arc(x: int, start: int, end: int, side: int, color: str) -> str:
    bend = x + side * min(160, 16 + abs(end - start) // 4)
    return (
        f'<path d="M{x},{start}C{bend},{start} {bend},{end} {x},{end}" fill="none" stroke="{color}" '
        'marker-end="url(#end)"/>'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the picture")
    given = parser.parse_args()
    if given.write:
        PICTURE.write_text(picture())
        return
    graph = arrows()
    upward = [(a, b) for a, bs in graph.items() for b in sorted(bs) if LAYERS.index(b) > LAYERS.index(a)]
    outside = arrows_from_outside()
    counts = [(len(g), sum(map(len, g.values()))) for g in (graph, graph | outside)]
    print("{} rooms, {} arrows; with the folders beside the package {} and {}".format(*counts[0], *counts[1]))
    print(f"{len(upward)} upward: {upward}")
    print(*(f"a circle: {', '.join(sorted(k))}" for k in circles()), sep="\n")
    for name in OUTSIDE:
        print(f"{name:12} {' '.join(sorted(n or 'gquery' for n in outside[name]))}")
    for name in reversed(LAYERS):
        print(f"{name or 'gquery':12} {' '.join(sorted(graph[name], key=LAYERS.index))}")


if __name__ == "__main__":
    main()
