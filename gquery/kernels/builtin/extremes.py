"""The extremes and the order of integers on a GPU, in one pass over them. CuPy compiles a reduction for two to three seconds when
it is first used, and once more for each type."""

from __future__ import annotations

import numpy as np

from gquery.columns.loops import InOrder
from gquery.device.array import Array
from gquery.expression.types import INT64
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, element_word, fill, launch, namespace
from gquery.kernels.builtin.elements import contiguous

_WORDS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
_TAKEN = {"bool": "uint8", "uint64": "int64"}
_TURNED = -(2**63)  # added to numbers of 64 bits without a sign, so that they compare as those with one do


def _kernel(word: str, has_order: bool) -> BuiltinKernel:
    def value(of: str) -> str:
        return f"xor_i64(i64({of}), {_TURNED})" if word == "u64" else f"i64({of})"

    return builtin_kernel(
        f"c0:*{word.replace('u64', 'i64')} found:*i64" + " last:i64" * has_order,
        f"v0 = {value('c0[i]')}",
        "least = min_i64(least, v0)",
        "most = max_i64(most, v0)",
        *(
            "if lt_i64(i64(i), last):",
            f"    v1 = {value('c0[row_index(add_i64(i64(i), 1))]')}",
            "    if lt_i64(v1, v0):",
            "        falls = add_i64(falls, 1)",
            "    if eq_i64(v1, v0):",
            "        repeats = add_i64(repeats, 1)",
        ) * has_order,
        prologue=(f"least = i64({INT64.high})", f"most = i64({INT64.low})", *("falls = i64(0)", "repeats = i64(0)") * has_order),
        epilogue=(
            "reduce_min_i64(found, 0, least)", "reduce_max_i64(found, 1, most)",
            *("reduce_add_i64(found, 2, falls)", "reduce_add_i64(found, 3, repeats)") * has_order,
        ),
    )  # fmt: skip


EXTREMES = {word: _kernel(word, False) for word in _WORDS}
ORDERS = {word: _kernel(word, True) for word in _WORDS}


def extremes(values: Array) -> tuple[Array, Array]:
    """The least and the greatest of some integers: two arrays of one int64, of uint64 less 2^63."""
    if namespace(values) is np:
        found = np.array([values.min(), values.max()])
        words = (found ^ np.uint64(2**63)).view(np.int64) if values.dtype == np.uint64 else found.astype(np.int64)
        return words[:1], words[1:]
    made = _begun(values, (INT64.high, INT64.low))
    launch(EXTREMES[element_word(values)], values.size, values, _whole(values), made)
    return made[:1], made[1:]


def greatest(values: Array) -> Array:
    """The greatest of some integers that are no uint64: an array of one int64."""
    return np.array([values.max()], np.int64) if namespace(values) is np else extremes(values)[1]


def in_order(values: Array) -> InOrder:
    """What there is to know of some integers on a GPU, booleans among them, when the GPU is done."""
    made = _begun(values, (INT64.high, INT64.low, 0, 0))
    launch(ORDERS[element_word(values)], values.size, values, _whole(values), made, values.size - 1)
    least, most, falls, repeats = made.tolist()
    turned = 2**63 if values.dtype == np.uint64 else 0
    return InOrder(least + turned, most + turned, falls, repeats)


def _begun(values: Array, first: tuple[int, ...]) -> Array:
    """What a kernel begins with, where the values lie: the extremes of nothing, and counts."""
    made: Array = namespace(values).empty(len(first), np.int64)
    for n, value in enumerate(first):
        fill(made[n : n + 1], value)
    return made


def _whole(values: Array) -> Array:
    """The values one after another, as the kernels take them."""
    whole: Array = contiguous(values)
    return whole.view(_TAKEN[whole.dtype.name]) if whole.dtype.name in _TAKEN else whole
