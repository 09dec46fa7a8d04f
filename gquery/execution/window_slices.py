"""Windows without PARTITION BY over more rows than fit memory: the rows are sorted in parts (`execution.sort_parts`), and go
through the window a slice after another.

Frames of so many rows, `lag` and `lead` see the rows beside the slice, too. What grows from the first row on, a number, a rank, a
running sum, goes on from where the slice before has ended; where peers count as one, slices end between peers. The rows come back
in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.distributed.movable import movable
from gquery.errors import OutOfRangeError
from gquery.execution.exchange import stored_columns
from gquery.execution.held import scratch_of
from gquery.execution.part_runs import numbered, parts_for
from gquery.execution.sort_parts import sort_within_memory
from gquery.execution.state import Run, StageReport
from gquery.execution.tiers import joined_below, put_below
from gquery.expression.expr import Column, Expr, SortKey, new_column
from gquery.expression.expr import Literal as Constant
from gquery.expression.types import BIGINT, INT64, PhysicalType
from gquery.expression.windows import FrameBound, WindowCall
from gquery.kernels.builtin.key_changes import key_changes
from gquery.kernels.values import value_properties
from gquery.operators.base import Frame, make_column, narrow
from gquery.operators.breakers import run_breaker
from gquery.operators.partition_rows import rows_between
from gquery.planner.partition_keys import frame_columns
from gquery.planner.physical import SortRows, Stored, WindowRows
from gquery.planner.stage_columns import makes_lists
from gquery.runtime.interrupt import check
from gquery.runtime.records import replace

Carried = Literal["number", "dense", "add", "min", "max"]
"""How the value of a row goes on from the slice before: from how many rows that had, or from its last value."""
Beside = tuple[int, int]
"""How many rows before a slice, and behind it, a call looks at."""

_OF_NUMBERS: dict[str, Carried] = {"row_number": "number", "rank": "number", "dense_rank": "dense"}
_PEERS = ("rank", "dense_rank")


def can_be_sliced(work: WindowRows, device: Device) -> bool:
    """Whether each call can go on from slice to slice, on a CPU, whose files kernels read."""
    if work.partition or device.below is not None or makes_lists(work):
        return False
    needs = [(call, _needs(s, call)) for s, call in work.calls]
    return all(n is not None and (bool(work.order) or not _looks_at_peers(call, n)) for call, n in needs)


def window_by_slices(state: Run, stage: int, work: WindowRows, report: StageReport) -> Frame:
    """The frame with the values of the calls, in the tier."""
    device, whole, needed = state.context.device, state.frames[work.stage], frame_columns(work)
    known = value_properties(BIGINT, None, nullable=False)
    number = Stored(new_column("number of a row", BIGINT, False), known, known.physical_type)
    frame = put_below(
        movable(Frame({i: c for i, c in whole.columns.items() if i in needed}, whole.rows)), device, device.task
    )
    stored = (*stored_columns(state, work.stage, frame), number)
    frame = numbered(frame, number, device)
    if work.order:
        frame = sort_within_memory(SortRows(stage, work.order, stored, None, 0), frame, device, report)
    own = replace(work, columns=(*work.columns, number), first=None)  # the rank in a slice is not that in all rows
    slices = _Slices(own, frame, device, state.context.settings.worker_count).all()
    report.parts += len(slices)
    made = joined_below(slices, device)
    order = SortRows(stage, (SortKey(number.column, False, False),), work.columns, None, 0)
    return sort_within_memory(order, made, device, report)


def _needs(stored: Stored, call: WindowCall) -> Carried | Beside | None:
    """What a call needs of other slices; None: all their rows."""
    frame, wide = call.frame, stored.physical_type is PhysicalType.I128
    if call.order or call.ignore_nulls:
        return None
    if call.function in _OF_NUMBERS:
        return _OF_NUMBERS[call.function]
    if call.function in ("lag", "lead"):
        away = _constant(call.args[1]) if len(call.args) > 1 else 1
        if away is None:
            return None
        away = -away if call.function == "lag" else away
        return max(-away, 0), max(away, 0)
    if call.function in ("percent_rank", "cume_dist", "ntile"):
        return None
    before, behind = _away(frame.start), _away(frame.end)
    if frame.unit == "rows" and before is not None and behind is not None:
        return max(-before, 0), max(behind, 0)
    runs = (
        frame.start.kind == "unbounded preceding" and frame.end.kind == "current row" and frame.exclude == "no others"
    )
    if not runs or call.distinct or wide or stored.physical_type.is_string:
        return None
    from gquery.operators.window.aggregates import running_op  # with all of windows, as in `operators.breakers`

    return running_op(call)


def _away(bound: FrameBound) -> int | None:
    """How many rows a bound of ROWS is behind the current one; None where that differs."""
    if bound.kind == "current row":
        return 0
    amount = None if bound.amount is None else _constant(bound.amount)
    return None if amount is None else -amount if bound.kind == "preceding" else amount


def _constant(e: Expr) -> int | None:
    return int(e.value) if isinstance(e, Constant) and e.value is not None else None


def _looks_at_peers(call: WindowCall, needs: Carried | Beside | None) -> bool:
    return call.function in _PEERS or (isinstance(needs, str) and needs != "number" and call.frame.unit != "rows")


class _Slices:
    """A window over sorted rows, under way."""

    def __init__(self, work: WindowRows, frame: Frame, device: Device, workers: int) -> None:
        self._work, self._frame, self._device, self._workers = work, frame, device, workers
        self._needs = {s.column.id: _needs(s, call) for s, call in work.calls}
        self._last: dict[int, int | float] = {}  # of calls that go on, the value of the last row so far that has one
        beside = [n for n in self._needs.values() if isinstance(n, tuple)]
        self._before, self._behind = (max([n[k] for n in beside], default=0) for k in (0, 1))
        self._at_peers = bool(work.order) and any(_looks_at_peers(c, self._needs[s.column.id]) for s, c in work.calls)

    def all(self) -> list[Frame]:
        """The slices, in the tier."""
        frame, device = self._frame, self._device
        size = scratch_of(self._work, {self._work.stage: frame}) + sum(c.nbytes for c in frame.columns.values())
        step = -(-frame.rows // parts_for(size, device)) or 1
        low, made = 0, list[Frame]()
        while low < frame.rows or not made:
            check()
            high = min(low + step, frame.rows)
            high = self._between_peers(low, high) if self._at_peers and high < frame.rows else high
            made.append(put_below(self._slice(low, high), device, device.task))
            low = max(high, 1)
        return made

    def _between_peers(self, low: int, high: int) -> int:
        """Where a slice ends that ends between peers: before, if it can, else behind."""
        keys, step = [k.expr for k in self._work.order], high - low
        while True:
            part = rows_between(self._frame, low, min(high + 1, self._frame.rows))
            columns = [part.columns[e.id] for e in keys if isinstance(e, Column)]
            _, peers = key_changes([], columns, None, self._device, self._workers)
            begins = np.flatnonzero(self._device.to_host(peers))
            if begins.size > 1:
                return low + int(begins[-1])
            if high >= self._frame.rows:
                return high
            high = min(high + step, self._frame.rows)

    def _slice(self, low: int, high: int) -> Frame:
        calls = self._work.calls
        near = tuple([c for c in calls if isinstance(self._needs[c[0].column.id], tuple)])
        going = tuple([c for c in calls if c not in near])
        columns: dict[int, ColumnData] = {}
        if near:
            first, end = max(low - self._before, 0), min(high + self._behind, self._frame.rows)
            made = self._run(near, first, end)
            columns |= rows_between(made, low - first, high - first).columns
        if going or not near:
            made = self._run(going, low, high)
            columns |= made.columns | {s.column.id: self._on(s, made.columns[s.column.id], low) for s, _ in going}
        return Frame(columns, high - low)

    def _run(self, calls: Sequence[tuple[Stored, WindowCall]], low: int, high: int) -> Frame:
        own = {s.column.id for s, _ in calls}
        others = {s.column.id for s, _ in self._work.calls} - own
        columns = tuple([s for s in self._work.columns if s.column.id not in others])
        work = replace(self._work, calls=tuple(calls), columns=columns)
        frames = {work.stage: rows_between(self._frame, low, high)}
        with self._device.scratch(scratch_of(work, frames), self._device.task), self._device.activate():
            return run_breaker(work, frames, {}, {}, self._device, self._workers)

    def _on(self, stored: Stored, column: ColumnData, low: int) -> ColumnData:
        """The values of a slice, going on from the one before."""
        needs, i = self._needs[stored.column.id], stored.column.id
        values, valid = (
            column.data.on(self._device),
            None if column.validity is None else column.validity.on(self._device),
        )
        values = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
        before = low if needs == "number" else self._last.get(i)
        if before is not None and values.size:
            found = _combined(needs, values, before)
            values, valid = (
                (found, None) if valid is None else (np.where(valid > 0, found, before), np.ones_like(valid))
            )
        if values.size and (valid is None or valid[-1]):
            self._last[i] = values[-1].item()
        data = narrow(values, stored.physical_type)
        return make_column(stored.properties, stored.physical_type, data, valid, column.length, self._device)


def _combined(how: Carried | Beside | None, values: Array, before: int | float) -> Array:
    """Values and what comes before them: NaN is greater than all others."""
    found: Array
    if how in ("min", "max"):
        found = np.fmin(values, before) if how == "min" else np.maximum(values, before)
        return found
    if values.dtype == np.int64 and before:
        least, most = int(values.min()) + int(before), int(values.max()) + int(before)
        if least < INT64.low or most > INT64.high:
            raise OutOfRangeError("Overflow in sum: the result does not fit BIGINT. Cast its argument to a wider type.")
    found = values + before
    return found
