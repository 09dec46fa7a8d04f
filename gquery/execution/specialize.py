"""Where a pipeline becomes what runs: specialized for what is known of it, on the target that is chosen for it.

Running, preparing and explaining all ask `specialize`; they differ in the facts alone. It specializes the pipeline for the join
tables that it probes, a build for its rows, speculates that keys are unique, has threads of a CPU share a large state and one
thread set bits without atomics, speculates on a CPU that a fan-out makes few rows, compacts the rows of a selective scan on a
GPU, and gives tables a filter of their keys that probes test first, each where that is a gain. `choose` picks the target.
"""

from __future__ import annotations

from gquery.execution.choose import choose_target
from gquery.execution.decision import Specialized
from gquery.execution.facts import Facts
from gquery.expression.facts import LARGE_ROWS
from gquery.operators.key_filter import with_filter, with_tested_filters
from gquery.operators.materialize import speculate_few
from gquery.operators.selection import compacted
from gquery.operators.specialize import built_by_one, specialize_build, specialize_for_tables, speculate_unique
from gquery.operators.table_windows import windowed
from gquery.operators.thread_states import StateForm, form_of, share_state, with_form
from gquery.planner.physical import Build, Group, Pipeline
from gquery.runtime.records import replace


def specialize(pipeline: Pipeline, facts: Facts) -> Specialized:
    """The pipeline as it runs for these facts. A build of which `Facts.known` tells no duplicate keys may raise
    DuplicateKeysError when it runs, and FannedOutError what materializes and is not known to fan out; once that is noted in
    the feedback, it is specialized without the speculation."""
    pipeline = specialize_for_tables(pipeline, facts.rows, facts.joins, facts.merges)
    pipeline = specialize_build(pipeline, facts.rows, facts.has_room, facts.merges)
    pipeline = with_filter(pipeline, facts.rows, facts.able, facts.profile, facts.merges)
    if not facts.known.duplicate_keys:
        pipeline = speculate_unique(pipeline)
    if not facts.known.fanned_out and not facts.able.has_warps:
        pipeline = speculate_few(pipeline, facts.rows)
    if facts.rows >= LARGE_ROWS > pipeline.rows:  # more than was estimated: the index needs 64 bits
        pipeline = replace(pipeline, rows=facts.rows)
    compiled = _for_target(pipeline, facts)
    choice = facts.choice or choose_target(compiled, facts)
    return Specialized(compiled if choice.target == facts.context.target else pipeline, choice)


def preferred_form(pipeline: Pipeline, facts: Facts) -> StateForm | None:
    """The form that a CPU's pipeline, which may have another, is given by what is known by now; None where it makes no groups."""
    if not isinstance(pipeline.sink, Group) or not facts.able.runs_morsels:
        return None
    return form_of(_shared(with_form(pipeline, StateForm()), facts))


def _shared(pipeline: Pipeline, facts: Facts) -> Pipeline:
    assert isinstance(pipeline.sink, Group)
    threads, groups = facts.context.settings.worker_count, _groups(pipeline.sink, facts)
    return share_state(pipeline, threads, facts.context.device, groups, facts.merges)


def _groups(sink: Group, facts: Facts) -> int:
    """How many groups a sink probably has: as many as an earlier run made, or had room for."""
    known = facts.known
    return max(sink.groups, known.capacity // 2) if known.groups is None else max(known.groups, 1)


def _for_target(pipeline: Pipeline, facts: Facts) -> Pipeline:
    """The pipeline as the target of compiled pipelines runs it."""
    able = facts.able
    if able.runs_morsels and isinstance(pipeline.sink, Build) and facts.context.settings.worker_count == 1:
        pipeline = built_by_one(pipeline)
    if able.runs_morsels and isinstance(pipeline.sink, Group):
        pipeline = _shared(pipeline, facts) if facts.form is None else with_form(pipeline, facts.form)
    if able.has_warps and not facts.context.counts:
        pipeline = compacted(pipeline, facts.rows, facts.joins)
        pipeline = windowed(pipeline, facts.rows, facts.context.target, facts.profile)
    return with_tested_filters(pipeline, facts.rows, facts.joins, able, facts.profile)
