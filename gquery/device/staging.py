"""The page-locked buffers of a GPU, through which long arrays come to it, and go to files and come from them.

A copy from ordinary memory, or from the pages of a file, stops its thread and reaches a fifth of the bus. Here a thread fills a
buffer and tells the GPU to fetch it, or has the GPU fill it and writes it to a file. So no page of a file is ever mapped for a
copy: a fault for each costs more than to move it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.device.host import address_of
from gquery.device.movers import movers, native_calls
from gquery.device.spill import place_of


class Staging:
    """The buffers of a GPU, and the streams that copy out of them and into them."""

    def __init__(self, device: Device) -> None:
        self._cuda = device.xp.cuda
        self._device = device
        self._piece = tuning.transfers.buffer_bytes
        size = self._piece * tuning.transfers.buffers
        with device.activate():
            self._stream = self._cuda.Stream(non_blocking=True)
            self._back = self._cuda.Stream(non_blocking=True)
            memory = self._cuda.alloc_pinned_memory(size)
        whole = np.frombuffer(memory, np.uint8, size)  # keeps the memory
        self._free: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
        for at in range(0, size, self._piece):
            with device.activate():
                event = self._cuda.Event(block=True, disable_timing=True)
            self._free.put((whole[at : at + self._piece], event))

    def drain(self) -> None:
        """Until the device does nothing: memory that was given out again may still be used by what was launched before it
        was freed, and the copies' stream waits for no other."""
        with self._device.activate():
            self._cuda.runtime.deviceSynchronize()

    def send(self, address: int, data: Array, stream: Any = None) -> None:
        """Start to copy contiguous bytes of the host, or of a file, to an address of the device; on another stream than the
        copies' own, if one is given."""
        runtime, on, place = self._cuda.runtime, self._stream if stream is None else stream, place_of(data)
        with self._device.activate():
            for at in range(0, data.size, self._piece):
                size = min(self._piece, data.size - at)
                buffer, event = self._free.get()  # the one that was sent first
                try:
                    event.synchronize()
                    if place is None:
                        buffer[:size] = data[at : at + size]
                    else:
                        place.file.read(place.at + at, buffer[:size])
                    runtime.memcpyAsync(address + at, buffer.ctypes.data, size, runtime.memcpyHostToDevice, on.ptr)
                    event.record(on)
                finally:
                    self._free.put((buffer, event))

    def receive(self, address: int, size: int, take: Callable[[int, Array], None]) -> None:
        """Have bytes from an address of the device taken, a buffer at a time: ``take`` is told which byte its first one is. What
        makes them has to have ended."""
        runtime = self._cuda.runtime
        with self._device.activate():
            for at in range(0, size, self._piece):
                part = min(self._piece, size - at)
                buffer, event = self._free.get()
                try:
                    event.synchronize()
                    runtime.memcpyAsync(
                        buffer.ctypes.data, address + at, part, runtime.memcpyDeviceToHost, self._back.ptr
                    )
                    event.record(self._back)
                    event.synchronize()
                    take(at, buffer[:part])
                finally:
                    self._free.put((buffer, event))

    def send_ranges(self, file: int, ranges: Array, upload: Callable[[Array], int]) -> bool:
        """See `Transfer.send_ranges`; the addresses are the device's."""
        calls = self._device.copy_calls()
        assert calls is not None
        taken = [self._free.get()]
        with suppress(queue.Empty):  # to wait for a second one while others wait for theirs would be for ever
            taken.append(self._free.get_nowait())
        buffers = [word for buffer, event in taken for word in (buffer.ctypes.data, event.ptr)]
        about = file, address_of(ranges), len(ranges), self._stream.ptr, *calls[:3], self._piece, len(taken)
        try:
            with self._device.activate():
                outcome = upload(np.array([*about, *buffers], np.int64))
        finally:
            for each in taken:
                self._free.put(each)
        if outcome < 0:
            raise self._cuda.runtime.CUDARuntimeError(-outcome)
        return outcome > 0

    def move(self, pieces: Array, first: int, step: int, is_sent: bool, stream: Any = None) -> tuple[int, int]:
        """Have the pieces ``first``, ``first + step`` and so on, as `kernels.primitives.moves` has them, sent to the device on
        its stream or another, or written to files, by `movers`. What it ended with, and at which piece."""
        calls, native, by = self._device.copy_calls(), native_calls(), movers()
        assert calls is not None and native is not None and by is not None
        on = self._back if not is_sent else self._stream if stream is None else stream
        about = address_of(pieces), len(pieces), first, step, on.ptr
        taken = [self._free.get()]
        try:
            if is_sent and self._free.qsize() >= tuning.transfers.file_movers:  # others get one
                with suppress(queue.Empty):  # as in `send_ranges`
                    taken.append(self._free.get_nowait())
            buffers = [word for buffer, event in taken for word in (buffer.ctypes.data, event.ptr)]
            copy, with_library = (calls.copy, native[0]) if is_sent else (calls.back, native[1])
            used = calls.wait, copy, calls.record, with_library, len(taken)
            job = np.array([*about, *used, *buffers], np.int64)
            with self._device.activate():
                taken[0][1].synchronize()  # binds this thread to the device, which functions of the driver do not
                outcome = by.send(job) if is_sent else by.receive(job)
        finally:
            for each in taken:
                self._free.put(each)
        if outcome > 0:
            raise self._cuda.runtime.CUDARuntimeError(outcome)
        return outcome, int(job[2])

    def wait(self) -> None:
        with self._device.activate():
            self._stream.synchronize()


_lock = threading.Lock()


def staging(device: Device) -> Staging:
    """The buffers of a device, made when they are first used."""
    with _lock:
        return _staging(device)


@cache
def _staging(device: Device) -> Staging:
    return Staging(device)
