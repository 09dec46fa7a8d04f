"""What Python functions of users need on the python target alone: results cut to 64 bits, as compiled ones are."""

from __future__ import annotations

import math


def user_int(x: float) -> int:
    """``int(x)`` in 64 bits; what has no integer gives the least one, as the processor does."""
    if isinstance(x, float):
        return int(x) if math.isfinite(x) and -(2.0**63) <= x < 2.0**63 else -(2**63)
    return ((int(x) + 2**63) & (2**64 - 1)) - 2**63
