"""What a path leads to in many texts of JSON, by a kernel of a CPU; see `functions.json_scan`."""

from __future__ import annotations

from typing import Any

import numpy as np

from gquery import tuning
from gquery.kernels.builtin.define import address, builtin_kernel, launch
from gquery.kernels.builtin.held_pages import are_ready
from gquery.kernels.primitives.json_scan import FOUND

FIND = builtin_kernel(
    "data:i64 ends:*i64 steps:*i64 found:*i64",
    f"at = mul_i64(i64(i), {FOUND})",
    "begin, end = add_i64(data, i64(ends[row_index(i)])), add_i64(data, i64(ends[row_index(add_i64(i64(i), 1))]))",
    "find_json(begin, end, steps, found, at)",
)


def find_json_parts(data: Any, ends: Any, steps: Any) -> Any:
    """int64 words of what is found in each text, `FOUND` a row; None where Python's reader is there sooner. ``data`` are bytes
    (uint8), ``ends`` the places where texts begin and end, ``steps`` as `primitives.json_scan.find_json` takes them."""
    rows = len(ends) - 1
    if not are_ready("cpu", FIND) and rows < tuning.built_in_kernels.compiled_texts:
        return None
    found = np.zeros((rows, FOUND), np.int64)
    held = data if data.size else np.zeros(1, np.uint8)
    launch(FIND, rows, found, address(held), ends, steps, found.reshape(-1))
    return found
