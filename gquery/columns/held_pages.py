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
    ``high`` (int64) take the extremes of each ``block`` rows of the column. With a ``table`` (int64) the entries of dictionaries
    lie there, as many bytes behind its beginning as states say in place of an address."""

    states: Any
    places: Any
    rows: Any
    size: int
    low: Any
    high: Any
    block: int
    table: Any = None


class HeldAssembly(Protocol):
    """A column in the making whose values a device decodes."""

    def device_values(self, device: Device) -> Any:
        """Where the values go, all of them."""
        ...

    def blocks(self) -> tuple[int, Any, Any]:
        """Of how many rows a block is, and room for the extremes of each (int64), as if it had no rows."""
        ...

    def take_found(self, found: Any, low: Any, high: Any, pick: Callable[[Any], Any]) -> None:
        """What was found of values that are on the device, of each chunk in order (`page_values.FOUND`) and of blocks. ``pick``
        gives the values of some rows (int64), as words of which the low bytes count. MisfitError where the column cannot hold
        them."""
        ...


class HeldKernels(Protocol):
    """What decodes them."""

    def fetch(self, file: int, chunks: Array) -> bool:
        """Reads bytes of a file that is open into the host's memory. ``chunks`` (int64) has the address that they go to, how many
        they are, and where in the file they begin, for each. Whether all came."""
        ...

    def upload(self, job: Array) -> int:
        """Reads ranges of a file and begins to copy them to a device: what it ended with, for a job of
        `kernels.primitives.uploads`."""
        ...

    def dictionaries(self, states: Array) -> bool:
        """Takes the texts of dictionaries with which chunks begin whose bytes lie in the host's memory: ``states`` (int64, a row
        each) as `kernels.primitives.pages` has them, each of which says behind it how many texts there are up to there, and where
        the page behind the dictionary lies. All go where the first row says. Whether each has one, and there was room."""
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
