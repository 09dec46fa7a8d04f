"""Chunks of Parquet that a GPU decodes: what is found of each, and who does it.

Kernels lie above columns and files, so the engine hands them down when it is loaded. Nobody waits for a compiler here: until
they are ready, the host's cores decode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from gquery.device.array import Array
from gquery.device.device import Device
from gquery.runtime.records import dataclass


@dataclass(frozen=True, eq=False)
class HeldChunks:
    """Chunks of a column whose bytes lie on a device: ``states`` (int64, a row each) as `kernels.primitives.pages` has them. The
    values, integers of ``size`` bytes, go to the addresses ``places``, which are those of the column's rows ``rows``; ``low`` and
    ``high`` (int64) take the extremes of each ``block`` rows of the column."""

    states: Any
    places: Any
    rows: Any
    size: int
    low: Any
    high: Any
    block: int


class HeldKernels(Protocol):
    """What decodes them."""

    def fetch(self, file: int, chunks: Array) -> bool:
        """Reads bytes of a file that is open into the host's memory. ``chunks`` (int64) has the address that they go to, how many
        they are, and where in the file they begin, for each. Whether all came."""
        ...

    def decode(self, device: Device, chunks: HeldChunks) -> Array:
        """Decodes chunks, and waits for that; int64 of chunks x `page_values.FOUND`, of which the host gets no more."""
        ...

    def pick(self, device: Device, address: int, size: int, places: Array) -> Array:
        """The low ``size`` bytes (int64) of values of an array on a device, which begins at an address, at some places."""
        ...


_find: Callable[[Device], HeldKernels | None] | None = None


def use_held_kernels(find: Callable[[Device], HeldKernels | None]) -> None:
    """Take kernels from here on, in all of the process."""
    global _find
    _find = find


def held_kernels(device: Device) -> HeldKernels | None:
    """The kernels of a GPU; None while they are not ready."""
    return None if _find is None else _find(device)
