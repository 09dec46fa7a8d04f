"""Scans within segments: for each position what its segment's values combine to up to it, or from it on to the segment's end.

Tiles of positions are gone through one after another, by threads. A tile's first positions, up to where a segment begins, are
completed by what the tiles before combine to: those are scanned by the same function. So a scan of n positions takes n steps and
a little, on one thread as on thousands.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.types import INT64
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch

Op = Literal["add", "min", "max", "and", "or", "xor", "mul"]


def word_of(values: Array) -> str:
    """The element type of values that are combined: ``f64`` or ``i64``."""
    return "f64" if values.dtype == np.float64 else "i64"


def identity(op: Op, word: str) -> int | float:
    """What changes no value that it is combined with."""
    match op:
        case "add" | "or" | "xor":
            return 0.0 if word == "f64" else 0
        case "mul":
            return 1.0
        case "and":
            return -1
        case "min":
            return INT64.high
        case "max":
            return INT64.low


@cache
def _scanning(op: Op, word: str, backward: bool) -> BuiltinKernel:
    """The kernel that scans each tile by itself, and says what its last segment combines to, and whether one begins in it.
    Backward, positions are counted from the last one, and a segment begins where, forward, it ends."""
    position = "sub_i64(last, at)" if backward else "at"
    begins = "ne_i64(i64(flags[row_index(position)]), 0)"
    if backward:
        begins = "eq_i64(position, last) or ne_i64(i64(flags[row_index(add_i64(position, 1))]), 0)"
    return builtin_kernel(
        f"values:*{word} flags:*u8 tile:i64 last:i64 other:{word} made:*{word} carries:*{word} begun:*u8",
        "at = mul_i64(i64(i), tile)",
        "behind = min_i64(add_i64(at, tile), add_i64(last, 1))",
        "total = other",
        "has_begun = False",
        "while lt_i64(at, behind):",
        f"    position = {position}",
        f"    if {begins}:",
        "        total = other",
        "        has_begun = True",
        f"    total = {op}_{word}(total, {word}(values[row_index(position)]))",
        f"    store_{word}(made, position, total)",
        "    at = add_i64(at, 1)",
        f"store_{word}(carries, i64(i), total)",
        "store_bool(begun, i64(i), has_begun)",
    )


@cache
def _completing(op: Op, word: str, backward: bool) -> BuiltinKernel:
    """The kernel that combines what a tile's first positions have with what the tiles before it carry over."""
    position = "sub_i64(last, at)" if backward else "at"
    begins = "ne_i64(i64(flags[row_index(position)]), 0)"
    if backward:
        begins = "eq_i64(position, last) or ne_i64(i64(flags[row_index(add_i64(position, 1))]), 0)"
    return builtin_kernel(
        f"flags:*u8 tile:i64 last:i64 carries:*{word} made:*{word}",
        "if gt_i64(i64(i), 0):",
        f"    carry = {word}(carries[row_index(sub_i64(i64(i), 1))])",
        "    at = mul_i64(i64(i), tile)",
        "    behind = min_i64(add_i64(at, tile), add_i64(last, 1))",
        "    while lt_i64(at, behind):",
        f"        position = {position}",
        f"        if {begins}:",
        "            at = behind",
        "        else:",
        f"            store_{word}(made, position, {op}_{word}(carry, {word}(made[row_index(position)])))",
        "            at = add_i64(at, 1)",
    )


def segment_scan(
    values: Array, flags: Array, op: Op, device: Device, workers: int = 1, backward: bool = False
) -> Array:
    """What the values (int64 or float64) of each segment combine to up to each position, its own among them; ``backward``: from
    it on. A segment begins where a flag (uint8) is 1, as the first position's is taken to be."""
    rows, word = int(values.size), word_of(values)
    made: Array = device.empty(rows, values.dtype)
    if rows == 0:
        return made
    tile = tile_rows(rows, device, workers)
    tiles = -(-rows // tile)
    carries, begun = device.empty(tiles, values.dtype), device.empty(tiles, np.uint8)
    scanning = _scanning(op, word, backward)
    ends = (flags, tile, rows - 1)
    launch(scanning, tiles, made, values, *ends, identity(op, word), made, carries, begun, workers=workers, unit=tile)
    if tiles > 1:
        totals = segment_scan(carries, begun, op, device, workers)
        launch(_completing(op, word, backward), tiles, made, *ends, totals, made, workers=workers, unit=tile)
    return made


def tile_rows(rows: int, device: Device, workers: int) -> int:
    """Positions of a tile: all, where one thread has them all."""
    limits = tuning.window_functions
    if device.is_cpu:
        return rows if workers == 1 else limits.thread_tile
    return limits.lane_tile if rows > limits.lane_tile * limits.lane_tile else rows
