"""Pipelines of few rows on a CPU run drafts of their kernels: the same answers, a sixth of the compiler's time, and a query that
comes again waits for nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.execution import ExecutionContext, choose, program
from gquery.execution.decision import Choice
from gquery.execution.feedback import RunFeedback
from gquery.execution.runner import Runner
from gquery.execution.state import StageReport
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets.background import Background
from gquery.kernels.targets.cpu import CpuTarget
from gquery.profile.explain_program import specialized
from tests.support import programs
from tests.support.harness import assert_same
from tests.support.tuned import Tune

SQL = """
    SELECT u.name, count(*) AS n, sum(t.x * 3 - t.k) AS s FROM t JOIN u ON t.k = u.k WHERE t.x % 7 < 6
    GROUP BY u.name ORDER BY s DESC, u.name LIMIT 5
"""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Kernel]:
    """The kernels that a compiler made in this process, or was asked for."""
    found: list[Kernel] = []
    plain = CpuTarget._make

    def noted(self: CpuTarget, kernel: Kernel, name: Any) -> Any:
        found.append(kernel)
        return plain(self, kernel, name)

    monkeypatch.setattr(CpuTarget, "_make", noted)
    monkeypatch.setattr("gquery.kernels.targets.background._background", Background())
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path))
    return found


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """Of each run, the rows of every stage that was interpreted."""
    found: list[list[int]] = []
    plain: Callable[..., tuple[object, list[StageReport]]] = program.run_with_report

    def noted(*arguments: object) -> object:
        result = plain(*arguments)
        found.append([r.rows for r in result[1] if r.target == "python"])
        return result

    monkeypatch.setattr(program, "run_with_report", noted)
    return found


def thrice(x: int) -> int:
    return x * 3


def connected() -> gquery.Connection:
    connection = gquery.connect("cpu")
    connection.sql("CREATE TABLE t AS SELECT x, x % 4000 AS k FROM range(9000) q(x)")
    connection.sql("CREATE TABLE u AS SELECT k, 'name of ' || k AS name FROM range(4000) q(k)")
    return connection


def test_a_query_waits_for_no_compiler_when_it_comes_again(
    made: list[Kernel], interpreted: list[list[int]], tune: Tune
) -> None:
    """Its stages have too few rows for kernels proper and too many for the interpreter."""
    tune(
        tuning.interpreting,
        **dict.fromkeys(("background_seconds", "draft_seconds", "trial_seconds", "most_seconds"), 1e9),
    )
    connection = connected()
    connection.sql("SET compiler = 'llvm'")
    want = connection.sql(SQL).fetchall()
    interpreted.clear()
    made.clear()
    sql = SQL.replace("* 3", "* 5 + t.x * -2")
    assert connection.sql(sql).fetchall() == want
    assert made and all(k.is_draft for k in made if "interpreted" not in k.text)
    made.clear()
    for _ in range(2):
        assert connection.sql(sql).fetchall() == want
    assert not made
    assert all(rows <= 4000 for run in interpreted for rows in run), interpreted


def test_a_first_run_asks_for_drafts_of_what_it_interpreted(
    tune: Tune, interpreted: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Kernel] = []

    def noted(self: CpuTarget, kernels: Sequence[Kernel]) -> None:
        asked.extend(kernels)

    monkeypatch.setattr(CpuTarget, "compile_in_background", noted)
    tune(tuning.interpreting, background_seconds=0.0, draft_limits=1.0, trial_seconds=1e9, most_seconds=1e9)
    connection = connected()
    connection.sql("SET compiler = 'llvm'")
    connection.sql(f"SET interpret_limit = {10**9}")
    interpreted.clear()
    asked.clear()
    connection.sql(SQL.replace("sum(", "min(")).fetchall()
    assert len(interpreted) == 1 and len(interpreted[0]) > 1
    assert len(asked) >= len(interpreted[0]) and all(k.is_draft for k in asked)


@pytest.mark.parametrize("name", list(programs.SMALL)[::2])
def test_drafts_answer_like_the_interpreter(name: str, tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    choices: list[Choice] = []
    begin = Runner._begin

    def noted(self: Runner) -> Any:
        choices.append(self.decision.runs.choice)
        return begin(self)

    monkeypatch.setattr(Runner, "_begin", noted)
    monkeypatch.setattr(choose, "is_ready", lambda *_: False)  # other tests may have compiled kernels proper
    monkeypatch.setattr(choose, "cached", lambda *_: "nothing")
    tune(tuning.interpreting, background_seconds=1e9, draft_limits=0.0)
    sql, rows = programs.SMALL[name], []
    for limit in (10**9, 10**15):  # the second time another plan, of which no row-step is few enough for a draft
        connection = gquery.connect("cpu")
        connection.sql(f"SET interpret_limit = {limit}")
        for table, rows_of in programs.tables().items():
            connection.register(table, rows_of)
        rows.append(repr(sorted(connection.sql(sql).fetchall(), key=repr)))
        if limit == 10**9:
            assert all(c.is_draft for c in choices)
            tune(tuning.interpreting, background_seconds=1e9, draft_limits=1.0, draft_seconds=1e9)
    assert rows[0] == rows[1]


def test_numba_and_functions_of_users_have_no_drafts() -> None:
    connection = connected()
    sql = "SELECT sum(x * 3 - k) FROM t"

    def drafts() -> list[bool]:
        made = connection.program(sql)
        context = ExecutionContext("cpu", connection.device, replace(connection.settings, interpret_limit=50_000))
        return [r.choice.is_draft for r in specialized(made, context, RunFeedback()).values()]

    assert drafts() == [True]
    connection.create_function("thrice", thrice)
    sql = "SELECT sum(thrice(x) - k) FROM t"
    assert drafts() == [False]


def test_half_of_what_tests_compile_is_drafts(made: list[Kernel]) -> None:
    """`assert_same` decides by the text, for each number of ranks, and interprets nothing that it says is compiled."""
    table = {"t": pa.table({"x": range(40), "y": range(40, 0, -1)})}
    ways = []
    for sql in (f"SELECT sum({call}) FROM t WHERE x {op} y" for call in ("x", "y * y", "x - y") for op in ("<", ">=", "<>", "=")):
        before = len(made)
        assert_same(sql, table, targets=("cpu",))
        ways.append({kernel.is_draft for kernel in made[before:]})
    assert set().union(*ways) == {False, True}
