"""What Python functions of users need on the python target alone: operators, and results cut to 64 bits, as compiled
ones are."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

_Binary = Callable[[Any, Any], Any]
user_add: _Binary = operator.add
user_sub: _Binary = operator.sub
user_mul: _Binary = operator.mul


def user_int(x: float) -> int:
    """``int(x)`` in 64 bits; what has no integer gives the least one, as the processor does."""
    if isinstance(x, float):
        return int(x) if math.isfinite(x) and -(2.0**63) <= x < 2.0**63 else -(2**63)
    return ((int(x) + 2**63) & (2**64 - 1)) - 2**63
