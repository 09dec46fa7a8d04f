"""A group-by whose state does not fit memory: the rows go to the tier below in parts by their keys (`execution.tiers`), and the
groups of one part are made after another. Parts that are still too large are partitioned again, by another mix of the same
hashes.

Groups that lie in arrays over a range of keys become hash tables, as the keys of a part are spread over the range; those whose
arrays are read as they lie are made range by range instead.
"""

from __future__ import annotations

import traceback
from functools import partial

from gquery import tuning
from gquery.errors import OutOfMemoryError
from gquery.execution.behind import Behind, give_way, relieved
from gquery.execution.collected import Collected
from gquery.execution.part_runs import in_parts, part_run, parts_for, run_below, run_extra, with_keys
from gquery.execution.parts import Parts
from gquery.execution.state import Run, StageReport
from gquery.execution.tiers import joined_below, put_below
from gquery.expression.expr import Column, new_column
from gquery.expression.facts import INT64_BYTES
from gquery.expression.types import Bounds, PhysicalType
from gquery.kernels.values import value_properties
from gquery.operators.base import Frame
from gquery.operators.partition_rows import HashPartitioning, RangePartitioning, shifted
from gquery.planner.cut_pipeline import cut, sink_reads
from gquery.planner.layouts import KeyEncoding, KeyPart
from gquery.planner.physical import Compute, Group, GroupLayout, Pipeline, ReadStage, Stage, Stored
from gquery.runtime.interrupt import check
from gquery.runtime.records import replace


def groups_by_parts(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> Frame | None:
    """The groups of a pipeline that ends in such; None where they cannot be made in parts."""
    sink = pipeline.sink
    if not isinstance(sink, Group):
        return None
    if sink.sparse:
        return groups_by_ranges(state, stage, pipeline, report)
    number = len(state.program.stages)
    run = part_run(state, stage.number, lambda: _cut(pipeline, sink, number))
    rest = run.program.stages[number + 1].work
    assert isinstance(rest, Pipeline) and isinstance(rest.sink, Group)
    keys = tuple([e.id for _, e, _ in rest.sink.keys if isinstance(e, Column) and not e.dtype.is_opaque])
    if not keys:
        return None
    device = state.context.device
    rows = run_below(run, number, report)
    if not rows.rows:
        run.frames[number] = rows
        run_extra(run, number + 1)
        return run.frames[number + 1]
    by = HashPartitioning(keys, parts_for(rows.rows * _group_bytes(sink), device))
    parts = in_parts([rows], by, run, report, stage.label)
    del rows
    with Behind(device, stage.label) as behind:
        found = _Groups(run, stage, report, behind)
        found.add(parts, by)
        return found.all()


def _cut(pipeline: Pipeline, sink: Group, stage: int) -> tuple[Pipeline, Pipeline]:
    """The rows that groups are made of, with their keys as columns, and the groups. Keys that are gathered from the source frame
    stay in its physical types, which later stages read."""
    behind, columns = with_keys(pipeline, [e for _, e, _ in sink.keys])
    keys = tuple([(name, c, what) for (name, _, what), c in zip(sink.keys, columns, strict=True)])
    layout: GroupLayout = "hash" if sink.layout == "direct-address" else sink.layout
    some = max(1, sink.groups // tuning.spilling.least_parts)
    groups = replace(sink, keys=keys, layout=layout, clustered_key=None, groups=some)
    types: dict[int, PhysicalType] = {}
    if layout == "row-id hash" and isinstance(pipeline.source, ReadStage):
        types = {s.column.id: s.physical_type for s in pipeline.source.columns if not s.physical_type.is_string}
    return cut(replace(behind, sink=groups), len(behind.steps), stage, types)


def groups_by_ranges(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> Frame:
    """The arrays of sparse groups, a range of slots after another: the rows go to files by ranges of the key."""
    sink, device = pipeline.sink, state.context.device
    assert isinstance(sink, Group) and sink.key_encoding is not None
    (slots,) = sink.key_encoding.parts
    workers, number = state.context.settings.worker_count, len(state.program.stages)
    parts = parts_for(slots.width * _slot_bytes(sink) * workers, device)
    width = 1 << max(0, (-(-slots.width // parts) - 1).bit_length())
    run = part_run(state, stage.number, lambda: _ranged(pipeline, sink, width, number), width)
    rest = run.program.stages[number + 1].work
    assert isinstance(rest, Pipeline) and isinstance(rest.sink, Group)
    ((_, key, _),) = rest.sink.keys
    assert isinstance(key, Column)
    by = RangePartitioning(key.id, slots.base, width, -(-slots.width // width))
    partitioned = in_parts([run_below(run, number, report)], by, run, report, stage.label)
    made: list[Frame] = []

    def of_range(n: int) -> Frame:
        with device.into_files():
            run.frames[number] = shifted(partitioned.part(n), key.id, slots.base + n * width, width, device)
        run_extra(run, number + 1)
        return run.frames.pop(number + 1)

    with partitioned:
        for n in range(by.parts):
            check()
            partitioned.begin(n + 1)
            frame, left = relieved(partial(of_range, n), partitioned), min(width, slots.width - n * width)
            of_part = {i: c.slice(0, left) for i, c in put_below(frame, device, stage.label).columns.items()}
            made.append(Frame(of_part, left))
    return joined_below(made, device)


def _ranged(pipeline: Pipeline, sink: Group, width: int, stage: int) -> tuple[Pipeline, Pipeline]:
    """The rows that groups are made of, with their key as a column, and the groups of a range of so many slots."""
    behind, (key,) = with_keys(pipeline, [e for _, e, _ in sink.keys])
    if key.id in sink_reads(replace(sink, keys=())):  # is summed, too: of a range it is another number
        made = new_column("key", key.dtype)
        behind, key = replace(behind, steps=(*behind.steps, Compute(((made, key),)))), made
    ((name, _, _),) = sink.keys
    known = value_properties(key.dtype, Bounds(0, width - 1), nullable=False)
    groups = replace(
        sink,
        keys=((name, key, known),),
        key_encoding=KeyEncoding((KeyPart(0, width, False),)),
        clustered_key=None,
    )
    first, rest = cut(replace(behind, sink=groups), len(behind.steps), stage)
    source = rest.source
    assert isinstance(source, ReadStage)
    stored = [Stored(key, known, known.physical_type) if s.column.id == key.id else s for s in source.columns]
    return first, replace(rest, source=replace(source, columns=tuple(stored)))


def _slot_bytes(sink: Group) -> int:
    """Bytes of a slot of an array."""
    return (1 + len(sink.accumulators)) * INT64_BYTES


def _group_bytes(sink: Group) -> int:
    """Bytes that a group takes in a table, about, if each row is one."""
    return tuning.spilling.slots_a_group * _slot_bytes(sink)


class _Groups:
    """The groups of parts, under way: the last two stages of the run make rows, and groups of them."""

    def __init__(self, run: Run, stage: Stage, report: StageReport, behind: Behind) -> None:
        self._run, self._stage, self._report, self._behind = run, stage, report, behind
        self._rows, self._groups = len(run.program.stages) - 2, len(run.program.stages) - 1
        expected = run.feedback.rows_in_parts.get(self._groups, 0)
        self._made = Collected(run.context.device, stage.label, behind, expected)

    def add(self, parts: Parts, by: HashPartitioning) -> None:
        """Make the groups of rows, part by part."""
        with parts:
            for number in range(parts.parts):
                check()
                parts.begin(number + 1)
                if parts.rows(number) and not self._add(parts, number, by.seed):
                    more = replace(by, seed=by.seed + 1, parts=tuning.spilling.least_parts)
                    self.add(in_parts(parts.pieces(number), more, self._run, self._report, self._stage.label), more)

    def _add(self, parts: Parts, number: int, seed: int) -> bool:
        """Make the groups of one part; whether they found room. OutOfMemoryError where more parts cannot help."""
        while True:
            try:
                self._run.frames[self._rows] = parts.part(number)
                run_extra(self._run, self._groups)
                made = self._run.frames.pop(self._groups)
                break
            except OutOfMemoryError as error:
                traceback.clear_frames(error.__traceback__)
                refused = error.with_traceback(None)
            finally:
                self._run.frames.pop(self._rows, None)
            if give_way(self._behind, parts):
                continue
            if seed >= tuning.spilling.levels or parts.rows(number) < tuning.spilling.least_rows:
                raise refused
            self._run.feedback.begins_small(self._groups)
            return False
        self._made.add(made)
        return True

    def all(self) -> Frame:
        """The groups of all parts, one behind another."""
        self._run.feedback.rows_in_parts[self._groups] = self._made.rows
        return self._made.all()
