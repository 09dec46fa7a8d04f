"""Numbers that were chosen stand in `gquery.tuning`, each with a unit and where it was measured, and nowhere else."""

from __future__ import annotations

import ast
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from gquery import tuning
from gquery.tuning.record import Record, described

ROOT = Path(__file__).resolve().parent.parent
# Rooms whose numbers are all in records or named as facts of arithmetic in `gquery.expression.facts`.
TUNED_ROOMS = ("planner", "operators", "execution")
ARITHMETIC = {0, 1, 2}
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


def test_numbers_are_found() -> None:
    assert numbers("a = b[3] * 4 + 0.5 - 1\nc = -2 ** 31\nd = f(x, size=1_000)") == [
        (1, 0.5), (1, 4), (2, 31), (3, 1000)
    ]  # fmt: skip


@pytest.mark.parametrize("path", sorted((ROOT / "gquery").rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_records_are_read_through_the_module(path: Path) -> None:
    """``from gquery.tuning import join_order`` would keep a record that a test has replaced."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "gquery.tuning":
            assert not {alias.name for alias in node.names} & set(tuning.records()), path


@pytest.mark.parametrize("name", tuning.records())
def test_numbers_are_described(name: str) -> None:
    for n in described(tuning.records()[name]):
        assert n.unit and n.meaning, n
        assert not n.measured or any(line.startswith(f"### {n.measured}") for line in MEASURED), n
        assert re.fullmatch(r"[a-z_0-9]+", n.name)


@pytest.mark.parametrize("name", tuning.records())
def test_numbers_are_used(name: str) -> None:
    """Each field is read somewhere as ``name.field`` or through a local name of its record."""
    text = "\n".join(p.read_text() for p in (ROOT / "gquery").rglob("*.py") if p.parent.name != "tuning")
    assert f"tuning.{name}" in text
    for n in described(tuning.records()[name]):
        assert re.search(rf"\.{n.name}\b", text), f"{name}.{n.name} is read nowhere"


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
