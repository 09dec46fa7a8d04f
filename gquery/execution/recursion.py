"""Recursion: the program of a round is run until it makes no row.

What in it does not depend on the round (tables that are joined, their join tables) is made once. UNION without ALL looks each new
row up in all rows seen, which lie in a few *levels*, the oldest in the last and largest: a round's rows go into the first, and a
level that has grown to a share of the next one becomes part of it. So a round makes join tables of few rows, however many have
been seen; those of levels that did not change stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.device import Device
from gquery.device.recording import CannotRecordError
from gquery.execution.made_lists import forget_lists
from gquery.execution.speculation import Speculation
from gquery.execution.state import Run, StageReport
from gquery.execution.verify_frame import verify_stage
from gquery.operators.base import Frame
from gquery.operators.breakers import concatenate
from gquery.operators.prefix import prefix
from gquery.planner.physical import Program, RecursiveRows, RoundRows, Stage
from gquery.planner.stage_inputs import stage_inputs
from gquery.runtime.interrupt import check
from gquery.runtime.records import replace

RunStage = Callable[[Run, Stage, StageReport], None]
_ROUND, _FIRST_LEVEL = 0, 1  # stages of a round's program that are given


def run_recursion(
    state: Run, stage: Stage, work: RecursiveRows, frames: Mapping[int, Frame], run_stage: RunStage
) -> Frame:
    """All rows of a recursion; ``frames`` has the first ones. ``run_stage`` runs one stage of a run."""
    device = state.context.device
    if device.stays:
        raise CannotRecordError("a recursion ends when its rows say so")
    state.speculation.validate()
    feedback = state.feedback.nested(stage.number)
    inner = replace(state.context, meter=None, ranks=())
    run = Run(work.program, inner, feedback, Speculation(feedback, device, True), is_round=True)
    parts = _Parts(work.program)
    rounds = _Rounds(work, device, parts.read_levels)
    rounds.add(_columns(frames[work.stage], [s.column.id for s in work.inputs]))
    run.frames |= rounds.given()

    def make(s: Stage) -> None:
        for made in (run.frames, run.joins, run.matched):
            made.pop(s.number, None)
        forget_lists(run, s)
        run_stage(run, s, StageReport(s.number, s.label, "", 0, 0.0))
        verify_stage(run, s)

    for s in parts.once + parts.of_levels:
        make(s)
    changed: frozenset[int] = frozenset()
    outputs = [s.column.id for s in work.program.outputs]
    while rounds.last.rows and (work.enough is None or rounds.rows < work.enough):
        check()
        run.frames |= rounds.given()
        for s in parts.of_levels:
            if not changed.isdisjoint(parts.levels[s.number]):
                make(s)
        for s in parts.each:
            make(s)
        changed = rounds.add(_columns(run.frames[parts.each[-1].number], outputs))
    run.forget()
    return rounds.together()


class _Parts:
    """The stages of a round's program: those that depend on no round, those on levels alone, and those on the round before."""

    def __init__(self, program: Program) -> None:
        self.levels: dict[int, frozenset[int]] = {}  # by stage: the given stages that it depends on
        self.once: list[Stage] = []
        self.of_levels: list[Stage] = []
        self.each: list[Stage] = []
        for s in program.stages:
            if isinstance(s.work, RoundRows):
                self.levels[s.number] = frozenset((s.number,))
                continue
            depends = frozenset(n for i in stage_inputs(s.work) for n in self.levels[i])
            self.levels[s.number] = depends
            if _ROUND in depends or s is program.stages[-1]:
                self.each.append(s)
            elif depends:
                self.of_levels.append(s)
            else:
                self.once.append(s)

    @property
    def read_levels(self) -> bool:
        """Whether a stage reads the rows of levels."""
        return any(d - {_ROUND} for n, d in self.levels.items() if n not in d)


class _Rounds:
    """What rounds have made, as frames with the recursion's columns, in levels by the stage that has them. The frames of a level
    are put together where stages read it; where none does, there is one level."""

    def __init__(self, work: RecursiveRows, device: Device, are_read: bool) -> None:
        self._columns, self._device, self._are_read = work.columns, device, are_read
        self._levels: list[list[Frame]] = [[] for _ in range(tuning.recursion.levels if are_read else 1)]
        self._sizes = [0] * len(self._levels)
        self.rows = 0

    def add(self, columns: Sequence[ColumnData]) -> frozenset[int]:
        """Take the rows of one more round. Gives the levels that are others now."""
        ids = [s.column.id for s in self._columns]
        self.last = Frame(dict(zip(ids, columns, strict=True)), columns[0].length)
        if not self.rows:
            self._none = prefix(self.last, 0, self._device)
        if not self.last.rows:
            return frozenset()
        self.rows += self.last.rows
        before = list(self._sizes)
        at, rows = 0, self._sizes[0] + self.last.rows
        while at + 1 < len(self._sizes) and rows * tuning.recursion.ratio > self._sizes[at + 1]:
            at += 1
            rows += self._sizes[at]
        for younger in reversed(range(at)):
            self._levels[at] += self._levels[younger]
            self._levels[younger], self._sizes[younger] = [], 0
        self._levels[at].append(self.last)
        self._sizes[at] = rows
        return frozenset(_FIRST_LEVEL + n for n, size in enumerate(self._sizes) if size != before[n])

    def given(self) -> dict[int, Frame]:
        """The frames that a round is given, by stage."""
        if self._are_read:
            self._levels = [[self._one(frames)] if frames else [] for frames in self._levels]
        levels = {_FIRST_LEVEL + n: frames[0] if frames else self._none for n, frames in enumerate(self._levels)}
        return {_ROUND: self.last, **levels}

    def together(self) -> Frame:
        """The rows of all rounds, in their order."""
        frames = [f for level in reversed(self._levels) for f in level]
        return self._one(frames) if frames else self._none

    def _one(self, frames: Sequence[Frame]) -> Frame:
        if len(frames) == 1:
            return frames[0]
        rows = sum(f.rows for f in frames)
        ids = {s.column.id: s for s in self._columns}
        made = {i: concatenate([f.columns[i] for f in frames], s, rows, self._device) for i, s in ids.items()}
        return Frame(made, rows)


def _columns(frame: Frame, ids: Sequence[int]) -> list[ColumnData]:
    return [frame.columns[i] for i in ids]
