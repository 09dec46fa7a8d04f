"""Launching a kernel with as little of Python as possible: a query launches dozens, and each keeps the GPU waiting.

A kernel takes its parameters as pointers to values. Both lie in memory that is laid out once a kernel; a launch packs the
values in one call of `struct` and hands the driver an address. That takes a third of the time of CuPy's own call, which looks
at the type of each argument.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from gquery.device.array import Array
from gquery.device.graph import RecordedGraph
from gquery.expression.facts import INT64_BYTES
from gquery.expression.types import INT64
from gquery.kernels.kernel import Kernel
from gquery.runtime.once import once
from gquery.runtime.tuples import NamedTuple

_OWN = 4  # parameters that every kernel has: the rows from and to, the addresses of the abort flag and of the limit
_SIZE = 8  # bytes of a parameter's place; indices of 32 bits leave half of theirs unused


class Launcher:
    """One kernel in one device's memory. ``ptr`` is the driver's handle of it."""

    def __init__(self, function: Any, kernel: Kernel) -> None:
        from cupy.cuda import driver, get_current_stream

        self.function = function  # keeps the module loaded
        self.ptr = int(function.ptr)
        index = "Q" if kernel.wide_index else "I4x"
        own = ("Q" if p.is_pointer else "d" if p.type == "f64" else "q" for p in kernel.parameters)
        self._packer = struct.Struct("<" + index * 2 + "QQ" + "".join(own))
        count = _OWN + len(kernel.parameters)
        assert self._packer.size == _SIZE * count
        self._values = bytearray(self._packer.size)
        first = ctypes.addressof(ctypes.c_char.from_buffer(self._values))
        self._pointers = (ctypes.c_void_p * count)(*(first + _SIZE * n for n in range(count)))
        self._parameters = ctypes.addressof(self._pointers)
        self._launch, self._stream, self._set = driver.launchKernel, get_current_stream, driver.funcSetAttribute
        self._allowed = 0
        self._lock = threading.Lock()  # the driver copies the values before it returns

    def __call__(self, blocks: int, threads: int, shared: int, values: Sequence[Any]) -> None:
        """Queue the kernel on the current stream. ``values`` are the rows from and to, the addresses of the abort flag and
        of the limit, and the kernel's own parameters: addresses and integers as int, doubles as float."""
        with self._lock:
            self._packer.pack_into(self._values, 0, *values)
            self._launch(self.ptr, blocks, 1, 1, threads, 1, 1, shared, self._stream().ptr, self._parameters, 0)

    def allow_shared(self, size: int) -> None:
        """Have launches with so many bytes of shared memory a block accepted from now on, and those of others with more still."""
        from cupy.cuda import driver

        with self._lock:
            if size > self._allowed:
                self._set(self.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, size)
                self._allowed = size

    def packed(self, values: Sequence[Any]) -> bytes:
        """The values of a launch, as `set_in` takes them."""
        return self._packer.pack(*values)

    def set_in(self, graph: RecordedGraph, node: int, shape: tuple[int, int, int], packed: bytes) -> None:
        """Have a recorded launch of the kernel take these values from now on; see `RecordedGraph.set_arguments`."""
        with self._lock:
            self._values[:] = packed
            graph.set_arguments(node, self.ptr, shape, self._parameters)


class LaunchDefaults(NamedTuple):
    """What launches are given where nobody says otherwise: the addresses of an abort flag that stays 0, and of a limit beyond all
    rows, in ``words``."""

    words: Array
    never: int
    unlimited: int


@once
def launch_defaults(device: int) -> LaunchDefaults:
    """Those of one GPU."""
    import cupy

    with cupy.cuda.Device(device):
        words = cupy.asarray(np.array([0, INT64.high], np.int64))
        cupy.cuda.get_current_stream().synchronize()  # other streams read it too
    first = int(words.data.ptr)
    return LaunchDefaults(words, first, first + INT64_BYTES)
