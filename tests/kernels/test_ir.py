"""Statement nodes: how they print, what they read and set, and that passes look at roles, never at how a name is spelled."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.kernels import interleave, ir, parts
from gquery.kernels.code import Code
from gquery.kernels.ir.expressions import Leaf
from gquery.kernels.ir.read import read_lines
from gquery.kernels.ir.walk import assigned, loads_memory, names, over, read, statements
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import get_target
from gquery.kernels.unroll import UnrolledLoop
from gquery.operators import codegen, loop_forms
from gquery.planner.physical import Pipeline
from tests.support import programs
from tests.support.tuned import Tune

A, B, C = ir.Name("a"), ir.Name("b"), ir.Name("c")
F = ir.Call("f", (A, ir.Constant(-1)))


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (F, "f(a, -1)"),
        (ir.Call("lane", ()), "lane()"),
        (ir.Constant(0.0), "0.0"),
        (ir.TRUE, "True"),
        (ir.Load(A, ir.Call("row_index", (B,))), "a[row_index(b)]"),
        (ir.Element(A, 7), "a[7]"),
        (ir.Item(A, 1), "a[1]"),
        (ir.Not(A), "not a"),
        (ir.Not(ir.And((A, B))), "not (a and b)"),
        (ir.Not(ir.Or((A, B))), "not (a or b)"),
        (ir.And((A, ir.Or((B, C)))), "a and (b or c)"),
        (ir.Or((A, ir.And((B, C)))), "a or b and c"),
        (ir.Or((A, ir.Parenthesized(ir.And((B, C))))), "a or (b and c)"),
        (ir.And((ir.Operation(A, "<", B), ir.Not(C))), "a < b and not c"),
        (ir.Operation(A, "is not", ir.NONE), "a is not None"),
        (ir.Choice(A, B, ir.NONE), "a if b else None"),
        (ir.And((ir.Choice(A, B, C), C)), "(a if b else c) and c"),
        (ir.Tuple((A, B)), "a, b"),
        (ir.conjunction(None, A, None), "a"),
        (ir.disjunction([]), "False"),
    ],
)
def test_expressions_print_as_python(e: ir.Expression, text: str) -> None:
    assert e.text() == text
    assert [name.id for name in names(e)] == [n.id for n in _in_order(text)]


def _in_order(text: str) -> list[ast.Name]:
    """The names that Python's parser finds in an expression, but for functions, in the order of the text."""
    tree = ast.parse(text, mode="eval")
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called]
    return sorted(found, key=lambda n: n.col_offset)


BLOCK: ir.Block = (
    ir.Let(A, F),
    ir.Unpack((A, B), ir.Tuple((B, A))),
    ir.If(A, (), (ir.Store(ir.Call("g", ())),)),
    ir.If(A, (ir.While(B, (ir.For(C, None, A, ()),)),), ()),
    ir.For(C, A, B, (ir.Let(B, C),)),
    ir.Return(A),
)
LINES = [
    "a = f(a, -1)",
    "a, b = b, a",
    "if a:",
    "    pass",
    "else:",
    "    g()",
    "if a:",
    "    while b:",
    "        for c in range(a):",
    "            pass",
    "else:",
    "    pass",
    "for c in range(a, b):",
    "    b = c",
    "return a",
]


def test_statements_print_as_python() -> None:
    assert ir.printed(BLOCK) == LINES
    assert ir.printed(BLOCK, 2) == ["        " + line for line in LINES]
    assert ir.line_count(BLOCK) == len(LINES)
    assert ir.printed_body((), 1) == ["    pass"]
    assert ir.Function("part0", (A,), BLOCK).lines == ("def part0(a):", *("    " + line for line in LINES))


def test_what_statements_read_and_set() -> None:
    assert [name.id for name in read(BLOCK[:2])] == ["a", "b", "a"]
    assert list(assigned(BLOCK)) == [A, B, C]
    assert len(statements(BLOCK)) == 10
    assert loads_memory(ir.If(ir.Load(ir.Name("x", "column"), A), ()))
    assert not loads_memory(ir.Let(A, ir.Load(ir.Name("x", "table"), A)))
    assert loads_memory(ir.Let(A, ir.Call("bit_test", (ir.Name("x", "build"), A))))


def test_statements_over_other_names() -> None:
    swapped = {A: B, B: C, C: A}
    lines = ir.printed(over(BLOCK, lambda leaf: swapped[leaf] if isinstance(leaf, ir.Name) else leaf))
    letters = str.maketrans("abc", "bca")
    words = {"pass", "if", "else", "while", "for", "range", "in", "return"}
    assert [x for line in lines for x in _words(line) if x not in words] == [
        x.translate(letters) if x in "abc" else x for line in LINES for x in _words(line) if x not in words
    ]


def _words(line: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in line).split()


@pytest.mark.parametrize(
    "line", ["a += 1", "a = b + c", "a.b()", "f(x=1)", "import os", "a = [b]", "while a:\n    x\nelse:\n    y"]
)
def test_reading_is_strict(line: str) -> None:
    with pytest.raises((SyntaxError, AssertionError)):
        read_lines(line)


def test_an_else_belongs_to_its_if() -> None:
    code = Code("cpu")
    with code.when(A):
        code.set(B, ir.TRUE)
    with code.otherwise():
        code.set(B, ir.FALSE)
    assert ir.printed(code.kernel().body) == ["if a:", "    b = True", "else:", "    b = False"]
    code.set(B, ir.TRUE)
    with pytest.raises(AssertionError, match="behind its if"), code.otherwise():
        pass


def _kernels() -> Iterator[Kernel]:
    for name in programs.names():
        for stage in programs.program(name, "cuda").stages:
            if isinstance(stage.work, Pipeline):
                yield from codegen.kernels(stage.work, "cuda")


def test_kernels_are_read_back_as_they_are_counted() -> None:
    for kernel in _kernels():
        for block in (kernel.prologue, kernel.body, kernel.epilogue):
            lines = ir.printed(block)
            assert ir.line_count(block) == len(lines)
            if not any("(ge_" in line or "(not" in line for line in lines):  # a reader knows no parentheses
                assert ir.printed(read_lines(*lines)) == lines


# ---- passes over other names --------------------------------------------------------------------------------------------


def _renamed(leaf: Leaf) -> Leaf:
    """The leaf by a name that says nothing; its role is as it was."""
    match leaf:
        case ir.Element(array, place):
            return ir.Element(ir.Name(f"z_{array.id}", array.role), place)
        case ir.Name(id, role):
            return leaf if leaf == ir.ROW else ir.Name(f"z_{id}", role)


def _all_renamed(block: ir.Block) -> ir.Block:
    return over(block, _renamed)


@pytest.mark.parametrize(("module", "shape"), [(loop_forms, "unrolled"), (interleave, "interleaved")])
def test_loop_shapes_do_not_depend_on_names(
    module: ModuleType, shape: str, monkeypatch: pytest.MonkeyPatch, tune: Tune
) -> None:
    """What a renamed variable would switch off: the same kernels over other names have the same loops."""
    tune(tuning.loops, interleaved_rows=0)
    plain = getattr(module, shape)
    made: list[Any] = []

    def both(body: ir.Block, rows: int, hoisted: Any, prologue: ir.Block) -> Any:
        found = plain(body, rows, hoisted, prologue)
        other = plain(_all_renamed(body), rows, {_renamed(name) for name in hoisted}, _all_renamed(prologue))
        assert (found is None) == (other is None)
        if found is not None:
            made.append(found)
            assert _plain(other) == _plain(found)
        return found

    monkeypatch.setattr(module, shape, both)
    assert list(_kernels())
    assert len(made) > 5


def _plain(loop: UnrolledLoop) -> list[str]:
    """The lines of a loop over the first names; the arguments of its function, which are sorted by name, in another order."""
    lines = [line.replace("z_", "") for line in loop.text]
    return ["".join(sorted(line)) if "do_row(" in line else line for line in lines]


def test_parts_do_not_depend_on_names(tune: Tune) -> None:
    whole = list(_kernels())
    tune(tuning.kernel_parts, lines=12, part_lines=6, part_depth=3, calls=8)
    cut = 0
    for kernel in whole:
        outside = (*kernel.prologue, *kernel.epilogue)
        body, functions = parts.parted(kernel.body, outside)
        other, others = parts.parted(_all_renamed(kernel.body), _all_renamed(outside))
        assert [line.replace("z_", "") for line in ir.printed(other)] == ir.printed(body)
        assert others == functions
        cut += bool(functions)
    assert cut > 20


@pytest.mark.parametrize("rows", [100, 2_000])  # as it is, and with primitives inlined
def test_python_runs_a_long_body_whole_and_cuts_a_deep_one(
    rows: int, tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its compiler takes time with the length alone. Under test, when kernels have claims, it runs what is compiled."""
    tune(tuning.kernel_parts, lines=8, depth=6, part_lines=6, part_depth=2, calls=3)
    tune(tuning.kernel_texts, own_constants=2)
    deep = "x"
    for n in range(8):
        deep = f"CASE WHEN x > {n} THEN {deep} + {n} ELSE {n} END"
    wide = ", ".join(f"x + {n}, x * {n}" for n in range(1, 12))
    answers: list[Any] = []
    for checked in (True, False):
        monkeypatch.setattr("gquery.kernels.checks.ENABLED", checked)
        connection = gquery.connect("python").register("t", pa.table({"x": pa.array(range(rows))}))
        source = get_target("python").source
        (long,), (nested,) = (connection.kernels(f"SELECT {what} FROM t", "python") for what in (wide, deep))
        assert long.is_long and nested.is_long
        assert ("def part" in source(long)) is checked
        assert "def part" in source(nested)
        answers.append(connection.sql(f"SELECT {wide}, {deep} FROM t").fetchall())
    assert answers[0] == answers[1]
    x = rows - 1
    assert answers[1][-1] == (*(v for n in range(1, 12) for v in (x + n, x * n)), x + 28)
