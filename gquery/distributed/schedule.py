"""Scheduling: runs a pipeline's kernels over its partitions and workers.

A sink whose state is shared gets one state; any other gets one for each partition and worker, and combines them when it
finishes. Within a partition, morsels are taken by the target's own scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery.distributed.place import Placed
from gquery.operators.base import SinkRun, SinkState

RunRange = Callable[[str, Placed, Sequence[SinkState]], None]
"""``run(role, partition, states)``: one kernel over one partition, with a state for each worker."""


def run_partitions(sink: SinkRun[SinkState], partitions: Sequence[Placed], workers: int, run: RunRange) -> None:
    """Run all of a sink's kernels over all partitions; they fill its states."""
    if sink.shared:
        sink.allocate()
        of_workers = sink.for_workers(workers)
        for role in sink.roles:
            for partition in partitions:
                run(role, partition, of_workers)
            sink.after(role)
        return
    for partition in partitions:
        own = [sink.allocate() for _ in range(workers)]
        for role in sink.roles:
            run(role, partition, own)
