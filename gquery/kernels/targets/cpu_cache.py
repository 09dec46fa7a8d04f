"""What Numba compiles for the CPU, kept in our sealed cache.

Numba's own cache has two files a kernel, which are pickles, and unpickles whatever lies there; a damaged one fails at every
later use. So its dispatcher is given this one in its place.
"""

from __future__ import annotations

import pickle
from typing import Any

from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from gquery.kernels.targets.cache import kernel_cache


class SealedCache(NullCache):  # type: ignore[misc]
    """The compiled form of one kernel, whose name the entry has."""

    def __init__(self, name: str) -> None:
        self._name = cpu_entry(name)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        content = kernel_cache().read(self._name)
        if content is None:
            return None
        target_context.refresh()
        return CompileResult._rebuild(target_context, *pickle.loads(content))  # sealed: this user wrote it

    def save_overload(self, sig: Any, data: Any) -> None:
        kernel_cache().write(self._name, dumps(data._reduce()))


def cpu_entry(name: str) -> str:
    """The name in the cache of a kernel's code for this processor, of which the kernel's name tells the kind."""
    return f"{name}.cpu"
