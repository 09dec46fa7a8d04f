"""Work that nobody waits for, on threads of its own: kernels that a later run will want.

Threads end with the last task, and the process waits for no more than the tasks at hand: LLVM must not be at work while a
process is taken down. There are a few of them, as a task may wait for a process that compiles.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from gquery import tuning

Task = Callable[[], object]


class Background:
    """Tasks, a few at once; of many that wait, the oldest are left out."""

    def __init__(self) -> None:
        self._tasks: deque[Task] = deque(maxlen=tuning.interpreting.background_tasks)
        self._lock = threading.Lock()
        self._busy = 0  # threads

    def add(self, task: Task) -> None:
        """Have a task done some time; nobody learns what it raises."""
        with self._lock:
            self._tasks.append(task)
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
        while (task := self._next()) is not None:
            with suppress(BaseException):  # an interrupt was not meant for it
                task()

    def _next(self) -> Task | None:
        with self._lock:
            if self._tasks and threading.main_thread().is_alive():
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
