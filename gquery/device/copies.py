"""Copies of arrays between devices: neither has a part of the other's memory afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from gquery.device.array import READ_AHEAD, Array, on_gpu
from gquery.device.device import Device


def room_for(size: int, dtype: np.dtype[Any], device: Device, context: str = "") -> Array:
    """An uninitialised array of one dimension. Bytes get room behind them, since kernels read strings a word at a time."""
    ahead = READ_AHEAD if dtype == np.uint8 else 0
    return device.empty(size + ahead, dtype, context)[:size]


def copied(array: Array, source: Device, device: Device, context: str = "") -> Array:
    """A copy on ``device`` of an array of one dimension that lies on ``source``, in memory of its own."""
    if source.is_cpu and device.is_cuda:
        return device.from_host(array, context)  # through page-locked memory where it is long
    made = room_for(int(array.shape[0]), array.dtype, device, context)
    copy_into(made, device, array, source)
    return made


def on_device(array: Array, source: Device, device: Device, context: str = "") -> Array:
    """What `Buffer.on` keeps on ``device`` of an array that lies on ``source``: the host's array itself where it can be used."""
    return device.from_host(source.to_host(array), context)


def copy_into(to: Array, device: Device, array: Array, source: Device) -> None:
    """Copy a contiguous array that lies on ``source`` to ``to`` on ``device``, of the same length and type. Where both are one
    GPU it is queued on the current stream, else it has arrived."""
    if not to.size:
        return
    if device.is_cpu:
        np.copyto(to, array if isinstance(array, np.ndarray) else source.to_host(array))
    elif source.is_cpu:
        with device.activate():
            on_gpu(to).set(np.ascontiguousarray(array))
    elif source == device:
        with device.activate():
            to[...] = array
    else:
        host = source.to_host(array)
        with device.activate():
            on_gpu(to).set(host)
