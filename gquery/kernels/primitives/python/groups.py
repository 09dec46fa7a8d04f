"""Tables of groups, as in `primitives.groups`, with fewer calls."""

from __future__ import annotations

from gquery.kernels.primitives.python.checked import fail
from gquery.kernels.primitives.python.integers import hash_i64
from gquery.kernels.primitives.python.values import Pointer

_LIMIT = 512


def slot_insert(slots: Pointer, mask: int, stride: int, key: int, status: Pointer, site: int) -> int:
    """Where the accumulated words of ``key`` begin among ``mask`` + 2 slots; -1 and the error ``site`` where none is free."""
    if key == 0:
        slots[(mask + 1) * stride] = 1
        return (mask + 1) * stride + 1
    slot = hash_i64(key) & mask
    for _ in range(_LIMIT):
        at = slot * stride
        found = slots[at]
        if found == 0:
            slots[at] = key
            return at + 1
        if found == key:
            return at + 1
        slot = (slot + 1) & mask
    fail(status, site)
    return -1
