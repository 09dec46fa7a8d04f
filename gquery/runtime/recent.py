"""What was used last: a dictionary that holds a bounded number of entries, for caches whose keys a user's queries make."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from gquery.runtime.forking import free_in_child

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """At most ``most`` entries. To find one costs little more than in a dict and takes no lock: it stands on the way of
    every launch.

    There are two generations, each a dict of at most half of the entries. What is used moves from the older to the newer
    one; once that is full, the older is dropped and the newer takes its place. So the half that was used last is always
    there. ``dropped`` is called with each entry that goes. Values are not None.

    >>> found = Recent[str, int](4)
    >>> for n, key in enumerate("abcadea"):
    ...     if found.get(key) is None:
    ...         found[key] = n
    >>> sorted(found.items())
    [('a', 6), ('d', 4), ('e', 5)]
    """

    def __init__(self, most: int, dropped: Callable[[K, V], object] | None = None) -> None:
        self.most = most
        self._half = most // 2
        self._dropped = dropped
        self._newer: dict[K, V] = {}
        self._older: dict[K, V] = {}
        self._lock = free_in_child(threading.RLock())  # of those who write; an entry's end may run code that comes back here

    def get(self, key: K) -> V | None:
        found = self._newer.get(key)
        if found is None:
            found = self._older.get(key)
            if found is not None:
                self[key] = found
        return found

    def __contains__(self, key: K) -> bool:
        return key in self._newer or key in self._older

    def __setitem__(self, key: K, value: V) -> None:
        gone: dict[K, V] = {}
        with self._lock:
            self._newer[key] = value
            self._older.pop(key, None)  # only now: those who read take no lock, and at worst make an entry again
            if len(self._newer) >= self._half:
                gone, self._older = self._older, self._newer
                self._newer = {}
        if self._dropped is not None:
            for k, v in gone.items():
                self._dropped(k, v)

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def items(self) -> Iterator[tuple[K, V]]:
        """The entries as they are now, those last that came or were used last."""
        with self._lock:
            entries = {**self._older, **self._newer}
        return iter(entries.items())

    def clear(self) -> None:
        with self._lock:
            self._older, self._newer = {}, {}
