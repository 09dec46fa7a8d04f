"""The host as the tier below a device under a memory limit: what does not fit there lies here, in parts that come back in turn.

    device     the part at hand
    host       page-locked memory, up to host_memory_limit
    disk       files of spill_directory, beyond it

A GPU copies out of page-locked memory at the link's rate, and locking pages takes longer than copying them: so blocks are kept
for the next array, and given back where no more can be had. A CPU that stands for a device has ordinary memory here.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.device.kept_memory import block_size
from gquery.device.limited import array_bytes
from gquery.device.spill import SpillSpace
from gquery.errors import OutOfMemoryError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class HostTier(Device):
    """The CPU as such a tier of ``above``. Its account has what lies here, ``limit`` (None: the machine's memory) is on that."""

    def __new__(cls, *_: object, **__: object) -> HostTier:
        return object.__new__(cls)

    def __init__(self, above: Device, limit: int | None, spill: SpillSpace) -> None:
        super().__init__("cpu", 0, limit, spill)
        spill.stays_open = True
        self._locked = PageLocked(above) if above.is_cuda else None

    @property
    def _arrays(self) -> Any:
        return np if self._locked is None else self._locked

    @property
    def is_counted(self) -> bool:
        """See `LimitedMemory.is_counted`; here without a limit, too."""
        return True

    def empty_spillable(self, shape: int | tuple[int, ...], dtype: DTypeLike, context: str = "") -> Array:
        """See `LimitedMemory.empty_spillable`; in a file, too, where the machine has no memory left."""
        try:
            return super().empty_spillable(shape, dtype, context)
        except OutOfMemoryError:
            if array_bytes(shape, dtype) < tuning.memory.least_spilled:
                raise
        return self.in_new_file(shape, dtype, context)

    def has_to_file(self, wanted: int) -> bool:
        """See `LimitedMemory.has_to_file`."""
        return self._is_for_file(wanted)

    def empty_copied(self, size: int, dtype: DTypeLike, context: str = "") -> Array:
        """See `LimitedMemory.empty_copied`."""
        if not self._is_for_file(array_bytes(size, dtype)):
            return self.empty_spillable(size, dtype, context)
        return self.in_new_file(size, dtype, context, is_copied=True)

    def _is_for_file(self, wanted: int) -> bool:
        """See `LimitedMemory`. Memory is used up to its limit, as nothing else wants it."""
        return self.memory_limit is not None and wanted > 0 and self.account.taken + wanted > self.memory_limit


class PageLocked:
    """Makes arrays of the host in page-locked memory of a GPU, in blocks whose sizes differ by an eighth."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._free: dict[int, list[Any]] = {}
        # without the lock: the collector may run while this thread has it
        self._returned: deque[tuple[int, Any]] = deque()
        self._lock = threading.Lock()

    def empty(self, shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An uninitialised array; of ordinary memory where it is small. MemoryError where there is no room."""
        wanted = array_bytes(shape, dtype)
        if wanted < tuning.streaming.locked_bytes:
            return np.empty(shape, dtype)
        size = block_size(wanted)
        with self._lock:
            self._take_back()
            free = self._free.get(size)
            memory = free.pop() if free else None
        made: Array = np.asarray(LockedBlock(self._new(size) if memory is None else memory, size, wanted, self._returned))
        return made.view(dtype).reshape(shape)

    def zeros(self, shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array of zeros; likewise."""
        made = self.empty(shape, dtype)
        made.fill(0)
        return made

    def _new(self, size: int) -> Any:
        cuda = self._device.xp.cuda
        with self._device.activate():
            try:
                return cuda.PinnedMemory(size)
            except cuda.runtime.CUDARuntimeError:
                with self._lock:
                    self._take_back()
                    self._free.clear()
            try:
                return cuda.PinnedMemory(size)
            except cuda.runtime.CUDARuntimeError as error:
                raise MemoryError(f"{size} bytes of page-locked memory: {error}") from None

    def _take_back(self) -> None:
        while self._returned:
            size, memory = self._returned.popleft()
            self._free.setdefault(size, []).append(memory)


class LockedBlock:
    """Page-locked memory of one array, which NumPy holds as long as a view of it is there."""

    __slots__ = ("__array_interface__", "_memory", "_returned", "_size")

    def __init__(self, memory: Any, size: int, wanted: int, returned: deque[tuple[int, Any]]) -> None:
        self.__array_interface__ = {
            "data": (int(memory.ptr), False),
            "shape": (wanted,),
            "typestr": "|u1",
            "version": 3,
        }
        self._memory, self._size, self._returned = memory, size, returned

    def __del__(self) -> None:
        self._returned.append((self._size, self._memory))
