"""Memory of large arrays of the host, which is kept for some seconds when they go, for the next ones.

The system clears each page that it hands out, and a virtual machine may have given free ones back to its host, which makes them
several times as dear. So a query that makes arrays as large as those that went before it gets their pages. They go back to the
system when nobody has made a large array for some seconds, and at once where memory runs short or a limit is set. Arrays that
a limit counts do not come from here.
"""

from __future__ import annotations

import math
import mmap
import os
import threading
import time
from collections import deque
from contextlib import suppress
from ctypes import addressof, c_char
from functools import lru_cache
from typing import Any

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.host import HUGE_PAGE, machine_memory

_HUGE: int | None = getattr(mmap, "MADV_HUGEPAGE", None)  # None: this system has no such thing
_GIVES_PAGES = hasattr(mmap, "MAP_PRIVATE")  # whether Python can have pages of this system
_LOOKS = 8  # at what is kept, in the seconds that it is


class _Pages:
    """Pages of the system from ``address`` on, for an array of up to ``size`` bytes; they go back when nobody holds this. Huge
    ones where a whole one is wanted, so that no array takes more memory than it has."""

    __slots__ = ("_mapping", "address", "freed", "size")

    def __init__(self, size: int, wanted: int) -> None:
        self._mapping = mmap.mmap(-1, size + HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        first = addressof(c_char.from_buffer(self._mapping))
        self.address = -(-first // HUGE_PAGE) * HUGE_PAGE
        self.size = size
        self.freed = 0.0  # when it was found free
        whole = wanted // HUGE_PAGE * HUGE_PAGE
        if _HUGE is not None and whole:
            with suppress(OSError):  # a system that was built without them
                self._mapping.madvise(_HUGE, self.address - first, whole)


class _Block:
    """Pages of one array, which NumPy holds as long as a view of it is there."""

    __slots__ = ("__array_interface__", "_owner", "_pages")

    def __init__(self, pages: _Pages, wanted: int, owner: KeptMemory) -> None:
        self.__array_interface__ = {"data": (pages.address, False), "shape": (wanted,), "typestr": "|u1", "version": 3}
        self._pages, self._owner = pages, owner

    def __del__(self) -> None:
        self._owner.take_back(self._pages)


class KeptMemory:
    """Makes arrays of the host, as NumPy does; see above. Any thread may ask."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._free: dict[int, list[_Pages]] = {}  # by their size, those that went last behind
        self._returned: deque[_Pages] = deque()  # without the lock: the collector may run while this thread has it
        self._kept = 0
        self._is_watched = False  # by a thread, which gives back what nobody wants
        self._asked = 0.0
        self._lock = threading.Lock()

    @property
    def kept_bytes(self) -> int:
        """Bytes that are kept for the next arrays."""
        with self._lock:
            self._sweep()
            return self._kept

    def empty(self, shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An uninitialised array. MemoryError where there is no room."""
        return self._make(shape, dtype, np.empty)[0]

    def zeros(self, shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array of zeros; likewise."""
        made, is_zero = self._make(shape, dtype, np.zeros)
        if not is_zero:
            made.fill(0)
        return made

    def _make(self, shape: int | tuple[int, ...], dtype: np.dtype[Any], make_small: Any) -> tuple[Array, bool]:
        """An array, and whether it is zeros if ``make_small`` makes such."""
        wanted = (shape if isinstance(shape, int) else math.prod(shape)) * dtype.itemsize
        if wanted < tuning.memory.least_kept or not _GIVES_PAGES:
            return make_small(shape, dtype), True
        pages = self._find(block_size(wanted))
        is_new = pages is None
        if pages is None:
            try:
                pages = _Pages(block_size(wanted), wanted)
            except OSError:  # no memory, or more mappings than a process may have
                self.release()
                return make_small(shape, dtype), True
        array: Array = np.asarray(_Block(pages, wanted, self))
        return array.view(dtype).reshape(shape), is_new

    def _find(self, size: int) -> _Pages | None:
        """Kept pages for an array, of its size or the next one."""
        with self._lock:
            self._sweep()
            self._asked = time.monotonic()
            if not self._is_watched:
                self._is_watched = True
                threading.Thread(target=self._watch, name="gquery-kept-memory", daemon=True).start()
            for found in (size, block_size(size + 1)):
                if pages := self._free.get(found):
                    self._kept -= found
                    return pages.pop()
        return None

    def take_back(self, pages: _Pages) -> None:
        """Keep pages that an array let go of, for a while."""
        if self._is_watched:
            self._returned.append(pages)
            if not self._is_watched:  # the thread has ended meanwhile
                self._returned.clear()

    def release(self) -> None:
        """Give all that is kept back to the system."""
        with self._lock:
            self._sweep()
            gone = self._dropped(math.inf)
        del gone  # without the lock, as it may take a while

    def _sweep(self) -> None:
        """Put what came back since the last time to the rest, as long as that is little of the machine's memory."""
        now = time.monotonic()
        while self._returned:
            pages = self._returned.popleft()
            pages.freed = now
            if self._kept + pages.size <= _most_kept():
                self._kept += pages.size
                self._free.setdefault(pages.size, []).append(pages)

    def _dropped(self, before: float) -> list[_Pages]:
        """Forget pages that came back before that time. They go back to the system with the list."""
        gone = []
        for size, pages in list(self._free.items()):
            first = sum(p.freed <= before for p in pages)  # they are in that order
            gone += pages[:first]
            del pages[:first]
            if not pages:
                del self._free[size]
        self._kept -= sum(p.size for p in gone)
        return gone

    def _watch(self) -> None:
        """Run by the thread that gives back what nobody has asked for; it ends when nobody has asked for anything."""
        seconds, goes_on = tuning.memory.kept_seconds, True
        while goes_on:
            time.sleep(seconds / _LOOKS)
            old = time.monotonic() - seconds
            with self._lock:
                self._is_watched = goes_on = self._asked > old
                self._sweep()
                gone = self._dropped(old if goes_on else math.inf)
            del gone


KEPT = KeptMemory()
os.register_at_fork(after_in_child=KEPT._forget)  # threads do not survive a fork


def block_size(wanted: int) -> int:
    """Bytes of the block for an array: so that few sizes serve many, each at most an eighth larger than the one before it.

    >>> block_size(1000), block_size(1025), block_size(1 << 20)
    (1024, 1152, 1048576)
    """
    step = 1 << max((wanted - 1).bit_length() - 4, 0)
    return -(-wanted // step) * step


def available_memory(wanted: int) -> int:
    """Bytes of the machine's memory that are free, for somebody who wants so many: without what is kept, if need be."""
    free = machine_memory("MemAvailable")
    if free is not None and free < wanted and KEPT.kept_bytes:
        KEPT.release()
        free = machine_memory("MemAvailable")
    return 1 << 62 if free is None else free


@lru_cache(maxsize=1)
def _most_kept() -> float:
    return tuning.memory.kept_share * (machine_memory("MemTotal") or 0)
