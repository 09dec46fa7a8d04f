"""What moves pieces of arrays between a GPU and files without the interpreter (`kernels.builtin.moves`).

A job is an array of words that `kernels.primitives.moves` names; one thread does it, and others do those of the same pieces with
another first one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Protocol

from gquery.device.array import Array


class Movers(Protocol):
    """See above; a job's word `NEXT` is the first piece that was not moved, behind it."""

    def send(self, job: Array) -> int:
        """Begin to copy pieces to a GPU, from files or from memory: what it ended with."""
        ...

    def receive(self, job: Array) -> int:
        """Write pieces of a GPU's memory to files: what it ended with."""
        ...


_find: Callable[[], Movers | None] | None = None


def use_movers(find: Callable[[], Movers | None]) -> None:
    """Take these from here on, in all of the process."""
    global _find
    _find = find


def movers() -> Movers | None:
    """Those that there are; None while they are not ready, or where the C library does not have what they call."""
    return None if _find is None or native_calls() is None else _find()


@cache
def native_calls() -> tuple[int, int] | None:
    """Addresses of the C library's functions that copy memory, and write to a file at a place; None where it has none."""
    try:
        library = ctypes.CDLL(None)
        found = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in ("memcpy", "pwrite")]
    except (OSError, AttributeError, TypeError):
        return None
    return (found[0] or 0, found[1] or 0) if all(found) else None
