"""Room for what CuPy's sorts take beside their values, made before they begin: they cannot be told that a limit has none, as what
the allocator raises within Thrust is lost, and would write to address 0.
"""

from __future__ import annotations

import numpy as np

from gquery.device.array import Array
from gquery.device.gpu_pool import is_limited
from gquery.kernels.builtin.define import namespace

_MORE = 1 << 16  # bytes beside a copy of the values: counts of digits, alignment


def room_to_sort(values: Array, copies: int = 1) -> Array:
    """The values, now that the pool has a free block for so many copies of them and some more. OutOfMemoryError where it has
    none."""
    xp = namespace(values)
    if xp is not np and is_limited():
        xp.empty(copies * (values.nbytes + values.nbytes // 16) + _MORE, np.uint8)  # which the pool keeps
    return values
