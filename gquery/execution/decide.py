"""How a stage runs is decided once: the decision stands for later runs as long as the facts that it was made from.

A hot run meets the rows and join tables of the run before. So it compares a few numbers, in place of specializing the pipeline,
choosing its target and looking for its kernels again. Nothing is taken as given: other facts make another decision.
"""

from __future__ import annotations

from typing import cast

from gquery.execution.choose import bytes_on_device, is_promising
from gquery.execution.decision import Choice, Decision, Grounds
from gquery.execution.facts import Facts
from gquery.execution.specialize import specialize
from gquery.execution.state import Run
from gquery.execution.variants import has_drafts, units_of
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import MorselTarget
from gquery.kernels.targets.capabilities import PYTHON, capabilities
from gquery.operators.specialize import fan_out, has_room, probed_tables
from gquery.planner.physical import Pipeline, Probe, Stage
from gquery.runtime.records import replace


def work_ahead(state: Run, stage: Stage, pipeline: Pipeline, decision: Decision) -> None:
    """Have the kernels of a pipeline compiled for later runs, where it was interpreted for long enough. That is asked for as soon
    as it has run, so that they are there, or nearly, when the query comes again."""
    if decision.runs.target != PYTHON.name:
        return
    facts = _facts(state, stage, decision.grounds)
    if not is_promising(decision.runs, facts):
        return
    name = facts.context.target
    is_draft = has_drafts(facts.feedback, stage.number, pipeline, name)
    compiled = specialize(pipeline, replace(facts, choice=Choice(name, "for later runs", is_draft)))
    made = units_of(facts.feedback, stage.number, compiled.pipeline, name, is_draft=is_draft)
    cast(MorselTarget, get_target(name)).compile_in_background([u.kernel for u in made])
    facts.feedback.requested(stage.number)


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
    runs = specialize(pipeline, _facts(state, stage, grounds))
    units = units_of(feedback, number, runs.pipeline, runs.target, context.counts, runs.choice.is_draft)
    turns = fan_out(runs.pipeline, state.joins)
    decision = feedback.decisions[number] = Decision(grounds, runs, units, turns)
    return decision


def _facts(state: Run, stage: Stage, grounds: Grounds) -> Facts:
    """What a decision on these grounds is made from."""
    context, number = state.context, stage.number
    room, copied, merges = grounds.has_room, grounds.copied_bytes, state.merges(number)
    return Facts(context, state.feedback, number, grounds.rows, state.joins, copied, room, merges=merges)


def _copied_bytes(state: Run, pipeline: Pipeline) -> int:
    """See `Facts`."""
    if not capabilities(state.context.target).has_own_memory:
        return 0
    probes = [s for s in pipeline.steps if isinstance(s, Probe)]
    return max((bytes_on_device(s, state.joins[s.table.stage]) for s in probes), default=0)
