"""How a stage runs is decided once: the decision stands for later runs as long as the facts that it was made from.

A hot run meets the rows and join tables of the run before. So it compares a few numbers, in place of specializing the pipeline,
choosing its target and looking for its kernels again. Nothing is taken as given: other facts make another decision.
"""

from __future__ import annotations

from typing import cast

from gquery.execution.choose import bytes_on_device, is_promising
from gquery.execution.decision import Choice, Decision, Grounds, Specialized
from gquery.execution.facts import Facts
from gquery.execution.specialize import preferred_form, specialize
from gquery.execution.state import Run
from gquery.execution.variants import has_drafts, kernels_of, units_of
from gquery.kernels.kernel import Kernel
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import MorselTarget
from gquery.kernels.targets.capabilities import PYTHON, capabilities
from gquery.operators.specialize import fan_out, has_room, probed_tables
from gquery.operators.thread_states import form_of
from gquery.planner.physical import Pipeline, Probe, Stage
from gquery.runtime.records import replace


def work_ahead(state: Run, stage: Stage, pipeline: Pipeline, decision: Decision) -> None:
    """Have the kernels of a pipeline compiled for later runs, where it was interpreted for long enough, or has made so many
    groups that another form is better. That is asked for as soon as it has run, so that they are there, or nearly, when the
    query comes again."""
    grounds, form = decision.grounds, form_of(decision.runs.pipeline)
    facts = _facts(state, stage, grounds)
    if decision.runs.target != PYTHON.name:
        if form is not None and decision.able.runs_morsels:
            state.feedback.forms[stage.number] = form
            is_news = facts.known.groups != grounds.known.groups
            if is_news and preferred_form(decision.runs.pipeline, facts) != form:
                decide(state, stage, pipeline, grounds.rows)
        return
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
    if before is not None and before.grounds == grounds and not _is_overtaken(before):
        return before
    runs, awaited = _best_at_hand(pipeline, _facts(state, stage, grounds))
    units = units_of(feedback, number, runs.pipeline, runs.target, context.counts, runs.choice.is_draft)
    turns = fan_out(runs.pipeline, state.joins)
    decision = feedback.decisions[number] = Decision(grounds, runs, units, turns, awaited)
    return decision


def _best_at_hand(pipeline: Pipeline, facts: Facts) -> tuple[Specialized, tuple[Kernel, ...]]:
    """The pipeline as it runs now, and the kernels that a later run waits for. Where groups of another form are better than those
    that the last run made, but have kernels yet to be compiled, it stays with the old ones until that is done beside queries."""
    best, form = specialize(pipeline, facts), facts.feedback.forms.get(facts.stage)
    if form is None or form == form_of(best.pipeline) or not _may_wait(best, facts):
        return best, ()
    cpu = cast(MorselTarget, get_target(best.target))
    wanted = kernels_of(facts.feedback, facts.stage, best)
    if all(cpu.is_cached(k) for k in wanted):
        return best, ()
    old = specialize(pipeline, replace(facts, form=form))
    if old.target != best.target or not all(cpu.is_ready(k) for k in kernels_of(facts.feedback, facts.stage, old)):
        return best, ()
    cpu.compile_in_background(wanted)
    return old, wanted


def _may_wait(best: Specialized, facts: Facts) -> bool:
    """Whether kernels can be compiled beside queries. Ranks whose states become one have the same form, and wait for it."""
    is_compiled = facts.able.runs_morsels and best.target == facts.context.target
    is_alone = not facts.merges and not facts.context.counts
    return is_compiled and is_alone and has_drafts(facts.feedback, facts.stage, best.pipeline, best.target)


def _is_overtaken(decision: Decision) -> bool:
    """Whether what a decision waits for is there. What is not is asked for again: it may have been left out."""
    if not decision.awaited:
        return False
    cpu = cast(MorselTarget, get_target(decision.runs.target))
    if all(cpu.is_ready(k) for k in decision.awaited):
        return True
    cpu.compile_in_background(decision.awaited)
    return False


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
