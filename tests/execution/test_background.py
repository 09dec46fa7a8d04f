"""What is interpreted again and again is compiled beside the queries, by threads that nobody waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gquery
from gquery import tuning
from gquery.execution import choose, program
from gquery.execution.state import StageReport
from gquery.kernels.targets import workers
from gquery.kernels.targets.background import Background, background
from gquery.kernels.targets.cache import KernelSource
from gquery.kernels.targets.cpu import TARGET, CpuTarget
from gquery.kernels.targets.workers import Workers
from tests.support.quiet import wait_until_quiet
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
    wait_until_quiet(background())  # what other tests left counts as made by this process
    monkeypatch.setattr("gquery.kernels.targets.background._background", Background())
    monkeypatch.setattr(choose, "cached", lambda *_: "nothing")
    return found


def connected(tune: Tune) -> gquery.Connection:
    tune(tuning.compiling, own_kernels=10**9)
    never = dict.fromkeys(("break_even_seconds", "draft_seconds", "trial_seconds", "most_seconds"), 1e9)
    tune(tuning.interpreting, background_seconds=0.0, **never)
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


def test_a_worker_that_is_up_compiles_what_nobody_waits_for(
    tune: Tune, targets: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And this process loads what it made."""
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path))
    pool = Workers(1)
    monkeypatch.setattr(workers, "_workers", pool)
    connection = connected(tune)
    made = TARGET._made
    try:
        pool.compile_later([("cpu_llvm", KernelSource("knothing", lambda: ""), (0, 0))])  # which starts it
        end = time.monotonic() + 60
        while not pool.has_ready and time.monotonic() < end:
            time.sleep(0.01)
        targets.append("")
        while targets[-1] != "cpu" and time.monotonic() < end:
            assert connection.sql(SQL.replace("% 7 < 5", "% 7 <= 4")).fetchall() == WANTED
    finally:
        pool.stop()
    assert targets[-1] == "cpu"
    assert TARGET._made == made


def test_tasks_are_done_by_a_few_threads_that_end() -> None:
    background, done, threads = Background(), [], set()

    def task(number: int) -> None:
        threads.add(threading.current_thread())
        assert sum(t.is_alive() for t in threads) <= tuning.interpreting.background_threads
        done.append(number)
        if number % 5 == 0:
            raise ValueError(number)

    for round_ in range(2):
        for number in range(1, 100):
            background.add(partial(task, number), number)
            if number % 16 == 0:  # no more wait than are kept
                wait_until(done, 99 * round_ + number)
        wait_until(done, 99 * (round_ + 1))
        for thread in list(threads):
            thread.join(60)
            assert not thread.is_alive()
    assert sorted(done) == sorted(2 * list(range(1, 100)))


def test_what_waits_or_has_begun_is_not_begun_again(tune: Tune) -> None:
    tune(tuning.interpreting, background_threads=1)
    background, done, goes_on, has_begun = Background(), [], threading.Event(), threading.Event()

    def first() -> None:
        has_begun.set()
        assert goes_on.wait(60)
        done.append(1)

    background.add(first, "a")
    assert has_begun.wait(60)
    for name in "aabab":
        background.add(partial(done.append, 2), name)
    goes_on.set()
    wait_until(done, 2)
    wait_until_quiet(background)
    assert done == [1, 2]
    background.add(partial(done.append, 3), "a")  # what is done may be asked for again
    wait_until(done, 3)


def wait_until(done: list[int], count: int) -> None:
    end = time.monotonic() + 60
    while len(done) < count:
        assert time.monotonic() < end
        time.sleep(0.001)
