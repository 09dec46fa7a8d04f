"""How a stage runs is decided once: the decision stands for later runs as long as the facts that it was made from.

A hot run meets the rows and join tables of the run before. So it compares a few numbers, in place of specializing the pipeline,
choosing its target and looking for its kernels again. Nothing is taken as given: other facts make another decision.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from gquery.execution.choose import bytes_on_device, is_promising
from gquery.execution.decision import Choice, Decision, Grounds
from gquery.execution.facts import Facts
from gquery.execution.specialize import specialize
from gquery.execution.state import Run
from gquery.execution.variants import units_of
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import MorselTarget
from gquery.kernels.targets.capabilities import capabilities
from gquery.operators.specialize import fan_out, has_room, probed_tables
from gquery.planner.physical import Pipeline, Probe, Stage


def decide(state: Run, stage: Stage, pipeline: Pipeline, rows: int) -> Decision:
    """How a pipeline over so many rows runs, now that the tables that it probes are there."""
    context, feedback, number = state.context, state.feedback, stage.number
    grounds = Grounds(
        rows,
        probed_tables(pipeline, state.joins),
        feedback.stage(number),
        _copied_bytes(state, pipeline),
        has_room(pipeline, rows, context.device),
        context.target,
        context.device.stays,
        context.counts,
        context.settings,
    )
    before = feedback.decisions.get(number)
    if before is not None and before.grounds == grounds:
        return before
    facts = Facts(
        context,
        feedback,
        number,
        rows,
        state.joins,
        grounds.copied_bytes,
        grounds.has_room,
        merges=state.merges(number),
    )
    runs = specialize(pipeline, facts)
    if is_promising(runs, facts):
        _work_ahead(pipeline, facts)
    units = units_of(feedback, number, runs.pipeline, runs.target, context.counts)
    turns = fan_out(runs.pipeline, state.joins)
    decision = feedback.decisions[number] = Decision(grounds, runs, units, turns)
    return decision


def _work_ahead(pipeline: Pipeline, facts: Facts) -> None:
    """Have the kernels of a pipeline that is interpreted once more compiled for later runs."""
    name = facts.context.target
    compiled = specialize(pipeline, replace(facts, choice=Choice(name, "for later runs")))
    kernels = [u.kernel for u in units_of(facts.feedback, facts.stage, compiled.pipeline, name)]
    cast(MorselTarget, get_target(name)).compile_in_background(kernels)
    facts.feedback.requested(facts.stage)


def _copied_bytes(state: Run, pipeline: Pipeline) -> int:
    """See `Facts`."""
    if not capabilities(state.context.target).has_own_memory:
        return 0
    probes = [s for s in pipeline.steps if isinstance(s, Probe)]
    return max((bytes_on_device(s, state.joins[s.table.stage]) for s in probes), default=0)
