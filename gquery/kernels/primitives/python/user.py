"""What Python functions of users need on the python target alone: checked operators, which Python's own integers make short."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from gquery.kernels.primitives.python.checked import fail
from gquery.kernels.primitives.python.values import Pointer

_Binary = Callable[[Any, Any], Any]
_LEAST, _BEYOND = -(2**63), 2**63
user_plus: _Binary = operator.add
user_minus: _Binary = operator.sub
user_times: _Binary = operator.mul


def _is_beyond(result: Any) -> bool:
    return isinstance(result, int) and not _LEAST <= result < _BEYOND


def user_plus_wraps(a: Any, b: Any) -> bool:
    """Whether a + b does not fit 64 bits."""
    return _is_beyond(a + b)


def user_minus_wraps(a: Any, b: Any) -> bool:
    """Whether a - b does not fit 64 bits."""
    return _is_beyond(a - b)


def user_times_wraps(a: Any, b: Any) -> bool:
    """Whether a * b does not fit 64 bits."""
    return _is_beyond(a * b)


def _checked(operation: _Binary) -> Callable[..., Any]:
    def checked(a: Any, b: Any, status: Pointer, site: int) -> Any:
        result = operation(a, b)
        if _is_beyond(result):
            fail(status, site)
            return 0
        return result

    return checked


user_add, user_sub, user_mul = _checked(operator.add), _checked(operator.sub), _checked(operator.mul)


def user_int_wraps(x: Any, _: Any) -> bool:
    """Whether a number has no integer of 64 bits."""
    return isinstance(x, float) and not -(2.0**63) <= x < 2.0**63


def user_int(x: Any, status: Pointer, site: int) -> int:
    """``int(x)``; a number that has no integer of 64 bits, NaN among them, raises."""
    if user_int_wraps(x, x):
        fail(status, site)
        return 0
    return ((int(x) + 2**63) & (2**64 - 1)) - 2**63
