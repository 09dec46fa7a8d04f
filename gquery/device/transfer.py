"""Copies from the host to a GPU while the host goes on: pieces through page-locked buffers, on a stream of their own.

A copy from ordinary memory stops its thread and reaches a fifth of the bus. Here a thread moves a piece into a
page-locked buffer, tells the GPU to fetch it and turns to its next work; an event says when the buffer is free again.
`Upload.make` makes the array on the device, `Transfer.send` sends rows of it from any thread, and `Upload.wait` ends
when all have arrived, so that nobody sees an array that is not whole. The host keeps no copy of what a device has room for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gquery import tuning
from gquery.device.array import READ_AHEAD, Array, on_gpu
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.device.kept_memory import KEPT
from gquery.device.spill import OpenFile, Stripes
from gquery.errors import OutOfMemoryError
from gquery.runtime.tuples import NamedTuple

if TYPE_CHECKING:
    from gquery.device.staging import Staging

_READING = "reading columns"


class _Target(NamedTuple):
    """Where a transfer goes: an array on a device. ``seconds`` takes those that threads spend on sending."""

    device: Device
    array: Any
    seconds: list[float]


class Transfer:
    """One array of ``size`` values on its way to a device, which rows of it reach from any thread. Where the ``host`` has none of
    its own, rows are written into memory that is let go of once they are sent; where there is no GPU, the host's array alone."""

    def __init__(
        self,
        size: int,
        dtype: Any,
        host: Any = None,
        target: _Target | None = None,
        file: OpenFile | Stripes | None = None,
    ) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.size = size
        self._host = host
        self._file = file  # that it lies in, if it is written there
        self.target = target

    @property
    def is_alone(self) -> bool:
        """Whether a device has the array, and the host no copy."""
        return self._host is None and self.target is not None

    def rows(self, low: int, high: int) -> Array:
        """Memory for rows ``low`` to ``high``, to be written and sent, or kept and sent: uninitialised. Asked for once for each
        row."""
        if self._host is None:
            return KEPT.empty(high - low, self.dtype)
        made: Array = self._host[low:high]
        return made

    def write(self, low: int, values: Array) -> None:
        """Values from row ``low`` on, and send them. OutOfMemoryError where a file cannot be written."""
        if self._host is not None and self._file is None:
            made = self.rows(low, low + len(values))
            made[:] = values
            self.send(low, made)
            return
        values = values.astype(self.dtype, copy=False)
        if self._file is not None:
            try:
                self._file.write(low * self.dtype.itemsize, values)
            except OSError as error:
                raise OutOfMemoryError(
                    f"Out of memory in {_READING}: a file of spill_directory cannot be written ({error.strerror}). "
                    "Remedies: raise memory_limit, or set another spill_directory."
                ) from None
        self.send(low, values)

    def send(self, low: int, values: Array) -> None:
        """Bring values over, which are those from row ``low`` on: contiguous, in what `rows` gave."""
        if self.target is None or not len(values):
            return
        began = time.perf_counter()
        address = self.target.array.data.ptr + low * self.dtype.itemsize
        _staging(self.target.device).send(address, np.ascontiguousarray(values).view(np.uint8))
        self.target.seconds.append(time.perf_counter() - began)

    def send_ranges(self, file: int, ranges: Array, upload: Callable[[Array], int]) -> bool:
        """Bring ranges of a file over, whose number is given: rows (int64) of the byte of the array that each goes to, in order,
        how many bytes, and where in the file they begin. ``upload`` does so for a job of `kernels.primitives.uploads`. Whether
        the file has all of them."""
        assert self.target is not None
        began = time.perf_counter()
        ranges = ranges.copy()
        ranges[:, 0] += self.target.array.data.ptr
        outcome = _staging(self.target.device).send_ranges(file, ranges, upload)
        self.target.seconds.append(time.perf_counter() - began)
        return outcome

    def buffer(self) -> Buffer:
        """The array as a buffer, wherever it lies; to be used after `Upload.wait`."""
        self._file = None
        target = self.target
        if self._host is None:
            assert target is not None
            return Buffer(target.array, target.device)
        buffer = Buffer(self._host)
        if target is not None:
            buffer.place(target.device, target.array)
        return buffer


class Upload:
    """The transfers of columns that are loaded together. Without a GPU they stay on the host, where a limit may put them into
    files."""

    def __init__(self, device: Device | None) -> None:
        self._device = device if device is not None and device.is_cuda and not device.streams else None
        self._limited = device if device is not None and device.keeps_columns else None
        self._arrays: dict[int, Array] = {}  # on the device, that may be on their way
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

    def make(self, size: int, dtype: Any, least: int | None = None) -> Transfer:
        """A transfer of an array whose rows are to be written (`Transfer.rows`) and sent. A device that has room enough has it
        alone: the system clears each page of memory that nobody would look at again. So many bytes it has at ``least``."""
        target = self._room(size, dtype, tuning.transfers.kept_on_host if least is None else least)
        is_alone = target is not None and (
            target.device.free_bytes >= tuning.transfers.device_alone * target.device.total_bytes
        )
        return Transfer(size, dtype, None if is_alone else self.empty(size, dtype), target)

    def written(self, size: int, dtype: Any) -> Transfer:
        """A transfer of an array that `Transfer.write` alone writes."""
        if self._limited is None:
            return self.make(size, dtype)
        array, file = self._limited.open_spillable(size, dtype, _READING)
        return Transfer(size, dtype, array, file=file)

    def keep(self, array: Any) -> Any:
        """An array of the host that is needed until the column is whole: where there is room for it."""
        if self._limited is None:
            return array
        return self._limited.copied_spillable(array, _READING)

    def start(self, host: Any) -> Transfer:
        """A transfer of a contiguous array of the host, which keeps it, and whose values may be written later."""
        return Transfer(len(host), host.dtype, host, self._room(len(host), host.dtype, tuning.transfers.kept_on_host))

    def _room(self, size: int, dtype: Any, least: int) -> _Target | None:
        """An array on the device; None for one that stays on the host, until a kernel asks for it: small ones, and what would
        leave the device little room, where what was used least recently gives way then."""
        bytes_ = size * np.dtype(dtype).itemsize
        if self._device is None or bytes_ < least:
            return None
        if bytes_ > self._device.free_bytes - self._device.total_bytes // tuning.transfers.headroom:
            return None
        try:
            array = device_array(self._device, size, dtype)
        except OutOfMemoryError:
            return None
        self._arrays[id(array)] = array
        _staging(self._device).drain()
        return _Target(self._device, array, self.seconds)

    @property
    def device(self) -> Device | None:
        """The GPU that arrays go to, if there is one."""
        return self._device

    def wait(self) -> None:
        """Until everything that was sent has arrived."""
        if self._arrays:
            assert self._device is not None
            _staging(self._device).wait()

    def release(self, transfer: Transfer) -> None:
        """Let go of an array that was waited for, once nobody else has it. Until then it stays: where a column is given up, what
        was sent would arrive in memory that others have."""
        if transfer.target is not None:
            self._arrays.pop(id(transfer.target.array), None)

    def close(self) -> None:
        """Wait, and let go of all arrays."""
        self.wait()
        self._arrays.clear()


def send_whole(device: Device, host: Array, context: str) -> Array:
    """A copy of a contiguous array on a GPU, moved by several threads."""
    array = device_array(device, host.size, host.dtype, context)
    stage = _staging(device)
    stage.drain()
    raw = host.view(np.uint8)
    part, start = tuning.transfers.mover_bytes, on_gpu(array).data.ptr
    from concurrent.futures import ThreadPoolExecutor

    try:
        with ThreadPoolExecutor(tuning.transfers.movers) as pool:
            for sent in [pool.submit(stage.send, start + at, raw[at : at + part]) for at in range(0, raw.size, part)]:
                sent.result()
    finally:  # before the array is let go of
        stage.wait()
    return array


def device_array(device: Device, size: int, dtype: Any, context: str = _READING) -> Array:
    """An uninitialised array. Bytes get room behind them, since kernels read strings a word at a time."""
    if dtype == np.uint8:
        return device.empty(size + READ_AHEAD, np.uint8, context)[:size]
    return device.empty(size, dtype, context)


def _staging(device: Device) -> Staging:
    from gquery.device.staging import staging  # a CPU does without

    return staging(device)
