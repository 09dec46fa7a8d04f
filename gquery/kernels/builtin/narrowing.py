"""The loops of `columns.narrowing` and `columns.uniqueness` over integers; a row of the kernels is a block of them."""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np

from gquery import tuning
from gquery.columns.narrowing import Extremes, NarrowingLoop, Words, use_loops
from gquery.columns.uniqueness import use_marking
from gquery.device.array import Array
from gquery.expression.types import INT64
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import Compiled, MorselTarget, arguments_of
from gquery.runtime.threads import core_count

_SIZES: dict[Words, int] = {"pairs": 16, "i64": 8, "i32": 4, "i16": 2}


def _loop(words: Words, size: int) -> BuiltinKernel:
    is_pair, made = words == "pairs", "i64" if size == 8 else f"u{8 * size}"
    upper = "load_i64(words, add_i64(shl_i64(row, 1), 1))"
    return builtin_kernel(
        f"words:*{'i64' if is_pair else words} made:*{made} low:*i64 high:*i64 odd:*i64 block:i64 skip:i64 rows:i64",
        f"least = i64({INT64.high})",
        f"most = i64({INT64.low})",
        *["other = i64(0)"] * is_pair,
        "start = sub_i64(mul_i64(i64(i), block), skip)",
        "row = max_i64(start, 0)",
        "end = min_i64(add_i64(start, block), rows)",
        "while lt_i64(row, end):",
        f"    v = {'load_i64(words, shl_i64(row, 1))' if is_pair else 'i64(words[row_index(row)])'}",
        *[f"    other = or_i64(other, xor_i64({upper}, shr_i64(v, 63)))"] * is_pair,
        "    least = min_i64(least, v)",
        "    most = max_i64(most, v)",
        f"    store_{made}(made, row, v)",
        "    row = add_i64(row, 1)",
        "store_i64(low, i64(i), least)",
        "store_i64(high, i64(i), most)",
        *["store_i64(odd, i64(i), other)"] * is_pair,
    )


LOOPS = {(w, size): _loop(w, size) for w, most in _SIZES.items() for size in (1, 2, 4, 8) if size <= most}
_asked: set[str] = set()  # digests of kernels that are being compiled


def find_loop(words: Words, size: int) -> NarrowingLoop | None:
    """The loop, if it is compiled; else it will be, in the background."""
    kernel, target = LOOPS[words, size].kernel, cast(MorselTarget, get_target("cpu"))
    if not target.is_ready(kernel) and not target.is_cached(kernel):
        if kernel.digest not in _asked:
            _asked.add(kernel.digest)
            target.compile_in_background([kernel])
        return None
    return partial(_run, target.compile(kernel))


def _run(compiled: Compiled, words: Array, made: Array, skip: int, block: int) -> Extremes:
    rows, target = len(made), get_target("cpu")
    blocks = -(-(skip + rows) // block)
    low, high, odd = np.empty(blocks, np.int64), np.empty(blocks, np.int64), np.zeros(blocks, np.int64)
    unsigned = made.view("i8" if made.itemsize == 8 else f"u{made.itemsize}")
    values = (words, unsigned, low, high, odd, block, skip, rows)
    target.run(compiled, 0, blocks, arguments_of(target, compiled.kernel, values))
    return Extremes(low, high, not odd.any())


def _marking(element: str) -> BuiltinKernel:
    """Sets the bit of each value's distance from ``low``, and ``met`` where one was set before. Then blocks that begin later do
    nothing."""
    return builtin_kernel(
        f"values:*{element} bits:*u32 met:*u32 low:i64 width:i64 block:i64 rows:i64",
        "row = mul_i64(i64(i), block)",
        "end = min_i64(add_i64(row, block), rows)",
        "repeated = i64(load_u32(met, 0))",
        "while lt_i64(row, end) and eq_i64(repeated, 0):",
        "    k = sub_i64(i64(values[row_index(row)]), low)",
        "    if ge_i64(k, 0) and lt_i64(k, width):",
        "        mask = shl_i64(1, and_i64(k, 31))",
        "        repeated = and_i64(i64(atomic_or_u32(bits, shr_i64(k, 5), mask)), mask)",
        "    row = add_i64(row, 1)",
        "if ne_i64(repeated, 0):",
        "    store_u32(met, 0, 1)",
    )


MARKING = {name: _marking(element) for name, element in (("int32", "i32"), ("uint32", "u32"), ("int64", "i64"))}


def differ(values: Array, low: int, width: int) -> bool:
    """See `columns.uniqueness.Marking`."""
    bits, met = np.zeros(-(-width // 32), np.uint32), np.zeros(1, np.uint32)
    block = tuning.encoding.marked_rows
    arguments = (values, bits, met, low, width, block, len(values))
    launch(MARKING[values.dtype.name], -(-len(values) // block), values, *arguments, workers=core_count(), unit=block)
    return not met[0]


use_loops(find_loop)
use_marking(differ)
