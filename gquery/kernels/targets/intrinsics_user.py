"""Operators of Python functions of users, for integers or doubles as their arguments are.

They are the instructions that SQL's operators are made of, so that a function rounds as an expression does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gquery.kernels.targets.intrinsics import Definition
from gquery.kernels.targets.intrinsics_numba import build_chosen

BY_TYPE = {
    "user_plus": ("add_i64", "add_f64"), "user_minus": ("sub_i64", "sub_f64"), "user_times": ("mul_i64", "mul_f64"),
    "user_plus_wraps": ("add_wraps", "never"), "user_minus_wraps": ("sub_wraps", "never"),
    "user_times_wraps": ("mul_wraps", "never"), "user_int_wraps": ("never_i64", "beyond_i64"),
}  # fmt: skip
_INTEGERS = (
    "Integer",
    "IntegerLiteral",
    "Boolean",
    "BooleanLiteral",
)  # classes of Numba's types, of cpu and cuda alike


def build_by_type(name: str, integers: Definition, floats: Definition, intrinsic: Callable[[Any], Any]) -> Any:
    """The intrinsic that takes ``floats`` where an argument is a double."""

    def choose(a: Any, b: Any) -> Definition | None:
        kinds = [type(t).__name__ for t in (a, b)]
        if any(k != "Float" and k not in _INTEGERS for k in kinds):
            return None
        return floats if "Float" in kinds else integers

    return build_chosen(name, 2, choose, intrinsic)
