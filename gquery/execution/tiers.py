"""Frames between a device and the tier below it, where what does not fit lies until it is its turn.

The tier of a CPU are its files, of which kernels read and write the pages: frames lie there and are used there. The tier of a
GPU, or of a CPU that stands for one, is the host (`device.host_tier`): frames are moved there and are brought back a slice of
rows, or a part, at a time. Whoever makes something in parts does not ask which of the two it is.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.buffer import Buffer
from gquery.device.copies import copy_all, rooms_for
from gquery.device.device import Device
from gquery.device.spill import OpenFile, place_of
from gquery.distributed.movable import concatenated
from gquery.errors import OutOfMemoryError
from gquery.execution.pipelines import run_pipeline
from gquery.execution.sources import read
from gquery.execution.state import Run, StageReport
from gquery.operators import prefix
from gquery.operators.base import Frame
from gquery.operators.partition_rows import rows_between
from gquery.planner.physical import Materialize, Pipeline, Probe, ReadStage, ReadTable, Stage
from gquery.planner.segments import finds_heads
from gquery.runtime.interrupt import check
from gquery.runtime.records import replace


def has_tier(device: Device) -> bool:
    """Whether a device has a limit, and somewhere to put what does not fit."""
    return device.keeps_columns or device.below is not None


def tier_of(device: Device) -> Device:
    """Where frames of a device lie that do not fit it."""
    return device if device.below is None else device.below


def put_below(frame: Frame, device: Device, label: str) -> Frame:
    """The frame, whose columns lie in the tier from now on. OutOfMemoryError where that has no room."""
    buffers = [b for c in (*frame.columns.values(), *frame.rank_values.values()) for b in c.buffers]
    with device.activate():
        if device.below is not None:
            _put_on_host(buffers, device, device.below, label)
            return frame
        for buffer in buffers:
            array = buffer.on(device)
            moved = device.in_file(array, label)
            if moved is not array:
                buffer.move(device, moved)
    return frame


def _put_on_host(buffers: Sequence[Buffer], device: Device, below: Device, label: str) -> None:
    moved = list({id(b): b for b in buffers if b.cpu is None or not b.is_on(below)}.values())
    rooms = rooms_for([(b.length, b.dtype) for b in moved], below, label)
    copy_all([(to, buffer.on(device)) for buffer, to in zip(moved, rooms, strict=True)], below, device)
    for buffer, to in zip(moved, rooms, strict=True):
        buffer.place(below, to)
    for buffer in buffers:
        buffer.drop(device)


def let_go(frames: list[Frame], device: Device) -> None:
    """Empty a list of frames. Those that lie in files below a device, and that nobody else has, are gone then: several threads
    close the files, and not the one that is the last to have a frame, for which all others wait."""
    files = [] if device.below is None else _files_of(frames, device.below)
    frames.clear()
    if files:
        from gquery.device.file_copies import close_together  # few queries need it

        close_together(files)


def _files_of(frames: Sequence[Frame], below: Device) -> list[OpenFile]:
    found: dict[int, OpenFile] = {}
    for frame in frames:
        for buffer in [b for c in (*frame.columns.values(), *frame.rank_values.values()) for b in c.buffers]:
            if type(buffer) is Buffer and buffer.is_on(below) and (place := place_of(buffer.on(below))) is not None:
                found.update((id(f), f) for f in place.file.files)
    return list(found.values())


def brought(frames: Sequence[Frame], device: Device) -> Frame:
    """The rows of frames of the tier, one behind another, where kernels and array functions read them: on a CPU where they lie,
    if it is one frame."""
    if device.below is None and len(frames) == 1:
        return frames[0]
    with device.activate():
        return concatenated(frames, (), device)


def joined_below(frames: Sequence[Frame], device: Device) -> Frame:
    """The rows of frames of the tier, one behind another, as one frame there."""
    if len(frames) == 1:
        return frames[0]
    with device.into_files():
        return concatenated(frames, (), tier_of(device))


def free_bytes(device: Device) -> int:
    """How many bytes of a limit are free, or can be made so: some of them in any case."""
    assert device.memory_limit is not None
    least = int(device.memory_limit * tuning.spilling.least_free)
    return max(device.memory_limit - device.used_bytes, least)


def slice_rows(frame: Frame, device: Device) -> int:
    """How many rows of a frame are brought to a device at once."""
    row = sum(c.nbytes for c in frame.columns.values()) / max(frame.rows, 1)
    unit = tuning.materialization.unit
    rows = int(free_bytes(device) * tuning.spilling.slice_fraction / max(row, 1.0))
    return max(rows // unit * unit, unit)


def slices(frame: Frame, device: Device) -> Iterator[Frame]:
    """A frame's rows where kernels read them, a slice after another; at least one, if it has no rows. On a CPU all at once."""
    if device.below is None:
        yield frame
        return
    step = slice_rows(frame, device)
    for low in range(0, max(frame.rows, 1), step):
        check()
        yield brought([rows_between(frame, low, min(low + step, frame.rows))], device)


# ---- pipelines that make rows ----------------------------------------------------------------------------------------


def rows_below(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport) -> Frame:
    """The rows that a pipeline makes, in the tier: of a GPU they are made of a slice of its source after another.
    OutOfMemoryError where slices do not help."""
    device = state.context.device
    if device.below is None:
        with device.into_files():
            return _made(state, stage, pipeline, report)
    frame = read(state, pipeline.source)
    lies = prefix.zero_copy(pipeline, frame, device.below, is_result=False)
    if lies is not None:
        report.rows = frame.rows
        return put_below(lies, device, stage.label)
    if not _has_slices(pipeline):
        return put_below(_made(state, stage, pipeline, report), device, stage.label)
    return joined_below(list(_of_slices(state, stage, pipeline, frame, report)), device)


def _of_slices(state: Run, stage: Stage, pipeline: Pipeline, frame: Frame, report: StageReport) -> Iterator[Frame]:
    """What a pipeline makes of each slice of its source's rows, in the tier; slices become smaller where memory runs out."""
    device, wanted = state.context.device, prefix.rows_wanted(pipeline)
    low, step, made = 0, slice_rows(frame, device), 0
    while low < frame.rows or low == 0:
        check()
        high = min(low + step, frame.rows)
        try:
            found = _of_slice(state, stage, pipeline, rows_between(frame, low, high), report)
        except OutOfMemoryError as error:
            if step <= tuning.materialization.unit:
                raise
            traceback.clear_frames(error.__traceback__)
            step = max(step // 2 // tuning.materialization.unit, 1) * tuning.materialization.unit
            continue
        yield found
        made += found.rows
        low = max(high, 1)
        if wanted is not None and made >= wanted:
            break
    report.rows = frame.rows


def _of_slice(state: Run, stage: Stage, pipeline: Pipeline, rows: Frame, report: StageReport) -> Frame:
    device = state.context.device
    return put_below(_made(state, stage, pipeline, report, _with_own_texts(rows, device)), device, stage.label)


def _made(state: Run, stage: Stage, pipeline: Pipeline, report: StageReport, source: Frame | None = None) -> Frame:
    """What a pipeline makes of all rows of its source, or of some."""
    try:
        run_pipeline(state, stage, pipeline, report, source)
        return state.frames.pop(stage.number)
    finally:
        state.frames.pop(stage.number, None)


def _has_slices(pipeline: Pipeline) -> bool:
    """Whether a pipeline may run over some rows of its source at a time: where no step looks at others, or at rows' numbers."""
    source = pipeline.source
    if not isinstance(pipeline.sink, Materialize) or pipeline.host is not None or finds_heads(pipeline.steps):
        return False
    if any(isinstance(s, Probe) and s.records_matches for s in pipeline.steps):
        return False
    return isinstance(source, ReadTable) or (isinstance(source, ReadStage) and source.numbered is None)


def _with_own_texts(frame: Frame, device: Device) -> Frame:
    """A slice of a frame; its texts are on the device with no characters but theirs, as rows that are kept may be views of them.
    Other columns are streamed, or brought when they are asked for."""
    texts = {i: c for i, c in frame.columns.items() if c.physical_type.is_string}
    if not texts:
        return frame
    own = brought([Frame(texts, frame.rows)], device)
    return replace(
        frame, columns={**frame.columns, **{i: _wide(c, frame.columns[i], device) for i, c in own.columns.items()}}
    )


def _wide(column: ColumnData, before: ColumnData, device: Device) -> ColumnData:
    """The column with offsets as wide as they were: kernels of all slices are the same."""
    if column.physical_type is before.physical_type:
        return column
    offsets = column.data.on(device).astype(np.dtype(before.physical_type.numpy))
    return replace(column, physical_type=before.physical_type, data=Buffer(offsets, device))
