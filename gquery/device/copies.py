"""Copies of arrays between devices: neither has a part of the other's memory afterwards."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gquery import tuning
from gquery.device.array import READ_AHEAD, Array, on_gpu
from gquery.device.device import Device
from gquery.device.host import address_of
from gquery.device.peer import copy_between, has_peer_access, in_step
from gquery.device.spill import place_of
from gquery.runtime.threads import core_count


def room_for(size: int, dtype: np.dtype[Any], device: Device, context: str = "", is_copied: bool = False) -> Array:
    """An uninitialised array of one dimension. Bytes get room behind them, since kernels read strings a word at a time. Copies of
    this module alone write one that ``is_copied``."""
    ahead = READ_AHEAD if dtype == np.uint8 else 0
    make = device.empty_copied if is_copied else device.empty_spillable
    return make(size + ahead, dtype, context)[:size]


def rooms_for(wanted: Sequence[tuple[int, np.dtype[Any]]], device: Device, context: str = "") -> list[Array]:
    """Such arrays of so many values that copies alone write, and that go together. Those that come to lie in files share them: a
    process may have some thousand files open at once, on many systems."""
    made, at = list[Array](), [0]
    for size, dtype in wanted:
        ahead = READ_AHEAD if dtype == np.uint8 else 0
        at.append(at[-1] + -(-(size + ahead) * dtype.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE)
    if not device.has_to_file(at[-1]):
        return [room_for(size, dtype, device, context, is_copied=True) for size, dtype in wanted]
    whole = device.empty_copied(at[-1], np.uint8, context)
    for (size, dtype), first in zip(wanted, at, strict=False):
        made.append(whole[first : first + size * dtype.itemsize].view(dtype))
    return made


def copied(array: Array, source: Device, device: Device, context: str = "") -> Array:
    """A copy on ``device`` of an array of one dimension that lies on ``source``, in memory of its own."""
    if source.is_cpu and device.is_cuda:
        return device.from_host(array, context)  # through page-locked memory where it is long
    made = room_for(int(array.shape[0]), array.dtype, device, context, is_copied=True)
    copy_into(made, device, array, source)
    return made


def brought(array: Array, source: Device, device: Device, context: str = "") -> Array:
    """A copy on ``device``, in memory of its own, of an array of one dimension that a rank on ``source`` has handed over."""
    if not isinstance(array, np.ndarray) or device.is_cuda:
        with in_step():
            return copied(array, source, device, context)
    made = room_for(int(array.shape[0]), array.dtype, device, context)
    np.copyto(made, array)
    return made


def on_device(array: Array, source: Device, device: Device, context: str = "") -> Array:
    """What `Buffer.on` keeps on ``device`` of an array that lies on ``source``: the host's array itself where it can be used."""
    if source.is_cuda and device.is_cuda and not device.stays:  # a recording takes nothing from another GPU's stream
        return copied(array, source, device, context)
    return device.from_host(source.to_host(array), context)


def nearest(devices: Iterable[Device], device: Device) -> Device:
    """Where a copy on ``device`` comes from, of those that have the array: a GPU that it has access to, else the first."""
    first, *others = devices
    if device.is_cuda:
        return next((d for d in (first, *others) if d.is_cuda and has_peer_access(device, d)), first)
    return first


def copy_into(to: Array, device: Device, array: Array, source: Device) -> None:
    """Copy a contiguous array that lies on ``source`` to ``to`` on ``device``, of the same length and type. Between GPUs
    it is queued on the current streams (`device.peer`), else it has arrived."""
    if not to.size:
        return
    if device.is_cpu and place_of(to) is not None:
        _write([(to, array)], source)
    elif source.is_cpu and _is_read(array, device):
        _read([(to, array)], device)
    elif device.is_cpu and isinstance(array, np.ndarray):
        _copy_on_host(to, array)
    elif device.is_cpu:
        with source.activate():
            on_gpu(array).get(out=to)
    elif source.is_cpu:
        with device.activate():
            on_gpu(to).set(np.ascontiguousarray(array))
    elif source == device:
        with device.activate():
            device.xp.copyto(to, array)  # bytes, where the other way CuPy compiles a copy of one element
    else:
        copy_between(to, device, array, source)


def copy_all(pairs: Sequence[tuple[Array, Array]], device: Device, source: Device) -> None:
    """Copy arrays as `copy_into` does, each to the one before it in its pair; those to files, and from them, at once."""
    written = [p for p in pairs if device.is_cpu and place_of(p[0]) is not None]
    _write(written, source)
    others = pairs if not written else [p for p in pairs if place_of(p[0]) is None]
    read = [p for p in others if source.is_cpu and p[0].size and _is_read(p[1], device)]
    _read(read, device)
    for to, array in others if not read else [p for p in others if not _is_read(p[1], device)]:
        copy_into(to, device, array, source)


def queue_all(moves: Sequence[tuple[Array, Sequence[Array]]], device: Device) -> None:
    """Copy arrays of the host one behind another to the array before them, on a device that is the current one: queued on its
    stream, so the arrays have to stay until it was waited for. What is not page-locked has arrived."""
    cuda = device.xp.cuda if device.is_cuda else None
    read: list[tuple[Array, Array]] = []
    for to, arrays in moves:
        at = 0
        for array in arrays:
            size = int(array.nbytes)
            part = slice(at // to.itemsize, (at + size) // to.itemsize)
            if _is_read(array, device):
                read.append((to[part], array))
            elif cuda is None:
                np.copyto(to[part], array)
            else:
                stream = cuda.get_current_stream(device.ordinal).ptr
                start = int(on_gpu(to).data.ptr) + at
                cuda.runtime.memcpyAsync(start, address_of(array), size, cuda.runtime.memcpyHostToDevice, stream)
            at += size
    _read(read, device)


def _is_read(array: Array, device: Device) -> bool:
    """Whether an array of the host comes to a device piece by piece: out of a file, or to a GPU out of memory that is not
    page-locked, which the driver copies on one thread."""
    if place_of(array) is not None:
        return True
    if not device.is_cuda or array.nbytes < tuning.transfers.staged_bytes:
        return False
    from gquery.device.chunks import is_page_locked  # a CPU does without

    return not is_page_locked(array)


def _write(pairs: Sequence[tuple[Array, Array]], source: Device) -> None:
    if pairs:
        from gquery.device.file_copies import write_files  # few queries need it

        write_files(pairs, source)


def _read(pairs: Sequence[tuple[Array, Array]], device: Device) -> None:
    if pairs:
        from gquery.device.file_copies import read_files  # as above

        read_files(pairs, device)


def _copy_on_host(to: Array, array: Array) -> None:
    """Copy between arrays of the host, long ones by several threads."""
    part = tuning.transfers.mover_bytes // max(array.itemsize, 1)
    if array.size <= part:
        np.copyto(to, array)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(tuning.transfers.movers, core_count())) as pool:
        for moved in [
            pool.submit(np.copyto, to[at : at + part], array[at : at + part]) for at in range(0, array.size, part)
        ]:
            moved.result()
