"""The one module that imports numba-cuda: primitives that generated kernels import from, and compiling to PTX.

numba-cuda is in maintenance; its successor is a change of the import here. Nothing here needs a GPU or a driver.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from numba import cuda, types, uint32, uint64
from numba.cuda import dispatcher
from numba.cuda.extending import intrinsic

from gquery.kernels.primitives import block, partition, row_partition, warp, warp_pages, warp_texts
from gquery.kernels.targets.binding import Binding, Primitives
from gquery.kernels.targets.cuda_intrinsics import CUDA_DEFINITIONS
from gquery.kernels.targets.cuda_shared import SHARED_DEFINITIONS
from gquery.runtime.records import dataclass

__all__ = ["binding", "device", "inlined", "ptx", "uint32", "uint64", "void"]

void = types.void
device = cuda.jit(device=True)
inlined = cuda.jit(device=True, forceinline=True)  # as if its text stood at each call
_compiling = threading.Lock()
_capability: tuple[int, int] | None = None  # what is compiled for now; see `ptx`


@cache
def _binding(capability: tuple[int, int] | None) -> Binding:
    """Primitives for one compute capability: a device function remembers what it was first compiled for."""
    own = warp, warp_pages, warp_texts, block, partition, row_partition
    primitives = Primitives(CUDA_DEFINITIONS | SHARED_DEFINITIONS, own_bodies=own)
    return Binding(intrinsic, device, primitives)


def binding() -> Binding:
    """Those for what is compiled for now."""
    return _binding(_capability)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _binding(_capability)[name]


@dataclass(frozen=True)
class _Device:
    """Stands for a GPU while device functions are compiled: Numba asks it for its compute capability and no more."""

    compute_capability: tuple[int, int]


@contextmanager
def compiling_for(cc: tuple[int, int]) -> Iterator[None]:
    """Within it, primitives are made for ``cc``, whether there is such a GPU or none.

    Numba compiles a kernel for any capability, but asks the current device when it comes to the functions that the
    kernel calls; so it is given a device to ask.
    """
    global _capability
    with _compiling:
        asked, before = dispatcher.get_current_device, _capability
        dispatcher.get_current_device, _capability = lambda: _Device(cc), cc
        try:
            yield
        finally:
            dispatcher.get_current_device, _capability = asked, before


def _type(name: str) -> Any:
    if name.startswith("*"):
        return types.CPointer(_type(name[1:]))
    return getattr(types, {"i": "int", "u": "uint", "f": "float"}[name[0]] + name[1:])


def ptx(function: Any, signature: tuple[str, ...], cc: tuple[int, int]) -> tuple[str, str]:
    """PTX of a kernel and the name of its entry, called within `compiling_for`; ``*i32`` is a pointer to int32."""
    text, _ = cuda.compile_ptx(function, types.void(*(_type(s) for s in signature)), cc=cc)
    entry = re.search(r"\.visible \.entry (\w+)\(", text)
    assert entry is not None, "PTX without an entry"
    return text, entry[1]
