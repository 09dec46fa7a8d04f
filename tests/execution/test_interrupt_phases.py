"""An interrupt takes effect in each phase of a query: binding, optimizing, lowering, rendering, compiling."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pyarrow as pa
import pytest

import gquery
from gquery.errors import InterruptError
from gquery.kernels import render
from gquery.kernels.targets import cpu
from gquery.planner import lower, optimizer
from gquery.runtime.interrupt import Running
from gquery.runtime.threads import run_all
from gquery.sql.binding import expr as bind_expr

SQL = "SELECT s, sum(x + 1) AS v FROM t WHERE x > 1 AND s <> 'b' GROUP BY s"
PHASES = {
    "binding": (bind_expr.ExprBinder, "_bind"),
    "optimizing": (optimizer, "perf_counter"),
    "lowering": (lower.PlanLowering, "plan"),
    "rendering": (render, "_call"),
}


def connected() -> gquery.Connection:
    connection = gquery.connect("cpu")
    connection.set("interpret_limit", 0)
    table = pa.table({"x": pa.array([1, 2, 3], pa.int32()), "s": ["a", "a", "c"]})
    return connection.register("t", table)


@pytest.mark.parametrize("place", PHASES.values(), ids=PHASES)
def test_planning_is_interrupted(place: tuple[Any, str], monkeypatch: pytest.MonkeyPatch) -> None:
    connection = connected()
    plain = getattr(*place)
    reached: list[bool] = []

    def interrupting(*args: Any, **kwargs: Any) -> Any:
        if not reached:
            connection.interrupt()
        reached.append(True)
        return plain(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(*place, interrupting)
        with pytest.raises(InterruptError):
            connection.sql(SQL).fetchall()
    assert reached.count(True) <= 2  # the phase itself ends, not what follows it
    assert connection.sql(SQL).fetchall() in ([("a", 5 - 2), ("c", 4)], [("c", 4), ("a", 3)])


def test_who_waits_for_a_compiler_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = connected()
    goes_on = threading.Event()
    plain = cpu.CpuTarget._make

    def slow(self: cpu.CpuTarget, kernel: Any, name: Any) -> Any:
        connection.interrupt()
        assert goes_on.wait(60)
        return plain(self, kernel, name)

    with monkeypatch.context() as patched:
        patched.setattr(cpu.CpuTarget, "_make", slow)
        with pytest.raises(InterruptError):
            connection.sql("SELECT sum(x * 7 - 3) AS v FROM t").fetchall()
    assert not goes_on.is_set()
    goes_on.set()
    assert connection.sql("SELECT sum(x * 7 - 3) AS v FROM t").fetchall() == [(33,)]


def test_ctrl_c_is_handled_as_before_behind_a_run() -> None:
    """Also where a run is in the midst of another, and where the caller has a handler of its own."""

    def own(*_: object) -> None:
        raise AssertionError

    before = signal.getsignal(signal.SIGINT)
    running = Running()
    try:
        for handler in (signal.default_int_handler, own, signal.SIG_IGN):
            signal.signal(signal.SIGINT, handler)
            with running.one():
                within = signal.getsignal(signal.SIGINT)
                assert (within is handler) == (handler is not signal.default_int_handler)
                with running.one():
                    assert signal.getsignal(signal.SIGINT) is within
            assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_leaves_no_thread_at_work() -> None:
    """The caller goes on when all tasks that have begun have ended: they write to arrays that it lets go of."""
    begun, ended = [], []

    def task() -> None:
        begun.append(1)
        number = len(begun)
        time.sleep(0.05)  # until the caller waits
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.3 if number == 1 else 0.01)
        ended.append(1)

    with pytest.raises(KeyboardInterrupt):
        run_all([task] * 40, 2)
    assert len(begun) == len(ended) < 40
    assert not [t for t in threading.enumerate() if t.name == "gquery-work"]
