# mypy: disable-error-code="no-any-return"
"""Primitives that Python functions of users are rewritten to (`gquery.functions.user_source`).

They take what the user's variables hold, integers or doubles, and are compiled for each; so they are written with
Python's operators, where those mean the same on every target.
"""

from __future__ import annotations

from typing import Any

from gquery.kernels.targets.python_user import user_mul


def user_int(x: Any) -> int:
    """``int(x)`` in 64 bits."""
    return int(x)


def user_bool(x: Any) -> bool:
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


def user_power_2(x: Any) -> Any:
    return user_mul(x, x)


def user_power_3(x: Any) -> Any:
    return user_mul(user_mul(x, x), x)


def user_power_4(x: Any) -> Any:
    return user_mul(user_mul(x, x), user_mul(x, x))
