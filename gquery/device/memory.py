"""The account of a connection's memory on a device: what is taken is counted before it is there, and given back when it goes.

Two threads that ask at once cannot both get the last bytes: `Account.take` looks and counts in one step. What arrays give back
may come at any time, from Python's collector too, in the midst of such a step; so it is only noted then, and counted in the next.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Any

from gquery.runtime.amounts import format_bytes


class Account:
    """Bytes that are taken, and the most there were. ``limit`` None counts alone."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.peak = 0
        self._taken = 0
        self._returned: deque[int] = deque()  # appended to by whoever lets go of an array, without a lock
        self._bound: set[int] = set()  # the ids of what is counted until it goes
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """Bytes that are taken now."""
        with self._lock:
            return self._count()

    def _count(self) -> int:
        while self._returned:
            self._taken -= self._returned.popleft()
        return self._taken

    def take(self, wanted: int) -> bool:
        """Count so many bytes, if they are within the limit; whether they are."""
        with self._lock:
            if self.limit is not None and self._count() + wanted > self.limit:
                return False
            self._add(wanted)
            return True

    def add(self, size: int) -> None:
        """Count bytes that are there already, whatever the limit."""
        with self._lock:
            self._add(size)

    def _add(self, size: int) -> None:
        self._taken += size
        self.peak = max(self.peak, self._taken - sum(self._returned.copy()))

    def give(self, size: int) -> None:
        """Bytes are free again."""
        self._returned.append(size)

    def bind(self, owner: Any, size: int) -> None:
        """Give so many bytes back when the owner goes."""
        self._bound.add(id(owner))
        weakref.finalize(owner, self._unbind, id(owner), size).atexit = False

    def _unbind(self, number: int, size: int) -> None:
        self._bound.discard(number)
        self.give(size)

    def knows(self, owner: Any) -> bool:
        """Whether something, or the array that it is a view of, is counted until it goes."""
        while owner is not None:
            if id(owner) in self._bound:
                return True
            owner = getattr(owner, "base", None)
        return False


def shortage(wanted: str, used: int, free: int, limit: int | None, spilled: str) -> str:
    """The words of an OutOfMemoryError: ``wanted`` on which device, in what, what there is, and what helps."""
    of = f" of a memory_limit of {format_bytes(limit)}" if limit is not None else ""
    remedy = "raise memory_limit" if limit is not None else "close other programs that use its memory"
    return (
        f"Out of memory on {wanted}, {format_bytes(used)} in use{of}, {format_bytes(free)} free"
        f"{'; ' + spilled if spilled else ''}. Remedies: {'raise spill_limit, ' if spilled else ''}{remedy}, or read less "
        "(fewer columns, an earlier filter, smaller groups)."
    )
