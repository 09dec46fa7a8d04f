"""Central moments over frames: sums of products of the distances of values from the frame's own means.

A *state* stands for some rows: how many they are, their mean, and sums of powers of the distances from it. Two states become one,
exactly but for rounding, however far apart their means are (Chan, Golub and LeVeque; Pebay for higher powers). A mean is two
doubles, of which the second is what rounding took from the first: 1e9 + {0, 1, 2} loses no digit. Nodes of a tree are states, its
leaves are the values. Nothing is subtracted again, so that no value spoils a frame that it is not in.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.operators.window.frames import Ranges
from gquery.operators.window.positions import PositionKernel, Work, position_kernel


class Shape(NamedTuple):
    """What a state has: of two ``variables`` the sum of products, of one those of its powers up to the ``power``-th."""

    variables: int
    power: int

    @property
    def means(self) -> tuple[str, ...]:
        """A name for each mean."""
        return ("x", "y")[: self.variables]

    @property
    def words(self) -> tuple[str, ...]:
        """The variables of a state: ``n`` rows, means in two words, sums of the second and higher powers."""
        means = [word for m in self.means for word in (f"{m}_high", f"{m}_low")]
        return ("n", *means, *[f"s{k}" for k in range(2, self.power + 1)])


def _nothing(shape: Shape) -> list[str]:
    """Lines that begin a state of no rows."""
    return [f"{word} = f64(0.0)" for word in shape.words]


def _leaf(shape: Shape, masked: bool) -> list[str]:
    """Lines that load the state of one row: what is infinite has no distance from itself."""
    lines = [f"n_ = f64({'i64(present[row_index(at)])' if masked else '1.0'})"]
    for m in shape.means:
        lines += [f"{m}_high_ = f64({m}s[row_index(at)])", f"{m}_low_ = f64(0.0)"]
    away = [f"sub_f64({m}_high_, {m}_high_)" for m in shape.means]
    zero = away[0] if shape.variables == 1 else f"add_f64({away[0]}, {away[1]})"
    return [*lines, *[f"s{k}_ = {zero}" for k in range(2, shape.power + 1)]]


def _node(shape: Shape) -> list[str]:
    """Lines that load the state of a node."""
    words = shape.words
    lines = [f"slot = mul_i64(add_i64(base, at), {len(words)})"]
    return [*lines, *[f"{w}_ = f64(nodes[row_index(add_i64(slot, {k}))])" for k, w in enumerate(words)]]


def _merge(shape: Shape) -> list[str]:
    """Lines that add the state that was loaded to the one at hand."""
    last = shape.means[-1]
    lines = [
        "total = add_f64(n, n_)",
        "own = div_f64(n, total)",
        "other = div_f64(n_, total)",
        *[f"d{m} = add_f64(sub_f64({m}_high_, {m}_high), sub_f64({m}_low_, {m}_low))" for m in shape.means],
        "square = mul_f64(dx, dx)",
        "weight = mul_f64(mul_f64(own, other), total)",
    ]
    if "s4" in shape.words:
        lines += [
            "curve = add_f64(sub_f64(mul_f64(own, own), mul_f64(own, other)), mul_f64(other, other))",
            "s4 = add_f64(add_f64(s4, s4_), mul_f64(mul_f64(square, square), mul_f64(weight, curve)))",
            "across = add_f64(mul_f64(mul_f64(own, own), s2_), mul_f64(mul_f64(other, other), s2))",
            "s4 = add_f64(s4, mul_f64(mul_f64(6.0, square), across))",
            "s4 = add_f64(s4, mul_f64(mul_f64(4.0, dx), sub_f64(mul_f64(own, s3_), mul_f64(other, s3))))",
        ]
    if "s3" in shape.words:
        lines += [
            "s3 = add_f64(add_f64(s3, s3_), mul_f64(mul_f64(square, dx), mul_f64(weight, sub_f64(own, other))))",
            "s3 = add_f64(s3, mul_f64(mul_f64(3.0, dx), sub_f64(mul_f64(own, s2_), mul_f64(other, s2))))",
        ]
    lines.append(f"s2 = add_f64(add_f64(s2, s2_), mul_f64(mul_f64(dx, d{last}), weight))")
    for m in shape.means:  # the sum of two doubles, and what rounding takes from it
        lines += [
            f"step = mul_f64(d{m}, other)",
            f"moved = add_f64({m}_high, step)",
            f"back = sub_f64(moved, {m}_high)",
            f"lost = add_f64(sub_f64({m}_high, sub_f64(moved, back)), sub_f64(step, back))",
            f"{m}_high = moved",
            f"{m}_low = add_f64({m}_low, lost)",
        ]
    return [
        "if gt_f64(n_, 0.0):",
        "    if gt_f64(n, 0.0):",
        *("        " + line for line in lines),
        "        n = total",
        "    else:",
        *(f"        {w} = {w}_" for w in shape.words),
    ]


def _values(shape: Shape) -> str:
    return " ".join(f"{m}s:*f64" for m in shape.means) + " present:*u8"


@cache
def _level(shape: Shape, is_lowest: bool, masked: bool) -> BuiltinKernel:
    """The kernel that makes the nodes of a level from those of the one below, or from the values."""
    load = _leaf(shape, masked) if is_lowest else _node(shape)
    return builtin_kernel(
        f"{_values(shape)} nodes:*f64 base:i64 size:i64 fan:i64 to:i64",
        "at = mul_i64(i64(i), fan)",
        "behind = min_i64(add_i64(at, fan), size)",
        *_nothing(shape),
        "while lt_i64(at, behind):",
        *("    " + line for line in (*load, *_merge(shape))),
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
    leaves = [*_ENDS, *(indent + line for line in (*_leaf(shape, masked), *_merge(shape))), *_ABOVE]
    nodes = [*_ENDS, *(indent + line for line in (*_node(shape), *_merge(shape))), *_ABOVE]
    lines = _nothing(shape)
    for n in range(ranges):
        lines += [f"low = i64(low{n}[i])", f"high = i64(high{n}[i])", *leaves, "base = i64(0)"]
        lines += ["size = shr_i64(add_i64(rows_in_all, last), shift)", "while lt_i64(low, high):"]
        lines += ["    " + line for line in nodes]
        lines += ["    base = add_i64(base, size)", "    size = shr_i64(add_i64(size, last), shift)"]
    ends = " ".join(f"low{n}:*u32 high{n}:*u32" for n in range(ranges))
    parameters = f"{_values(shape)} nodes:*f64 rows_in_all:i64 shift:i64 last:i64 made:*f64 {ends}"
    return position_kernel(parameters, *lines, f"store_f64(made, row, s{shape.power})")


def central_moments(
    values: Sequence[Array], present: Array | None, power: int, ranges: Sequence[Ranges], work: Work
) -> Array:
    """By row the sum over the rows of its ranges of the product of the distances of ``values`` (one or two float64 arrays by
    position) from their means, or of the ``power``-th power of that of one."""
    shape, rows, device = Shape(len(values), power), int(values[0].size), work.device
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
