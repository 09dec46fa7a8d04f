"""Runs of a stage over parts of its rows, one after another, which lie in the tier below the device until it is their turn.

A stage is cut in two (`planner.cut_pipeline`): the rows that its state is made of become a frame, those of equal keys lie
together in a part, and the rest of the pipeline runs over one part after another. The parts of a run have feedback of their own,
so that what is found out of them says nothing of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property, partial

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.copies import queue_all, room_for
from gquery.device.device import Device
from gquery.distributed.column_pieces import statistics_together
from gquery.errors import OutOfMemoryError
from gquery.execution.collected import is_alike
from gquery.execution.feedback import PartsFeedback, RunFeedback
from gquery.execution.held import count_made
from gquery.execution.pipelines import run_pipeline
from gquery.execution.speculation import Speculation
from gquery.execution.state import Run, StageReport
from gquery.execution.tiers import brought, free_bytes, has_tier, put_below, rows_below, slices, tier_of
from gquery.expression.expr import Column, Expr, new_column
from gquery.operators.base import Frame, make_column, words_a_row
from gquery.operators.partition_rows import (
    HashPartitioning,
    Partitioned,
    RangePartitioning,
    partition_by_range,
    partition_rows,
    rows_between,
)
from gquery.planner.physical import Compute, Pipeline, Program, Stage, Stored
from gquery.runtime.records import replace
from gquery.runtime.tuples import NamedTuple


def can_have_parts(state: Run) -> bool:
    """Whether stages of a run may be made in parts: under a limit, by one rank."""
    return has_tier(state.context.device) and state.rank is None and state.bound is None


def part_run(
    state: Run,
    number: int,
    make: Callable[[], Sequence[Pipeline]],
    form: Hashable = None,
    instead: Callable[[], Mapping[int, Pipeline]] = dict,
) -> Run:
    """A run of the program with further stages behind its own, and others ``instead`` of some, over the same frames and join
    tables, for stage ``number``. They are made once for each ``form`` of parts, and keep their kernels for later runs."""
    known = state.feedback.parts.get((number, form))
    if known is None:
        other = instead()
        stages = tuple([replace(s, work=other.get(s.number, s.work)) for s in state.program.stages])
        more = [Stage(len(stages) + n, work, stages[number].label) for n, work in enumerate(make())]
        program = Program((*stages, *more), state.program.outputs, state.program.names)
        known = state.feedback.parts.setdefault((number, form), PartsFeedback(program, RunFeedback()))
    context = replace(state.context, meter=None)
    made = Run(known.program, context, known.feedback, Speculation(known.feedback, context.device, True))
    made.frames, made.joins = dict(state.frames), dict(state.joins)
    made.tables, made.matched, made.unbuilt = state.tables, dict(state.matched), dict(state.unbuilt)
    return made


def run_counted(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> None:
    """Run a pipeline, and count what array functions made of its result. OutOfMemoryError leaves nothing of it."""
    device = state.context.device
    try:
        run_pipeline(state, stage, pipeline, report)
        if device.keeps_columns:
            count_made(state.joins.get(stage.number) or state.frames.get(stage.number), device, stage.label)
    except OutOfMemoryError:
        state.joins.pop(stage.number, None)
        state.frames.pop(stage.number, None)
        raise


def run_extra(run: Run, number: int) -> StageReport:
    """Run one of the stages that a run has behind those of its program."""
    stage = run.program.stages[number]
    assert isinstance(stage.work, Pipeline)
    report = StageReport(number, stage.label, "", 0, 0.0)
    run_counted(run, stage, stage.work, report)
    return report


def with_keys(pipeline: Pipeline, keys: Sequence[Expr]) -> tuple[Pipeline, tuple[Column, ...]]:
    """The pipeline with expressions as columns behind its steps, and those."""
    columns = tuple([e if isinstance(e, Column) else new_column("key", e.dtype) for e in keys])
    made = tuple([(c, e) for c, e in zip(columns, keys, strict=True) if c is not e])
    steps = (*pipeline.steps, Compute(made)) if made else pipeline.steps
    return replace(pipeline, steps=steps), columns


def parts_for(wanted: int, device: Device) -> int:
    """In how many parts something is made that would take about so many bytes as a whole."""
    limits = tuning.spilling
    return int(min(max(wanted / (free_bytes(device) * limits.part_fraction), limits.least_parts), limits.most_parts))


_PART = "a part of its rows"


class Parts:
    """Rows in parts, in the tier: ``cuts`` are frames of which each has some rows of every part."""

    def __init__(self, cuts: Sequence[Partitioned], device: Device) -> None:
        self._cuts, self._device = cuts, device

    @property
    def parts(self) -> int:
        """How many parts there are, with or without rows."""
        return self._cuts[0].parts

    def rows(self, number: int) -> int:
        """How many rows a part has."""
        return sum(c.starts[number + 1] - c.starts[number] for c in self._cuts)

    def pieces(self, number: int) -> list[Frame]:
        """The rows of a part where they lie, in one piece or several."""
        made = [c.part(number) for c in self._cuts if c.starts[number] < c.starts[number + 1]]
        return made or [self.nothing()]

    def part(self, number: int) -> Frame:
        """The rows of a part where kernels read them."""
        if self._device.below is None or not self._is_plain:
            return brought(self.pieces(number), self._device)
        rows, columns, moves = self.rows(number), {}, list[tuple[Array, list[Array]]]()
        with self._device.activate():
            for i, column in self._cuts[0].frame.columns.items():
                own = [(c.frame.columns[i], c.starts[number], c.starts[number + 1]) for c in self._cuts]
                words, dtype = words_a_row(column.physical_type), np.dtype(column.physical_type.numpy)
                data = room_for(words * rows, dtype, self._device, _PART)
                moves.append(self._moved(data, [(c.data, words * low, words * high) for c, low, high in own]))
                flags = None
                if column.validity is not None:
                    flags = room_for(rows, np.dtype(np.uint8), self._device, _PART)
                    moves.append(
                        self._moved(flags, [(c.validity, low, high) for c, low, high in own if c.validity is not None])
                    )
                columns[i] = replace(
                    column,
                    length=rows,
                    data=Buffer(data, self._device),
                    validity=None if flags is None else Buffer(flags, self._device),
                    statistics=statistics_together([c for c, _, _ in own], None),
                )
            queue_all(moves, self._device)
            self._device.synchronize()
        return Frame(columns, rows)

    def _moved(self, to: Array, pieces: Sequence[tuple[Buffer, int, int]]) -> tuple[Array, list[Array]]:
        below = self._device.below
        assert below is not None
        return to, [b.on(below)[low:high] for b, low, high in pieces if low < high]

    @cached_property
    def _is_plain(self) -> bool:
        """Whether the columns of all cuts lie alike, and have no texts: then they are copied as they are."""
        first = self._cuts[0].frame
        return not first.rank_values and all(
            not c.physical_type.is_string and all(is_alike(c, cut.frame.columns[i]) for cut in self._cuts)
            for i, c in first.columns.items()
        )

    def each(self) -> list[Part]:
        """The parts."""
        return [Part(self, n) for n in range(self.parts)]

    def nothing(self) -> Frame:
        """No rows."""
        return rows_between(self._cuts[0].frame, 0, 0)


class Part(NamedTuple):
    """One of them."""

    of: Parts
    number: int

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.of.rows(self.number)

    def pieces(self) -> list[Frame]:
        """See `Parts.pieces`."""
        return self.of.pieces(self.number)

    def whole(self) -> Frame:
        """See `Parts.part`."""
        return self.of.part(self.number)


def in_parts(
    frames: Sequence[Frame], by: HashPartitioning | RangePartitioning, state: Run, report: StageReport, label: str
) -> Parts:
    """The rows of frames of the tier in parts there."""
    from gquery.execution.behind import Behind  # a query that has room does without

    device, workers = state.context.device, state.context.settings.worker_count
    cuts: list[Partitioned] = []
    with device.into_files(), Behind(device, label) as behind:
        for frame in frames:
            for rows in slices(frame, device):
                made = behind.made(partial(_partitioned, rows, by, device, workers, label))
                del rows
                report.spilled_bytes += sum(c.nbytes for c in made.frame.columns.values())
                cuts.append(Partitioned(behind.move(made.frame), made.starts))
    parts = Parts(cuts, device)
    report.parts += sum(parts.rows(p) > 0 for p in range(parts.parts))
    return parts


def _partitioned(
    rows: Frame, by: HashPartitioning | RangePartitioning, device: Device, workers: int, label: str
) -> Partitioned:
    if isinstance(by, RangePartitioning):
        return partition_by_range(rows, by, device, workers, label)
    return partition_rows(rows, by, device, workers, label)


def run_below(run: Run, number: int, report: StageReport) -> Frame:
    """The rows that one of the stages behind those of a run's program makes, in the tier."""
    stage = run.program.stages[number]
    assert isinstance(stage.work, Pipeline)
    made = rows_below(run, stage, stage.work, report)
    count_made(made, run.context.device, stage.label)
    return made


def numbered(frame: Frame, number: Stored, device: Device) -> Frame:
    """The frame with the numbers of its rows."""
    with device.into_files():
        made = tier_of(device).empty_spillable(frame.rows, np.int64, "numbers of rows")
    step = tuning.partitioning.unit_rows
    for low in range(0, frame.rows, step):
        made[low : low + step] = np.arange(low, min(low + step, frame.rows))
    column = make_column(number.properties, number.physical_type, made, None, frame.rows, tier_of(device))
    return Frame({**frame.columns, number.column.id: column}, frame.rows)


def spill_idle(state: Run, label: str) -> bool:
    """Move what earlier stages have made, and no kernel reads now, into the tier; whether memory became free."""
    device = state.context.device
    before = device.used_bytes
    for frame in state.frames.values():
        put_below(frame, device, label)
    return device.used_bytes < before
