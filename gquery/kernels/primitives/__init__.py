"""Bodies of primitives that have control flow, written once for all targets.

They are plain functions over other primitives. As imported here they run in Python, on `primitives.python`. For the cpu and
cuda targets they are read as nodes and lowered (`lowering.bodies`); Numba compiles the same code over its own intrinsics
(`targets.binding`). So a body uses no bare operator where Python's unbounded integers would differ from 64 bits.
"""

from __future__ import annotations

ALIASES = {
    **{name: f"{name}_f64" for name in (
        "sqrt", "ln", "log10", "log2", "exp", "pow", "sin", "cos", "tan", "asin", "acos", "atan", "atan2",
        "floor", "ceil", "trunc", "sign", "round_even",
    )},
    "trim": "str_trim", "ltrim": "str_ltrim", "rtrim": "str_rtrim", "shl": "shl_i64", "shr": "shr_i64",
}  # fmt: skip
"""Short names of primitives, as the bodies of SQL functions write them."""
