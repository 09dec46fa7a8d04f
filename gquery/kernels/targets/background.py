"""Work that nobody waits for, on threads of its own: kernels that a later run will want.

Threads end with the last task, and the process waits for no more than the tasks at hand: LLVM must not be at work while a
process is taken down. There are a few of them, as a task may wait for a process that compiles.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress

from gquery import tuning

Task = Callable[[], object]


class Background:
    """Tasks, a few at once; of many that wait, the oldest are left out."""

    def __init__(self) -> None:
        self._tasks: deque[tuple[Hashable, Task]] = deque(maxlen=tuning.interpreting.background_tasks)
        self._begun: set[Hashable] = set()  # names of the tasks that threads are at
        self._lock = threading.Lock()
        self._busy = 0  # threads

    def add(self, task: Task, name: Hashable) -> None:
        """Have a task done some time, unless one of that name waits or has begun; nobody learns what it raises."""
        with self._lock:
            if name in self._begun or any(other == name for other, _ in self._tasks):
                return
            self._tasks.append((name, task))
            if self._busy >= tuning.interpreting.background_threads:
                return
            self._busy += 1
        try:
            threading.Thread(target=self._serve, name="gquery-background").start()
        except RuntimeError:  # no thread can be started, or the process is ending
            with self._lock:
                self._busy -= 1
                if self._busy == 0:
                    self._tasks.clear()

    def _serve(self) -> None:
        while (found := self._next()) is not None:
            name, task = found
            with suppress(BaseException):  # an interrupt was not meant for it
                task()
            with self._lock:
                self._begun.discard(name)

    def _next(self) -> tuple[Hashable, Task] | None:
        with self._lock:
            if self._tasks and threading.main_thread().is_alive():
                self._begun.add(self._tasks[0][0])
                return self._tasks.popleft()
            self._tasks.clear()
            self._busy -= 1
            return None


_background = Background()


def background() -> Background:
    """That of this process."""
    return _background


def _forget() -> None:
    """A forked child has no threads of its parent."""
    global _background
    _background = Background()


os.register_at_fork(after_in_child=_forget)
