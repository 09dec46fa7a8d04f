"""The memory that a GPU's arrays come from: CuPy's pool, which keeps the blocks of arrays that are gone for later ones.

A connection under a memory limit has a pool of its own. The limit is on all that the pool has taken of the GPU, with blocks that
nobody uses: so it holds for what the driver counts, too. Free blocks go back to the driver before the pool would outgrow it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_local = threading.local()


@contextmanager
def limited() -> Iterator[None]:
    """Within it, what this thread's array functions take on a GPU counts against a limit."""
    before = is_limited()
    _local.is_limited = True
    try:
        yield
    finally:
        _local.is_limited = before


def is_limited() -> bool:
    """Whether that is so."""
    return bool(getattr(_local, "is_limited", False))


class GpuPool:
    """See above. Its methods are called while GPU ``ordinal`` is the current one."""

    def __init__(self, cupy: ModuleType, ordinal: int, limit: int | None) -> None:
        self._refused = cupy.cuda.memory.OutOfMemoryError
        if limit is None:
            self._pool = cupy.get_default_memory_pool()
        else:
            self._pool = cupy.cuda.MemoryPool()
            with cupy.cuda.Device(ordinal):
                self._pool.set_limit(size=limit)

    def malloc(self, size: int) -> Any:
        """Memory for so many bytes, as CuPy's arrays hold it; None where the pool would outgrow its limit."""
        try:
            return self._pool.malloc(size)
        except self._refused:
            self.trim()
        try:
            return self._pool.malloc(size)
        except self._refused:
            return None

    def used_bytes(self) -> int:
        """Bytes of blocks that arrays have."""
        return int(self._pool.used_bytes())

    def free_bytes(self) -> int:
        """Bytes of blocks that nobody has."""
        return int(self._pool.free_bytes())

    def trim(self) -> None:
        """Give the blocks that nobody has back to the driver."""
        self._pool.free_all_blocks()
