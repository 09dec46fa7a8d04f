"""The kernels of a stage, once for each form that specialization gives it: made at the first run, kept in the feedback."""

from __future__ import annotations

from collections.abc import Sequence

from gquery.execution.decision import Specialized
from gquery.execution.feedback import RunFeedback
from gquery.execution.stage_feedback import Cached, GroupVariant, OutputKey, UnitsKey, own_keys, table_variant
from gquery.expression.facts import LARGE_ROWS
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import get_target
from gquery.kernels.targets.capabilities import capabilities
from gquery.kernels.targets.compilers import calls_users, compiler_of
from gquery.operators.accumulate import state_location
from gquery.operators.codegen import Unit, output_kernel, units
from gquery.operators.group_output import GroupOutput, is_probable
from gquery.planner.physical import Build, Group, Materialize, Pipeline, Probe, ReadStage, Reduce
from gquery.runtime.nesting import with_room
from gquery.runtime.records import replace


def units_of(
    feedback: RunFeedback, stage: int, pipeline: Pipeline, target: str, counts: bool = False, is_draft: bool = False
) -> tuple[Unit, ...]:
    """The kernels of a pipeline, or drafts of them; those that count the rows behind each step where ``counts``."""
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
    key = UnitsKey(
        stage, target, base, group, sum_words, built, is_wide, counts, pipeline.selection_steps, few, is_draft
    )
    shared = feedback.shared

    def make() -> tuple[Unit, ...]:
        made = with_room(lambda: units(pipeline, target, counts))
        return drafts_of(made) if is_draft else made

    return feedback.units.get(key, make if shared is None else lambda: shared.units.get(key, shared.values, make))


def drafts_of(made: Sequence[Unit]) -> tuple[Unit, ...]:
    """The same with drafts of the kernels."""
    return tuple([replace(u, kernel=replace(u.kernel, is_draft=True)) for u in made])


def output_of(feedback: RunFeedback, stage: int, sink: Group, target: str) -> GroupOutput:
    """What makes columns of a sink's groups."""
    sum_words = tuple(a.sum_word_bits for _, a in sink.aggregates)
    key = OutputKey(stage, target, sink.layout, sink.partitioned, sum_words, own_keys(sink.key_encoding))
    return feedback.outputs.get(key, lambda: with_room(lambda: output_kernel(sink, target)))


def kernels_of(feedback: RunFeedback, stage: int, runs: Specialized) -> tuple[Kernel, ...]:
    """All that a compiled pipeline needs: of groups, the kernel that makes columns of them, too, where that is probable."""
    pipeline, target, sink = runs.pipeline, runs.target, runs.pipeline.sink
    made = tuple([u.kernel for u in units_of(feedback, stage, pipeline, target, is_draft=runs.choice.is_draft)])
    if not isinstance(sink, Group):
        return made
    groups = feedback.stage(stage).groups
    expected = sink if groups is None else replace(sink, groups=groups)
    is_needed = sink.partitioned or is_probable(expected, target)
    return (*made, output_of(feedback, stage, sink, target).unit[0]) if is_needed else made


def is_ready(feedback: RunFeedback, stage: int, pipeline: Pipeline, target: str, is_draft: bool = False) -> bool:
    """Whether this process has the kernels of a pipeline, or drafts of them, in memory."""
    ready = get_target(target).is_ready
    return all(ready(u.kernel) for u in units_of(feedback, stage, pipeline, target, is_draft=is_draft))


def has_drafts(feedback: RunFeedback, stage: int, pipeline: Pipeline, target: str) -> bool:
    """Whether there are drafts of the kernels of a pipeline: our own compiler makes them for a processor, and of functions of
    users none, which take Numba a second."""
    if not capabilities(target).runs_morsels or compiler_of(target) != "llvm":
        return False
    made = units_of(feedback, stage, pipeline, target)
    return not any(calls_users(u.kernel) for u in made)


def cached(feedback: RunFeedback, stage: int, pipeline: Pipeline, target: str, drafts: bool) -> Cached:
    """What another process has compiled of a pipeline: its kernels, or drafts of them where there are ``drafts``; looked up once,
    unless they were asked for."""
    known = feedback.stage(stage)
    if known.cached is not None:
        return known.cached
    found: Cached = "nothing"
    if _are_cached(units_of(feedback, stage, pipeline, target), target):
        found = "kernels"
    elif drafts and _are_cached(units_of(feedback, stage, pipeline, target, is_draft=True), target):
        found = "drafts"
    if not known.is_requested:
        feedback.looked_up_cache(stage, found)
    return found


def _are_cached(made: Sequence[Unit], target: str) -> bool:
    is_cached = get_target(target).is_cached
    return all(is_cached(u.kernel) for u in made)
