"""Aggregates of all rows in an order, which do not fit memory: the rows are sorted in parts (`execution.sort_parts`), and lie in
files in their order then. A quantile, or a first or last value, is one row of these, or two.

Each order that aggregates ask for is a sort of what they read. Rows that do not count come last.
"""

from __future__ import annotations

import numpy as np

from gquery.device.array import Array
from gquery.device.device import Device
from gquery.distributed.movable import movable
from gquery.execution.exchange import stored_columns
from gquery.execution.sort_parts import sort_within_memory
from gquery.execution.state import Run, StageReport
from gquery.execution.tiers import put_below
from gquery.expression.expr import Column, SortKey
from gquery.operators.base import Frame
from gquery.operators.breakers import run_breaker
from gquery.operators.ordered_groups import InOrder, one_group, result_of
from gquery.planner.ordered_call import OrderedCall
from gquery.planner.physical import OrderedGroups, SortRows


def can_be_sorted(work: OrderedGroups, device: Device) -> bool:
    """Whether aggregates without keys are found in sorted rows, on a CPU, whose files kernels read."""
    return not work.keys and device.below is None and all(call.is_of_few_rows for _, call in work.calls)


def aggregates_of_sorted(state: Run, work: OrderedGroups, report: StageReport) -> Frame:
    """The row of the aggregates."""
    device, frame = state.context.device, state.frames[work.stage]
    if not frame.rows:
        return run_breaker(work, {work.stage: frame}, {}, {}, device)
    made = {}
    rows: dict[tuple[tuple[SortKey, ...], Column | None], InOrder] = {}
    for stored, call in work.calls:
        key = (call.order, call.kept)
        if key not in rows:
            of_order = [c for _, c in work.calls if (c.order, c.kept) == key]
            rows[key] = _sorted(state, work, of_order, frame, report)
        made[stored.column.id] = result_of(call, stored, rows[key])
    return put_below(Frame(made, 1), device, device.task)


class _Sorted(InOrder):
    """Rows that stand in their order, those that count first."""

    def __init__(self, frame: Frame, count: int, device: Device) -> None:
        super().__init__(one_group(frame, device), (), None)
        self.sizes = np.array([count], np.int64)
        self.rows = np.zeros(0, np.uint32)  # nobody reads it

    def rows_at(self, positions: Array) -> Array:
        """See `InOrder`."""
        last = max(self.frame.rows - 1, 0)
        found: Array = np.minimum(positions * (self.sizes > 0), last).astype(np.uint32)
        return found


def _sorted(state: Run, work: OrderedGroups, calls: list[OrderedCall], frame: Frame, report: StageReport) -> InOrder:
    device, (first, *_) = state.context.device, calls
    keys = first.order if first.kept is None else (SortKey(first.kept, True, False), *first.order)
    exprs = [*(a for call in calls for a in call.args), *(k.expr for k in keys)]
    needed = {e.id for e in exprs if isinstance(e, Column)}
    own = movable(Frame({i: c for i, c in frame.columns.items() if i in needed}, frame.rows))
    if keys:
        stored = tuple([s for s in stored_columns(state, work.stage, own) if s.column.id in needed])
        order = SortRows(work.stage, keys, stored, None, 0)
        own = sort_within_memory(order, put_below(own, device, device.task), device, report)
    count = own.rows if first.kept is None else int(np.count_nonzero(own.columns[first.kept.id].data.on(device)))
    return _Sorted(own, count, device)
