"""CUDA graphs whose kernels are given other arguments: CuPy lets go of a graph's nodes once it is instantiated, and has no call
to change one. The driver is asked for that, by ctypes."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from gquery.errors import DeviceError

_CAPTURING = 1  # CU_STREAM_CAPTURE_STATUS_ACTIVE


class _KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS of the driver."""

    _fields_ = [
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("arguments", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
    ]


class RecordedGraph:
    """A graph that was captured, and what it was instantiated as; both go with it. ``runtime`` is CuPy's."""

    def __init__(self, runtime: Any, graph: int) -> None:
        self._runtime, self._graph, self._executable = runtime, graph, 0
        self._executable = int(runtime.graphInstantiate(graph))
        context = ctypes.c_void_p()
        _checked(_driver().cuCtxGetCurrent(ctypes.byref(context)))
        self._context = context.value

    def launch(self, stream: Any) -> None:
        """Queue all of it on a stream of CuPy's."""
        self._runtime.graphLaunch(self._executable, stream.ptr)

    def set_arguments(self, node: int, function: int, shape: tuple[int, int, int], arguments: int) -> None:
        """Have a kernel's node be launched with other arguments from now on: those that ``arguments``, an address of pointers to
        values, leads to; the driver copies them. ``shape`` are the blocks, the threads of one, and its shared memory in bytes."""
        blocks, threads, shared = shape
        _checked(_driver().cuCtxSetCurrent(self._context))  # a thread that CUDA does not know yet has none
        given = _KernelNode(function, (blocks, 1, 1), (threads, 1, 1), shared, arguments, None)
        _checked(_driver().cuGraphExecKernelNodeSetParams(self._executable, node, ctypes.byref(given)))

    def __del__(self) -> None:
        if self._executable:
            self._runtime.graphExecDestroy(self._executable)
        self._runtime.graphDestroy(self._graph)


def last_node(stream: int) -> int | None:
    """The node that a stream has captured last; None where it captures nothing, or what comes next would wait for several."""
    status, number, nodes = ctypes.c_int(), ctypes.c_size_t(), ctypes.POINTER(ctypes.c_void_p)()
    _checked(
        _driver().cuStreamGetCaptureInfo_v2(
            stream, ctypes.byref(status), None, None, ctypes.byref(nodes), ctypes.byref(number)
        )
    )
    if status.value != _CAPTURING or number.value != 1:
        return None
    node: int | None = nodes[0]
    return node


def _checked(result: int) -> None:
    if result != 0:
        raise DeviceError(f"the driver refuses to change a recorded run: error {result}")


@cache
def _driver() -> Any:
    library = next(name for name in ("libcuda.so.1", "nvcuda.dll") if _is_there(name))
    driver = ctypes.CDLL(library)
    pointer = ctypes.c_void_p
    driver.cuGraphExecKernelNodeSetParams.argtypes = [pointer, pointer, pointer]
    driver.cuStreamGetCaptureInfo_v2.argtypes = [pointer] * 6
    driver.cuCtxGetCurrent.argtypes = driver.cuCtxSetCurrent.argtypes = [pointer]
    return driver


def _is_there(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
