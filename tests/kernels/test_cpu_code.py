"""Machine code for the CPU: loaded, let go of with the last reference, not under a thread that runs it."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import gquery
from gquery import tuning
from gquery.kernels.targets import cpu_llvm, get_target, workers
from gquery.kernels.targets.base import Compiled
from gquery.kernels.targets.compilers import compiling_by
from gquery.kernels.targets.cpu import CpuTarget
from gquery.kernels.targets.workers import Workers
from gquery.runtime.recent import Recent
from tests.kernels.test_targets import columns, expected, filtered_sum, fresh_state
from tests.support.tuned import Tune


@pytest.fixture(autouse=True)
def fresh_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path / "cache"))


Engines = weakref.WeakSet[Any]


@pytest.fixture(params=["llvm", "numba"])
def engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engines]:
    """The machine code of kernels of either compiler that is in memory and not freed: it is when nobody has it."""
    with compiling_by(request.param):
        check(CpuTarget().compile(filtered_sum("before")))  # Numba has engines of its own
        opened: Engines = weakref.WeakSet()
        place, name = (cpu_llvm, "LoadedObject") if request.param == "llvm" else (llvm, "create_mcjit_compiler")
        create = getattr(place, name)

        def opening(*args: Any) -> Any:
            made = create(*args)
            opened.add(made)
            return made

        monkeypatch.setattr(place, name, opening)
        yield opened


def check(compiled: Compiled) -> None:
    a, b = columns()
    state = fresh_state()
    compiled.entry(0, a.size, a.ctypes.data, b.ctypes.data, 10, state.ctypes.data)
    assert state.tolist() == expected(a, b, 10)


def test_the_engine_of_a_dropped_kernel_is_closed(engines: Engines) -> None:
    target = CpuTarget()
    target._compiled = Recent(4)
    for n in range(3):
        check(target.compile(filtered_sum(f"first{n}")))
    assert len(engines) == 3
    for n in range(6):
        check(target.compile(filtered_sum(f"other{n}")))
    gc.collect()
    assert len(engines) <= 4
    held = target.compile(filtered_sum("held"))
    target._compiled.clear()
    check(held)
    del held
    gc.collect()
    assert not engines


def test_a_kernel_is_not_freed_under_a_thread_that_runs_it(engines: Engines) -> None:
    target = CpuTarget()
    target._compiled = Recent(2)
    a, b = np.zeros(2_000_000, np.int32), np.ones(2_000_000, np.int64)
    wrong: list[object] = []
    done = threading.Event()

    def run(number: int) -> None:
        while not done.is_set():
            state = fresh_state()
            made = target.compile(filtered_sum(f"shared{number}")).entry  # the other thread drops it meanwhile
            made(0, a.size, a.ctypes.data, b.ctypes.data, 10, state.ctypes.data)
            if state[0] != a.size:
                wrong.append(state)

    threads = [threading.Thread(target=copy_context().run, args=(run, n)) for n in range(3)]
    for thread in threads:
        thread.start()
    done.wait(0.3)
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_queries_of_several_threads_drop_each_others_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(get_target("cpu"), "_compiled", Recent(2))
    with gquery.connect(device="cpu") as connection:
        connection.sql("SET interpret_limit = 0")
        connection.sql("CREATE TABLE t AS SELECT i, i % 7 AS k FROM range(1000) r(i)")
        texts = {
            "SELECT sum(i) FROM t WHERE k < 3": [(sum(i for i in range(1000) if i % 7 < 3),)],
            "SELECT count(*) FROM t WHERE i * 2 > k": [(sum(i * 2 > i % 7 for i in range(1000)),)],
            "SELECT max(i - k) FROM t": [(max(i - i % 7 for i in range(1000)),)],
        }
        wrong: list[object] = []

        def ask(first: int) -> None:
            cursor = connection.cursor()
            for n in range(30):
                sql = list(texts)[(first + n) % 3]
                found = cursor.execute(sql).fetchall()
                if found != texts[sql]:
                    wrong.append((sql, found))

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    pool = Workers(1)
    monkeypatch.setattr(workers, "_workers", pool)
    yield pool
    pool.stop()


def test_a_process_that_has_compiled_much_has_others_compile(pool: Workers, tune: Tune) -> None:
    """What LLVM's passes leave behind is left in them."""
    tune(tuning.compiling, own_kernels=2)
    target = CpuTarget()
    for n in range(5):
        check(target.compile(filtered_sum(f"many{n}")))
    assert target._made == 2
    assert pool.has_ready


def test_where_there_are_no_workers(pool: Workers, tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr("subprocess.Popen", fail)
    tune(tuning.compiling, own_kernels=0)
    check(CpuTarget().compile(filtered_sum("alone")))
