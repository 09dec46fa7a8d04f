# mypy: disable-error-code="no-any-return"
"""Primitives that Python functions of users are rewritten to (`gquery.functions.user_source`).

They take what the user's variables hold, integers or doubles, and are compiled for each; so they are written with
Python's operators, where those mean the same on every target.
"""

from __future__ import annotations

from typing import Any

from gquery.kernels.primitives.checked import fail
from gquery.kernels.primitives.python.integers import ne_i64, shl_i64, shr_i64
from gquery.kernels.primitives.python.user import (
    user_int_wraps,
    user_minus,
    user_minus_wraps,
    user_plus,
    user_plus_wraps,
    user_times,
    user_times_wraps,
)
from gquery.kernels.primitives.python.values import Pointer


def user_add(a: Any, b: Any, status: Pointer, site: int) -> Any:
    """``a + b``; integers that do not fit 64 bits raise."""
    if user_plus_wraps(a, b):
        fail(status, site)
    return user_plus(a, b)


def user_sub(a: Any, b: Any, status: Pointer, site: int) -> Any:
    """``a - b``, as `user_add`."""
    if user_minus_wraps(a, b):
        fail(status, site)
    return user_minus(a, b)


def user_mul(a: Any, b: Any, status: Pointer, site: int) -> Any:
    """``a * b``, as `user_add`."""
    if user_times_wraps(a, b):
        fail(status, site)
    return user_times(a, b)


def user_shl(a: int, n: int, status: Pointer, site: int) -> int:
    """``a << n``, as `user_add`."""
    result = shl_i64(a, n)
    if ne_i64(shr_i64(result, n), a):
        fail(status, site)
    return result


def user_int(x: Any, status: Pointer, site: int) -> int:
    """``int(x)``; a number that has no integer of 64 bits, NaN among them, raises."""
    if user_int_wraps(x, x):
        fail(status, site)
        return 0
    return int(x)


def user_step(step: int, status: Pointer, site: int) -> int:
    """The step of a range; sets the error ``site`` where it is 0, and gives one that soon ends a loop."""
    if step == 0:
        fail(status, site)
        return 1 << 62
    return step


def user_bool(x: Any) -> bool:
    """The truth of a value, as Python has it."""
    return bool(x)


def user_floordiv(a: Any, b: Any) -> Any:
    """``a // b``; by zero 0."""
    if b == 0:
        return a - a
    return a // b


def user_mod(a: Any, b: Any) -> Any:
    """``a % b`` with the divisor's sign; by zero 0."""
    if b == 0:
        return a - a
    return a % b


def user_power_2(x: Any, status: Pointer, site: int) -> Any:
    """x squared; sets the error ``site`` where an integer does not fit 64 bits."""
    return user_mul(x, x, status, site)


def user_power_3(x: Any, status: Pointer, site: int) -> Any:
    """x cubed; sets the error ``site`` where an integer does not fit 64 bits."""
    return user_mul(user_mul(x, x, status, site), x, status, site)


def user_power_4(x: Any, status: Pointer, site: int) -> Any:
    """x to the fourth; sets the error ``site`` where an integer does not fit 64 bits."""
    return user_mul(user_mul(x, x, status, site), user_mul(x, x, status, site), status, site)
