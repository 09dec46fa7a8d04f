"""Window functions, and groups in an order, over more rows than fit memory: rows go to parts by the hash of what partitions them,
in the tier below the device, and each part is computed by itself. A part that is still too large is divided again, by another mix
of the same hashes. The rows of windows come back in the order of their numbers.

Rows of one partition, or of a window or an aggregate without one, are sorted at once: where they do not fit, that is an error,
which says so.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from gquery import tuning
from gquery.device.device import Device
from gquery.distributed.movable import movable
from gquery.errors import OutOfMemoryError
from gquery.execution.behind import relieved
from gquery.execution.held import scratch_of
from gquery.execution.part_runs import in_parts, numbered, parts_for
from gquery.execution.parts import Parts
from gquery.execution.sort_parts import sort_within_memory
from gquery.execution.state import Run, StageReport
from gquery.execution.tiers import joined_below, put_below
from gquery.expression.expr import SortKey, new_column
from gquery.expression.types import BIGINT
from gquery.kernels.values import value_properties
from gquery.operators.base import Frame
from gquery.operators.breakers import run_breaker
from gquery.operators.partition_rows import HashPartitioning
from gquery.planner.partition_keys import frame_columns, partition_keys
from gquery.planner.physical import OrderedGroups, SortRows, Stored, WindowRows
from gquery.runtime.interrupt import check
from gquery.runtime.records import replace

Partitions = WindowRows | OrderedGroups


def partitions_by_parts(state: Run, stage: int, work: Partitions, report: StageReport) -> Frame:
    """The frame that a breaker makes, in the tier; ``work`` has `partition_keys`."""
    device = state.context.device
    whole, needed = state.frames[work.stage], frame_columns(work)
    frame = movable(Frame({i: c for i, c in whole.columns.items() if i in needed}, whole.rows))
    frame = put_below(frame, device, device.task)
    if isinstance(work, OrderedGroups):
        return joined_below(list(_Divided(state, work, report).all(frame)), device)
    known = value_properties(BIGINT, None, nullable=False)
    number = Stored(new_column("number of a row", BIGINT, False), known, known.physical_type)
    own = replace(work, columns=(*work.columns, number))
    made = joined_below(list(_Divided(state, own, report).all(numbered(frame, number, device))), device)
    order = SortRows(stage, (SortKey(number.column, False, False),), work.columns, None, 0)
    return sort_within_memory(order, made, device, report)


def one_partition(work: Partitions, error: OutOfMemoryError, rows: int) -> OutOfMemoryError:
    """The error of rows that cannot be divided any further."""
    if isinstance(work, WindowRows):
        what, by = "Rows of a window that are in one partition", "PARTITION BY"
    else:
        what, by = "Rows of one group that an aggregate looks at in an order", "GROUP BY"
    return OutOfMemoryError(
        f"{error} {what} are sorted at once, and here {rows:,} are: {by} more columns divides them."
    )


class _Divided:
    """The partitions of one breaker in parts, under way."""

    def __init__(self, state: Run, work: Partitions, report: StageReport) -> None:
        self._state, self._work, self._report = state, work, report
        self._device: Device = state.context.device
        self._keys = tuple([c.id for c in partition_keys(work)])

    def all(self, frame: Frame) -> Iterator[Frame]:
        """What is made of a frame's rows, part by part, each in the tier; at least one."""
        size = scratch_of(self._work, {self._work.stage: frame}) + sum(c.nbytes for c in frame.columns.values())
        by = HashPartitioning(self._keys, parts_for(size, self._device))
        parts = in_parts([frame], by, self._state, self._report, self._device.task)
        if frame.rows == 0:
            yield self._run(parts.nothing())
        yield from self._each(parts, by)

    def _each(self, parts: Parts, by: HashPartitioning) -> Iterator[Frame]:
        with parts:
            for n in range(parts.parts):
                check()
                parts.begin(n + 1)
                if parts.rows(n):
                    yield from self._of_part(parts, n, by)

    def _of_part(self, parts: Parts, n: int, by: HashPartitioning) -> Iterator[Frame]:
        """What is made of one part."""
        made, rows, limits = self._attempt(parts, n), parts.rows(n), tuning.spilling
        if isinstance(made, Frame):
            yield made
        elif by.seed < limits.levels and rows >= limits.least_rows:
            more = replace(by, seed=by.seed + 1, parts=limits.least_parts)
            yield from self._each(in_parts(parts.pieces(n), more, self._state, self._report, self._device.task), more)
        elif self._device.below is None:
            raise one_partition(self._work, made, rows)
        else:
            yield self._run_below(joined_below(parts.pieces(n), self._device), self._device.below)

    def _attempt(self, parts: Parts, n: int) -> Frame | OutOfMemoryError:
        """What is made of one part at once, or the error of memory, which holds none of its arrays."""
        try:
            return relieved(lambda: self._run(parts.part(n)), parts)
        except OutOfMemoryError as error:
            traceback.clear_frames(error.__traceback__)
            return error.with_traceback(None)

    def _run(self, part: Frame) -> Frame:
        device, frames = self._device, {self._work.stage: part}
        with device.scratch(scratch_of(self._work, frames), device.task), device.activate():
            made = run_breaker(self._work, frames, {}, {}, device, self._state.context.settings.worker_count)
            return put_below(made, device, device.task)

    def _run_below(self, part: Frame, tier: Device) -> Frame:
        """The same in the tier of a GPU: there is room, if slowly."""
        workers = self._state.context.settings.worker_count
        return run_breaker(self._work, {self._work.stage: part}, {}, {}, tier, workers)
