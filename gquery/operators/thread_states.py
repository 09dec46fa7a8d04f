"""Whose the state of groups is where threads of a CPU accumulate: each thread's own, or one that all share.

A state of its own costs a thread the memory, and all the time to clear and to combine it; it is accumulated into without
atomics. A small one costs nothing. A large one is worth that where many rows go to each slot; else threads share one, behind
thread-local caches (`operators.aggregation_cache`). Where there are nearly as many groups as rows, they write what they have to
parts by the keys' hashes, each of which one thread makes groups of (`operators.partitioned_groups`).
"""

from __future__ import annotations

from gquery import tuning
from gquery.device.device import Device
from gquery.expression.facts import INT64_BYTES
from gquery.operators.accumulate_state import slot_words
from gquery.operators.materialize import selectivity
from gquery.operators.partitioned_groups import contribution_words
from gquery.planner.physical import Group, Pipeline
from gquery.runtime.records import replace
from gquery.runtime.tuples import NamedTuple


class StateForm(NamedTuple):
    """Whose the state of groups is: each thread's own, one that all of them share, or one for each part of the keys."""

    concurrent: bool = False
    partitioned: bool = False


def form_of(pipeline: Pipeline) -> StateForm | None:
    """The form of what a pipeline accumulates; None where it makes no groups."""
    sink = pipeline.sink
    return StateForm(sink.concurrent, sink.partitioned) if isinstance(sink, Group) else None


def with_form(pipeline: Pipeline, form: StateForm) -> Pipeline:
    """A pipeline that makes groups, with a state of that form."""
    assert isinstance(pipeline.sink, Group)
    return replace(pipeline, sink=replace(pipeline.sink, concurrent=form.concurrent, partitioned=form.partitioned))


def share_state(pipeline: Pipeline, threads: int, device: Device, groups: int, merges: bool) -> Pipeline:
    """The pipeline with one state for all threads, where states of their own would cost more than they save.
    ``groups``: how many there probably are. ``merges``: the states of several ranks become one."""
    sink = pipeline.sink
    if not isinstance(sink, Group) or threads == 1 or pipeline.rows <= tuning.threads.morsel_rows:
        return pipeline
    rows = int(pipeline.rows * selectivity(pipeline.steps))
    if _has_own_states(sink, rows, threads, device, groups):
        return pipeline
    if not merges and _is_partitioned(sink, rows, device, groups):
        return replace(pipeline, sink=replace(sink, partitioned=True))
    return replace(pipeline, sink=replace(sink, concurrent=True))


def _is_partitioned(sink: Group, rows: int, device: Device, groups: int) -> bool:
    """Whether groups are made by parts: nearly as many as rows, in a table that lies in no cache."""
    limits = tuning.accumulators
    if sink.layout != "hash" or sink.clustered_key is not None or groups * limits.partitioned_rows < rows:
        return False
    room = rows * contribution_words(sink)
    is_large = 2 * min(groups, rows) * slot_words(sink) > limits.partitioned_words
    return is_large and room * INT64_BYTES * limits.partitioned_memory <= device.free_bytes


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
