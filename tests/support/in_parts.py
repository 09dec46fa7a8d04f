"""Whatever can be made in parts is, as if no state found room in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gquery.device.device import cpu_device
from gquery.errors import OutOfMemoryError
from gquery.execution import held, less_memory, relief, sort_parts
from gquery.execution.part_runs import can_have_parts
from gquery.execution.window_slices import can_be_sliced
from gquery.planner.partition_keys import partition_keys
from gquery.planner.physical import Build, DistinctRows, Group, OrderedGroups, Pipeline, Sink, SortRows, WindowRows

_MOST_CHUNKS = 1000


class Refused:
    """How many groups, join tables, sorts, windows and groups in an order found no room."""

    def __init__(self) -> None:
        self.groups = self.tables = self.sorts = self.windows = self.ordered = 0


@contextmanager
def all_in_parts(rows: int = 10) -> Iterator[Refused]:
    """Within it, connections under a memory limit make every group-by, join table, window and group in an order in parts, and
    sort so many rows at once, or more where that would be too many chunks: each of them is looked at for each range."""
    assert less_memory is not None  # imported before anything is patched, or it would keep what it finds
    count, whole, scratch = Refused(), relief._refused, held.scratch_of

    def refused(state: Any, stage: Any, pipeline: Pipeline, report: Any) -> OutOfMemoryError | None:
        if not _has_parts(pipeline.sink) or not can_have_parts(state):
            return whole(state, stage, pipeline, report)
        count.groups += isinstance(pipeline.sink, Group)
        count.tables += isinstance(pipeline.sink, Build)
        return OutOfMemoryError(f"no room in {stage.label}, on purpose")

    def scratch_of(work: Any, frames: Any) -> int:
        if isinstance(work, SortRows | DistinctRows):
            count.sorts += 1
            raise OutOfMemoryError("no room for a sort, on purpose")
        has_few_rows = isinstance(work, OrderedGroups) and all(c.is_of_few_rows for _, c in work.calls)
        is_sliced = isinstance(work, WindowRows) and can_be_sliced(work, cpu_device())
        if isinstance(work, WindowRows | OrderedGroups) and (partition_keys(work) or has_few_rows or is_sliced):
            count.windows += isinstance(work, WindowRows)
            count.ordered += isinstance(work, OrderedGroups)
            raise OutOfMemoryError("no room for partitions, on purpose")
        return scratch(work, frames)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relief, "_refused", refused)
        patch.setattr(held, "scratch_of", scratch_of)
        patch.setattr(sort_parts, "chunk_rows", lambda frame, device: max(rows, frame.rows // _MOST_CHUNKS))
        yield count


def _has_parts(sink: Sink) -> bool:
    match sink:
        case Group(keys=keys):
            return any(not e.dtype.is_opaque for _, e, _ in keys)
        case Build(table=table):
            return table.layout in ("direct-address", "hash") and not any(k.dtype.is_opaque for k in table.keys)
        case _:
            return False
