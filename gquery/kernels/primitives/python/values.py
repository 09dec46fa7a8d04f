"""What the python target computes on: pointers, strings, and integers cut to 64 bits.

Values are Python ints and floats; a pointer is a memoryview, a string is (address, length) as on every target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Pointer = Any
Str = tuple[int, int]
Binary = Callable[[int, int], int]
Comparison = Callable[[int, int], bool]
MASK = (1 << 64) - 1
TOP = 1 << 63


def signed(x: int) -> int:
    """The 64 low bits of an integer as a signed number."""
    return ((x + TOP) & MASK) - TOP
