"""Frames that begin with their partition and end with the current row or its last peer, on a CPU: each value is combined once.

Rows are divided into tiles, which threads take. A first pass says what a tile's values combine to, from the last beginning of a
partition in it on; scanned, that is what the next tile begins with. A second pass goes through the values again and writes
results at once, by row: neither ends of frames nor scans lie in memory. Peers have one result: who meets the last of a group
writes it for all, those of tiles before among them.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.expression.types import PhysicalType
from gquery.expression.windows import WindowFrame
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.operators.base import make_column
from gquery.operators.window.positions import Work
from gquery.operators.window.results import Form, value_lines
from gquery.operators.window.segment_scans import Op, identity, segment_scan, word_of
from gquery.planner.physical import Stored
from gquery.runtime.tuples import NamedTuple


class _Shape(NamedTuple):
    """What the kernels' texts depend on: how values are combined, whether there are partitions, and rows without a value; of the
    second whether rows have an order and groups of peers, and what is stored."""

    op: Op
    word: str
    parted: bool
    masked: bool
    ordered: bool = False
    with_peers: bool = False
    form: Form = "integer"
    element: str = ""
    nullable: bool = False


def is_running(frame: WindowFrame, work: Work) -> bool:
    """Whether such frames grow by the next rows of their partition, on a CPU."""
    if not work.device.is_cpu or frame.exclude != "no others":
        return False
    has_ends = frame.unit == "rows" or work.ordered.peer_flags is not None
    return frame.start.kind == "unbounded preceding" and frame.end.kind == "current row" and has_ends


def running_column(
    stored: Stored, values: Array, present: Array | None, frame: WindowFrame, how: tuple[Op, Form, float], work: Work
) -> ColumnData:
    """What the values (by position, int64 or float64) of each frame combine to that are ``present``; NULL of none. ``how``: by
    which operation, what is stored of it, and for a mean what it is divided by."""
    o, device, word, (op, form, power) = work.ordered, work.device, word_of(values), how
    element = "u8" if stored.physical_type is PhysicalType.BOOL else stored.physical_type.value
    made = device.empty(o.count, stored.physical_type.numpy)
    valid = device.empty(o.count, np.uint8) if stored.properties.nullable else None
    tile = max(o.count, 1) if work.workers == 1 else tuning.window_functions.thread_tile
    shape = _Shape(op, word, o.partition_flags is not None, present is not None)
    carries, counts = _carried(shape, values, present, tile, work)
    peers = None if frame.unit == "rows" else o.peer_flags
    shape = shape._replace(ordered=o.rows is not None, with_peers=peers is not None, form=form, element=element)
    kernel = _writing(shape._replace(nullable=valid is not None))
    given = (values, o.partition_flags, present, identity(op, word), carries, counts)
    launch(
        kernel, -(-o.count // tile), values, tile, o.count, *given, o.rows, peers, power, made, valid,
        workers=work.workers, unit=tile,
    )  # fmt: skip
    return make_column(stored.properties, stored.physical_type, made, valid, o.count, device)


def _carried(shape: _Shape, values: Array, present: Array | None, tile: int, work: Work) -> tuple[Array, Array]:
    """By tile what its partition's values combine to up to its end, and how many they are (int64)."""
    o, device = work.ordered, work.device
    tiles = -(-o.count // tile)
    carries, counts = device.zeros(tiles, values.dtype), device.zeros(tiles, np.int64)
    if tiles < 2:
        return carries, counts
    begun = device.empty(tiles, np.uint8)
    other = identity(shape.op, shape.word)
    launch(
        _carrying(shape), tiles, values, tile, o.count, values, o.partition_flags, present, other, carries, counts, begun,
        workers=work.workers, unit=tile,
    )  # fmt: skip
    return segment_scan(carries, begun, shape.op, device), segment_scan(counts, begun, "add", device)


_VALUES = "tile:i64 rows_in_all:i64 values:*{word} flags:*u8 present:*u8 other:{word} carries:*{word} counts:*i64"
_TILE = ("at = mul_i64(i64(i), tile)", "behind = min_i64(add_i64(at, tile), rows_in_all)")


def _adding(s: _Shape, *begun: str) -> list[str]:
    """Lines that take the value at ``at``; a partition that begins there begins anew, and has the lines ``begun``."""
    count = "i64(present[row_index(at)])" if s.masked else "1"
    begins = ["if ne_i64(i64(flags[row_index(at)]), 0):", "    total = other", "    count = i64(0)"]
    begins += [f"    {line}" for line in begun]
    return [
        *(begins if s.parted else []),
        f"total = {s.op}_{s.word}(total, {s.word}(values[row_index(at)]))",
        f"count = add_i64(count, {count})",
    ]


@cache
def _carrying(s: _Shape) -> BuiltinKernel:
    """The kernel that says of each tile what its last partition's values combine to, and whether it begins there."""
    lines = [*_adding(s, "has_begun = True"), "at = add_i64(at, 1)"]
    return builtin_kernel(
        f"{_VALUES.format(word=s.word)} begun:*u8",
        *_TILE,
        "total = other",
        "count = i64(0)",
        "has_begun = False",
        "while lt_i64(at, behind):",
        *(f"    {line}" for line in lines),
        f"store_{s.word}(carries, i64(i), total)",
        "store_i64(counts, i64(i), count)",
        "store_bool(begun, i64(i), has_begun)",
    )


@cache
def _writing(s: _Shape) -> BuiltinKernel:
    """The kernel that begins with what the tiles before carry over, and stores the result of each frame that ends in its tile."""
    position = "first" if s.with_peers else "at"
    stores = [f"row = i64(rows[row_index({position})])" if s.ordered else f"row = {position}"]
    stores += ["store_bool(valid, row, gt_i64(count, 0))"] * s.nullable
    stores += [f"store_{s.element}(made, row, value)"]
    found = value_lines(s.form, "total", s.nullable)
    lines = [*found, *stores]
    if s.with_peers:
        lines = [
            "next = add_i64(at, 1)",
            "if eq_i64(next, rows_in_all) or ne_i64(i64(peers[row_index(next)]), 0):",
            "    while gt_i64(first, 0) and eq_i64(i64(peers[row_index(first)]), 0):",
            "        first = sub_i64(first, 1)",  # those of tiles before
            *(f"    {line}" for line in found),
            "    while lt_i64(first, next):",
            *(f"        {line}" for line in stores),
            "        first = add_i64(first, 1)",
        ]
    lines = [*_adding(s), *lines, "at = add_i64(at, 1)"]
    return builtin_kernel(
        f"{_VALUES.format(word=s.word)} rows:*u32 peers:*u8 power:f64 made:*{s.element} valid:*u8",
        *_TILE,
        *(["first = at"] * s.with_peers),
        "total = other",
        "count = i64(0)",
        "if gt_i64(i64(i), 0):",
        f"    total = {s.word}(carries[row_index(sub_i64(i64(i), 1))])",
        "    count = i64(counts[row_index(sub_i64(i64(i), 1))])",
        "while lt_i64(at, behind):",
        *(f"    {line}" for line in lines),
    )
