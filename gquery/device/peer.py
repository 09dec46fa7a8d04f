"""Copies from one GPU to another: over the link between them, or through page-locked memory where there is no access.

Nobody waits on the host. The copy begins when what was queued on the current stream of the source has run, and is queued on the
current stream of the device that it goes to; the source's stream waits for it before it writes there again. So an array can be
let go of at once, on both sides.

Ranks order their streams themselves, for all that they hand over at once: each leaves a `mark` on its stream, and waits for those
of others. What they copy `in_step` waits for nothing more, so that copies both ways run at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from gquery import tuning
from gquery.device.array import Array, on_gpu
from gquery.device.device import Device
from gquery.runtime.once import once

_ENABLED_ALREADY = 704  # cudaErrorPeerAccessAlreadyEnabled


class _Local(threading.local):
    is_in_step: bool = False  # whether this thread copies what streams were ordered for


_local = _Local()


@contextmanager
def in_step() -> Iterator[None]:
    """Within it, this thread copies what was handed over before marks that its stream waits for; the source keeps it until it
    waits for a mark behind the copy."""
    before, _local.is_in_step = _local.is_in_step, True
    try:
        yield
    finally:
        _local.is_in_step = before


class Mark:
    """A place in a stream: ``event`` is CuPy's."""

    __slots__ = ("event",)

    def __init__(self, event: Any) -> None:
        self.event = event


def mark(device: Device) -> Mark | None:
    """A place in the thread's current stream of a GPU, for others to `wait_for`; None on a CPU, where nothing is queued."""
    if device.is_cpu:
        return None
    with device.activate():
        event = device.xp.cuda.Event(disable_timing=True)
        event.record(device.xp.cuda.get_current_stream(device.ordinal))
        return Mark(event)


def wait_for(device: Device, mark: Mark | None) -> None:
    """Have the thread's current stream of a GPU go on when another one has come to a mark."""
    if mark is not None:
        with device.activate():
            device.xp.cuda.get_current_stream(device.ordinal).wait_event(mark.event)


@cache
def has_peer_access(one: Device, other: Device) -> bool:
    """Whether two GPUs copy from each other's memory without the host. It is switched on then, both ways."""
    runtime = one.xp.cuda.runtime
    pairs = ((one, other), (other, one))
    if not all(runtime.deviceCanAccessPeer(a.ordinal, b.ordinal) for a, b in pairs):
        return False
    for a, b in pairs:
        with a.activate():
            try:
                runtime.deviceEnablePeerAccess(b.ordinal)
            except runtime.CUDARuntimeError as error:
                if error.status != _ENABLED_ALREADY:
                    raise
    return True


def is_in_reach(device: Device, other: Device) -> bool:
    """Whether kernels of a GPU read what lies on another device."""
    return other.is_cuda and has_peer_access(device, other)


def copy_between(to: Array, device: Device, array: Array, source: Device) -> None:
    """Queue a copy of a contiguous array on the GPU ``source`` to ``to``, as large, on another GPU."""
    cuda = device.xp.cuda
    sending, receiving = cuda.get_current_stream(source.ordinal), cuda.get_current_stream(device.ordinal)
    there, here, size = on_gpu(to).data.ptr, on_gpu(array).data.ptr, int(array.nbytes)
    has_access = has_peer_access(device, source)
    is_ordered = _local.is_in_step and has_access
    if not is_ordered:
        _follow(receiving, device, sending, source)
    if has_access:  # in a form that a graph can record
        with device.activate():
            cuda.runtime.memcpyAsync(there, here, size, cuda.runtime.memcpyDefault, receiving.ptr)
    else:
        _bridge(source, device).copy(there, here, size, sending, receiving)
    if not is_ordered:
        _follow(sending, source, receiving, device)


def _follow(stream: Any, device: Device, before: Any, source: Device) -> None:
    """Have a stream of ``device`` go on when all that was queued on one of ``source`` has run."""
    with source.activate():
        event = source.xp.cuda.Event(disable_timing=True)
        event.record(before)
    with device.activate():
        stream.wait_event(event)


class _Bridge:
    """Page-locked buffers between two GPUs: while one is read by the second, the first writes the next."""

    def __init__(self, source: Device, device: Device) -> None:
        self._source, self._device = source, device
        self._cuda = source.xp.cuda
        self._piece = tuning.transfers.buffer_bytes
        size = self._piece * tuning.transfers.bridge_buffers
        with source.activate():
            self._memory = self._cuda.alloc_pinned_memory(size)
            self._written = [self._event() for _ in range(tuning.transfers.bridge_buffers)]
        with device.activate():
            self._read = [self._event() for _ in range(tuning.transfers.bridge_buffers)]
        self._first = int(np.frombuffer(self._memory, np.uint8, size).ctypes.data)
        self._lock = threading.Lock()

    def _event(self) -> Any:
        return self._cuda.Event(disable_timing=True)

    def copy(self, to: int, source: int, size: int, sending: Any, receiving: Any) -> None:
        """Queue a copy between addresses, on a stream of each GPU."""
        runtime, buffers = self._cuda.runtime, len(self._read)
        with self._lock:  # the buffers' events tell of one copy after another
            for number, at in enumerate(range(0, size, self._piece)):
                slot, part = number % buffers, min(self._piece, size - at)
                buffer = self._first + slot * self._piece
                with self._source.activate():
                    sending.wait_event(self._read[slot])
                    runtime.memcpyAsync(buffer, source + at, part, runtime.memcpyDeviceToHost, sending.ptr)
                    self._written[slot].record(sending)
                with self._device.activate():
                    receiving.wait_event(self._written[slot])
                    runtime.memcpyAsync(to + at, buffer, part, runtime.memcpyHostToDevice, receiving.ptr)
                    self._read[slot].record(receiving)


@once
def _bridge(source: Device, device: Device) -> _Bridge:
    """The buffers from one GPU to another, made when they are first used."""
    return _Bridge(source, device)
