"""What lies between two columns of values, so far from the first to the second, on a GPU: by the rules of types.

Functions take arrays of a GPU, and those of the host for tests, and give arrays of the same kind.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np

from gquery.device.array import Array
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, element_word, launch, namespace

Rule = Literal["double", "real", "moment", "decimal", "integer"]
"""How values meet: as doubles; as REALs; as doubles that are rounded, half away from 0; as doubles that are cut off; the same of
what is added to the first."""
_MADE: dict[Rule, str] = {"double": "f64", "real": "f32", "moment": "i64", "decimal": "i64", "integer": "i64"}

_MEETING = "add_f64(mul_f64(first, sub_f64(1.0, weight)), mul_f64(second, weight))"
_RULES: dict[Rule, tuple[str, ...]] = {  # what is between ``a`` and ``b``, where they are not the same place
    "double": (f"between = {_MEETING}",),
    "real": ("between = add_f64(a, round_f32(mul_f64(round_f32(sub_f64(b, a)), weight)))",),
    "moment": (
        f"met = {_MEETING}",
        "size = met",
        "if lt_f64(met, 0.0):",
        "    size = neg_f64(met)",
        "between = truncate_f64(floor_f64(div_f64(add_f64(mul_f64(2.0, size), 1.0), 2.0)))",
        "if lt_f64(met, 0.0):",
        "    between = neg_i64(between)",
    ),
    "decimal": (
        "between = a",
        "if ne_i64(a, b):",
        f"    between = truncate_f64({_MEETING})",
    ),
    "integer": ("between = add_i64(a, truncate_f64(mul_f64(f64(sub_i64(b, a)), weight)))",),
}


@cache
def _between(element: str, rule: Rule) -> BuiltinKernel:
    made, register = _MADE[rule], "f64" if element in ("f32", "f64") else "i64"
    first, second = ("f64(a)", "f64(b)") if register == "i64" else ("a", "b")
    return builtin_kernel(
        f"low:*{element} high:*{element} weights:*f64 there:*u8 made:*{made}",
        f"a = {register}(low[i])",
        f"b = {register}(high[i])",
        f"first = {first}",
        f"second = {second}",
        "weight = f64(weights[i])",
        f"value = {'a' if made == 'i64' else 'first'}",
        "if gt_f64(weight, 0.0):",
        *("    " + line for line in _RULES[rule]),
        "    value = between",
        "if eq_i64(i64(there[i]), 0):",
        f"    value = {'0.0' if made != 'i64' else 'i64(0)'}",
        f"store_{made}(made, i64(i), value)",
    )


_INTEGERS = ("i8", "i16", "i32", "i64")
_FORMS: list[tuple[str, Rule]] = [("f64", "double"), ("f32", "real")]
_FORMS += [(e, "integer") for e in _INTEGERS] + [("i64", "moment"), ("i64", "decimal")] + [(e, "double") for e in _INTEGERS]
BETWEEN = {f"{element} {rule}": _between(element, rule) for element, rule in _FORMS}
"""Those that are compiled before anybody asks for them."""

BETWEEN_WIDE = builtin_kernel(
    "low:*i64 high:*i64 weights:*f64 there:*u8 made:*i64",
    "a = load_i128(low, i64(i))",
    "b = load_i128(high, i64(i))",
    "weight = f64(weights[i])",
    "value = a",
    "if gt_f64(weight, 0.0) and ne_i128(a, b):",
    "    first = mul_f64(f64_from_i128(a), sub_f64(1.0, weight))",
    "    value = i128_from_f64(trunc_f64(add_f64(first, mul_f64(f64_from_i128(b), weight))))",
    "if eq_i64(i64(there[i]), 0):",
    "    value = make_i128(0, 0)",
    "store_i128(made, i64(i), value)",
)


def between(low: Array, high: Array, weights: Array, there: Array, rule: Rule) -> Array:
    """What lies between values of one type, ``weights`` (float64) from the first to the second: float64, float32 or int64; 0
    where none is ``there`` (uint8)."""
    made: Array = namespace(low).empty(low.size, {"f64": np.float64, "f32": np.float32, "i64": np.int64}[_MADE[rule]])
    launch(_between(element_word(low), rule), low.size, low, low, high, weights, there, made)
    return made


def between_wide(low: Array, high: Array, weights: Array, there: Array) -> Array:
    """The same of integers of 128 bits, two words (int64) each, the lower one first; they meet as doubles that are cut off."""
    made: Array = namespace(low).empty(low.size, np.int64)
    launch(BETWEEN_WIDE, there.size, low, low, high, weights, there, made)
    return made
