"""The scheduler of the cpu target: threads that take row ranges from one counter until none is left.

A morsel is small enough that a slow one holds up nobody and a cancelled query stops soon, and large enough that taking
it costs nothing. Which worker runs which morsel is chance, so states are per worker and their combination commutes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import TypeVar

from gquery import tuning

T = TypeVar("T")

Ranges = Sequence[tuple[int, int]]
"""Rows from one to before another, each range apart from the others."""

Work = Callable[[int, int, int], None]
"""``work(worker, lo, hi)``; called from one thread at a time for each worker."""


class _Threads:
    """Threads that wait for something to help with. They start when they are first wanted and never end."""

    def __init__(self) -> None:
        self._wanted: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._count = 0
        self._lock = threading.Lock()

    def help_with(self, work: Callable[[], None], times: int) -> None:
        """Have ``work``, which raises nothing, called by up to so many threads, now or later."""
        with self._lock:
            while self._count < min(times, tuning.threads.most):
                self._count += 1
                threading.Thread(target=self._serve, name=f"gquery-morsel-{self._count}", daemon=True).start()
        for _ in range(times):
            self._wanted.put(work)

    def _serve(self) -> None:
        while True:
            self._wanted.get()()


_threads = _Threads()


def _forget_threads() -> None:
    global _threads
    _threads = _Threads()  # threads do not survive a fork


os.register_at_fork(after_in_child=_forget_threads)


def run_parts(work: Callable[[int, int], T], size: int, part: int, workers: int) -> list[T]:
    """What ``work(lo, hi)`` gives for each part of ``size`` things, in order; on threads where there are several."""
    starts = range(0, max(size, 1), part)
    found: dict[int, T] = {}

    def one(worker: int, first: int, last: int) -> None:
        for number in range(first, last):
            found[number] = work(starts[number], min(starts[number] + part, size))

    run_morsels(one, ((0, len(starts)),), workers, 1)
    return [found[number] for number in range(len(starts))]


def run_morsels(
    work: Work, ranges: Ranges, workers: int, morsel_rows: int, cancelled: Callable[[], bool] | None = None
) -> None:
    """Run ``work`` over ranges of rows in morsels, of which none has rows of two ranges. The calling thread is worker 0; the
    first exception is raised. Who comes to help when all rows are taken is not waited for.

    Returns early where ``cancelled()`` turns true: the caller, who knows why, raises.
    """
    others = min(workers, sum([-(-(hi - lo) // morsel_rows) for lo, hi in ranges])) - 1
    if others <= 0:
        for start, end in _morsels(ranges, morsel_rows):
            if cancelled is not None and cancelled():
                return
            work(0, start, end)
        return
    run = _Run(work, ranges, morsel_rows, cancelled)
    try:
        _threads.help_with(run.help, others)
        run.loop(0)
    except BaseException as error:  # an interrupt; helpers may be at work
        run.failures.append(error)
    run.wait()
    run.let_go()
    if run.failures:
        raise run.failures[0]


def _morsels(ranges: Ranges, rows: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + rows, hi)) for lo, hi in ranges for start in range(lo, hi, rows))


class _Run:
    """The rows of one `run_morsels`, and who is at work on them."""

    def __init__(self, work: Work, ranges: Ranges, morsel_rows: int, cancelled: Callable[[], bool] | None) -> None:
        self.failures: list[BaseException] = []
        self._work, self._cancelled = work, cancelled
        self._morsels = _morsels(ranges, morsel_rows)
        self._lock = threading.Lock()
        self._workers = 1  # numbers that were given out
        self._helping = 0
        self._done = False  # the caller found no more rows
        self._alone = threading.Lock()  # held while the caller waits for helpers
        self._alone.acquire()

    def help(self) -> None:
        with self._lock:
            if self._done:
                return
            worker = self._workers
            self._workers += 1
            self._helping += 1
        self.loop(worker)
        with self._lock:
            self._helping -= 1
            if self._done and self._helping == 0:
                self._alone.release()

    def loop(self, worker: int) -> None:
        """Take morsels until there are none; after a failure nobody takes one."""
        try:
            while (morsel := self._take()) is not None:
                self._work(worker, *morsel)
        except BaseException as error:  # also KeyboardInterrupt
            self.failures.append(error)

    def _take(self) -> tuple[int, int] | None:
        with self._lock:
            if self.failures:
                return None
            morsel = next(self._morsels, None)
            return None if morsel is None or (self._cancelled is not None and self._cancelled()) else morsel

    def let_go(self) -> None:
        """Drop the work, and with it its arrays: helpers that come too late may hold the rest for as long as they are busy."""
        del self._work, self._cancelled

    def wait(self) -> None:
        """Return when no helper is at work: the arrays that it writes would be freed under it."""
        while True:
            try:
                with self._lock:
                    self._done = True
                    if self._helping == 0:
                        return
                self._alone.acquire()
                return
            except KeyboardInterrupt as error:  # the helpers stop at their next morsel
                self.failures.append(error)
