"""Whose the state of groups is where threads of a CPU accumulate: each thread's own, or one that all share.

A state of its own costs a thread the memory, and all the time to clear and to combine it; it is accumulated into without
atomics. A small one costs nothing. A large one is worth that where many rows go to each slot; else threads share one, behind
thread-local caches (`operators.aggregation_cache`).
"""

from __future__ import annotations

from gquery import tuning
from gquery.device.device import Device
from gquery.expression.facts import INT64_BYTES
from gquery.operators.materialize import selectivity
from gquery.planner.physical import Group, Pipeline
from gquery.runtime.records import replace


def share_state(pipeline: Pipeline, threads: int, device: Device, groups: int = 0) -> Pipeline:
    """The pipeline with one state for all threads, where states of their own would cost more than they save.
    ``groups``: how many an earlier run had room for, which may be more than were expected."""
    sink = pipeline.sink
    if not isinstance(sink, Group) or threads == 1 or pipeline.rows <= tuning.threads.morsel_rows:
        return pipeline
    rows = int(pipeline.rows * selectivity(pipeline.steps))
    if _has_own_states(sink, rows, threads, device, max(sink.groups, groups)):
        return pipeline
    return replace(pipeline, sink=replace(sink, concurrent=True))


def _has_own_states(sink: Group, rows: int, threads: int, device: Device, groups: int) -> bool:
    limits = tuning.accumulators
    match sink.layout:
        case "direct-address":
            assert sink.key_encoding is not None
            slots = sink.key_encoding.size
            words, wanted = slots * max(len(sink.accumulators), 1), limits.own_slot_rows * slots
        case "hash":
            words, wanted = 2 * groups * (1 + len(sink.accumulators)), limits.own_group_rows * groups
        case "row-id hash":  # the table of row numbers is one anyway
            return False
    if words <= limits.own_words:
        return True
    if sink.clustered_key is not None:  # which needs few atomics
        return False
    return rows >= threads * wanted and threads * words * INT64_BYTES <= device.free_bytes // limits.own_memory
