"""Address spaces: a range of addresses, and an account of the bytes that live there, for each CPU that stands for a device.

A host without GPUs is tested with several CPU devices (`device.simulated`). Each takes its arrays from a range of its own, so an
address tells whose memory it is. A range is reserved whole, of which what is written takes memory; memory of freed arrays goes
back to the system, or to the next array of that size.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import sys
import threading
from collections import defaultdict, deque
from typing import Any

import numpy as np

from gquery.device.array import Array
from gquery.errors import DeviceError

SIZE = 1 << 38  # addresses of a space: many times what a machine has, since blocks are rounded up to powers of two
NO_RESERVE = 0x4000 if sys.platform == "linux" else 0  # MAP_NORESERVE, which Python knows from 3.13 on
_LEAST = 64  # bytes of a block: a cache line
_RETURNED = 1 << 16  # bytes of a block from which on its memory goes back to the system


class _Block:
    """Memory of one array, which NumPy holds as long as a view of it is there."""

    __slots__ = ("__array_interface__", "_freed", "_range")

    def __init__(self, address: int, size: int, wanted: int, freed: deque[tuple[int, int, int]]) -> None:
        self.__array_interface__ = {"data": (address, False), "shape": (wanted,), "typestr": "|u1", "version": 3}
        self._range, self._freed = (address, size, wanted), freed

    def __del__(self) -> None:
        self._freed.append(self._range)  # without the lock: the collector may run while this thread has it


class AddressSpace:
    """See above; made by `space_of`. ``first`` and ``end`` are its addresses."""

    def __init__(self) -> None:
        try:
            self._mapping = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
        except OSError as error:
            raise DeviceError(f"A CPU that stands for a device needs a range of {SIZE} addresses: {error}") from None
        self.first = ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))
        self.end = self.first + SIZE
        self._top = 0  # bytes from ``first`` on that were given out at some time
        self._live = 0
        self._free: dict[int, list[int]] = defaultdict(list)  # addresses of blocks by their size
        self._freed: deque[tuple[int, int, int]] = deque()
        self._lock = threading.Lock()

    @property
    def live_bytes(self) -> int:
        """Bytes of the arrays that are there."""
        with self._lock:
            self._sweep()
            return self._live

    def empty(self, shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An uninitialised array. MemoryError where there is no room."""
        return self._make(shape, dtype)[0]

    def zeros(self, shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array of zeros; likewise."""
        made, is_zero = self._make(shape, dtype)
        if not is_zero:
            made.fill(0)
        return made

    def _make(self, shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Array, bool]:
        """An array, and whether it is zeros."""
        size = (shape if isinstance(shape, int) else math.prod(shape)) * dtype.itemsize
        if not size:
            return np.empty(shape, dtype), True
        block = max(_LEAST, 1 << (size - 1).bit_length())
        with self._lock:
            self._sweep()
            is_new = not self._free[block]
            at = self._new(block) if is_new else self._free[block].pop()
            self._live += size
        array: Array = np.asarray(_Block(at, block, size, self._freed))
        return array.view(dtype).reshape(shape), is_new or block >= _RETURNED

    def _new(self, block: int) -> int:
        """An address that was never given out."""
        unit = min(block, _RETURNED)  # whole pages, where they go back to the system
        at = -(-self._top // unit) * unit
        if at + block > SIZE:
            raise MemoryError(f"no range of {block} addresses is left")
        self._top = at + block
        return self.first + at

    def _sweep(self) -> None:
        """Take back what was freed since the last time."""
        while self._freed:
            at, block, wanted = self._freed.popleft()
            self._live -= wanted
            if block >= _RETURNED:  # what is read there next is 0
                self._mapping.madvise(mmap.MADV_DONTNEED, at - self.first, block)
            self._free[block].append(at)


_spaces: dict[int, AddressSpace] = {}
_making = threading.Lock()


def space_of(ordinal: int) -> AddressSpace:
    """The address space of CPU number ``ordinal``, 1 at least, made when it is first asked for."""
    with _making:
        if ordinal not in _spaces:
            _spaces[ordinal] = AddressSpace()
        return _spaces[ordinal]


def owner_of(value: object) -> int:
    """The number of the CPU in whose address space an array of NumPy or an address lies; 0 for anything else."""
    if not _spaces:
        return 0
    if isinstance(value, np.ndarray):
        address = int(value.ctypes.data) if value.size else 0
    elif isinstance(value, int):
        address = value
    else:
        return 0
    return next((n for n, space in list(_spaces.items()) if space.first <= address < space.end), 0)
