"""Tasks on threads: many small ones that NumPy and Arrow do without the interpreter's lock.

Work comes as generators, each of which yields lists of tasks: what it yields next may rely on all of them having ended,
and what it returns is its result. Generators do not wait for one another, so one column can be in its last phase while
another is still being decoded.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, suppress
from contextvars import copy_context
from typing import Generic, TypeVar

from gquery import tuning
from gquery.runtime.interrupt import check, holding

T = TypeVar("T")
Task = Callable[[], None]
Phases = Generator[list[Task], None, T]


def core_count() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def run_phases(phases: Sequence[Phases[T]], workers: int) -> list[T]:
    """What the generators return, their tasks run on up to so many threads, those of the first ones first. The first error
    ends everything and is raised; so does an interrupt of the calling thread's query."""
    if workers <= 1:
        return [_run_here(generator) for generator in phases]
    work = _Work(phases)
    helpers: list[Helper] = []
    try:
        with holding(), work.held():  # Ctrl-C: who has started is waited for
            helpers += [Helper(work.go, "gquery-work") for _ in range(workers)]
        for helper in helpers:
            while not helper.has_ended(tuning.memory.wait_seconds):
                check()
    finally:
        work.stop()
        for helper in helpers:
            helper.join()
    if work.errors:
        raise work.errors[0]
    return [work.results[number] for number in range(len(phases))]


class Helper:
    """A thread that works in the name of the one that starts it, and says itself when it has ended: `threading.Thread.join`, when
    Ctrl-C ends it, takes the thread for one that has ended, up to Python 3.12."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self._ended = threading.Event()
        self._work = work
        self._thread = threading.Thread(target=copy_context().run, args=(self._run,), name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._ended.set()

    def has_ended(self, seconds: float) -> bool:
        """Whether it has; waits for so long at most."""
        return self._ended.wait(seconds)

    def join(self) -> None:
        """Until it has ended, whoever presses Ctrl-C meanwhile."""
        while not self._ended.is_set():
            with suppress(KeyboardInterrupt):
                self._ended.wait()
        self._thread.join()


def run_all(tasks: Sequence[Task], workers: int) -> None:
    """Run tasks that know nothing of each other; errors and interrupts as in `run_phases`."""

    def once() -> Phases[None]:
        yield list(tasks)

    run_phases([once()], min(workers, len(tasks)))


def _run_here(generator: Phases[T]) -> T:
    while True:
        try:
            tasks = next(generator)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        for task in tasks:
            check()
            task()


class _Work(Generic[T]):
    """Generators and their tasks, which threads take one after another."""

    def __init__(self, phases: Sequence[Phases[T]]) -> None:
        self._phases = phases
        self._left = [0] * len(phases)  # tasks of the phase that have not ended
        self._unstarted = deque(range(len(phases)))
        self._ready: deque[tuple[int, Task]] = deque()
        self._change = threading.Condition()
        self._stopped = False
        self.results: dict[int, T] = {}
        self.errors: list[BaseException] = []

    def held(self) -> AbstractContextManager[object]:
        """Within it, threads that start wait. To start the next one takes the interpreter's lock, for which whoever computes
        already would let it wait up to 5 ms."""
        return self._change

    def stop(self) -> None:
        with self._change:
            self._stopped = True
            self._change.notify_all()

    def go(self) -> None:
        """What each thread does until there is nothing left."""
        try:
            while (step := self._next()) is not None:
                step()
        except BaseException as error:  # handed over to the thread that waits
            self.errors.append(error)
            self.stop()

    def _next(self) -> Task | None:
        """Something to do; waits where only others have something. None at the end."""
        with self._change:
            while not self._stopped and len(self.results) < len(self._phases):
                if self._ready:
                    number, task = self._ready.popleft()
                    return lambda: self._run(number, task)
                if self._unstarted:
                    number = self._unstarted.popleft()
                    return lambda: self._advance(number)
                self._change.wait()
            return None

    def _run(self, number: int, task: Task) -> None:
        task()
        with self._change:
            self._left[number] -= 1
            is_last = self._left[number] == 0
        if is_last:
            self._advance(number)

    def _advance(self, number: int) -> None:
        """Go to the generator's next phase. Its tasks come before those that wait already, so that it ends soon."""
        tasks: list[Task] = []
        while not tasks:
            try:
                tasks = next(self._phases[number])
            except StopIteration as end:
                with self._change:
                    self.results[number] = end.value
                    self._change.notify_all()
                return
        with self._change:
            self._left[number] = len(tasks)
            self._ready.extendleft((number, task) for task in reversed(tasks))
            self._change.notify(len(tasks))
