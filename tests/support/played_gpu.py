"""A GPU that is played by the host: copies end only when somebody waits."""

from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np

from gquery.device.device import Device
from gquery.device.driver import CopyCalls
from gquery.errors import OutOfMemoryError

_CALL = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * 4)


class DriverError(Exception):
    """Stands for CuPy's."""


class Played:
    """Stands for CuPy: what its calls would do, in the host's memory, where copies end only when somebody waits."""

    def __init__(self) -> None:
        self.pending: list[Any] = []
        self.lock = threading.RLock()
        self.drained = 0
        self.cuda = SimpleNamespace(
            Stream=lambda non_blocking: SimpleNamespace(ptr=1, synchronize=self.complete),
            Event=lambda block, disable_timing: SimpleNamespace(
                synchronize=self.complete, record=lambda stream: None, ptr=2
            ),
            alloc_pinned_memory=bytearray,
            runtime=SimpleNamespace(
                memcpyAsync=self.copy, memcpyHostToDevice=1, memcpyDeviceToHost=2,
                deviceSynchronize=self.drain,
                CUDARuntimeError=DriverError,
            ),
        )  # fmt: skip

        self.failing = 0  # what copies end with that no interpreter begins
        calls = self._wait_for, self._begin, self._record, self._begin_back
        self._calls = [_CALL(call) for call in calls]  # that somebody has while they are called
        self.copy_calls = CopyCalls(*(ctypes.cast(call, ctypes.c_void_p).value or 0 for call in self._calls))

    def _wait_for(self, event: int, *_: int) -> int:
        assert event == 2
        self.complete()
        return 0

    def _begin(self, to: int, source: int, size: int, stream: int) -> int:
        self.copy(to, source, size, 1, stream)
        return self.failing

    def _begin_back(self, to: int, source: int, size: int, stream: int) -> int:
        self.copy(to, source, size, 2, stream)
        return self.failing

    def _record(self, event: int, stream: int, *_: int) -> int:
        assert (event, stream) == (2, 1)
        return 0

    def copy(self, to: int, source: int, size: int, kind: int, stream: int) -> None:
        assert kind in (1, 2) and stream == 1
        with self.lock:
            self.pending.append((to, source, size))

    def complete(self) -> None:
        with self.lock:
            while self.pending:
                ctypes.memmove(*self.pending.pop())

    def drain(self) -> None:
        self.drained += 1
        self.complete()


class Array:
    """An array of the played GPU."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.data = SimpleNamespace(ptr=values.ctypes.data)
        self.dtype, self.shape, self.size, self.nbytes = values.dtype, values.shape, values.size, values.nbytes
        self.itemsize = values.itemsize

    def __getitem__(self, rows: slice) -> Array:
        return Array(self.values[rows])


class Gpu(Device):
    """A device of the kind cuda whose memory is the host's."""

    room = 1 << 40

    def __init__(self) -> None:
        super().__init__("cuda")
        self.played = Played()

    @property
    def xp(self) -> Any:
        return self.played

    def activate(self) -> Any:
        return Device("cpu").activate()

    def synchronize(self) -> None:
        self.played.complete()

    @property
    def free_bytes(self) -> int:
        return self.room

    @property
    def total_bytes(self) -> int:
        return self.room

    def empty(self, shape: Any, dtype: Any, context: str = "") -> Any:
        if self.room == 0:
            raise OutOfMemoryError(context)
        return Array(np.full(shape, 77, dtype))

    def copy_calls(self) -> CopyCalls:
        return self.played.copy_calls

    def to_host(self, array: Any) -> Any:
        return array.values if isinstance(array, Array) else array
