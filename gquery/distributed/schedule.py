"""Scheduling: runs a pipeline's kernels over its partitions and workers.

A sink whose state is shared gets one state; any other gets one for each partition and worker, and combines them when it
finishes. Within a partition, morsels are taken by the target's own scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery.distributed.place import Placed
from gquery.operators.base import SinkRun, State

RunRange = Callable[[str, Placed, Sequence[State]], None]
"""``run(role, partition, states)``: one kernel over one partition, with a state for each worker."""


def run_partitions(sink: SinkRun, partitions: Sequence[Placed], workers: int, run: RunRange) -> list[State]:
    """Run all of a sink's kernels over all partitions; the states that they filled."""
    if sink.shared:
        state = sink.allocate()
        of_workers = sink.for_workers(state, workers)
        for role in sink.roles:
            for partition in partitions:
                run(role, partition, of_workers)
            sink.after(role, state)
        return [state]
    states: list[State] = []
    for partition in partitions:
        own = [sink.allocate() for _ in range(workers)]
        for role in sink.roles:
            run(role, partition, own)
        states += own
    return states
