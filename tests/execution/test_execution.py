"""Execution: what the interpreter begins and a compiled kernel ends."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import gquery
from gquery import tuning
from gquery.execution.feedback import RunFeedback
from gquery.execution.variants import units_of
from gquery.operators.accumulate import shared_words, state_location
from gquery.planner.physical import Group, Pipeline
from tests.support.marks import and_slow
from tests.support.tuned import Tune


class _DueAtCheck:
    """In place of ``trial_seconds``: the interpreter's trial is over at the n-th look."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __lt__(self, seconds: float) -> bool:
        self.left -= 1
        return self.left == 0


@pytest.mark.parametrize("n", [1, 2, 6, 8])
def test_counts_and_rows_go_over_to_the_compiled_kernel_together(tune: Tune, n: int) -> None:
    """The kernel that counts and the one that writes are interpreted first; whichever takes too long, both agree on rows."""
    connection = gquery.connect(device="cpu", partitions=1)
    connection.sql("SET interpret_limit = 100000000")
    connection.sql("CREATE TABLE r AS SELECT i, i % 3000 AS k FROM range(6000) AS q(i)")
    tune(tuning.interpreting, trial_seconds=_DueAtCheck(n))
    sql = "SELECT a.i, b.i FROM r AS a JOIN r AS b ON a.k = b.k WHERE a.i >= 1500"
    rows = sorted(connection.sql(sql).fetchall())
    assert rows == [(a, b) for a in range(1500, 6000) for b in (a % 3000, a % 3000 + 3000)]


SECOND_PROCESS = """
import sys
from dataclasses import replace

import gquery
from gquery import tuning
from gquery.execution import program

never = dict.fromkeys(("trial_seconds", "break_even_seconds", "background_seconds", "draft_seconds"), 1e9)
tuning.interpreting = replace(tuning.interpreting, **never)
targets = []
run = program.run_with_report


def noted(*arguments):
    result = run(*arguments)
    targets.append(result[1][0].target)
    return result


program.run_with_report = noted
db = gquery.connect(device="cpu")
db.sql("SET interpret_limit = " + sys.argv[1])
rows = int(sys.argv[2])
if sys.argv[3:]:
    import numba
for _ in range(3):
    want = sum(range(12, rows)) * 5
    assert db.sql(f"SELECT sum(x * 5) FROM range({rows}) t(x) WHERE x > 11").fetchall() == [(want,)]
print(*targets)
"""


@pytest.mark.parametrize("compiler", and_slow(("llvm", "numba"), "numba"))
def test_what_an_earlier_process_compiled_is_used(compiler: str, tmp_path: Path) -> None:
    """From the second run on, or at once where interpreting takes longer than to look for it."""

    def run(limit: int, *more: str, rows: int = 700) -> list[str]:
        environment = os.environ | {"GQUERY_CACHE_DIR": str(tmp_path / "cache"), "GQUERY_COMPILER": compiler}
        command = [sys.executable, "-c", SECOND_PROCESS, str(limit), str(rows), *more]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    assert run(100_000) == ["python"] * 3, "nothing is compiled yet"
    assert run(0) == ["cpu"] * 3
    if compiler == "numba":
        assert run(100_000) == ["python"] * 3, "the compiler would have to be imported"
    assert run(100_000, "import it") == ["python", "cpu", "cpu"]
    assert run(100_000, "import it", rows=9_000) == ["cpu"] * 3


def test_shared_memory_is_what_the_text_counts_on() -> None:
    """A join table that limits the groups is known behind the kernel's text, which was made for as many as were planned: then
    memory for fewer would be written behind its end."""
    db = gquery.connect(device="python")
    db.register("t", {"k": [1, 2, 3] * 20, "v": list(range(60))})
    db.register("u", {"k": [1, 2, 3], "w": [10**17, -(10**17), 5]})
    program = db.program("SELECT u.w, count(*) FROM t LEFT JOIN u ON t.k = u.k AND u.w > t.v GROUP BY u.w", "cuda")
    stage, pipeline = next(
        (s, s.work) for s in program.stages if isinstance(s.work, Pipeline) and isinstance(s.work.sink, Group)
    )
    assert isinstance(pipeline.sink, Group)
    assert state_location(pipeline.sink, "cuda") == "block"
    feedback = RunFeedback()
    (unit,) = units_of(feedback, stage.number, pipeline, "cuda")
    assert unit.shared_words == shared_words(pipeline.sink, "cuda") > 0
    fewer = replace(pipeline.sink, groups=1)
    assert shared_words(fewer, "cuda") < unit.shared_words
    (again,) = units_of(feedback, stage.number, replace(pipeline, sink=fewer), "cuda")
    assert again.shared_words >= unit.shared_words or again.kernel is not unit.kernel
