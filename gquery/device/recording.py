"""A GPU as a run sees it that is to be recorded: all work stays there, and constants are copied beside the recording."""

from __future__ import annotations

import numpy as np

from gquery.device.arena import Arena
from gquery.device.array import READ_AHEAD, Array, on_gpu
from gquery.device.device import Device


class CannotRecordError(Exception):
    """Something in a run cannot be recorded: it has to wait for the GPU, or memory has run out."""


class RecordingDevice(Device):
    """A device for the runs that come before a recording and for the recording itself.

    `Device.stays` holds: no stage goes to the host, so that nothing has to wait in the midst. While ``constants`` is a list, a
    run is recorded: arrays that the host sends are copied at once into memory of their own, which the list keeps. They must not
    lie in the arena, whose memory the recorded run itself writes from its beginning.
    """

    stays = True

    def __init__(self, device: Device, arena: Arena) -> None:
        super().__init__(device.kind, device.ordinal)
        self._arena = arena
        self.constants: list[Array] | None = None

    def from_host(self, array: Array, context: str = "") -> Array:
        """See `Device.from_host`."""
        if self.constants is None:
            return super().from_host(array, context)
        with self._arena.apart():
            room = READ_AHEAD if array.dtype == np.uint8 and array.ndim == 1 else 0
            if room:
                copy = self.empty(array.size + room, np.uint8, context)[: array.size]
            else:
                copy = self.empty(array.shape, array.dtype, context)
            on_gpu(copy).set(np.ascontiguousarray(array))
        self.constants.append(copy)
        return copy

    def initialized(self, values: Array) -> Array:
        """See `Device.initialized`; each run of a recording sets the values again."""
        constant = self.from_host(values)
        if self.constants is None:
            return constant
        made = self.empty(constant.shape, constant.dtype)
        self._arena.copy(on_gpu(made).data.ptr, on_gpu(constant).data.ptr, constant.nbytes)
        return made

    def synchronize(self) -> None:
        """See `Device.synchronize`; there is nothing to wait for while a run is recorded."""
        if self.constants is None:
            super().synchronize()

    def make_room(self) -> None:
        """See `Device.make_room`; a recording is given up instead."""
        if self.constants is not None:
            raise CannotRecordError("memory has run out")
        super().make_room()
