"""Doubles: IEEE where Python raises, and NaN equal to NaN and greater than anything else, as in SQL."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable

from gquery.kernels.primitives.python.values import MASK

_Float = Callable[[float, float], float]
f64 = float


def f64_from_u64(x: int) -> float:
    """The nearest double of an unsigned number."""
    return float(x & MASK)


def bits_f64(x: float) -> int:
    """The bits of a double as an integer."""
    return int(struct.unpack("<q", struct.pack("<d", x))[0])


def f64_from_bits(x: int) -> float:
    """The double that has these bits."""
    return float(struct.unpack("<d", struct.pack("<q", x))[0])


def round_f32(x: float) -> float:
    """The nearest single-precision value, as a double; infinite where it is beyond them."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


add_f64: _Float = operator.add
sub_f64: _Float = operator.sub
mul_f64: _Float = operator.mul
neg_f64: Callable[[float], float] = operator.neg
abs_f64: Callable[[float], float] = math.fabs
fmod_f64: _Float = math.fmod
f64_is_nan = math.isnan


def div_f64(x: float, y: float) -> float:
    """x / y as IEEE has it: infinite or NaN for y = 0."""
    if y:
        return x / y
    return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1.0, y)


def eq_f64(x: float, y: float) -> bool:
    """Whether x = y; NaN is equal to NaN, as in SQL."""
    return x == y or (x != x and y != y)


def lt_f64(x: float, y: float) -> bool:
    """Whether x < y; NaN is greater than anything else, as in SQL."""
    return x < y or (y != y and x == x)


def ne_f64(x: float, y: float) -> bool:
    """Whether x and y differ; NaN is equal to NaN."""
    return not eq_f64(x, y)


def gt_f64(x: float, y: float) -> bool:
    """Whether x > y; NaN is greater than anything else."""
    return lt_f64(y, x)


def le_f64(x: float, y: float) -> bool:
    """Whether x <= y; NaN is greater than anything else."""
    return not lt_f64(y, x)


def ge_f64(x: float, y: float) -> bool:
    """Whether x >= y; NaN is greater than anything else."""
    return not lt_f64(x, y)


def min_f64(x: float, y: float) -> float:
    """The lesser one; NaN is greater than anything else."""
    return y if lt_f64(y, x) else x


def max_f64(x: float, y: float) -> float:
    """The greater one; NaN is greater than anything else."""
    return y if lt_f64(x, y) else x


def pow_f64(x: float, y: float) -> float:
    """x to the power of y, as IEEE has it: infinite or NaN instead of an error."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:
        if x == 0:
            return math.copysign(math.inf, x) if y % 2 == 1 else math.inf
        return math.nan
