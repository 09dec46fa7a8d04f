"""The order of the rows of each tile and those that its frames reach: many short sorts, which stay in a thread's cache.

A row that frames of two tiles reach stands in the orders of both. A word of it has the first bits of its keys, and behind them
how far it is from the tile's origin. Rows of equal bits, where there are more, are then told apart one by one, which many would
make slow: there, and where the keys are text, all rows are sorted at once instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.expression.expr import SortKey
from gquery.expression.facts import INT64_BITS
from gquery.kernels.builtin import order
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.kernels.builtin.order_bits import arguments_of, elements_of, number_of, reading
from gquery.kernels.targets.morsels import run_parts
from gquery.operators.window.frames import Ranges, RowEnds
from gquery.operators.window.own_order import own_keys
from gquery.operators.window.positions import Work
from gquery.runtime.tuples import NamedTuple


class TileOrders(NamedTuple):
    """By tile of so many positions, ``size`` words (uint64) in order, whose last ``position_bits`` are how far a position is
    behind the tile's origin (int64, by tile); there are as many as up to its end (int64), and nothing behind them."""

    tile: int
    origins: Array
    ends: Array
    size: int
    position_bits: int
    words: Array


def tile_orders(
    keys: Sequence[SortKey], ends: RowEnds | None, ranges: Ranges | None, longest: int, work: Work
) -> TileOrders | None:
    """The orders for frames of up to so many rows, whose ends are known as one of both; None where all rows are to be sorted at
    once."""
    rows, limits = work.ordered.count, tuning.window_functions
    tile = max(limits.ordered_tile, limits.frames_an_order * longest)
    if limits.least_orders * tile > rows or work.device.is_counted:
        return None
    origins, behind = _reach(tile, ends, ranges, rows)
    size = max(int((behind - origins).max()), 1)
    if size > 2 * tile:
        return None
    position_bits = (size - 1).bit_length()
    bits = order.KeyBits(own_keys(keys, work))
    pieces, _ = bits.pieces(INT64_BITS - position_bits)
    if not pieces or not bits.ends_here:
        return None
    device, workers, tiles = work.device, work.workers, int(origins.size)
    words = device.empty((tiles, size), np.uint64)
    given = (*arguments_of(pieces), position_bits, origins, behind, size, words)
    elements = elements_of(pieces)
    launch(_placing(elements), tiles, words, *given, workers=workers, unit=tile)
    run_parts(lambda first, last: words[first:last].sort(axis=1), tiles, max(limits.sorted_at_once // size, 1), workers)
    if bits.left:
        failed = device.zeros(tiles, np.uint8)
        launch(
            _telling_apart(elements),
            tiles,
            words,
            *given,
            limits.steps_a_row * size,
            failed,
            workers=workers,
            unit=tile,
        )
        if failed.any():
            return None
    return TileOrders(tile, origins, behind, size, position_bits, words.reshape(-1))


def _reach(tile: int, ends: RowEnds | None, ranges: Ranges | None, rows: int) -> tuple[Array, Array]:
    """The first position that frames of each tile reach, and the one behind the last (int64)."""
    starts = np.arange(0, rows, tile, dtype=np.int64)
    if ends is not None:
        first, last = ends.offsets()
        behind = np.minimum(starts + tile, rows)
        return np.clip(starts + first, 0, rows), np.clip(behind + last, 0, rows)
    assert ranges is not None
    low = np.minimum.reduceat(ranges.low, starts).astype(np.int64)
    return low, np.maximum(np.maximum.reduceat(ranges.high, starts).astype(np.int64), low)


_TILE = (
    "origin = i64(origins[row_index(i64(i))])",
    "held = sub_i64(i64(ends[row_index(i64(i))]), origin)",
    "corner = mul_i64(i64(i), size)",
    "k = i64(0)",
)
_PARAMETERS = "position_bits:i64 origins:*i64 ends:*i64 size:i64 words:*u64"


@cache
def _placing(elements: tuple[str, ...]) -> BuiltinKernel:
    parameters, lines = reading(elements, "row_index(at)")
    return builtin_kernel(
        f"{parameters} {_PARAMETERS}",
        *_TILE,
        "while lt_i64(k, held):",
        "    at = add_i64(origin, k)",
        *("    " + line for line in lines),
        "    store_u64(words, add_i64(corner, k), or_i64(shl_i64(v, position_bits), k))",
        "    k = add_i64(k, 1)",
        "while lt_i64(k, size):",
        "    store_u64(words, add_i64(corner, k), i64(-1))",
        "    k = add_i64(k, 1)",
    )


@cache
def _telling_apart(elements: tuple[str, ...]) -> BuiltinKernel:
    """The kernel that puts words of equal bits in order, by all bits of the last key's number; each goes before those that are
    greater. It ends where a tile takes more than so many steps."""
    last = len(elements) - 1
    mask = "sub_i64(shl_i64(i64(1), position_bits), 1)"
    position = f"row_index(add_i64(origin, and_i64({{}}, {mask})))"
    own, other = (number_of(last, position.format(w)) for w in ("word", "before"))
    parameters, _ = reading(elements, "")
    return builtin_kernel(
        f"{parameters} {_PARAMETERS} most:i64 failed:*u8",
        *_TILE,
        "steps = i64(0)",
        "k = add_i64(k, 1)",
        "while lt_i64(k, held):",
        "    word = i64(words[row_index(add_i64(corner, k))])",
        "    place = k",
        "    while gt_i64(place, 0):",
        "        before = i64(words[row_index(add_i64(corner, sub_i64(place, 1)))])",
        "        moves = eq_i64(shr_u64(before, position_bits), shr_u64(word, position_bits))",
        "        if moves:",
        f"            moves = lt_u64({own}, {other})",
        "        if moves:",
        "            store_u64(words, add_i64(corner, place), before)",
        "            place = sub_i64(place, 1)",
        "            steps = add_i64(steps, 1)",
        "            store_u64(words, add_i64(corner, place), word)",
        "        else:",
        "            place = i64(0)",
        "    if gt_i64(steps, most):",
        "        store_bool(failed, i64(i), True)",
        "        k = held",
        "    k = add_i64(k, 1)",
    )
