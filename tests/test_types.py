"""What modules hand each other is typed: no ``Any``, and no dictionary of anything, in the rooms that plan and run queries."""

from __future__ import annotations

import ast
from dataclasses import fields
from typing import get_args

import pytest

from gquery.kernels.bindings import JoinName, SinkName
from gquery.operators.base import JoinArrays
from gquery.operators.group_output import OutputState
from gquery.operators.group_state import GroupState
from gquery.operators.join_table import BuildState
from gquery.operators.materialize import MaterializeState
from gquery.operators.part_output import Contributions
from gquery.operators.reduce_run import ReduceState
from tests.support.paths import ROOT

ROOMS = ("planner", "operators", "distributed", "execution")
MODULES = sorted(p for room in ROOMS for p in (ROOT / "gquery" / room).rglob("*.py"))
FORCED: dict[str, str] = {
    "gquery/distributed/transport.py: meet": "values of every type go over in the same way; callers know theirs",
    "gquery/distributed/transport.py: self.values": "likewise",
}
"""``path: name`` of an annotation that has to say ``Any``, and what forces it. No library does: what those without types give
(CuPy, pyarrow, nvtx) is `device.array.Array`, pyarrow's own classes, or a module."""
STATES = (BuildState, Contributions, GroupState, MaterializeState, OutputState, ReduceState)
ANYTHING = {"Any", "object"}
MAPPINGS = {"dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "OrderedDict"}


def untyped(text: str) -> list[tuple[int, str]]:
    """Line and name of what a module annotates by ``Any`` (parameters, results, variables, fields, aliases, casts), and of its
    dictionaries whose values may be anything."""
    found: set[tuple[int, str]] = set()

    def note(line: int, name: str, *given: ast.expr | None) -> None:
        if any(_says_any(a) or _holds_anything(a) for a in given if a is not None):
            found.add((line, name))

    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name=name, args=a) | ast.AsyncFunctionDef(name=name, args=a):
                given = [*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x is not None)]
                note(node.lineno, name, node.returns, *(x.annotation for x in given))
            case ast.AnnAssign(target=target):
                note(node.lineno, ast.unparse(target), node.annotation, node.value)
            case ast.Assign(targets=[target]):
                note(node.lineno, ast.unparse(target), node.value)
            case ast.Call(func=ast.Name(id="cast"), args=[kind, _]):
                note(node.lineno, "cast", kind)
            case ast.ImportFrom(module="typing", names=names):
                found.update((node.lineno, f"import as {n.asname}") for n in names if n.name == "Any" and n.asname)
            case _:
                pass
    return sorted(found)


def _parsed(e: ast.expr) -> ast.expr:
    """An annotation, read where it is in quotes."""
    if isinstance(e, ast.Constant) and isinstance(e.value, str):
        try:
            return ast.parse(e.value, mode="eval").body
        except SyntaxError:
            return e
    return e


def _name(e: ast.expr) -> str:
    e = _parsed(e)
    return e.attr if isinstance(e, ast.Attribute) else e.id if isinstance(e, ast.Name) else ""


def _says_any(e: ast.expr) -> bool:
    return any(_name(n) == "Any" for n in ast.walk(_parsed(e)) if isinstance(n, ast.expr))


def _holds_anything(e: ast.expr) -> bool:
    """Whether a dictionary's values may be anything: ``dict[str, object]``, or one without arguments in an annotation."""
    for node in ast.walk(_parsed(e)):
        if isinstance(node, ast.Subscript) and _name(node.value) in MAPPINGS:
            match node.slice:
                case ast.Tuple(elts=[_, value]):
                    if _name(value) in ANYTHING:
                        return True
                case _:
                    pass
    return False


@pytest.mark.parametrize("room", ROOMS)
def test_annotations_say_what_there_is(room: str) -> None:
    modules = [p for p in MODULES if p.is_relative_to(ROOT / "gquery" / room)]
    found = [(str(p.relative_to(ROOT)), line, name) for p in modules for line, name in untyped(p.read_text())]
    assert modules
    assert [f"{p}:{line}: {name}" for p, line, name in found if f"{p}: {name}" not in FORCED] == []


def test_what_is_forced_is_there() -> None:
    """An exception that no annotation needs any more is struck from the list."""
    found = {f"{p.relative_to(ROOT)}: {name}" for p in MODULES for _, name in untyped(p.read_text())}
    assert set(FORCED) <= found and all(FORCED.values())


@pytest.mark.parametrize(
    "text",
    [
        "def f(x: Any) -> int: ...",
        "def f(x: int) -> list[Any]: ...",
        "def f(*x: Any): ...",
        "def f(**x: 'Any'): ...",
        "class C:\n    def f(self, x: typing.Any | None) -> None: ...",
        "class C:\n    x: dict[str, Any]",
        "class C:\n    x: dict[str, Any] = field(default_factory=dict)",
        "def f():\n    x: Any = g()",
        "State = dict[str, Any]",
        "State: TypeAlias = 'dict[str, Any]'",
        "def f(x: Mapping[str, object]) -> None: ...",
        "x = cast(Any, y)",
        "x = cast('Any', y)",
        "from typing import Any as Whatever",
    ],
)
def test_what_is_untyped_is_found(text: str) -> None:
    assert untyped(text)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x: object, *y: int) -> dict[str, Array | int]: ...",
        "class C:\n    x: Mapping[object, None] = field(default_factory=dict)",
        "x = any(y)\n'''Any row.'''",
        "from typing import TypeVar",
    ],
)
def test_what_is_typed_is_not(text: str) -> None:
    assert not untyped(text)


def test_kernels_bind_fields() -> None:
    """Each name that a binding may have is a field, or a property, of a state or of a join table's arrays."""
    assert set(get_args(SinkName)) <= {name for state in STATES for name in dir(state)}
    assert set(get_args(JoinName)) == {f.name for f in fields(JoinArrays)} | {"matched"}
