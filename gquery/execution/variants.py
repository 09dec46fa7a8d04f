"""The kernels of a stage, once for each form that specialization gives it: made at the first run, kept in the feedback."""

from __future__ import annotations

from gquery.execution.feedback import RunFeedback
from gquery.execution.stage_feedback import GroupVariant, OutputKey, UnitsKey, own_keys, table_variant
from gquery.expression.facts import LARGE_ROWS
from gquery.kernels.targets import get_target
from gquery.kernels.targets.capabilities import capabilities
from gquery.operators.accumulate import state_location
from gquery.operators.codegen import Unit, units
from gquery.operators.group_output import GroupOutput
from gquery.planner.physical import Build, Group, Materialize, Pipeline, Probe, ReadStage, Reduce
from gquery.runtime.nesting import with_room


def units_of(
    feedback: RunFeedback, stage: int, pipeline: Pipeline, target: str, counts: bool = False
) -> tuple[Unit, ...]:
    """The kernels of a pipeline; those that count the rows behind each step where ``counts``."""
    sink = pipeline.sink
    group = None
    if isinstance(sink, Group):
        own = own_keys(sink.key_encoding)
        group = GroupVariant(sink.layout, state_location(sink, target), sink.windows > 1, own)
    sum_words = tuple(a.sum_word_bits for _, a in sink.aggregates) if isinstance(sink, Group | Reduce) else ()
    probed = [table_variant(s.table, s) for s in pipeline.steps if isinstance(s, Probe)]
    built = (*probed, table_variant(sink.table)) if isinstance(sink, Build) else tuple(probed)
    is_wide = pipeline.rows >= LARGE_ROWS
    few = isinstance(sink, Materialize) and sink.few
    base = pipeline.source.base if isinstance(pipeline.source, ReadStage) else 0
    key = UnitsKey(stage, target, base, group, sum_words, built, is_wide, counts, pipeline.selection_steps, few)
    shared = feedback.shared

    def make() -> tuple[Unit, ...]:
        return with_room(lambda: units(pipeline, target, counts))

    return feedback.units.get(key, make if shared is None else lambda: shared.units.get(key, shared.values, make))


def output_of(feedback: RunFeedback, stage: int, sink: Group, target: str) -> GroupOutput:
    """What makes columns of a sink's groups."""
    sum_words = tuple(a.sum_word_bits for _, a in sink.aggregates)
    key = OutputKey(stage, target, sink.layout, sum_words, own_keys(sink.key_encoding))
    return feedback.outputs.get(key, lambda: with_room(lambda: GroupOutput(sink, capabilities(target).array_target)))


def is_ready(feedback: RunFeedback, stage: int, pipeline: Pipeline, target: str) -> bool:
    """Whether this process has the kernels of a pipeline in memory."""
    ready = get_target(target).is_ready
    return all(ready(u.kernel) for u in units_of(feedback, stage, pipeline, target))


def is_cached(feedback: RunFeedback, stage: int, pipeline: Pipeline, target: str) -> bool:
    """Whether another process has compiled the kernels of a pipeline; looked up once, unless one was asked to."""
    known = feedback.stage(stage)
    if known.is_cached is not None:
        return known.is_cached
    cached = get_target(target).is_cached
    found = all(cached(u.kernel) for u in units_of(feedback, stage, pipeline, target))
    if not known.is_requested:
        feedback.looked_up_cache(stage, found)
    return found
