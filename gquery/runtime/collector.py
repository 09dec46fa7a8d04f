"""Keeps Python's cyclic garbage collector from objects that stay: plans, kernel text, a compiler's state, modules.

The collector looks at every new object some times before it leaves it alone. That took a fifth of the time of planning and
compiling long queries, and found nothing. References are still counted meanwhile, so memory is freed but for circles.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import MethodDescriptorType, WrapperDescriptorType

_lock = threading.Lock()
_paused = 0  # callers, of all threads
_was_on = False
_makes_permanent = False
_seen = 0  # objects, the last time that they were listed


class _Paused:
    """What `paused` gives: a plan is made in some twenty such blocks, and a generator's is five times as long to enter."""

    __slots__ = ()

    def __enter__(self) -> None:
        global _paused, _was_on
        with _lock:
            if _paused == 0:
                _was_on = gc.isenabled()
                gc.disable()
            _paused += 1

    def __exit__(self, *_: object) -> None:
        global _paused
        with _lock:
            _paused -= 1
            if _paused == 0 and _was_on:
                gc.enable()


_PAUSED = _Paused()


def _in_child() -> None:
    """Threads that had paused it are not there."""
    global _lock, _paused
    _lock = threading.Lock()
    if _paused and _was_on:
        gc.enable()
    _paused = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def paused() -> _Paused:
    """No collection while the block runs, on any thread; behind the last such block it is as it was."""
    return _PAUSED


@contextmanager
def permanent() -> Iterator[None]:
    """What the block makes stays until the process ends, so no collection looks at it again: modules. The interpreter's end
    would go through it three times, 0.1 s. Everything that was there before is collected as ever: a file that is only held
    by a circle of the user's is written out. Where that cannot be told apart, nothing is done but to have all taken for old. A
    block within another is a part of that."""
    global _makes_permanent, _seen
    if _makes_permanent:
        yield
        return
    # a list of a million objects takes 0.1 s, so a process that had too many is not asked again
    before = [] if _are_many(_seen) or _others_run() or not _can_track() else gc.get_objects()
    _seen = len(before) or _seen
    _makes_permanent = True
    with paused():
        try:
            yield
        finally:
            _makes_permanent = False
        if not before or _are_many(len(before)) or _others_run():
            _age()
            return
        gc.freeze()
        _unfreeze(before)


def _are_many(objects: int) -> bool:
    """Whether there are too many to be given back to the collector one by one."""
    if objects == 0:
        return False
    from gquery import tuning  # not before the first objects were listed: it belongs to what stays

    return objects > tuning.startup.collected_before


def _others_run() -> bool:
    """Whether another thread may make objects meanwhile. One that makes a tuple of a generator fails with a SystemError where a
    list of all objects holds that tuple too."""
    return len(sys._current_frames()) > 1


def _can_track() -> bool:
    """Whether the interpreter is CPython with its lock, where objects can be tracked one by one."""
    return sys.implementation.name == "cpython" and "t" not in getattr(sys, "abiflags", "t")


def _unfreeze(objects: list[object]) -> None:
    """Give objects back to the collector, as new ones; not weak proxies, which stand for nothing once their object is gone, nor
    the methods of types that are written in C, which are a sixth of all and hold nothing but their type."""
    import ctypes

    untrack, track = ctypes.pythonapi.PyObject_GC_UnTrack, ctypes.pythonapi.PyObject_GC_Track
    for call in (untrack, track):
        call.argtypes, call.restype = (ctypes.py_object,), None
    left = {*weakref.ProxyTypes, WrapperDescriptorType, MethodDescriptorType}
    tracked = [o for o in objects if gc.is_tracked(o) and type(o) not in left]
    # one after the other without a step of Python's between, as a dictionary that is changed tracks itself
    deque(zip(map(untrack, tracked), map(track, tracked), strict=True), maxlen=0)


def _age() -> None:
    """Have the collector take all that is there for old: it would look through it in the midst of a first query, for 50 ms."""
    if gc.get_freeze_count() == 0:  # else somebody keeps objects from it, which they would not be any more
        gc.freeze()
        gc.unfreeze()
