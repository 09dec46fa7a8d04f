"""Transport: how the ranks of a run meet, hand values over, and end together.

A rank has a `Comm` and shares nothing else with the others. All ranks come to the same collectives in the same order; a
collective ends on all of them or on none. `local_group` joins ranks that are threads of this process: values go over by
reference, so nobody writes to what he has handed over. `run_ranks` starts such threads in the name of the caller.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

from gquery import tuning
from gquery.errors import InternalError, InterruptError
from gquery.runtime import interrupt, stopwatch
from gquery.runtime.tuples import NamedTuple

T = TypeVar("T")


class RankAbortedError(Exception):
    """Another rank has failed, and this one follows; ``__cause__`` is the first error. It never leaves `run_ranks`."""


class Comm(Protocol):
    """The place of a rank among ``size`` ranks, numbered from 0. ``what`` names a collective by stage and purpose: ranks that
    come with different names, or to different collectives, all raise an InternalError that names both. A wait ends by an
    InterruptError when the rank's query is interrupted."""

    @property
    def rank(self) -> int:
        """The number of this rank."""

    @property
    def size(self) -> int:
        """How many ranks there are."""

    def all_gather(self, what: str, value: T) -> list[T]:
        """Every rank's value in rank order."""
        ...

    def exchange(self, what: str, parts: Sequence[T]) -> list[T]:
        """``parts[d]`` goes to rank d; what came here, in the order of the sources."""
        ...

    def agree(self, what: str, vote: bool) -> bool:
        """Whether all said yes."""
        ...

    def abort(self, error: BaseException) -> None:
        """Have all ranks that wait in a collective, or enter one later, raise RankAbortedError. The first error wins."""
        ...


def local_group(size: int) -> tuple[Comm, ...]:
    """The ranks of threads of this process, each to be used by one thread at a time."""
    return _local_group(size)


def _local_group(size: int) -> tuple[_LocalComm, ...]:
    if size < 1:
        raise InternalError(f"a group of {size} ranks")
    group = _Group(size)
    return tuple(_LocalComm(group, rank) for rank in range(size))


class _Call(NamedTuple):
    """What a rank comes for; all ranks of a meeting come for the same."""

    collective: str
    what: str

    def __str__(self) -> str:
        return f"{self.collective} of {self.what!r}"


class _Meeting:
    """One collective: who has come, and what each has brought. Ranks that leave late read theirs while the next one begins."""

    __slots__ = ("call", "came", "values")

    def __init__(self, size: int) -> None:
        self.call: tuple[int, _Call] | None = None  # of the rank that came first
        self.came = 0
        self.values: list[Any] = [None] * size


class _Group:
    """What the ranks of a process share: the meeting that is not full yet, of which there is one at a time, since nobody leaves a
    meeting before all have come. Who waits has a lock of its own, so that those who are woken do not meet again at one."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._lock = threading.Lock()
        self._meeting = _Meeting(size)
        self._gates = [threading.Lock() for _ in range(size)]  # held, but for a moment when its rank is woken
        for gate in self._gates:
            gate.acquire()
        self._waiting: list[int] = []  # ranks
        self._error: BaseException | None = None
        self._is_fault = False  # whether the ranks came for different things: then each raises that itself

    def abort(self, error: BaseException, is_fault: bool = False) -> None:
        """Wake who waits, and let nobody meet any more."""
        with self._lock:
            if self._error is None:
                self._error, self._is_fault = error, is_fault
            self._wake()

    def close(self) -> None:
        """Hold no error any longer."""
        with self._lock:
            self._error, self._is_fault = InternalError("the ranks of the group have ended"), False

    def meet(self, rank: int, call: _Call, value: Any) -> list[Any]:
        """The values of all ranks, once they have come. InternalError where one comes for something else."""
        with self._lock:
            self._raise_if_aborted(rank, call)
            meeting = self._meeting
            if meeting.call is None:
                meeting.call = (rank, call)
            first, wanted = meeting.call
            if wanted == call:
                meeting.values[rank] = value
                meeting.came += 1
                if meeting.came == self.size:
                    self._meeting = _Meeting(self.size)
                    self._wake()
                    return meeting.values
                self._waiting.append(rank)
        if wanted != call:
            self.abort(InternalError(f"rank {first} is at {wanted}, rank {rank} at {call}"), is_fault=True)
        else:
            self._wait(self._gates[rank])
        if meeting.came < self.size:
            self._raise_if_aborted(rank, call)
        return meeting.values

    def _wake(self) -> None:
        for rank in self._waiting:
            self._gates[rank].release()
        self._waiting.clear()

    def _wait(self, gate: threading.Lock) -> None:
        """Until woken: whoever is on the list is, once."""
        try:
            while not gate.acquire(timeout=tuning.memory.wait_seconds):
                if self._error is None:
                    interrupt.check()
        except BaseException as error:  # the others would take this rank as one that has come
            self.abort(error)
            raise

    def _raise_if_aborted(self, rank: int, call: _Call) -> None:
        if self._error is None:
            return
        if self._is_fault:
            raise InternalError(str(self._error))
        raise RankAbortedError(f"rank {rank} follows another that has failed, at {call}") from self._error


class _LocalComm:
    """See `Comm`; of a rank that is a thread."""

    def __init__(self, group: _Group, rank: int) -> None:
        self._group, self.rank, self.size = group, rank, group.size

    def all_gather(self, what: str, value: T) -> list[T]:
        return list(self._group.meet(self.rank, _Call("all_gather", what), value))

    def exchange(self, what: str, parts: Sequence[T]) -> list[T]:
        if len(parts) != self.size:
            raise InternalError(
                f"rank {self.rank} has {len(parts)} parts for {self.size} ranks in exchange of {what!r}"
            )
        return [sent[self.rank] for sent in self._group.meet(self.rank, _Call("exchange", what), parts)]

    def agree(self, what: str, vote: bool) -> bool:
        return all(self._group.meet(self.rank, _Call("agree", what), vote))

    def abort(self, error: BaseException) -> None:
        self._group.abort(error)

    def close(self) -> None:
        """Hold no error any longer; nobody waits here."""
        self._group.close()


# ---- threads --------------------------------------------------------------------------------------------------------


def run_ranks(work: Callable[[Comm], T], size: int) -> list[T]:
    """What ``work`` returns on each of ``size`` threads, in rank order; none is left when it ends. Each thread works for the
    caller's query: it has its context variables, its interrupts, and on rank 0 its watch, which one thread alone may write to.
    The first error of a rank stops the others, at their next collective or look for an interrupt, and is raised."""
    ranks = _Ranks(work, size)
    try:
        ranks.start()
        ranks.wait()
    except BaseException as error:  # of the caller: raised when all have ended
        with suppress(InterruptError), interrupt.holding():  # who presses Ctrl-C twice leaves no thread either
            ranks.fail(error)
            ranks.join()
    ranks.join()
    first = ranks.close()
    if first is None:
        return ranks.results
    try:
        raise first
    finally:
        del ranks, first  # else the error would hold its own trace, and what the ranks held with it


class _Ranks(Generic[T]):
    """Ranks that are threads, and what becomes of them. They have a token of their own, since an error stops them, too."""

    def __init__(self, work: Callable[[Comm], T], size: int) -> None:
        self._work = work
        self._comms = _local_group(size)
        self._token, self._watch = interrupt.Token(), stopwatch.current()
        self._errors: list[BaseException] = []  # of those that follow, too, behind the one that they follow
        self._made: dict[int, T] = {}
        self._threads: list[threading.Thread] = []
        self._ended: list[int] = []
        self._bell: SimpleQueue[None] = SimpleQueue()  # rung by each that ends

    @property
    def results(self) -> list[T]:
        return [self._made[comm.rank] for comm in self._comms]

    def start(self) -> None:
        for comm in self._comms:
            run = partial(copy_context().run, self._run, comm)
            thread = threading.Thread(target=run, name=f"gquery-rank-{comm.rank}", daemon=True)
            with interrupt.holding():
                thread.start()
                self._threads.append(thread)

    def wait(self) -> None:
        """Until all have ended, or the caller is interrupted. (A `Thread.join` that Ctrl-C ends takes the thread for one that has
        ended, up to Python 3.12.)"""
        while len(self._ended) < len(self._threads):
            with suppress(Empty):
                self._bell.get(timeout=tuning.memory.wait_seconds)
            interrupt.check()

    def fail(self, error: BaseException) -> None:
        """Have all ranks stop because of an error, unless there was one before."""
        self._errors.append(error)
        self._comms[0].abort(error)
        self._token.stopped = True

    def join(self) -> None:
        """Until all have ended, whoever else presses Ctrl-C."""
        while len(self._ended) < len(self._threads):
            try:
                self._bell.get(timeout=tuning.memory.wait_seconds)
            except Empty:
                continue
            except KeyboardInterrupt as error:
                self.fail(error)
        for thread in self._threads:
            thread.join()

    def close(self) -> BaseException | None:
        """The first error, if there was one; it is held here no longer."""
        first = self._errors[0] if self._errors else None
        self._errors.clear()
        for comm in self._comms:
            comm.close()
        return first.__cause__ if isinstance(first, RankAbortedError) else first

    def _run(self, comm: _LocalComm) -> None:
        try:
            with interrupt.acting_for(self._token), stopwatch.watched(self._watch if comm.rank == 0 else None):
                self._made[comm.rank] = self._work(comm)
        except BaseException as error:  # raised again by the caller
            self.fail(error)
        finally:  # who waits for a rank that has ended would wait for ever
            comm.abort(InternalError(f"rank {comm.rank} has ended, and others wait for it"))
            self._ended.append(comm.rank)
            self._bell.put(None)
