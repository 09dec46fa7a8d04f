"""A GPU that is played by the host: copies end only when somebody waits."""

from __future__ import annotations

import ctypes
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np

from gquery.device.device import Device
from gquery.errors import OutOfMemoryError


class Played:
    """Stands for CuPy: what its calls would do, in the host's memory, where copies end only when somebody waits."""

    def __init__(self) -> None:
        self.pending: list[Any] = []
        self.lock = threading.RLock()
        self.drained = 0
        self.cuda = SimpleNamespace(
            Stream=lambda non_blocking: SimpleNamespace(ptr=1, synchronize=self.complete),
            Event=lambda block, disable_timing: SimpleNamespace(synchronize=self.complete, record=lambda stream: None),
            alloc_pinned_memory=bytearray,
            runtime=SimpleNamespace(
                memcpyAsync=self.copy, memcpyHostToDevice=1, deviceSynchronize=self.drain
            ),
        )  # fmt: skip

    def copy(self, to: int, source: int, size: int, kind: int, stream: int) -> None:
        assert (kind, stream) == (1, 1)
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
        self.dtype, self.shape, self.size = values.dtype, values.shape, values.size

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

    def to_host(self, array: Any) -> Any:
        return array.values if isinstance(array, Array) else array
