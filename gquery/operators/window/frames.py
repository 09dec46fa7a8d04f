"""Frames as ranges of positions: for each position the first row of its frame and the one behind the last, in the order of the
rows.

ROWS count positions, GROUPS count groups of peers, RANGE looks for values by binary search (`range_bounds`). A frame that EXCLUDE
takes rows out of is up to three ranges, one behind another: before what is left out, the row itself between its peers, behind it.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gquery.device.array import Array
from gquery.errors import DataError, OutOfRangeError
from gquery.expression.facts import UNBOUNDED
from gquery.expression.windows import FrameBound, WindowFrame
from gquery.kernels.builtin import scans
from gquery.kernels.builtin.choosing import are_less
from gquery.kernels.builtin.elements import converted
from gquery.kernels.readback import read_scalar
from gquery.operators.window.positions import PARTITION, PositionKernel, Work, constant_of, position_kernel
from gquery.operators.window.range_bounds import range_bound
from gquery.runtime.tuples import NamedTuple

_PARAMETERS = "partitions:*u32 begins:*u32 peers:*u32 peer_begins:*u32"


class Ranges(NamedTuple):
    """Positions from ``low`` to before ``high`` (uint32), for each position."""

    low: Array
    high: Array


@cache
def _bound(unit: str, kind: str, is_end: bool, by_row: bool) -> PositionKernel:
    """The kernel for one end of a frame: the first position, or the one behind the last."""
    lines = [*PARTITION]
    if kind in ("preceding", "following"):
        amount = "i64(amounts[row_index(row)])" if by_row else "amount"
        lines.append(f"away = max_i64(min_i64({amount}, {UNBOUNDED}), {-UNBOUNDED})")
    move = "sub_i64" if kind == "preceding" else "add_i64"
    match kind:
        case "unbounded preceding":
            lines.append("position = begin")
        case "unbounded following":
            lines.append("position = end")
        case "current row" if unit == "rows":
            lines.append(f"position = add_i64(i64(i), {int(is_end)})")
        case "current row":
            lines.append(f"position = i64(peer_begins[row_index(add_i64(i64(peers[i]), {int(is_end)}))])")
        case _ if unit == "rows":
            lines += [f"position = add_i64({move}(i64(i), away), {int(is_end)})"]
        case _:
            lines += [
                f"group = add_i64({move}(i64(peers[i]), away), {int(is_end)})",
                "first = i64(peers[row_index(begin)])",
                "behind = add_i64(i64(peers[row_index(sub_i64(end, 1))]), 1)",
                "position = i64(peer_begins[row_index(max_i64(min_i64(group, behind), first))])",
            ]
    lines.append("store_u32(made, i64(i), max_i64(min_i64(position, end), begin))")
    return position_kernel(f"{_PARAMETERS} amount:i64 amounts:*i64 made:*u32", *lines)


_ORDERED = position_kernel("low:*u32 high:*u32", "store_u32(high, i64(i), max_i64(i64(low[i]), i64(high[i])))")


_AT = {
    "unbounded preceding": "begin",
    "unbounded following": "end",
    "current row": "{at}",
    "preceding": "sub_i64({at}, {away})",
    "following": "add_i64({at}, {away})",
}


@cache
def _both(start: str, end: str) -> PositionKernel:
    """The kernel for both ends of frames that are counted in rows, as many for each: one look at a position's partition."""
    return position_kernel(
        "partitions:*u32 begins:*u32 back:i64 forth:i64 lows:*u32 highs:*u32",
        *PARTITION,
        "at = i64(i)",
        *RowEnds(start, end, 0, 0).lines,
        "store_u32(lows, at, low)",
        "store_u32(highs, at, max_i64(low, high))",
    )


class RowEnds(NamedTuple):
    """Frames whose ends are so many rows away, the same number for each row; 0 where a bound has no amount."""

    start: str
    end: str
    start_amount: int
    end_amount: int

    @property
    def lines(self) -> tuple[str, str]:
        """Lines of a kernel that find ``low`` and ``high`` of the frame of position ``at``; high may be below low."""
        high = _AT[self.end].format(at="at", away="forth")
        if not self.end.startswith("unbounded"):
            high = f"add_i64({high}, 1)"
        low = _AT[self.start].format(at="at", away="back")
        return f"low = max_i64(min_i64({low}, end), begin)", f"high = max_i64(min_i64({high}, end), begin)"

    def longest(self, rows: int) -> int:
        """How many of so many rows a frame has at most."""
        if "unbounded" in f"{self.start} {self.end}":
            return rows
        first, last = self.offsets()
        return max(min(last - first + 1, rows), 1)

    def offsets(self) -> tuple[int, int]:
        """How many positions the first and the last row of a frame without an unbounded end are behind its own."""
        first = -self.start_amount if self.start == "preceding" else self.start_amount
        return first, -self.end_amount if self.end == "preceding" else self.end_amount


def row_ends(frame: WindowFrame, work: Work) -> RowEnds | None:
    """The ends of frames that are counted in rows by constants; None for others."""
    away = []
    for bound in (frame.start, frame.end):
        constant = None if bound.amount is None else constant_of(bound.amount)
        if frame.unit != "rows" or (bound.amount is not None and constant is None):
            return None
        amount = 0 if constant is None else _checked(frame, bound, constant.value, work.ordered.count)
        away.append(max(min(amount, UNBOUNDED), -UNBOUNDED))
    return RowEnds(frame.start.kind, frame.end.kind, *away)


def _counted_in_rows(frame: WindowFrame, work: Work) -> Ranges | None:
    """The ranges of frames whose ends are so many rows away, the same number for each row; None for others."""
    ends = row_ends(frame, work)
    if ends is None:
        return None
    o = work.ordered
    made = Ranges(work.device.empty(o.count, np.uint32), work.device.empty(o.count, np.uint32))
    kernel = _both(ends.start, ends.end)
    kernel.run(o, work.workers, o.partitions.numbers, o.partitions.starts, ends.start_amount, ends.end_amount, *made)
    return made


def frame_ranges(frame: WindowFrame, work: Work) -> Ranges:
    """The ranges of a frame's rows, before any are left out; where there are none, both ends are the same."""
    if (counted := _counted_in_rows(frame, work)) is not None:
        return counted
    low, high = _end(frame, frame.start, False, work), _end(frame, frame.end, True, work)
    _ORDERED.run(work.ordered, work.workers, low, high)
    return Ranges(low, high)


def _end(frame: WindowFrame, bound: FrameBound, is_end: bool, work: Work) -> Array:
    o = work.ordered
    if frame.unit == "range" and bound.amount is not None:
        return range_bound(bound, is_end, work)
    amount, amounts = 0, None
    if bound.amount is not None:
        constant = constant_of(bound.amount)
        if constant is None:
            amounts = _amounts(frame, bound, work)
        else:
            amount = _checked(frame, bound, constant.value, o.count)
    made = work.device.empty(o.count, np.uint32)
    partitions, peers = o.partitions, o.peers if frame.unit != "rows" else o.partitions
    kernel = _bound(frame.unit, bound.kind, is_end, amounts is not None)
    numbers = (partitions.numbers, partitions.starts, peers.numbers, peers.starts)
    kernel.run(o, work.workers, *numbers, max(min(amount, UNBOUNDED), -UNBOUNDED), amounts, made)
    return made


def _checked(frame: WindowFrame, bound: FrameBound, amount: int | None, rows: int) -> int:
    if amount is None:
        raise DataError(f"The amount of {_name(frame, bound)} is NULL")
    if amount < 0 and frame.unit == "groups" and rows:
        raise OutOfRangeError(f"The amount of {_name(frame, bound)} is negative")
    return amount


def _amounts(frame: WindowFrame, bound: FrameBound, work: Work) -> Array:
    """Amounts by row (int64), none of them NULL, or negative where groups are counted."""
    assert bound.amount is not None
    column = work.column(bound.amount)
    validity = None if column.validity is None else column.validity.on(work.device)
    if validity is not None and read_scalar(scans.count_others(validity, 1), expected=0):
        raise DataError(f"The amount of {_name(frame, bound)} is NULL in some row")
    amounts = converted(column.data.on(work.device), np.int64)
    if frame.unit == "groups" and scans.is_any(are_less(amounts, 0)):
        raise OutOfRangeError(f"The amount of {_name(frame, bound)} is negative in some row")
    return amounts


def _name(frame: WindowFrame, bound: FrameBound) -> str:
    return f"{frame.unit.upper()} ... {bound.kind.upper()}"


_CUTS = {
    "current row": ("low", "i64(i)", "add_i64(i64(i), 1)", "high"),
    "group": ("low", "peer_begin", "peer_end", "high"),
    "ties": ("low", "peer_begin", "i64(i)", "add_i64(i64(i), 1)", "peer_end", "high"),
}


@cache
def _cutting(exclusion: str) -> PositionKernel:
    """The kernel that makes the ranges which are left of a frame, each within it."""
    cuts = _CUTS[exclusion]
    lines = [
        "low = i64(lows[i])",
        "high = i64(highs[i])",
        "peer_begin = i64(peer_begins[row_index(i64(peers[i]))])",
        "peer_end = i64(peer_begins[row_index(add_i64(i64(peers[i]), 1))])",
    ]
    for n in range(len(cuts) // 2):
        begin, end = cuts[2 * n : 2 * n + 2]
        lines += [
            f"first = max_i64(min_i64({begin}, high), low)",
            f"store_u32(low{n}, i64(i), first)",
            f"store_u32(high{n}, i64(i), max_i64(min_i64({end}, high), first))",
        ]
    made = " ".join(f"low{n}:*u32 high{n}:*u32" for n in range(len(cuts) // 2))
    return position_kernel(f"peers:*u32 peer_begins:*u32 lows:*u32 highs:*u32 {made}", *lines)


def without_excluded(frame: WindowFrame, ranges: Ranges, work: Work) -> list[Ranges]:
    """What is left of the frame's rows, as ranges one behind another."""
    if frame.exclude == "no others":
        return [ranges]
    o = work.ordered
    count = len(_CUTS[frame.exclude]) // 2
    made = [Ranges(work.device.empty(o.count, np.uint32), work.device.empty(o.count, np.uint32)) for _ in range(count)]
    peers = o.peers
    _cutting(frame.exclude).run(
        o, work.workers, peers.numbers, peers.starts, ranges.low, ranges.high, *[end for r in made for end in r]
    )
    return made
