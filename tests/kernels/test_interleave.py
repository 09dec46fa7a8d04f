"""The interleaved loop does for several rows what the lazy body does for one after another."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gquery import tuning
from gquery.kernels.interleave import interleaved
from gquery.kernels.ir.expressions import Name
from gquery.kernels.ir.read import read_lines
from gquery.kernels.ir.statements import printed
from gquery.kernels.targets.python import primitives
from gquery.operators import codegen
from gquery.planner.physical import Pipeline
from tests.support import programs
from tests.support.tuned import Tune

ROWS = 4


def _body(r: random.Random) -> tuple[list[str], set[str]]:
    """A chain of filters and look-ups, the last of which is followed by what takes the row."""
    lines: list[str] = []
    names: list[str] = []
    hoisted: set[str] = set()
    depth = 0

    def add(text: str) -> None:
        lines.append("    " * depth + text)

    def let(text: str) -> str:
        names.append(f"v{len(names)}")
        add(f"{names[-1]} = {text}")
        return names[-1]

    marks = r.random() < 0.4
    if marks:
        add("keep = False")
    for depth in range(r.randrange(1, 6)):
        column = r.randrange(3)
        value = let(f"i64(c{column}[i])")
        if r.random() < 0.6:
            hoisted.add(value)
        if r.random() < 0.3:
            add(f"if lt_i64({value}, {r.randrange(8)}):")
        else:
            key = let(f"and_i64(add_i64({value}, {r.choice(names)}), 15)")
            inside = let(f"lt_i64({key}, {r.randrange(8, 16)})")
            entry = let("i64(0)")
            add(f"if {inside}:")
            lines.append("    " * (depth + 1) + f"{entry} = i64(b0[{key}])")
            found = let(f"ne_i64({entry}, i64(0))")
            add(f"if {found}:")
    depth += 1
    if marks:
        add("keep = True")
        depth = 0
        add("note(i, keep)")
    else:
        add(f"total = add_i64(total, {names[-1]})")
        add(f"note(i, {names[-1]})")
    return lines, hoisted


def _run(text: str, columns: list[list[int]], table: list[int]) -> tuple[list[Any], int]:
    scope: dict[str, Any] = {**primitives(), "seen": [], "total": 0, "b0": table}
    scope |= {f"c{n}": column for n, column in enumerate(columns)}
    scope["note"] = lambda row, value: scope["seen"].append((row, value))
    exec(text, scope)
    return sorted(scope["seen"]), scope["total"]


@pytest.mark.parametrize("seed", range(150))
def test_steps_of_several_rows(seed: int) -> None:
    r = random.Random(seed)
    body, hoisted = _body(r)
    made = interleaved(read_lines(*body), ROWS, {Name(a, "row") for a in hoisted}, read_lines("total = 0"))
    looks_up = any("b0[" in line for line in body)
    assert (made is not None) == looks_up, body
    if made is None:
        return
    rows = 12 * ROWS
    columns = [[r.randrange(12) for _ in range(rows)] for _ in range(3)]
    table = [r.choice([0, 1, 5]) for _ in range(16)]
    lazy = "\n".join([f"for i in range({rows}):", *("    " + line for line in body)])
    heads = [f"    i{k} = i + {k * (rows // ROWS)}" for k in range(ROWS)]
    function = () if made.function is None else made.function.text
    at_once = "\n".join([*function, f"for i in range({rows // ROWS}):", *heads, *printed(made.body, 1)])
    assert _run(at_once, columns, table) == _run(lazy, columns, table)


def test_what_is_not_interleaved() -> None:
    look_up = ["v0 = i64(c0[i])", "v1 = ne_i64(i64(b0[v0]), 0)", "if v1:"]
    assert interleaved(read_lines(*look_up, "    n = add_i64(n, 1)"), 2, ()) is not None
    assert interleaved(read_lines(*look_up, "    for j0 in range(v0):", "        n = add_i64(n, 1)"), 2, ()) is None, (
        "a loop"
    )
    assert (
        interleaved(
            read_lines(*look_up, *["    n = add_i64(n, 1)"] * (tuning.kernel_texts.interleaved_tail + 1)), 2, ()
        )
        is None
    ), "too much for each row"
    assert interleaved(read_lines("v0 = i64(c0[i])", "if v0:", "    n = add_i64(n, 1)"), 2, ()) is None, "no look-up"
    assert interleaved(read_lines("store_i64(s0, i, 1)", *look_up, "    n = add_i64(n, 1)"), 2, ()) is None, (
        "something is stored first"
    )


@pytest.mark.parametrize("name", ["q03", "q05", "semi_join_bitmap", "anti_join"])
def test_interleaved_kernels_compile(name: str, tune: Tune) -> None:
    from gquery.kernels.targets.cuda import CudaTarget

    tune(tuning.loops, interleaved_rows=0)
    works = [s.work for s in programs.program(name, "cuda").stages if isinstance(s.work, Pipeline)]
    kernels = [u.kernel for w in works for u in codegen.units(w, "cuda")]
    interleaved_ones = [
        k for k in kernels if k.unrolled is not None and any("_0:" in line for line in printed(k.unrolled.body))
    ]
    assert interleaved_ones
    for kernel in interleaved_ones:
        assert CudaTarget().compile_cubin(kernel, (9, 0)).local_bytes == 0
