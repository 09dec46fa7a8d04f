"""CPU devices that keep their memory apart, as GPUs do: what tests run several ranks on where there are no GPUs.

``Device("cpu", n)`` with n of 1 at least is one of them. Its arrays lie in an address space of its own, and what comes from the
host or goes to another device is copied. Array functions of NumPy make arrays of the host meanwhile, which any CPU may use.
While a thread runs on one (`Device.activate`), kernels that are handed memory of another's are found (`kernels.checks`).
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import numpy as np

from gquery.device.address_space import AddressSpace, owner_of, space_of
from gquery.device.array import READ_AHEAD, Array
from gquery.device.device import Device


class SimulatedDevice(Device):
    """See above and `Device`."""

    @property
    def _arrays(self) -> AddressSpace:
        return space_of(self.ordinal)

    @property
    def name(self) -> str:
        """``cpu:1``."""
        return f"cpu:{self.ordinal}"

    @property
    def live_bytes(self) -> int:
        """Bytes of all arrays in its address space."""
        return space_of(self.ordinal).live_bytes

    def from_host(self, array: Array, context: str = "") -> Array:
        """See `Device.from_host`; a copy, as on a GPU."""
        if not array.size or owner_of(array) == self.ordinal:
            return array
        room = READ_AHEAD if array.dtype == np.uint8 and array.ndim == 1 else 0
        made = self.empty(array.size + room, array.dtype, context)[: array.size].reshape(array.shape)
        np.copyto(made, array)
        return made

    def initialized(self, values: Array) -> Array:
        """See `Device.initialized`."""
        made = self.empty(values.shape, values.dtype)
        np.copyto(made, values)
        return made

    def to_host(self, array: Array) -> Array:
        """See `Device.to_host`; what NumPy made lies there already."""
        return array.copy() if owner_of(array) else array

    def activate(self) -> Any:
        """See `Device.activate`."""
        return _Active(self)


_active: ContextVar[SimulatedDevice | None] = ContextVar("active device", default=None)


def active_device() -> SimulatedDevice | None:
    """The one that this thread runs on; None where it is at work for the host, for a GPU, or as one of several helpers."""
    return _active.get()


class _Active:
    """Has a thread run on a device, and those that it starts for itself."""

    __slots__ = ("_device", "_token")

    def __init__(self, device: SimulatedDevice) -> None:
        self._device = device

    def __enter__(self) -> None:
        self._token = _active.set(self._device)

    def __exit__(self, *_: object) -> None:
        _active.reset(self._token)
