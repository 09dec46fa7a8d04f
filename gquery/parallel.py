"""Tasks on threads: many small ones that NumPy and Arrow do without the interpreter's lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeVar

from gquery.interrupt import check

T = TypeVar("T")
Task = Callable[[], None]
Phases = Generator[list[Task], None, T]  # tasks that may run at once; the next list of them once all have ended
_WAIT = 0.05  # seconds between looks whether the query is to stop


def run_all(tasks: Sequence[Task], workers: int) -> None:
    """Run tasks in their order on up to so many threads. The first error ends the rest and is raised; so does an interrupt
    of the calling thread's query."""
    if workers <= 1 or len(tasks) <= 1:
        for task in tasks:
            check()
            task()
        return
    work = _Work(tasks)
    threads = [threading.Thread(target=work.go, daemon=True) for _ in range(min(workers, len(tasks)))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(_WAIT)
                check()
    except BaseException:
        work.stopped = True
        raise
    finally:
        for thread in threads:
            thread.join()
    if work.errors:
        raise work.errors[0]


class _Work:
    """Tasks that threads take one after another."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks = iter(tasks)
        self._lock = threading.Lock()
        self.errors: list[BaseException] = []
        self.stopped = False

    def go(self) -> None:
        while not self.stopped:
            with self._lock:
                task = next(self._tasks, None)
            if task is None:
                return
            try:
                task()
            except BaseException as error:  # handed over to the thread that waits
                self.errors.append(error)
                self.stopped = True


def run_phases(phases: Sequence[Phases[T]], workers: int) -> list[T]:
    """What several generators of tasks return, their tasks run side by side."""
    results: dict[int, T] = {}
    alive = dict(enumerate(phases))
    while alive:
        tasks: list[Task] = []
        for number, generator in list(alive.items()):
            try:
                tasks += next(generator)
            except StopIteration as end:
                results[number] = end.value
                del alive[number]
        run_all(tasks, workers)
    return [results[number] for number in range(len(phases))]
