"""Forks of the process: a child has the thread that forks alone, and what others were at stays half done there for ever.

A fork waits until no thread is in the midst of what cannot be begun anew: modules that are imported, LLVM at work. Locks that
another thread held are free in the child; what they guard is changed in steps that leave nothing half done.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from contextlib import AbstractContextManager
from typing import Any, TypeVar

L = TypeVar("L")


class _Here(threading.local):
    depth = 0


_LOOK = 0.05  # seconds
_here = _Here()
_changed = threading.Condition(threading.Lock())
_busy = 0  # threads that a fork waits for
_forks = 0  # that wait
_locks: list[weakref.ref[Any]] = []
_held: list[AbstractContextManager[object]] = []
_taken: list[AbstractContextManager[object]] = []  # of them, by a fork that is on its way


class _Whole:
    __slots__ = ()

    def __enter__(self) -> None:
        global _busy
        if _here.depth == 0:
            with _changed:
                while _forks:
                    _changed.wait(_LOOK)
                _busy += 1
        _here.depth += 1

    def __exit__(self, *_: object) -> None:
        global _busy
        _here.depth -= 1
        if _here.depth == 0:
            with _changed:
                _busy -= 1
                _changed.notify_all()


_WHOLE = _Whole()


def whole() -> _Whole:
    """A fork waits for the block, on whichever thread it runs, for some seconds at most. It waits for nothing that the thread
    which forks may hold."""
    return _WHOLE


def free_in_child(lock: L) -> L:
    """The lock, which nobody holds in a child."""
    _locks.append(weakref.ref(lock))
    return lock


def hold(lock: AbstractContextManager[object]) -> None:
    """Have forks take a lock, which what it guards needs to be whole in a child."""
    _held.append(lock)


def _before() -> None:
    global _forks
    from gquery import tuning  # this module is among the first, which are few

    with _changed:
        _forks += 1
        end = time.monotonic() + tuning.memory.fork_seconds
        while _busy > (_here.depth > 0) or _imports():
            if time.monotonic() > end:
                break
            _changed.wait(_LOOK / 50)
    _taken.extend(_held)
    for lock in _taken:
        lock.__enter__()


def _release() -> None:
    while _taken:
        _taken.pop().__exit__(None, None, None)


def _imports() -> bool:
    """Whether another thread imports a module: its lock would be held for ever. Queries import what few of them need when they
    need it. Python tells of these locks by no public name."""
    locks: dict[str, Any] = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    owners = {getattr(ref(), "owner", None) for ref in list(locks.values())}
    return bool(owners - {None, threading.get_ident()})


def _in_parent() -> None:
    global _forks
    _release()
    with _changed:
        _forks -= 1
        _changed.notify_all()


def _in_child() -> None:
    global _changed, _busy, _forks
    _release()
    _changed, _busy, _forks = threading.Condition(threading.Lock()), int(_here.depth > 0), 0
    for found in [ref() for ref in _locks]:
        if found is not None:
            found._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
