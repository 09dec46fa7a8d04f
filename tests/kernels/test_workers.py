"""Processes that compile kernels: what they are given, and what happens when they end too early."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from gquery import tuning
from gquery.kernels.builtin.registry import encoding_kernels
from gquery.kernels.targets import cpu, cuda, get_target, workers
from gquery.kernels.targets.cache import OTHER_BUILD, KernelSource, kernel_cache, kernel_source
from gquery.kernels.targets.cpu_numba import make_code
from gquery.kernels.targets.workers import Request, Workers
from tests.support.tuned import Tune

TEXT = """
from gquery.kernels.targets.cpu_primitives import entry


@entry("")
def kernel(lo, hi):
    return
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def pool(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    pool = Workers(2)
    yield pool
    pool.stop()


def requests(count: int) -> list[Request]:
    assert get_target("cpu")
    return [("cpu_numba", kernel_source(f"# {k}\n{TEXT}", "cpu"), (0, 0)) for k in range(count)]


def is_compiled(request: Request) -> bool:
    return kernel_cache().read(f"{request[1].name}.cpu") is not None


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def held_back(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Request], threading.Event]:
    """What workers are given from now on, and an event before which they do nothing of it."""
    given: list[Request] = []
    goes_on, ask = threading.Event(), workers._Line.ask

    def noted(self: workers._Line, request: Request, is_careful: bool) -> bool:
        assert goes_on.wait(60)
        given.append(request)
        return ask(self, request, is_careful)

    monkeypatch.setattr(workers._Line, "ask", noted)
    return given, goes_on


def refuse(request: Request) -> None:
    raise AssertionError("a worker was to compile it")


def test_kernels_are_compiled_here_and_there(pool: Workers) -> None:
    wanted, here = requests(4), []

    def compile_here(request: Request) -> None:
        here.append(request)
        make_code(request[1])

    pool.compile_at_once(wanted, compile_here)
    assert all(is_compiled(r) for r in wanted)
    assert here, "no worker is there when the first one is asked for"


def test_what_may_be_wanted_later(pool: Workers) -> None:
    wanted = requests(3)
    pool.compile_later(wanted)
    wait_for(lambda: all(is_compiled(r) for r in wanted))
    assert pool.has_ready
    more = requests(4)[3:]
    pool.compile_at_once(more, refuse)
    assert is_compiled(more[0])


def test_what_comes_behind_queries_comes_before_what_may_be_wanted_later(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    given, goes_on = held_back(monkeypatch)
    first, later, behind, *urgent = requests(7)
    pool.compile_later([first, later])
    wait_for(lambda: pool._speculative == 1)  # as many as there may be
    waits = threading.Thread(target=pool.compile_behind, args=[behind])
    asks = threading.Thread(target=pool.compile_at_once, args=(urgent, refuse, 4))
    waits.start()
    wait_for(lambda: behind in pool._open)
    asks.start()
    wait_for(lambda: pool._ready == 2 and len(pool._urgent) == 3)
    goes_on.set()
    for thread in (waits, asks):
        thread.join(60)
        assert not thread.is_alive()
    assert is_compiled(behind)
    wait_for(lambda: is_compiled(later))
    assert given.index(behind) < given.index(later)
    assert max(map(given.index, urgent[:3])) < given.index(behind)


def test_what_is_compiled_early_comes_before_what_is_brought_forward(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    given, goes_on = held_back(monkeypatch)
    first, *later, unknown = requests(6)
    drafts = requests(8)[6:]
    pool.compile_later([first])
    wait_for(lambda: pool._speculative == 1)
    pool.compile_later(later)
    pool.compile_early(drafts)
    pool.bring_forward([later[3], later[2], drafts[1], unknown])
    assert [task.request for task in pool._later] == [later[3], later[2], later[0], later[1]]
    assert unknown not in pool._open, "nobody asked for it"
    goes_on.set()
    wait_for(lambda: not pool._open)
    assert given == [first, *drafts, later[3], later[2], later[0], later[1]]


def test_what_is_compiled_early_can_become_urgent(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    _, goes_on = held_back(monkeypatch)
    first, early, wanted = requests(3)
    pool.compile_early([first, early, wanted])
    wait_for(lambda: pool._speculative == 1)
    pool.compile_soon([wanted])
    assert [task.request for task in pool._early] == [early]
    goes_on.set()
    wait_for(lambda: not pool._open)
    assert all(map(is_compiled, (first, early, wanted)))


def test_nobody_waits_behind_queries_for_workers_that_are_gone(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was to be compiled is not: who asked does it."""

    def refused(*_: object) -> object:
        raise OSError

    monkeypatch.setattr(workers, "_parent", refused)
    pool.compile_behind(requests(1)[0])
    assert not pool._open and not pool._later and not pool._early


def test_a_worker_that_dies_loses_nothing(pool: Workers) -> None:
    pool.compile_later(requests(2))
    wait_for(lambda: pool.has_ready)
    assert pool._parent is not None
    os.killpg(pool._parent.pid, signal.SIGKILL)
    here: list[Request] = []
    wanted = requests(6)[2:]
    pool.compile_at_once(wanted, here.append)
    assert here, "nobody else was left"
    assert all(is_compiled(r) or r in here for r in wanted)


def test_what_workers_die_of_is_not_optimized(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two may die of a kernel; the third leaves the optimizer out, and whoever asked goes on."""
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    pool = Workers(4)
    deadly, well = requests(2)
    given: list[tuple[Request, bool]] = []
    ask = workers._Line.ask

    def dies(self: workers._Line, request: Request, is_careful: bool) -> bool:
        given.append((request, is_careful))
        return ask(self, request, is_careful) if is_careful or request != deadly else False

    monkeypatch.setattr(workers._Line, "ask", dies)
    try:
        pool.compile_at_once([deadly, well], refuse, elsewhere=True)
        assert is_compiled(deadly) and is_compiled(well)
        assert [careful for request, careful in given if request == deadly] == [False, False, True]
        assert pool.has_died_of(deadly) and not pool.has_died_of(well)
    finally:
        pool.stop()


def test_a_kernel_that_all_workers_die_of_is_given_up(pool: Workers) -> None:
    """Its text ends the process that runs it."""
    text = f"import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n{TEXT}"
    deadly = ("cpu_numba", kernel_source(text, "cpu"), (0, 0))
    for _ in range(3):  # two workers at a time
        here: list[Request] = []
        pool.compile_at_once([deadly, *requests(1)], here.append, elsewhere=True)
    assert pool.has_died_of(deadly)
    assert not is_compiled(deadly)
    assert not pool._open and not pool._urgent


def test_workers_end_when_there_is_nothing_to_do(pool: Workers, tune: Tune) -> None:
    tune(tuning.compiling, idle_seconds=0.05)
    pool.compile_later(requests(1))
    parent = pool._parent
    assert parent is not None
    wait_for(lambda: not pool._threads)
    wait_for(lambda: parent.returncode is not None)
    assert parent.returncode == 0
    assert not pool.has_ready
    pool.compile_later(requests(2)[1:])  # and start again
    wait_for(lambda: is_compiled(requests(2)[1]))


def test_workers_of_another_build_refuse(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their machine code would lie under our names; kernels are compiled here, and no worker is started again."""
    monkeypatch.setattr(workers, "build_hash", lambda: "that of the sources which this process has loaded")
    here: list[Request] = []
    pool.compile_later(requests(1))
    parent = pool._parent
    assert parent is not None
    pool.compile_at_once(requests(3)[1:], here.append, elsewhere=True)
    assert here == requests(3)[1:]
    wait_for(lambda: parent.returncode is not None)
    assert parent.returncode == OTHER_BUILD
    wait_for(lambda: pool._is_refused)
    pool.compile_later(requests(5)[3:])
    assert pool._parent is None and not pool._open
    assert not any(is_compiled(r) for r in requests(5))


def test_another_package_in_the_working_folder(
    pool: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker has the package that this process has, wherever it is started: else it would refuse, or be somebody else's."""
    (tmp_path / "gquery").mkdir()
    (tmp_path / "gquery" / "__init__.py").write_text("raise SystemExit('another')\n")
    monkeypatch.chdir(tmp_path)
    pool.compile_later(requests(2))
    wait_for(lambda: all(is_compiled(r) for r in requests(2)))


def test_a_worker_that_has_compiled_many_is_replaced(pool: Workers, tune: Tune) -> None:
    """By a fork that takes over its pipes: nobody notices."""
    tune(tuning.compiling, worker_kernels=2)
    single = Workers(1)
    for request in requests(7):
        single.compile_at_once([request], refuse, elsewhere=True)
        assert is_compiled(request)
    parent = single._parent
    assert parent is not None
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    assert len(children) == 1
    single.stop()


def test_a_failure_here_ends_the_wait(pool: Workers) -> None:
    with pytest.raises(AssertionError):
        pool.compile_at_once(requests(40), refuse)
    assert not pool._urgent, "nobody waits for the others"


def test_two_that_want_the_same(pool: Workers) -> None:
    """Each kernel is compiled once, and both wait until it is there."""
    wanted, seen = requests(3), []

    def ask() -> None:
        pool.compile_at_once(wanted, lambda r: make_code(r[1]))
        seen.append(all(is_compiled(r) for r in wanted))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert seen == [True, True]
    assert not pool._open


def test_a_thread_compiles_its_own(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another thread has asked for, and has not begun, needs what that thread knows: a query failed by it where a kernel was
    compiled in the background meanwhile."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    first, second, third = requests(3)
    begun, go, mine, theirs = threading.Event(), threading.Event(), list[Request](), list[Request]()

    def slowly(request: Request) -> None:
        theirs.append(request)
        begun.set()
        assert go.wait(60)

    other = threading.Thread(target=pool.compile_at_once, args=([first, second], slowly))
    other.start()
    assert begun.wait(60)
    pool.compile_at_once([third], mine.append)
    go.set()
    other.join()
    assert (mine, theirs) == ([third], [first, second])


@pytest.mark.parametrize("what", ["process", "pipe"])
def test_where_no_worker_can_be_started(what: str, pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr("subprocess.Popen" if what == "process" else "os.pipe", fail)
    here: list[Request] = []
    pool.compile_later(requests(2))
    pool.compile_at_once(requests(3), here.append)
    assert set(requests(3)) >= set(here)
    assert len(here) == 3


def test_a_text_that_cannot_be_made_stops_nobody(pool: Workers) -> None:
    """The thread that serves a worker lives on, and who waits is let go."""

    def fail() -> str:
        raise ValueError("no text")

    pool.compile_later(requests(1))
    wait_for(lambda: pool.has_ready)
    pool.compile_at_once([("cpu_numba", KernelSource("knothing", fail), (0, 0))], refuse, elsewhere=True)
    more = requests(2)[1:]
    pool.compile_at_once(more, refuse, elsewhere=True)
    assert is_compiled(more[0])


def test_who_wants_what_a_worker_has_waits_for_it(pool: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops that columns are encoded with, compiled ahead: nothing is compiled here, and nothing twice."""
    monkeypatch.setattr(cpu, "workers", lambda: pool)
    target, kernels = cpu.CpuTarget(), encoding_kernels()[:2]
    monkeypatch.setattr(target, "_make_code", lambda name, source: refuse(("", source, (0, 0))))
    target.precompile(kernels)
    wait_for(lambda: pool.has_ready)
    assert all(target.compile(k).cached for k in kernels)
    pool.stop()
    target.precompile(kernels)
    assert not pool._open


def test_a_gpu_has_loops_for_its_host_compiled_behind_its_own(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Recorded(Workers):
        def compile_early(self, requests: Sequence[Request]) -> None:
            asked.extend(compiler for compiler, _, _ in requests)

        compile_later = compile_early

    pool = Recorded(2)
    for module in (cpu, cuda):
        monkeypatch.setattr(module, "workers", lambda: pool)
    monkeypatch.setattr(cuda, "_device", lambda: 0)
    monkeypatch.setattr(cuda, "_capability", lambda device: (9, 0))
    cuda.CudaTarget().precompile()
    own = len(encoding_kernels())
    assert set(asked[:-own]) == {"cuda_draft"} and asked[-own:] == ["cpu_llvm"] * own
