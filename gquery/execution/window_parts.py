"""Window functions over more rows than fit memory: rows go to parts by the hash of what partitions them, in the tier below the
device; each part is computed by itself, and the rows come back in the order of their numbers.

A window without PARTITION BY is one part, and so is a partition: what does not fit then is an error.
"""

from __future__ import annotations

from dataclasses import replace

from gquery.distributed.movable import movable
from gquery.execution.held import scratch_of
from gquery.execution.part_runs import in_parts, numbered, parts_for
from gquery.execution.sort_parts import sort_within_memory
from gquery.execution.state import Run, StageReport
from gquery.execution.tiers import joined_below, put_below
from gquery.expression.expr import SortKey, new_column
from gquery.expression.types import BIGINT
from gquery.kernels.values import value_properties
from gquery.operators.base import Frame
from gquery.operators.partition_rows import HashPartitioning
from gquery.operators.window import run_window
from gquery.planner.partition_keys import frame_columns
from gquery.planner.physical import SortRows, Stored, WindowRows
from gquery.runtime.interrupt import check


def window_by_parts(state: Run, stage: int, work: WindowRows, report: StageReport) -> Frame:
    """The frame with the values of the calls, in the tier; ``work`` has a partition."""
    device, workers = state.context.device, state.context.settings.worker_count
    label = device.task
    known = value_properties(BIGINT, None, nullable=False)
    number = Stored(new_column("number of a row", BIGINT, False), known, known.physical_type)
    whole, needed = state.frames[work.stage], frame_columns(work)
    frame = movable(Frame({i: c for i, c in whole.columns.items() if i in needed}, whole.rows))
    frame = put_below(frame, device, label)
    frame = numbered(frame, number, device)
    size = scratch_of(work, {work.stage: frame}) + sum(c.nbytes for c in frame.columns.values())
    by = HashPartitioning(tuple([c.id for c in work.partition]), parts_for(size, device))
    parts = in_parts([frame], by, state, report, label)
    own = replace(work, columns=(*work.columns, number))
    made: list[Frame] = []
    for n in range(parts.parts):
        check()
        if parts.rows(n) or not made:
            part = parts.part(n)
            with device.scratch(scratch_of(work, {work.stage: part}), label), device.activate():
                made.append(put_below(run_window(own, part, device, workers), device, label))
    whole = joined_below([f for f in made if f.rows] or made[:1], device)
    order = SortRows(stage, (SortKey(number.column, False, False),), work.columns, None, 0)
    return sort_within_memory(order, whole, device, report)
