"""The type of an array on any device, for signatures."""

from __future__ import annotations

import sys
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

ElementDType: TypeAlias = np.dtype[Any]
Array: TypeAlias = np.ndarray[Any, ElementDType]
"""An array of NumPy, on the host, or of CuPy, on a GPU. CuPy has NumPy's interface and no types of its own, so NumPy's stand for
both. What elements it has, and who may write to it, is said where it is made."""

READ_AHEAD = 16
"""Bytes behind the last character that a kernel may read (and never looks at)."""


def is_masked(values: object) -> bool:
    """Whether this is a masked array of NumPy's. Their module takes 6 ms to import: where nobody has, there is none."""
    module = sys.modules.get("numpy.ma")
    return module is not None and isinstance(values, module.MaskedArray)


class GpuMemory(Protocol):
    """A piece of a GPU's memory as it was taken; ``ptr`` is its address."""

    ptr: int


class GpuPointer(Protocol):
    """Where an array lies: the address, in a piece of memory."""

    ptr: int
    mem: GpuMemory


class GpuArray(Protocol):
    """What an array of CuPy has that NumPy's has not."""

    data: GpuPointer

    def set(self, arr: Array) -> None:
        """Copy an array of the host, of the same shape and type, into this one."""

    def get(self, *, out: Array) -> Array:
        """Copy this array into one of the host, of the same shape and type; waits for the copy."""


def on_gpu(array: Array) -> GpuArray:
    """An array of CuPy as what it is."""
    return cast(GpuArray, array)
