"""The order of few rows by words of 64 bits, on a GPU: each row is compared with all others, by all of its words at once.

A radix sort takes 14 us for each word, however few rows there are, and three kernels around it. (`sort_room` sorts fewer
still, of one word: a thread goes over all of them.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch, namespace
from gquery.kernels.builtin.gathers import gather


def _ranking(words: int) -> BuiltinKernel:
    """A warp takes a row: its place is how many others are less, or equal and before it."""
    more = [
        line
        for n in range(1, words)
        for line in (
            "    if is_same:",
            f"        other = i64(c{n}[row_index(at)])",
            f"        is_less = lt_u64(other, v{n})",
            f"        is_same = eq_i64(other, v{n})",
        )
    ]
    return builtin_kernel(
        " ".join(f"c{n}:*u64" for n in range(words)) + " rows:i64 order:*u32",
        "own = and_i64(i64(i), 31)",
        "row = shr_i64(i64(i), 5)",
        *[f"v{n} = i64(c{n}[row_index(row)])" for n in range(words)],
        "place = i64(0)",
        "at = own",
        "while lt_i64(at, rows):",
        "    other = i64(c0[row_index(at)])",
        "    is_less = lt_u64(other, v0)",
        "    is_same = eq_i64(other, v0)",
        *more,
        "    if is_less or (is_same and lt_i64(at, row)):",
        "        place = add_i64(place, 1)",
        "    at = add_i64(at, 32)",
        "place = last_lane(prefix_sum(place))",
        "if eq_i64(own, 0):",
        "    store_u32(order, place, row)",
    )


RANKING = {words: _ranking(words) for words in range(1, tuning.sorting.ranked_words + 1)}


def ranked_order(words: Sequence[Array]) -> Array:
    """The rows by their words (uint64), the first ones first, ascending and stable (uint32)."""
    order, most = None, len(RANKING)
    for end in range(len(words), 0, -most):
        group = words[max(end - most, 0) : end]
        if order is None:
            order = _ranked(group)
        else:
            order = gather(order, _ranked([gather(word, order) for word in group]))
    assert order is not None, "a word at least"
    return order


def _ranked(words: Sequence[Array]) -> Array:
    size = words[0].size
    order: Array = namespace(words[0]).empty(size, np.uint32)
    launch(RANKING[len(words)], 32 * size, order, *words, size, order)
    return order
