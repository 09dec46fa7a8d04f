"""Numbers that were chosen stand in `gquery.tuning`, each with a unit and where it was measured, and nowhere else."""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Set
from dataclasses import replace
from fnmatch import fnmatch
from functools import cache

import pytest

from gquery import tuning
from gquery.tuning.record import Record, described
from tests.support.paths import ROOT

# Rooms whose numbers are all in records or named as facts of arithmetic in `gquery.expression.facts`.
TUNED_ROOMS = ("planner", "operators", "execution")
ARITHMETIC = {0, 1, 2}
WIDTHS = {7, 8, 31, 32, 63, 64}  # bits of bytes and words, which stand in kernels wherever bits are read or moved
# Modules of kernels that are arithmetic from end to end: their numbers are given by what they compute or read.
GIVEN = {
    "primitives/*": "bodies that are compiled: bits, digits, the calendar, hashes, UTF-8; code in the cache holds them",
    "targets/*intrinsics*": "the same in LLVM's instructions",
    "targets/cubin.py": "the format of a GPU's machine code",
    "targets/folder.py": "modes of files",
    "targets/objects.py": "the format of a processor's machine code",
    "targets/python_strings.py": "marks in prepared patterns: bytes that UTF-8 never has",
    "patterns.py": "the same, and sizes of words",
    "builtin/text_coding.py": "halves of words: texts of built-in kernels count on them",
    "builtin/key_groups.py": "halves of words: texts of built-in kernels count on them",
    "builtin/text_scan.py": "words of text and their halves: texts of built-in kernels count on them",
    "builtin/wide_arrays.py": "halves of 128-bit numbers, floats by their bits",
    "arithmetic.py": "powers of ten, days of a month",
    "casts.py": "powers of ten, bits of floats",
    "number_registers.py": "powers of ten, bits of floats",
}
# Other numbers of kernels that are no tuning.
NO_TUNING: dict[str, tuple[set[int | float], str]] = {
    "builtin/define.py": ({17}, "PART: texts of built-in kernels count on it"),
    "builtin/gathers.py": ({4}, "bytes of an element"),
    "builtin/narrowing.py": ({4, 16}, "bytes of an element"),
    "builtin/prefix_sums.py": ({4, 32, 128}, "lanes, steps and groups: texts of built-in kernels count on them"),
    "builtin/scans.py": ({4, 8}, "bytes of a word; ROWS_A_START: texts of built-in kernels count on it"),
    "builtin/text_keys.py": ({9}, "bytes of a word and one more"),
    "compile_worker.py": ({3}, "an exit code"),
    "host.py": ({4, 5}, "words of a status block, bits of a bit's number"),
    "lowering/grid.py": ({31}, "the last lane of a warp"),
    "lowering/values.py": ({16}, "bits of an integer, digits of 64 bits"),
    "registers.py": ({38}, "digits of the widest decimal"),
    "stored.py": ({32}, "bytes that a GPU reads from memory at once"),
    "targets/base.py": ({26, 32, 128}, "NARROW_ROWS, PRIVATE_THREADS: kernels are compiled for them"),
    "targets/cache.py": ({4, 32, 300}, "an exit code, bytes of a key, letters of a message"),
    "targets/cuda_events.py": ({1e3}, "milliseconds of a second"),
    "targets/cuda_numba.py": ({9}, "a compute capability that every version of the compiler knows"),
    "targets/cuda_llvm.py": ({9}, "the same"),
    "targets/cubin_assembler.py": ({9}, "the same"),
    "targets/cuda_launch.py": ({4, 8}, "parameters that every kernel has, bytes of one"),
    "targets/cuda_shared.py": ({3}, "the number of an address space of LLVM"),
}
KERNELS = sorted(p.relative_to(ROOT / "gquery" / "kernels").as_posix() for p in (ROOT / "gquery/kernels").rglob("*.py"))
MEASURED = [line for line in (ROOT / "benchmarks" / "NOTES.md").read_text().splitlines() if line.startswith("### ")]


def numbers(text: str) -> list[tuple[int, int | float]]:
    """Line and value of every number of a module other than 0, 1, 2 and those that only index (``best[3]``)."""
    tree = ast.parse(text)
    indices = {id(n.slice) for n in ast.walk(tree) if isinstance(n, ast.Subscript)}
    found = ((n, n.value) for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in indices)
    return sorted((n.lineno, v) for n, v in found if isinstance(v, int | float) and v not in ARITHMETIC)


@pytest.mark.parametrize("room", TUNED_ROOMS)
def test_numbers_stand_in_tuning(room: str) -> None:
    modules = sorted((ROOT / "gquery" / room).rglob("*.py"))
    left = [f"{p.relative_to(ROOT)}:{line}: {n}" for p in modules for line, n in numbers(p.read_text())]
    assert not left, "numbers outside of gquery.tuning (chosen) and gquery.expression.facts (given):\n" + "\n".join(
        left
    )


def chosen(text: str, allowed: Set[int | float] = frozenset()) -> list[tuple[int, int | float]]:
    """Those of a module of kernels that are no sizes of bytes and words. A number that has a name of the module is one that
    somebody chose, whatever its size; how much a cache of a pure function keeps is left aside."""
    tree = ast.parse(text)
    named = {
        n.lineno for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign) and n.value and _is_number(n.value)
    }
    caches = {d.lineno for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) for d in n.decorator_list}
    return [
        (line, n)
        for line, n in numbers(text)
        if n not in allowed and line not in caches and (line in named or n not in WIDTHS)
    ]


def _is_number(e: ast.expr) -> bool:
    return isinstance(e, ast.Constant) or (isinstance(e, ast.BinOp) and _is_number(e.left) and _is_number(e.right))


def test_numbers_of_kernels_stand_in_tuning() -> None:
    left: dict[str, list[tuple[int, int | float]]] = {}
    for name in KERNELS:
        if not any(fnmatch(name, pattern) for pattern in GIVEN):
            allowed, _ = NO_TUNING.get(name, (frozenset(), ""))
            left[name] = chosen((ROOT / "gquery" / "kernels" / name).read_text(), allowed)
    found = {name: numbers for name, numbers in left.items() if numbers}
    assert found == {}, "numbers of kernels outside of gquery.tuning (line, number)"


def test_exceptions_of_kernels_are_there() -> None:
    """What is no tuning, and no longer there, is struck from the list."""
    for pattern in GIVEN:
        assert any(fnmatch(name, pattern) for name in KERNELS), pattern
    for name, (allowed, _) in NO_TUNING.items():
        found = {n for _, n in chosen((ROOT / "gquery" / "kernels" / name).read_text())}
        assert allowed <= found, f"{name}: {allowed - found}"


def test_chosen_numbers_are_found() -> None:
    text = "MOST = 64\nb = c >> 5 & 31\nd: int = 2**17\n@lru_cache(maxsize=9)\ndef f(rows=300): return rows // 8"
    assert chosen(text) == [(1, 64), (2, 5), (3, 17), (5, 300)]


def test_numbers_are_found() -> None:
    assert numbers("a = b[3] * 4 + 0.5 - 1\nc = -2 ** 31\nd = f(x, size=1_000)") == [
        (1, 0.5), (1, 4), (2, 31), (3, 1000)
    ]  # fmt: skip


def test_records_are_read_through_the_module() -> None:
    """``from gquery.tuning import join_order`` would keep a record that a test has replaced."""
    records = set(tuning.records())
    kept = [
        (str(path), alias.name)
        for path in sorted((ROOT / "gquery").rglob("*.py"))
        if "from gquery.tuning import" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module == "gquery.tuning"
        for alias in node.names
        if alias.name in records
    ]
    assert kept == []


@pytest.mark.parametrize("name", tuning.records())
def test_numbers_are_described(name: str) -> None:
    for n in described(tuning.records()[name]):
        assert n.unit and n.meaning, n
        assert not n.measured or any(line.startswith(f"### {n.measured}") for line in MEASURED), n
        assert re.fullmatch(r"[a-z_0-9]+", n.name)


@cache
def code() -> str:
    return "\n".join(p.read_text() for p in (ROOT / "gquery").rglob("*.py") if p.parent.name != "tuning")


@cache
def attributes() -> frozenset[str]:
    """The names behind a dot."""
    return frozenset(re.findall(r"\.(\w+)", code()))


@pytest.mark.parametrize("name", tuning.records())
def test_numbers_are_used(name: str) -> None:
    """Each field is read somewhere as ``name.field`` or through a local name of its record."""
    assert f"tuning.{name}" in code()
    for n in described(tuning.records()[name]):
        assert n.name in attributes(), f"{name}.{n.name} is read nowhere"


def test_records_are_set_for_all_threads() -> None:
    seen: list[Record] = []
    chosen = replace(tuning.join_order, most_by_dp=3)
    with tuning.using(chosen, replace(tuning.rewrites, most_keys=2)):
        thread = threading.Thread(target=lambda: seen.append(tuning.join_order))
        thread.start()
        thread.join()
        with tuning.using(replace(tuning.join_order, most_by_dp=4)):
            assert (tuning.join_order.most_by_dp, tuning.rewrites.most_keys) == (4, 2)
        assert tuning.join_order is chosen
    assert seen == [chosen] and tuning.join_order.most_by_dp == 10


def test_records_come_back_after_an_error() -> None:
    before = tuning.records()
    with pytest.raises(ZeroDivisionError), tuning.using(replace(tuning.loops, unrolled_rows=8)):
        raise ZeroDivisionError
    assert tuning.records() == before
