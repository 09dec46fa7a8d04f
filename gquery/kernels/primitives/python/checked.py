"""Integer arithmetic that sets its bit in the status words where a result does not fit, and gives a value within bounds."""

from __future__ import annotations

import operator
from collections.abc import Callable

from gquery.kernels.primitives.python.values import TOP, Pointer


def fail(status: Pointer, site: int) -> None:
    """Sets the bit of the error ``site`` in the status words (uint32)."""
    status[site >> 5] |= 1 << (site & 31)


def checked(operation: Callable[..., int], limit: int) -> Callable[..., int]:
    """``operation`` of two integers, whose result fits if it lies within -``limit`` to ``limit`` - 1."""

    def binary(a: int, b: int, status: Pointer, site: int) -> int:
        result = operation(a, b)
        if -limit <= result < limit:
            return result
        fail(status, site)
        return 0

    return binary


def checked_unary(operation: Callable[[int], int], limit: int) -> Callable[..., int]:
    """``operation`` of one integer, whose result fits if it is below ``limit``."""

    def unary(a: int, status: Pointer, site: int) -> int:
        result = operation(a)
        if result < limit:
            return result
        fail(status, site)
        return 0

    return unary


add_i64_checked = checked(operator.add, TOP)
sub_i64_checked = checked(operator.sub, TOP)
mul_i64_checked = checked(operator.mul, TOP)
neg_i64_checked = checked_unary(operator.neg, TOP)
abs_i64_checked = checked_unary(abs, TOP)


def range_i64(v: int, low: int, high: int, status: Pointer, site: int) -> int:
    """``v``; where it is not within ``low`` to ``high``, sets the error ``site`` and gives ``low``."""
    if low <= v <= high:
        return v
    fail(status, site)
    return low
