"""The scheduler of the cpu target: threads that take row ranges from one counter until none is left.

A morsel is small enough that a slow one holds up nobody and a cancelled query stops soon, and large enough that taking
it costs nothing. Which worker runs which morsel is chance, so states are per worker and their combination commutes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
MORSEL = 131_072  # rows that a thread takes at once

Work = Callable[[int, int, int], None]
"""``work(worker, lo, hi)``; called from one thread at a time for each worker."""

_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _threads() -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(64, os.cpu_count() or 1), thread_name_prefix="gquery-morsel")
        return _pool


def _forget_pool() -> None:
    global _pool
    _pool = None  # threads do not survive a fork


os.register_at_fork(after_in_child=_forget_pool)


def run_parts(work: Callable[[int, int], T], size: int, part: int, workers: int) -> list[T]:
    """What ``work(lo, hi)`` gives for each part of ``size`` things, in order; on threads where there are several."""
    starts = range(0, max(size, 1), part)
    found: dict[int, T] = {}

    def one(worker: int, first: int, last: int) -> None:
        for number in range(first, last):
            found[number] = work(starts[number], min(starts[number] + part, size))

    run_morsels(one, 0, len(starts), workers, 1)
    return [found[number] for number in range(len(starts))]


def run_morsels(
    work: Work, lo: int, hi: int, workers: int, morsel_rows: int, cancelled: Callable[[], bool] | None = None
) -> None:
    """Run ``work`` over rows lo..hi in morsels. The calling thread is worker 0; the first exception is raised.

    Returns early where ``cancelled()`` turns true: the caller, who knows why, raises.
    """
    lock = threading.Lock()
    place = lo
    stopped = False

    def take() -> tuple[int, int] | None:
        nonlocal place
        with lock:
            if stopped or place >= hi or (cancelled is not None and cancelled()):
                return None
            start = place
            place = min(hi, start + morsel_rows)
            return start, place

    def loop(worker: int) -> None:
        nonlocal stopped
        try:
            while (morsel := take()) is not None:
                work(worker, *morsel)
        except BaseException:
            stopped = True
            raise

    needed = min(workers, -(-(hi - lo) // morsel_rows))
    others: list[Future[None]] = [_threads().submit(loop, worker) for worker in range(1, needed)]
    failure: BaseException | None = None
    try:
        loop(0)
    except BaseException as e:  # also KeyboardInterrupt: the others stop at their next morsel
        failure = e
    for other in others:
        if other.cancel():  # it has not begun, and there is nothing left for it to do
            continue
        while True:  # nobody may leave while a worker still writes: the arrays would be freed under it
            try:
                error = other.exception()
            except KeyboardInterrupt as e:
                stopped, error = True, e
                failure = failure or e
                continue
            failure = failure or error
            break
    if failure is not None:
        raise failure
