"""Copies from the host to a GPU while the host goes on: pieces through page-locked buffers, on a stream of their own.

A copy from ordinary memory stops its thread and reaches a fifth of the bus. Here a thread moves a piece into a
page-locked buffer, tells the GPU to fetch it and turns to its next work; an event says when the buffer is free again.
`Upload.start` makes the array on the device, `Transfer.send` sends rows of it from any thread, and `Upload.wait` ends
when all have arrived, so that nobody sees an array that is not whole.
"""

from __future__ import annotations

import queue
import threading
import time
from functools import cache
from typing import Any

import numpy as np

from gquery import tuning
from gquery.device.array import READ_AHEAD, Array, on_gpu
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.device.spill import OpenFile
from gquery.errors import OutOfMemoryError

_READING = "reading columns"


class Transfer:
    """One array on its way; where there is no GPU, the array alone."""

    def __init__(
        self,
        host: Any,
        device: Device | None = None,
        array: Any = None,
        seconds: list[float] | None = None,
        file: OpenFile | None = None,
    ) -> None:
        self.host = host
        self._file = file  # that it lies in, if it is written there
        self._device, self._array = device, array
        self._seconds = seconds

    def write(self, low: int, values: Array) -> None:
        """Values from row ``low`` on, and send them. OutOfMemoryError where a file cannot be written."""
        high = low + len(values)
        if self._file is None:
            self.host[low:high] = values
        else:
            try:
                self._file.write(low * self.host.itemsize, values.astype(self.host.dtype, copy=False))
            except OSError as error:
                raise OutOfMemoryError(
                    f"Out of memory in {_READING}: a file of spill_directory cannot be written ({error.strerror}). "
                    "Remedies: raise memory_limit, or set another spill_directory."
                ) from None
        self.send(low, high)

    def send(self, low: int, high: int) -> None:
        """Rows ``low`` to ``high`` are written: bring them over. Called once for each row, from any thread."""
        if self._device is None or high <= low:
            return
        began = time.perf_counter()
        address = self._array.data.ptr + low * self.host.itemsize
        staging(self._device).send(address, self.host[low:high].view(np.uint8))
        if self._seconds is not None:
            self._seconds.append(time.perf_counter() - began)

    def buffer(self) -> Buffer:
        """The array as a buffer, which holds the device's copy as well; to be used after `Upload.wait`."""
        self._file = None
        buffer = Buffer(self.host)
        if self._device is not None:
            buffer.place(self._device, self._array)
        return buffer


class Upload:
    """The transfers of columns that are loaded together. Without a GPU they stay on the host, where a limit may put them into
    files."""

    def __init__(self, device: Device | None) -> None:
        self._device = device if device is not None and device.is_cuda and not device.streams else None
        self._limited = device if device is not None and device.keeps_columns else None
        self._started = False
        self.seconds: list[float] = []  # that threads have spent on sending

    @property
    def is_limited(self) -> bool:
        """Whether columns stay on a host under a limit."""
        return self._limited is not None

    def empty(self, size: int, dtype: Any) -> Any:
        """An array of the host for a column, whose values are to be written."""
        if self._limited is None:
            return np.empty(size, dtype)
        return self._limited.empty_spillable(size, dtype, _READING)

    def written(self, size: int, dtype: Any) -> Transfer:
        """A transfer of an array of the host that `Transfer.write` alone writes."""
        if self._limited is None:
            return self.start(np.empty(size, dtype))
        array, file = self._limited.open_spillable(size, dtype, _READING)
        return self.start(array) if file is None else Transfer(array, file=file)

    def keep(self, array: Any) -> Any:
        """An array of the host that is needed until the column is whole: where there is room for it."""
        if self._limited is None:
            return array
        return self._limited.copied_spillable(array, _READING)

    def start(self, host: Any) -> Transfer:
        """A transfer of a contiguous array, whose values may be written later. One that would leave the device little
        room stays on the host, until a kernel asks for it: then what was used least recently gives way."""
        if self._device is None or host.nbytes < tuning.transfers.kept_on_host:
            return Transfer(host)
        if host.nbytes > self._device.free_bytes - self._device.total_bytes // tuning.transfers.headroom:
            return Transfer(host)
        try:
            array = device_array(self._device, host)
        except OutOfMemoryError:
            return Transfer(host)
        self._started = True
        staging(self._device).drain()
        return Transfer(host, self._device, array, self.seconds)

    def wait(self) -> None:
        """Until everything that was sent has arrived."""
        if self._started:
            assert self._device is not None
            staging(self._device).wait()


def send_whole(device: Device, host: Array, context: str) -> Array:
    """A copy of a contiguous array on a GPU, moved by several threads."""
    array = device_array(device, host, context)
    stage = staging(device)
    stage.drain()
    raw = host.view(np.uint8)
    part, start = tuning.transfers.mover_bytes, on_gpu(array).data.ptr
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(tuning.transfers.movers) as pool:
        for sent in [pool.submit(stage.send, start + at, raw[at : at + part]) for at in range(0, raw.size, part)]:
            sent.result()
    stage.wait()
    return array


def device_array(device: Device, host: Array, context: str = _READING) -> Array:
    """An uninitialised array like ``host``. Bytes get room behind them, since kernels read strings a word at a time."""
    if host.dtype == np.uint8:
        return device.empty(host.size + READ_AHEAD, np.uint8, context)[: host.size]
    return device.empty(host.size, host.dtype, context)


class Staging:
    """The page-locked buffers of a GPU, and the stream that copies out of them."""

    def __init__(self, device: Device) -> None:
        self._cuda = device.xp.cuda
        self._device = device
        self._piece = tuning.transfers.buffer_bytes
        size = self._piece * tuning.transfers.buffers
        with device.activate():
            self._stream = self._cuda.Stream(non_blocking=True)
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

    def send(self, address: int, data: Any) -> None:
        """Start to copy bytes of the host to an address of the device."""
        runtime = self._cuda.runtime
        with self._device.activate():
            for at in range(0, data.size, self._piece):
                piece = data[at : at + self._piece]
                buffer, event = self._free.get()  # the one that was sent first
                try:
                    event.synchronize()
                    buffer[: piece.size] = piece
                    runtime.memcpyAsync(
                        address + at, buffer.ctypes.data, piece.size, runtime.memcpyHostToDevice, self._stream.ptr
                    )
                    event.record(self._stream)
                finally:
                    self._free.put((buffer, event))

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
