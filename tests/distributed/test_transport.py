"""Ranks that are threads: what they hand over arrives, and whatever happens to one of them, none hangs and none is left."""

from __future__ import annotations

import gc
import random
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar

import numpy as np
import pytest

from gquery.distributed.transport import Comm, RankAbortedError, local_group, run_ranks
from gquery.errors import InternalError, InterruptError
from gquery.runtime import interrupt, stopwatch

SIZES = (1, 2, 3, 4, 5, 8, 17)
Step = Callable[[Comm, int], object]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def gather(comm: Comm, at: int) -> object:
    found = comm.all_gather(f"gather {at}", (comm.rank, at))
    assert found == [(rank, at) for rank in range(comm.size)]
    return found


def exchange(comm: Comm, at: int) -> object:
    found = comm.exchange(f"exchange {at}", [(comm.rank, to, at) for to in range(comm.size)])
    assert found == [(source, comm.rank, at) for source in range(comm.size)]
    return found


def agree(comm: Comm, at: int) -> object:
    no = at % (comm.size + 1)  # the rank that says no; with ``size`` nobody does
    assert comm.agree(f"agree {at}", comm.rank != no) is (no == comm.size)
    return no


STEPS: tuple[Step, ...] = (gather, exchange, agree)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("step", STEPS)
def test_every_collective(step: Step, size: int) -> None:
    run_ranks(lambda comm: [step(comm, at) for at in range(7)], size)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_thousand_rounds(size: int) -> None:
    """Ranks that leave late still read what belongs to their round."""

    def work(comm: Comm) -> int:
        order = random.Random(comm.rank)
        for at in range(1_000):
            if order.random() < 0.02:
                time.sleep(0.0005)
            STEPS[at % len(STEPS)](comm, at)
        return comm.rank

    assert run_ranks(work, size) == list(range(size))


def test_values_go_over_by_reference() -> None:
    sent = [np.arange(3), np.arange(4)]
    first, second = run_ranks(lambda comm: comm.all_gather("arrays", sent[comm.rank]), 2)
    assert all(a is b is c for a, b, c in zip(sent, first, second, strict=True))
    assert first is not second, "a rank may do what it likes with its list"


@pytest.mark.parametrize("seed", range(60))
def test_an_error_of_a_rank_ends_all(seed: int) -> None:
    """In whatever collective the others are, or wherever they are between two."""
    order = random.Random(seed)
    size, fails_at = order.choice(SIZES[1:]), order.randrange(12)
    failing, steps = order.randrange(size), [order.choice(STEPS) for _ in range(12)]
    ended: list[BaseException | None] = []

    def work(comm: Comm) -> None:
        try:
            for at, step in enumerate(steps):
                if (comm.rank, at) == (failing, fails_at):
                    raise ZeroDivisionError(str(seed))
                step(comm, at)
        except BaseException as error:
            ended.append(error)
            raise

    with pytest.raises(ZeroDivisionError, match=f"^{seed}$") as raised:
        run_ranks(work, size)
    own = [e for e in ended if isinstance(e, ZeroDivisionError)]
    followers = [e for e in ended if isinstance(e, RankAbortedError)]
    assert own == [raised.value] and len(own) + len(followers) == size
    assert all(e.__cause__ is raised.value for e in followers)


@pytest.mark.parametrize("size", [2, 3, 8])
def test_errors_of_several_ranks_are_one_of_them(size: int) -> None:
    def work(comm: Comm) -> None:
        comm.agree("start", True)
        raise ValueError(comm.rank)

    with pytest.raises(ValueError):
        run_ranks(work, size)


def test_the_first_error_wins() -> None:
    first, second, third = local_group(3)
    second.abort(KeyError("first"))
    third.abort(ValueError("late"))
    for comm in (first, second, third):
        with pytest.raises(RankAbortedError, match="'later'") as raised:
            comm.agree("later", True)
        assert isinstance(raised.value.__cause__, KeyError)


def test_an_error_that_a_rank_tells_of_and_keeps() -> None:
    """`abort` without an exception: the others' error is the one that was told."""

    def work(comm: Comm) -> None:
        if comm.rank == 1:
            comm.abort(ZeroDivisionError("told"))
        else:
            comm.agree("never", True)

    with pytest.raises(ZeroDivisionError, match="told"):
        run_ranks(work, 3)


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("other", ["name", "collective"])
def test_ranks_that_come_for_different_things(other: str, size: int) -> None:
    seen: list[BaseException] = []

    def work(comm: Comm) -> None:
        try:
            if comm.rank != size - 1:
                comm.exchange("states", [1] * size)
            elif other == "name":
                comm.exchange("counts", [1] * size)
            else:
                comm.all_gather("states", 1)
        except InternalError as error:
            seen.append(error)
            raise

    with pytest.raises(InternalError) as raised:
        run_ranks(work, size)
    odd = {"name": "'counts'", "collective": "all_gather"}[other]
    assert odd in str(raised.value) and "exchange of 'states'" in str(raised.value)
    assert len(seen) == size and {str(e) for e in seen} == {str(raised.value)}, "all of them raise it"


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_rank_that_ends_early_hangs_nobody(missing: int) -> None:
    def work(comm: Comm) -> None:
        comm.agree("all", True)
        if comm.rank != missing:
            comm.agree("most", True)

    with pytest.raises(InternalError, match=f"rank {missing} has ended, and others wait for it"):
        run_ranks(work, 3)


def test_wrong_numbers_are_told() -> None:
    (comm,) = local_group(1)
    with pytest.raises(InternalError, match="2 parts for 1 ranks in exchange of 'rows'"):
        comm.exchange("rows", [1, 2])
    with pytest.raises(InternalError, match="a group of 0 ranks"):
        local_group(0)


def interrupted(work: Callable[[Comm], object], size: int, stop: Callable[[interrupt.Token], None]) -> None:
    """Run ranks as a query of this thread's whose token another thread sets."""
    running = interrupt.Running()
    with running.one():
        token = interrupt.current()
        assert token is not None
        timer = threading.Thread(target=stop, args=(token,))
        timer.start()
        try:
            run_ranks(work, size)
        finally:
            timer.join()


@pytest.mark.parametrize("size", [1, 2, 5])
def test_an_interrupt_ends_a_wait_and_work(size: int) -> None:
    """Rank 0 computes and looks at its token, the others wait for it."""
    waits = threading.Barrier(size + 1)
    ended: list[type[BaseException]] = []

    def work(comm: Comm) -> None:
        waits.wait()
        try:
            if comm.rank == 0:
                while True:
                    interrupt.check()
                    time.sleep(0.001)
            comm.all_gather("never", 0)
        except BaseException as error:
            ended.append(type(error))
            raise

    def stop(token: interrupt.Token) -> None:
        waits.wait()
        token.stopped = True

    with pytest.raises(InterruptError):
        interrupted(work, size, stop)
    assert len(ended) == size and set(ended) <= {InterruptError, RankAbortedError}


@pytest.mark.parametrize("times", [1, 2])
def test_control_c_ends_all(times: int) -> None:
    """Two ranks wait, and one takes a while to notice; the second signal comes while the main thread waits for that one."""
    waits, pressed = threading.Barrier(4), threading.Event()

    def work(comm: Comm) -> None:
        waits.wait()
        if comm.rank == 0:
            pressed.wait()
            time.sleep(0.2)
            interrupt.check()
        comm.agree("never", comm.rank == 0)

    def press() -> None:
        waits.wait()
        for _ in range(times):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.1)
        pressed.set()

    presser = threading.Thread(target=press)
    with interrupt.Running().one():
        presser.start()
        with pytest.raises((KeyboardInterrupt, InterruptError)):
            run_ranks(work, 3)
        presser.join()
        token = interrupt.current()
        assert token is not None and token.stopped
        token.told = True  # what the end of the run would tell


def test_an_error_of_a_rank_stops_work_that_looks_for_interrupts() -> None:
    def work(comm: Comm) -> None:
        if comm.rank == 1:
            raise ZeroDivisionError
        while True:
            interrupt.check()
            time.sleep(0.001)

    with pytest.raises(ZeroDivisionError):
        run_ranks(work, 3)


def test_ranks_work_for_their_caller() -> None:
    """Context variables are those of the caller, changes stay with the rank; the watch is rank 0's."""
    variable: ContextVar[str] = ContextVar("variable")
    variable.set("caller")
    watch = stopwatch.Watch()

    def work(comm: Comm) -> tuple[str, bool]:
        found = variable.get()
        variable.set("rank")
        comm.agree("both", True)
        return found, stopwatch.current() is watch

    with stopwatch.watched(watch):
        assert run_ranks(work, 2) == [("caller", True), ("caller", False)]
    assert variable.get() == "caller" and stopwatch.current() is None


def test_threads_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that have begun do not wait for the others."""
    start = threading.Thread.start

    def fails(thread: threading.Thread) -> None:
        if thread.name == "gquery-rank-2":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", fails)
    with pytest.raises(RuntimeError, match="can't start"):
        run_ranks(lambda comm: comm.agree("all", True), 4)


def test_an_error_holds_nothing_once_it_is_handled() -> None:
    """What the ranks held is freed with the error, without the collector."""
    held: list[weakref.ref[object]] = []

    def work(comm: Comm) -> None:
        array = np.zeros(10)
        held.append(weakref.ref(array))
        comm.agree("all", True)
        if comm.rank == 1:
            raise ZeroDivisionError
        comm.all_gather("arrays", array)

    gc.disable()
    try:
        with suppress(ZeroDivisionError):
            run_ranks(work, 3)
        assert [ref() for ref in held] == [None] * 3
    finally:
        gc.enable()
