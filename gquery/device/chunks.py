"""Two pieces of a device's memory that chunks of columns go through: while kernels read one, the next chunk comes into the other.

On a GPU, a stream of its own copies out of page-locked memory. It waits for the kernels that read what it overwrites, and they
wait for the copy; the host only queues. On a CPU that stands for a device, a chunk is there when it is asked for.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import numpy as np

from gquery import tuning
from gquery.device.array import READ_AHEAD, Array, on_gpu
from gquery.device.device import Device
from gquery.device.limited import owner_of_views
from gquery.device.spill import place_of

_ALIGNED = 256  # bytes: where an array begins in a piece, as the GPU's own allocator has it


def room_of(sizes: Sequence[int]) -> int:
    """Bytes of a piece that holds arrays of so many bytes."""
    return sum(_padded(size) for size in sizes)


def _padded(size: int) -> int:
    return -(-(size + READ_AHEAD) // _ALIGNED) * _ALIGNED


class ChunkBuffers:
    """See above. ``size`` is that of one piece in bytes (`room_of` its arrays). OutOfMemoryError where two do not fit."""

    def __init__(self, device: Device, size: int, context: str) -> None:
        self._device = device
        self._pieces = [device.empty(max(size, 1), np.uint8, context) for _ in range(tuning.streaming.pieces)]
        self._turn = 0

    @contextmanager
    def filled(self, arrays: Sequence[Array]) -> Iterator[list[Array]]:
        """Within it, a piece has copies of arrays of the host, for what is launched on the current stream."""
        number, self._turn = self._turn, (self._turn + 1) % len(self._pieces)
        placed, at = [], 0
        for array in arrays:
            placed.append(self._pieces[number][at : at + array.nbytes].view(array.dtype))
            at += _padded(int(array.nbytes))
        self._copy(number, arrays, placed)
        yield placed
        self._used(number)

    def _copy(self, number: int, arrays: Sequence[Array], placed: Sequence[Array]) -> None:
        for array, place in zip(arrays, placed, strict=True):
            if place_of(array) is None:
                np.copyto(place, array)
            else:
                from gquery.device.file_copies import read_files  # few columns lie in files

                read_files([(place, array)], self._device)

    def _used(self, number: int) -> None:
        """What reads a piece was launched."""

    def close(self) -> None:
        """Nothing is on its way into the pieces any more."""


class GpuChunkBuffers(ChunkBuffers):
    """The same on a GPU."""

    def __init__(self, device: Device, size: int, context: str) -> None:
        super().__init__(device, size, context)
        self._cuda = device.xp.cuda
        self._copying = _copy_stream(device)
        self._copied, self._read = ([self._event() for _ in self._pieces] for _ in range(2))
        for event in self._read:  # memory that was given out again may still be read by what was launched before
            event.record(self._current())

    def _event(self) -> Any:
        return self._cuda.Event(disable_timing=True)

    def _current(self) -> Any:
        return self._cuda.get_current_stream(self._device.ordinal)

    def _copy(self, number: int, arrays: Sequence[Array], placed: Sequence[Array]) -> None:
        runtime, stream = self._cuda.runtime, self._copying
        stream.wait_event(self._read[number])
        files: list[tuple[int, Array]] = []
        for array, place in zip(arrays, placed, strict=True):
            if array.nbytes and place_of(array) is not None:
                files.append((int(on_gpu(place).data.ptr), array))
            elif array.nbytes:
                to, source = int(on_gpu(place).data.ptr), int(array.ctypes.data)
                runtime.memcpyAsync(to, source, int(array.nbytes), runtime.memcpyHostToDevice, stream.ptr)
        if files:
            from gquery.device.file_copies import send_files  # as above

            send_files(files, self._device, stream)
        self._copied[number].record(stream)
        self._current().wait_event(self._copied[number])

    def _used(self, number: int) -> None:
        self._read[number].record(self._current())

    def close(self) -> None:
        self._copying.synchronize()


def chunk_buffers(device: Device, size: int, context: str) -> ChunkBuffers:
    """The pieces of a device; see `ChunkBuffers`."""
    return (GpuChunkBuffers if device.is_cuda else ChunkBuffers)(device, size, context)


@cache
def _copy_stream(device: Device) -> Any:
    with device.activate():
        return device.xp.cuda.Stream(non_blocking=True)


# ---- page-locked memory ---------------------------------------------------------------------------------------------

_locked: set[int] = set()
_locking = threading.Lock()


def lock_pages(device: Device, array: Array) -> None:
    """Have the system keep the memory of an array of the host where it is, so that a GPU copies from it at the link's rate. Where
    it refuses, copies take longer. What lies in files is not to take memory, and is read into buffers."""
    if device.is_cpu or array.nbytes < tuning.streaming.locked_bytes or place_of(array) is not None:
        return
    root = owner_of_views(array)
    with _locking:
        if id(root) in _locked:
            return
        _locked.add(id(root))
        runtime, address = device.xp.cuda.runtime, int(root.ctypes.data)
        try:
            runtime.hostRegister(address, int(root.nbytes), 0)
        except runtime.CUDARuntimeError:
            weakref.finalize(root, _locked.discard, id(root)).atexit = False
            return
        weakref.finalize(root, _unlock, runtime, address, id(root)).atexit = False


def is_page_locked(array: Array) -> bool:
    """Whether a GPU copies from an array of the host at the link's rate: its pages were locked, or taken as such."""
    from gquery.device.host_tier import LockedBlock  # where a limit is set, it is there

    root = owner_of_views(array)
    return id(root) in _locked or isinstance(root.base, LockedBlock)


def _unlock(runtime: Any, address: int, number: int) -> None:
    _locked.discard(number)
    with suppress(runtime.CUDARuntimeError):  # the device may be gone
        runtime.hostUnregister(address)
