"""What is interpreted again and again is compiled beside the queries, by a thread that nobody waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import gquery
from gquery import tuning
from gquery.execution import choose, program
from gquery.execution.state import StageReport
from gquery.kernels.targets.background import Background
from gquery.kernels.targets.cpu import CpuTarget
from tests.support.tuned import Tune

SQL = "SELECT k, sum(x * 3 - k) AS s FROM t WHERE x % 7 < 5 GROUP BY k ORDER BY k"
WANTED = [(k, sum(x * 3 - k for x in range(5000) if x % 7 < 5 and x % 3 == k)) for k in range(3)]


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The target of the first stage of each run."""
    found: list[str] = []
    plain: Callable[..., tuple[object, list[StageReport]]] = program.run_with_report

    def noted(*arguments: object) -> object:
        made = plain(*arguments)
        found.append(made[1][0].target)
        return made

    monkeypatch.setattr(program, "run_with_report", noted)
    monkeypatch.setattr(
        "gquery.kernels.targets.background._background", Background()
    )  # others' tasks are not waited for
    monkeypatch.setattr(choose, "is_cached", lambda *_: False)
    return found


def connected(tune: Tune) -> gquery.Connection:
    tune(tuning.compiling, own_kernels=10**9)
    tune(tuning.interpreting, background_seconds=0.0, break_even_seconds=1e9, trial_seconds=1e9, most_seconds=1e9)
    connection = gquery.connect("cpu")
    connection.sql("SET compiler = 'llvm'")
    connection.sql("SET interpret_limit = 1000000000")
    connection.sql("CREATE TABLE t AS SELECT x, x % 3 AS k FROM range(5000) q(x)")
    return connection


def test_the_second_run_has_kernels_compiled_for_later_ones(
    tune: Tune, targets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = connected(tune)
    goes_on, plain = threading.Event(), CpuTarget._make

    def held(self: CpuTarget, kernel: Any, name: Any) -> Any:
        assert goes_on.wait(60)
        return plain(self, kernel, name)

    monkeypatch.setattr(CpuTarget, "_make", held)
    targets.clear()
    for _ in range(3):  # a query does not wait for it
        assert connection.sql(SQL).fetchall() == WANTED
    assert targets == ["python"] * 3
    goes_on.set()
    end = time.monotonic() + 60
    while targets[-1] == "python" and time.monotonic() < end:
        assert connection.sql(SQL).fetchall() == WANTED
    assert targets[-1] == "cpu"


def test_a_kernel_that_cannot_be_compiled_is_interpreted_on(
    tune: Tune, targets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = connected(tune)
    tried = threading.Event()

    def broken(self: CpuTarget, kernel: Any, name: Any) -> Any:
        tried.set()
        raise MemoryError

    monkeypatch.setattr(CpuTarget, "_make", broken)
    targets.clear()
    sql = SQL.replace("% 7 < 5", "% 7 <> 6").replace("k, sum", "k, sum(x) - sum(x) + sum")
    want = [(k, sum(x * 3 - k for x in range(5000) if x % 7 != 6 and x % 3 == k)) for k in range(3)]
    for _ in range(2):
        assert connection.sql(sql).fetchall() == want
    assert tried.wait(60)
    assert connection.sql(sql).fetchall() == want
    assert targets == ["python"] * 3


def test_tasks_are_done_in_turn_by_one_thread_that_ends() -> None:
    background, done, threads = Background(), [], set()
    last = threading.Event()

    def task(number: int) -> None:
        threads.add(threading.current_thread())
        done.append(number)
        if number % 5 == 0:
            raise ValueError(number)
        if number == 99:
            last.set()

    for round_ in range(2):
        last.clear()
        for number in range(1, 100):
            background.add(partial(task, number))
        assert last.wait(60)
        for thread in list(threads):
            thread.join(60)
            assert not thread.is_alive()
        assert done == list(range(1, 100)) * (round_ + 1)
