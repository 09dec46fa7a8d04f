"""Trees over values: any range of positions is combined from few nodes, each of which combines so many nodes of the level below.

What a range costs grows with the logarithm of its length, and nothing is subtracted. All levels lie in one array, one behind
another; the lowest are the values themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from gquery import tuning
from gquery.device.array import Array
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.operators.window.frames import Ranges
from gquery.operators.window.positions import PositionKernel, Work, position_kernel
from gquery.operators.window.segment_scans import Op, identity, word_of


@cache
def _level(op: Op, word: str) -> BuiltinKernel:
    """The kernel that makes the nodes of a level from those of the one below."""
    return builtin_kernel(
        f"nodes:*{word} below:i64 size:i64 fan:i64 other:{word} base:i64",
        "at = mul_i64(i64(i), fan)",
        "behind = min_i64(add_i64(at, fan), size)",
        "total = other",
        "while lt_i64(at, behind):",
        f"    total = {op}_{word}(total, {word}(nodes[row_index(add_i64(below, at))]))",
        "    at = add_i64(at, 1)",
        f"store_{word}(nodes, add_i64(base, i64(i)), total)",
    )


@cache
def _querying(op: Op, word: str, ranges: int) -> PositionKernel:
    """The kernel that combines each position's ranges: at each level the nodes that stand apart at both ends, then the one
    above."""
    node = f"total = {op}_{word}(total, {word}(nodes[row_index(add_i64(base, {{at}}))]))"
    lines = ["total = other"]
    for n in range(ranges):
        lines += [
            f"low = i64(low{n}[i])",
            f"high = i64(high{n}[i])",
            "base = i64(0)",
            "size = rows_in_all",
            "while lt_i64(low, high):",
            "    up_to = min_i64(high, shl_i64(shr_i64(add_i64(low, last), shift), shift))",
            "    while lt_i64(low, up_to):",
            f"        {node.format(at='low')}",
            "        low = add_i64(low, 1)",
            "    down_to = max_i64(low, shl_i64(shr_i64(high, shift), shift))",
            "    while lt_i64(down_to, high):",
            f"        {node.format(at='down_to')}",
            "        down_to = add_i64(down_to, 1)",
            "    high = max_i64(low, shl_i64(shr_i64(high, shift), shift))",
            "    low = shr_i64(low, shift)",
            "    high = shr_i64(high, shift)",
            "    base = add_i64(base, size)",
            "    size = shr_i64(add_i64(size, last), shift)",
        ]
    ends = " ".join(f"low{n}:*u32 high{n}:*u32" for n in range(ranges))
    parameters = f"nodes:*{word} rows_in_all:i64 shift:i64 last:i64 other:{word} made:*{word} {ends}"
    return position_kernel(parameters, *lines, f"store_{word}(made, row, total)")


def combine_ranges(values: Array, op: Op, ranges: Sequence[Ranges], work: Work) -> Array:
    """By row what the values in its ranges combine to."""
    word, rows, device = word_of(values), int(values.size), work.device
    shift = tuning.window_functions.tree_shift
    fan, sizes = 1 << shift, [rows]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // fan))
    nodes = device.empty(sum(sizes), values.dtype)
    device.xp.copyto(nodes[:rows], values)
    below, other = 0, identity(op, word)
    for size, nodes_above in pairwise(sizes):
        base = below + size
        launch(
            _level(op, word), nodes_above, nodes, nodes, below, size, fan, other, base, workers=work.workers, unit=fan
        )
        below = base
    made: Array = device.empty(rows, values.dtype)
    ends = [end for r in ranges for end in r]
    _querying(op, word, len(ranges)).run(work.ordered, work.workers, nodes, rows, shift, fan - 1, other, made, *ends)
    return made
