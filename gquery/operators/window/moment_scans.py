"""Scans of the states of moments (`moment_trees`): what `segment_scans` and `combine` do for single words, for several.

So a running moment, and one over so many rows, costs the same whatever the length of its frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from gquery.device.array import Array
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.operators.window.frames import Ranges
from gquery.operators.window.moment_states import Shape, leaf, merge, node, nothing, value_names
from gquery.operators.window.positions import PARTITION, PositionKernel, Work, position_kernel
from gquery.operators.window.segment_scans import tile_rows


def _position(backward: bool) -> tuple[str, str]:
    """The position that a scan is at, and whether a segment begins there: backward, where it ends forward."""
    if not backward:
        return "place", "ne_i64(i64(flags[row_index(at)]), 0)"
    return "sub_i64(last, place)", "eq_i64(at, last) or ne_i64(i64(flags[row_index(add_i64(at, 1))]), 0)"


def _stored(shape: Shape, to: str, at: str) -> list[str]:
    """Lines that store the state at hand."""
    lines = [f"to_slot = mul_i64({at}, {len(shape.words)})"]
    return [*lines, *[f"store_f64({to}, add_i64(to_slot, {k}), {w})" for k, w in enumerate(shape.words)]]


@cache
def _scanning(shape: Shape, of_values: bool, masked: bool, backward: bool) -> BuiltinKernel:
    """The kernel that scans each tile of values, or of states, by itself; see `segment_scans`."""
    position, begins = _position(backward)
    lines = [f"at = {position}", f"if {begins}:", *("    " + line for line in nothing(shape)), "    has_begun = True"]
    lines += [*(leaf(shape, masked) if of_values else node(shape)), *merge(shape), *_stored(shape, "made", "at")]
    return builtin_kernel(
        f"{value_names(shape)} nodes:*f64 base:i64 flags:*u8 tile:i64 last:i64 made:*f64 carries:*f64 begun:*u8",
        "place = mul_i64(i64(i), tile)",
        "behind = min_i64(add_i64(place, tile), add_i64(last, 1))",
        *nothing(shape),
        "has_begun = False",
        "while lt_i64(place, behind):",
        *("    " + line for line in lines),
        "    place = add_i64(place, 1)",
        *_stored(shape, "carries", "i64(i)"),
        "store_bool(begun, i64(i), has_begun)",
    )


@cache
def _completing(shape: Shape, backward: bool) -> BuiltinKernel:
    """The kernel that merges what a tile's first positions have with what the tiles before it carry over."""
    position, begins = _position(backward)
    words = list(enumerate(shape.words))
    lines = [f"at = {position}", f"if {begins}:", "    place = behind", "else:"]
    lines += [f"    slot = mul_i64(at, {len(words)})"]
    lines += [f"    {w} = f64(made[row_index(add_i64(slot, {k}))])" for k, w in words]
    lines += ["    " + line for line in (*merge(shape), *_stored(shape, "made", "at"), "place = add_i64(place, 1)")]
    return builtin_kernel(
        "flags:*u8 tile:i64 last:i64 totals:*f64 made:*f64",
        "if gt_i64(i64(i), 0):",
        f"    slot = mul_i64(sub_i64(i64(i), 1), {len(words)})",
        *[f"    {w}_ = f64(totals[row_index(add_i64(slot, {k}))])" for k, w in words],
        "    place = mul_i64(i64(i), tile)",
        "    behind = min_i64(add_i64(place, tile), add_i64(last, 1))",
        "    while lt_i64(place, behind):",
        *("        " + line for line in lines),
    )


class MomentScans:
    """Scans over one or two arrays of values (float64, by position) where ``present`` is 1."""

    def __init__(self, shape: Shape, values: Sequence[Array], present: Array | None, work: Work) -> None:
        self.shape, self.values, self.present, self.work = shape, values, present, work

    def scan(self, flags: Array, backward: bool = False) -> Array:
        """The state of each segment up to each position, or from it on, its words one behind another. A segment begins where a
        flag (uint8) is 1, as at the first position."""
        return self._scan(None, flags, int(self.values[0].size), backward)

    def _scan(self, states: Array | None, flags: Array, rows: int, backward: bool) -> Array:
        device, workers, words = self.work.device, self.work.workers, len(self.shape.words)
        made: Array = device.empty(max(rows, 1) * words, np.float64)
        if rows == 0:
            return made
        tile = tile_rows(rows, device, workers)
        tiles = -(-rows // tile)
        carries, begun = device.empty(tiles * words, np.float64), device.empty(tiles, np.uint8)
        of_values, masked = states is None, states is None and self.present is not None
        kernel = _scanning(self.shape, of_values, masked, backward)
        ends = (flags, tile, rows - 1)
        source = (*self.values, self.present, states, 0)
        launch(kernel, tiles, made, *source, *ends, made, carries, begun, workers=workers, unit=tile)
        if tiles > 1:
            totals = self._scan(carries, begun, tiles, False)
            launch(_completing(self.shape, backward), tiles, made, *ends, totals, made, workers=workers, unit=tile)
        return made

    def running(self, flags: Array, frame: Ranges, backward: bool) -> Array:
        """By row the moment of frames that begin with their partition, or end with it."""
        made: Array = self.work.device.empty(self.work.ordered.count, np.float64)
        states = self.scan(flags, backward)
        _reading(self.shape, backward).run(self.work.ordered, self.work.workers, frame.low, frame.high, states, made)
        return made

    def of_blocks(self, flags: Array, width: int, frame: Ranges) -> Array:
        """By row the moment of frames of so many rows; ``flags`` are those of blocks of as many, and of partitions."""
        o, made = self.work.ordered, self.work.device.empty(self.work.ordered.count, np.float64)
        before, behind = self.scan(flags), self.scan(flags, True)
        numbers = (o.partitions.numbers, o.partitions.starts)
        _joining(self.shape).run(o, self.work.workers, *numbers, frame.low, frame.high, before, behind, width, made)
        return made


@cache
def _reading(shape: Shape, backward: bool) -> PositionKernel:
    position = "low" if backward else "sub_i64(high, 1)"
    words = len(shape.words)
    return position_kernel(
        "lows:*u32 highs:*u32 states:*f64 made:*f64",
        "low = i64(lows[i])",
        "high = i64(highs[i])",
        "total = f64(0.0)",
        "if lt_i64(low, high):",
        f"    total = f64(states[row_index(add_i64(mul_i64({position}, {words}), {words - 1}))])",
        "store_f64(made, row, total)",
    )


@cache
def _joining(shape: Shape) -> PositionKernel:
    """See `combine._joining`."""
    words, result = list(enumerate(shape.words)), shape.words[-1]
    return position_kernel(
        "partitions:*u32 begins:*u32 lows:*u32 highs:*u32 before:*f64 behind:*f64 width:i64 made:*f64",
        *PARTITION,
        "low = i64(lows[i])",
        "last = sub_i64(i64(highs[i]), 1)",
        *nothing(shape),
        "if le_i64(low, last):",
        f"    slot = mul_i64(last, {len(words)})",
        *[f"    {w}_ = f64(before[row_index(add_i64(slot, {k}))])" for k, w in words],
        "    if lt_i64(quotient_i64(low, width), quotient_i64(last, width)):",
        f"        slot = mul_i64(low, {len(words)})",
        *[f"        {w} = f64(behind[row_index(add_i64(slot, {k}))])" for k, w in words],
        *("        " + line for line in merge(shape)),
        "    elif eq_i64(low, begin) or eq_i64(remainder_i64(low, width), 0):",
        f"        {result} = {result}_",
        "    else:",
        f"        {result} = f64(behind[row_index(add_i64(mul_i64(low, {len(words)}), {len(words) - 1}))])",
        f"store_f64(made, row, {result})",
    )
