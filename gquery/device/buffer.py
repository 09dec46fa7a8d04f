"""Immutable arrays that lie on the host, on devices or on both; the first kernel that asks for one brings it there."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from gquery.device.address_space import owner_of
from gquery.device.addresses import stay_of_column
from gquery.device.array import Array
from gquery.device.copies import nearest, on_device
from gquery.device.device import Device, cpu_device
from gquery.runtime.stopwatch import part

_clock = itertools.count()


class Buffer:
    """An immutable one-dimensional array, mirrored lazily where it is used.

    Made from a NumPy or CuPy array, which it keeps alive (and through it the Arrow buffer that it may view).
    """

    __slots__ = ("__weakref__", "_copies", "_lock", "dtype", "is_cached", "length", "used")

    def __init__(self, array: Array, device: Device | None = None) -> None:
        self.dtype: np.dtype[Any] = array.dtype
        self.length = int(array.shape[0])
        if device is None:
            device = device_of(array)
        self._copies: dict[Device, Array] = {device: array}
        self._lock = threading.Lock()
        self.used = next(_clock)  # when somebody last asked for it: greater is later
        self.is_cached = False  # whether a cache may let go of copies on a GPU at any time

    @property
    def nbytes(self) -> int:
        """Bytes of one copy."""
        return self.length * int(self.dtype.itemsize)

    @property
    def devices(self) -> tuple[Device, ...]:
        """Where copies lie."""
        return tuple(self._copies)

    def is_on(self, device: Device) -> bool:
        return device in self._copies

    def on(self, device: Device, context: str = "") -> Array:
        """The array on ``device`` (numpy or cupy), copied there at first."""
        self.used = next(_clock)
        array = self._copies.get(device)
        if array is None:
            with self._lock:
                array = self._copies.get(device)
                if array is None:
                    at = nearest(self._copies, device)
                    with part("copy"):
                        array = self._copies[device] = on_device(self._copies[at], at, device, context)
                    if device.streams:
                        device.mirrors.add(self)
        if self.is_cached:
            stay_of_column(array)
        return array

    def place(self, device: Device, array: Array) -> None:
        """Take a copy that was made elsewhere as the one on ``device``."""
        with self._lock:
            self._copies.setdefault(device, array)

    def move(self, device: Device, array: Array) -> None:
        """Take an equal array in place of the copy on ``device``; who holds that one keeps it."""
        with self._lock:
            self._copies[device] = array

    def slice(self, low: int, high: int) -> Buffer:
        """Values ``low`` to ``high`` as views of the same memory, wherever copies lie."""
        (device, array), *others = self._copies.copy().items()
        made = Buffer(array[low:high], device)
        made._copies |= {other: copy[low:high] for other, copy in others}
        return made

    def window(self, low: int, high: int) -> Buffer:
        """Values ``low`` to ``high``: on each device a view of the copy there, which the first to ask for it has made."""
        return _Window(self, low, high)

    @property
    def host(self) -> Array:
        """The NumPy array."""
        return self.on(cpu_device())

    @property
    def cpu(self) -> Array | None:
        """The array on the host or another CPU device, which NumPy can read; None where a GPU alone has it."""
        return next((a for d, a in self._copies.copy().items() if d.is_cpu), None)

    def drop(self, device: Device) -> None:
        """Forget the copy on ``device``; the last copy stays."""
        with self._lock:
            if len(self._copies) > 1:
                self._copies.pop(device, None)

    def __repr__(self) -> str:
        return f"Buffer({self.dtype}[{self.length}] on {', '.join(d.name for d in self._copies)})"


class InPieces(Buffer):
    """Arrays of one device, one behind another, as one buffer: they are copied into one array when somebody first asks for it.
    A piece whose values are all the same may repeat one (a stride of 0)."""

    __slots__ = ("_device", "_pieces")

    def __init__(self, pieces: Sequence[Array], device: Device) -> None:
        self.dtype = pieces[0].dtype
        self.length = sum(int(p.shape[0]) for p in pieces)
        self._copies = {}
        self._lock = threading.Lock()
        self.used = next(_clock)
        self.is_cached = False
        self._device = device
        self._pieces = tuple(pieces)

    @property
    def devices(self) -> tuple[Device, ...]:
        """See `Buffer`."""
        return tuple(self._copies) or (self._device,)

    @property
    def lengths(self) -> list[int]:
        """How many values each piece has; none once they are one array."""
        return [] if self._copies else [int(p.shape[0]) for p in self._pieces]

    @property
    def cpu(self) -> Array | None:
        """See `Buffer`."""
        self._join()
        return super().cpu

    def holds(self) -> int:
        """Bytes of the arrays that the pieces are views of."""
        owners = {}
        for piece in () if self._copies else self._pieces:
            owner = piece
            while isinstance(base := getattr(owner, "base", None), type(piece)):
                owner = base
            owners[id(owner)] = int(owner.nbytes)
        return sum(owners.values())

    def is_on(self, device: Device) -> bool:
        """See `Buffer`."""
        return device in self.devices

    def on(self, device: Device, context: str = "") -> Array:
        """See `Buffer.on`."""
        self._join(context)
        return super().on(device, context)

    def slice(self, low: int, high: int) -> Buffer:
        """See `Buffer.slice`: of pieces that are not one array yet, of those that it touches."""
        with self._lock:
            pieces = () if self._copies else self._pieces
        if not pieces:
            return super().slice(low, high)
        found, at = [], 0
        for piece in pieces:
            first, last = max(low - at, 0), min(high - at, int(piece.shape[0]))
            if first < last:
                found.append(piece[first:last])
            at += int(piece.shape[0])
        if len(found) == 1 and found[0].strides[0]:
            return Buffer(found[0], self._device)
        return InPieces(found or [pieces[0][:0]], self._device)

    def _join(self, context: str = "") -> None:
        with self._lock:
            if self._copies:
                return
            made = self._device.empty(self.length, self.dtype, context)
            self._device.xp.concatenate(self._pieces, out=made)
            self._copies[self._device], self._pieces = made, ()


class _Window(Buffer):
    """Some values of another buffer; see `Buffer.window`."""

    __slots__ = ("_high", "_low", "_whole")

    def __init__(self, whole: Buffer, low: int, high: int) -> None:
        device = whole.devices[0]
        super().__init__(whole.on(device)[low:high], device)
        self._whole, self._low, self._high = whole, low, high

    def on(self, device: Device, context: str = "") -> Array:
        """See `Buffer.on`."""
        self.used = next(_clock)
        array = self._copies.get(device)
        if array is None:
            copy = self._whole.on(device, context)
            with self._lock:
                array = self._copies.setdefault(device, copy[self._low : self._high])
            if device.streams:
                device.mirrors.add(self)
        return array


def device_of(array: Array) -> Device:
    """Where an array lies."""
    if not isinstance(array, np.ndarray):
        return Device("cuda", int(array.device.id))
    owner = owner_of(array)
    return Device("cpu", owner) if owner else cpu_device()
