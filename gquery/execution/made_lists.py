"""Lists that stages make: columns that later stages pass on get the values of the run in place of what the plan had for them.

A plan knows of such lists a `Pending` alone (`gquery.columns.opaque`). The stage that makes them says so of its values; every
other stage gives its columns what its plan has, which is looked up here, when it has ended. The run remembers what was made: the
frames that had it may be gone, and a join table need not hold them as columns.
"""

from __future__ import annotations

from collections.abc import Iterable

from gquery.columns.opaque import Opaque
from gquery.execution.state import Run
from gquery.operators.base import Frame
from gquery.planner.physical import Program, Stage
from gquery.planner.stage_columns import stage_columns
from gquery.runtime.records import replace


def resolve_lists(state: Run, stage: Stage) -> None:
    """The columns of a stage that has run have what the run has made."""
    if not makes_lists(state.program):
        return
    frame, index = state.frames.get(stage.number), state.joins.get(stage.number)
    if frame is not None:
        state.frames[stage.number] = _resolved(frame, state)
    if index is not None:
        index.frame = _resolved(index.frame, state)


def remember_lists(state: Run, stage: Stage) -> None:
    """What a stage has made, of which ranks have agreed, is what later ones take it for."""
    frame = state.frames.get(stage.number)
    if frame is None or not makes_lists(state.program):
        return
    for column in frame.columns.values():
        if isinstance(column.dictionary, Opaque):
            for pending, made in column.dictionary.origins():
                state.lists.setdefault(pending, made)


def forget_lists(state: Run, stage: Stage) -> None:
    """What a stage has made is no more, as it runs again: a round of a recursion has its own."""
    for pending in _makers(state.program).get(stage.number, ()):
        state.lists.pop(pending, None)


def _makers(program: Program) -> dict[int, list[Opaque]]:
    """What each stage makes: the first that has it."""
    known = program.__dict__
    if "_list_makers" not in known:
        found: dict[Opaque, int] = {}
        for stage in program.stages:
            for s in stage_columns(stage.work):
                if isinstance(s.properties.dictionary, Opaque):
                    for pending in s.properties.dictionary.pending:
                        found.setdefault(pending, stage.number)
        makers: dict[int, list[Opaque]] = {}
        for pending, number in found.items():
            makers.setdefault(number, []).append(pending)
        known["_list_makers"] = makers
    made: dict[int, list[Opaque]] = known["_list_makers"]
    return made


def _resolved(frame: Frame, state: Run) -> Frame:
    if not any(_is_pending(c.dictionary) for c in frame.columns.values()):
        return frame
    made = _made(_frames(state)) | state.lists
    columns = {
        i: replace(c, dictionary=c.dictionary.resolved(made))
        if isinstance(c.dictionary, Opaque) and c.dictionary.is_pending
        else c
        for i, c in frame.columns.items()
    }
    return replace(frame, columns=columns)


def makes_lists(program: Program) -> bool:
    """Whether a stage of a program makes lists."""
    known = program.__dict__
    if "_makes_lists" not in known:
        stored = (s for stage in program.stages for s in stage_columns(stage.work))
        known["_makes_lists"] = any(_is_pending(s.properties.dictionary) for s in stored)
    found: bool = known["_makes_lists"]
    return found


def _is_pending(dictionary: object) -> bool:
    return isinstance(dictionary, Opaque) and dictionary.is_pending


def _frames(state: Run) -> Iterable[Frame]:
    yield from state.frames.values()
    yield from (index.frame for index in state.joins.values())
    if state.rank is not None:
        yield from state.rank.wholes.values()
        yield from state.rank.wholes_of_first.values()


def _made(frames: Iterable[Frame]) -> dict[Opaque, Opaque]:
    made: dict[Opaque, Opaque] = {}
    for frame in frames:
        for column in frame.columns.values():
            if isinstance(column.dictionary, Opaque):
                made.update(column.dictionary.origins())
    return made
