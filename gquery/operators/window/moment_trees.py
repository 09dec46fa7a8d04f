"""Central moments over frames: sums of products of the distances of values from the frame's own means.

Frames that begin or end with their partition, or have so many rows, are read from scans (`moment_scans`). Of any others a tree is
asked, whose leaves are the values and whose nodes are states (`moment_states`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.expression.windows import WindowFrame
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.operators.window.combine import block_flags, form_of, partition_flags
from gquery.operators.window.frames import Ranges, frame_ranges, without_excluded
from gquery.operators.window.moment_scans import MomentScans
from gquery.operators.window.moment_states import Shape, leaf, merge, node, nothing, value_names
from gquery.operators.window.positions import PositionKernel, Work, position_kernel


@cache
def _level(shape: Shape, is_lowest: bool, masked: bool) -> BuiltinKernel:
    """The kernel that makes the nodes of a level from those of the one below, or from the values."""
    load = leaf(shape, masked) if is_lowest else node(shape)
    return builtin_kernel(
        f"{value_names(shape)} nodes:*f64 base:i64 size:i64 fan:i64 to:i64",
        "at = mul_i64(i64(i), fan)",
        "behind = min_i64(add_i64(at, fan), size)",
        *nothing(shape),
        "while lt_i64(at, behind):",
        *("    " + line for line in (*load, *merge(shape))),
        "    at = add_i64(at, 1)",
        f"made = mul_i64(add_i64(to, i64(i)), {len(shape.words)})",
        *[f"store_f64(nodes, add_i64(made, {k}), {w})" for k, w in enumerate(shape.words)],
    )


_ENDS = (  # of a level: what stands apart at both ends of a range, and the nodes above it
    "at = low",
    "up_to = min_i64(high, shl_i64(shr_i64(add_i64(low, last), shift), shift))",
    "down_to = max_i64(up_to, shl_i64(shr_i64(high, shift), shift))",
    "while lt_i64(at, high):",
    "    if eq_i64(at, up_to):",
    "        at = down_to",
    "    if lt_i64(at, high):",
)
_ABOVE = ("    at = add_i64(at, 1)", "low = shr_i64(up_to, shift)", "high = shr_i64(down_to, shift)")


@cache
def _querying(shape: Shape, masked: bool, ranges: int) -> PositionKernel:
    """The kernel that merges each position's ranges: their rows at both ends, then nodes."""
    indent = "        "
    leaves = [*_ENDS, *(indent + line for line in (*leaf(shape, masked), *merge(shape))), *_ABOVE]
    nodes = [*_ENDS, *(indent + line for line in (*node(shape), *merge(shape))), *_ABOVE]
    lines = nothing(shape)
    for n in range(ranges):
        lines += [f"low = i64(low{n}[i])", f"high = i64(high{n}[i])", *leaves, "base = i64(0)"]
        lines += ["size = shr_i64(add_i64(rows_in_all, last), shift)", "while lt_i64(low, high):"]
        lines += ["    " + line for line in nodes]
        lines += ["    base = add_i64(base, size)", "    size = shr_i64(add_i64(size, last), shift)"]
    ends = " ".join(f"low{n}:*u32 high{n}:*u32" for n in range(ranges))
    parameters = f"{value_names(shape)} nodes:*f64 rows_in_all:i64 shift:i64 last:i64 made:*f64 {ends}"
    return position_kernel(parameters, *lines, f"store_f64(made, row, s{shape.power})")


def central_moments(
    values: Sequence[Array], present: Array | None, power: int, frame: WindowFrame, work: Work
) -> tuple[Array, list[Ranges]]:
    """By row the sum over the rows of its frame of the product of the distances of ``values`` (one or two float64 arrays by
    position) from their means, or of the ``power``-th power of that of one; and the ranges of positions of frames."""
    shape, whole = Shape(len(values), power), frame_ranges(frame, work)
    form = form_of(frame, work)
    scans = MomentScans(shape, values, present, work)
    if form is None:
        ranges = without_excluded(frame, whole, work)
        return _of_trees(shape, values, present, ranges, work), ranges
    if isinstance(form, int):
        return scans.of_blocks(block_flags(form, work), form, whole), [whole]
    return scans.running(partition_flags(work), whole, form == "from behind"), [whole]


def _of_trees(
    shape: Shape, values: Sequence[Array], present: Array | None, ranges: Sequence[Ranges], work: Work
) -> Array:
    rows, device = int(values[0].size), work.device
    shift = tuning.window_functions.tree_shift
    fan, sizes = 1 << shift, [rows]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // fan))
    nodes = device.empty(max(sum(sizes[1:]), 1) * len(shape.words), np.float64)
    base = to = 0
    masked = present is not None
    for size, above in pairwise(sizes):
        is_lowest = size is sizes[0]
        kernel = _level(shape, is_lowest, masked)
        launch(kernel, above, nodes, *values, present, nodes, base, size, fan, to, workers=work.workers, unit=fan)
        base, to = (0 if is_lowest else base + size), to + above
    made: Array = device.empty(rows, np.float64)
    kernel_of_row = _querying(shape, masked, len(ranges))
    numbers = (nodes, rows, shift, fan - 1, made)
    kernel_of_row.run(work.ordered, work.workers, *values, present, *numbers, *[end for r in ranges for end in r])
    return made
