"""A program, run: replayed where it was recorded, speculating where it has run before, and once more where that was wrong.

What one CPU never needs, replaying and ranks, is imported where it is used: a fresh process answers sooner.
"""

from __future__ import annotations

from collections.abc import Callable

from gquery.columns.table import Table
from gquery.execution.feedback import RunFeedback, TemplateProgress
from gquery.execution.late_fetch import with_fetched
from gquery.execution.run_stages import result_of, run_stages
from gquery.execution.speculation import MisspeculationError, Speculation
from gquery.execution.state import ExecutionContext, Run, StageReport
from gquery.expression.slots import SlotValues
from gquery.planner.physical import Program
from gquery.runtime.records import replace


def run(program: Program, context: ExecutionContext, feedback: RunFeedback | None = None) -> Table:
    """The result of a program; ``feedback`` is what earlier runs of it have left, for this one and for later ones."""
    return run_with_report(program, context, feedback)[0]


def run_again(
    program: Program, context: ExecutionContext, feedback: RunFeedback, is_current: Callable[[], bool]
) -> Table | None:
    """The result of a program whose run is recorded. ``is_current`` says whether the program may run over the tables as they are,
    and is asked while it runs. None where it may not, or where `run` has more to do than to replay."""
    if feedback.replay.recorded is None:
        return None
    from gquery.execution.replay import replayed_beside

    table = replayed_beside(program, context, feedback, is_current)
    return table if table is None or program.fetch is None else with_fetched(program.fetch, table)


def run_template(
    progress: TemplateProgress, values: SlotValues, context: ExecutionContext, is_current: Callable[[], bool]
) -> Table | None:
    """The result of a template's plan with these values, which needs no program where the template is recorded; ``is_current`` as
    in `run_again`. None where it has to be run."""
    if progress.recorded is None:
        return None
    from gquery.execution.template_replay import played_template

    return played_template(progress, values, context, is_current)


def run_with_report(
    program: Program, context: ExecutionContext, feedback: RunFeedback | None = None
) -> tuple[Table, list[StageReport]]:
    """The result of a program, and what each stage did. A run that is not measured speculates where it can."""
    if context.remote is not None:
        return context.remote.run(program, context, feedback or RunFeedback())
    run = _run_ranks if context.ranks else _run_stages
    table, reports = run(program, context, feedback or RunFeedback())
    return table if program.fetch is None else with_fetched(program.fetch, table), reports


def _run_ranks(program: Program, context: ExecutionContext, feedback: RunFeedback) -> tuple[Table, list[StageReport]]:
    from gquery.execution.ranked import ranked, run_ranked
    from gquery.execution.ranked_replay import SeveralGpus
    from gquery.execution.replay import replayed

    made = ranked(program, len(context.ranks), feedback)
    if all(placed.alone for placed in made.placement):
        return _run_stages(program, replace(context, device=context.ranks[0], ranks=()), feedback)
    table = replayed(program, feedback, SeveralGpus(made, context))
    return run_ranked(made, context) if table is None else (table, [])


def _run_stages(program: Program, context: ExecutionContext, feedback: RunFeedback) -> tuple[Table, list[StageReport]]:
    if context.device.is_cuda:
        from gquery.execution.replay import OneGpu, replayed
        from gquery.execution.template_replay import replayed_stages

        table = replayed(program, feedback, OneGpu(program, context, feedback, _run))
        if table is None:
            table = replayed_stages(program, context, feedback)
        if table is not None:
            return table, []
    waits = (
        context.meter is not None or feedback.is_short_of_memory
    )  # what finds no room depends on more than on the program
    state = Run(program, context, feedback, Speculation(feedback, context.device, waits))
    try:
        return _validated(state)
    except MisspeculationError:
        pass
    except Exception:
        if not state.speculation.has_failed():  # else it comes of arrays that aborted kernels did not write
            raise
    feedback.misspeculated()
    state.forget()
    return _validated(Run(program, context, feedback, Speculation(feedback, context.device, True)))


def _validated(state: Run) -> tuple[Table, list[StageReport]]:
    """A run of which everything is right that was speculated."""
    table = _run(state)
    state.speculation.validate_all()
    return table, state.reports


def _run(state: Run) -> Table:
    """Run all stages. What was speculated has not been validated yet."""
    run_stages(state, 0, len(state.program.stages))
    return result_of(state.program, state.frames)
