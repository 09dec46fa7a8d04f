"""Functions of CUDA's driver for code that runs without the interpreter."""

from __future__ import annotations

import ctypes
import os
from functools import cache

from gquery.runtime.tuples import NamedTuple


class CopyCalls(NamedTuple):
    """Addresses of functions: to wait for an event; to begin a copy to the GPU, from an address of the host, of so many bytes, on
    a stream; to record an event on a stream; to begin a copy from the GPU, as the one to it. Each gives 0, or an error."""

    wait: int
    copy: int
    record: int
    back: int


_NAMES = ("cuEventSynchronize", "cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuMemcpyDtoHAsync_v2")


@cache
def copy_calls() -> CopyCalls | None:
    """Those of the driver that is there; None where it lacks them."""
    try:
        library = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
        found = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in _NAMES]
    except (OSError, AttributeError):
        return None
    return CopyCalls(*(address or 0 for address in found))
