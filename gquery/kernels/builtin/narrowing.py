"""The loops of `columns.narrowing`: integers into narrower ones, a row of the kernel is a block of them."""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np

from gquery.columns.loops import Extremes, NarrowingLoop, Words
from gquery.device.array import Array
from gquery.expression.types import INT64
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import Compiled, MorselTarget, arguments_of

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
