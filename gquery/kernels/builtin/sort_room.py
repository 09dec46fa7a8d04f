"""Room for what CuPy's sorts take beside their values, made before they begin: they cannot be told that a limit has none, as what
the allocator raises within Thrust is lost, and would write to address 0.
"""

from __future__ import annotations

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.gpu_pool import is_limited
from gquery.kernels.builtin.define import namespace


def room_to_sort(values: Array, copies: int = 1) -> Array:
    """The values, now that the pool has a free block for so many copies of them and some more. OutOfMemoryError where it has
    none."""
    xp, limits = namespace(values), tuning.sorting
    if xp is not np and is_limited():
        size = int(copies * values.nbytes * (1 + limits.room_fraction)) + limits.room_bytes
        xp.empty(size, np.uint8)  # which the pool keeps
    return values
