"""A GPU that is played, for graphs that are launched: launching one does what a test says, and copies copy."""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

import numpy as np
import pytest

import gquery
from gquery.device.arena import Arena
from gquery.device.device import Device

T = TypeVar("T")


class Gpu:
    """Stands for CuPy, a stream and the driver. ``events`` are what was asked of it, in order."""

    ptr = 1

    def __init__(self) -> None:
        self.events: list[str] = []
        self.works: Callable[[], object] = lambda: None  # what happens once the graph is launched
        self.ends: Callable[[], object] = lambda: None  # and while it is waited for
        self.runtime = self
        self.memcpyDeviceToHost = 2

    def graphLaunch(self, graph: int, stream: int) -> None:
        self.events.append("launch")
        self.works()

    def memcpyAsync(self, to: int, source: int, size: int, kind: int, stream: int) -> None:
        ctypes.memmove(to, source, size)

    def memsetAsync(self, address: int, value: int, size: int, stream: int) -> None:
        self.events.append("abort")

    def synchronize(self) -> None:
        self.events.append("wait")
        self.ends()

    def alloc_pinned_memory(self, size: int) -> bytearray:
        return bytearray(size)

    def graphDestroy(self, graph: int) -> None:
        self.events.append("destroy")

    def __enter__(self) -> Gpu:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class PlayedDevice(Device):
    """A GPU that needs no CuPy to be the current one."""

    def activate(self) -> Any:
        return Gpu()


def played_arena(gpu: Gpu) -> Arena:
    made = object.__new__(Arena)
    made._cuda, made.stream, made._beside, made.lock = gpu, gpu, gpu, threading.RLock()
    made._pinned, made._pinned_at, made._holders = np.empty(0, np.uint8), 0, weakref.WeakSet()
    return made


@contextmanager
def held(arena: Arena) -> Iterator[None]:
    """Have another thread hold an arena meanwhile."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with arena.lock:
            taken.set()
            done.wait(60)

    other = threading.Thread(target=hold)
    other.start()
    taken.wait(60)
    try:
        yield
    finally:
        done.set()
        other.join()


def rows_on_gpu(connection: gquery.Connection, device: Device, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query, as if the connection's device was the GPU. What is not played runs on the CPU."""
    usual, run_plan = connection.device, connection.run_plan

    def on_cpu(prepared: Any) -> Any:
        connection.device = usual
        return run_plan(prepared)

    connection.device = device
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(connection, "run_plan", on_cpu)
            return connection.sql(sql).fetchall()
    finally:
        connection.device = usual


def calls_of(work: Callable[[], T]) -> tuple[T, int]:
    """What ``work`` gives, and how many functions it calls, Python's and those written in C: as many on each machine."""
    calls = [-1]  # its own call is none of them

    def count(frame: FrameType, event: str, argument: object) -> None:
        calls[0] += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        made = work()
    finally:
        sys.setprofile(None)
    return made, calls[0]
