"""Shortcuts of a Materialize: a frame that need not be made, and a source of which the first rows are enough.

A pipeline under a LIMIT without ORDER BY runs over a prefix of its source, and over a longer one as long as too few rows
came out. A prefix is a view, so a GPU gets no more of a column than is read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery import tuning
from gquery.columns.opaque import Opaque
from gquery.columns.table import ColumnData, Dictionary
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin.elements import store
from gquery.operators.base import Frame, words_a_row
from gquery.operators.materialize import materialize_mode
from gquery.planner.physical import (
    DistinctRows,
    Materialize,
    OrderedGroups,
    Pipeline,
    PipelineBreaker,
    Probe,
    RankDecode,
    RankEncode,
    ReadStage,
    ReadTable,
    SortRows,
)
from gquery.planner.segments import finds_heads
from gquery.runtime.records import replace

Takes = SortRows | DistinctRows | OrderedGroups  # pipeline breakers that take rows out of columns


def rows_wanted(pipeline: Pipeline) -> int | None:
    """How many rows of its result a pipeline is asked for; None for all."""
    sink = pipeline.sink
    if not isinstance(sink, Materialize) or sink.limit is None or finds_heads(pipeline.steps):
        return None
    return None if any(isinstance(s, Probe) and s.records_matches for s in pipeline.steps) else sink.limit


def first_length(pipeline: Pipeline, wanted: int, on_gpu: bool) -> int:
    """Rows of the source to begin with."""
    if materialize_mode(pipeline.steps, on_gpu) == "dense":
        return wanted
    return max(2 * wanted, tuning.prefixes.first_rows_gpu if on_gpu else tuning.prefixes.first_rows)


def next_length(length: int, found: int, wanted: int) -> int:
    """Rows of the source to go on with after a prefix gave too few: what its yield promises and some more.

    >>> next_length(1000, 1, 10), next_length(1000, 5, 10), next_length(1000, 0, 10)
    (12500, 8000, 12500)
    """
    promised = length * min(tuning.prefixes.largest_growth, tuning.prefixes.headroom * wanted / max(found, 1))
    return max(tuning.prefixes.growth * length, int(promised))


def prefix(frame: Frame, rows: int, device: Device) -> Frame:
    """The first rows of a frame, as views of what lies on the device or on the host."""
    if rows >= frame.rows:
        return frame
    return Frame({i: _first(c, rows, device) for i, c in frame.columns.items()}, rows, frame.rank_values)


def _first(column: ColumnData, rows: int, device: Device) -> ColumnData:
    def view(buffer: Buffer, high: int) -> Buffer:
        at = device if buffer.is_on(device) else buffer.devices[0]
        return Buffer(buffer.on(at)[:high], at)

    extra = 1 if column.physical_type in (PhysicalType.STRING32, PhysicalType.STRING64) else 0
    words = words_a_row(column.physical_type)
    part = replace(
        column,
        length=rows,
        data=view(column.data, words * rows + extra),
        validity=None if column.validity is None else view(column.validity, rows),
        statistics=column.statistics.of_some_rows(),
    )
    if column.characters is not None and extra:
        last = int(part.data.on(part.data.devices[0])[rows])
        part = replace(part, characters=view(column.characters, last))
    return part


def zero_copy(
    pipeline: Pipeline,
    frame: Frame,
    device: Device,
    is_result: bool,
    readers: Sequence[Pipeline | PipelineBreaker] = (),
) -> Frame | None:
    """The frame of a pipeline that would only copy its source's columns: those themselves. A result on a GPU can be written
    to, and a column of a table must not change: so there only for ``readers`` that take rows out. Within a program columns
    have to lie as the stages behind expect it; text may lie in any way where no kernel reads it, else its offsets are
    widened."""
    sink, source = pipeline.sink, pipeline.source
    if pipeline.steps or pipeline.host is not None or not isinstance(sink, Materialize):
        return None
    if not device.is_cpu and (is_result or not readers or not all(isinstance(r, Takes) for r in readers)):
        return None
    if not isinstance(source, ReadTable | ReadStage):
        return None
    made: dict[int, ColumnData] = {}
    for stored in sink.columns:
        column = frame.columns.get(stored.column.id)
        if column is None or not is_of(column.dictionary, stored.properties.dictionary):
            return None
        if not is_result:
            if (column.validity is not None) != stored.properties.nullable:
                return None
            if column.physical_type.is_string:
                column = column if _is_taken(stored.column.id, readers) else _widened(column, device)
            elif column.physical_type is not stored.physical_type:
                return None
        if column is None:
            return None
        made[stored.column.id] = column
    return Frame(made, frame.rows, number=frame.number)


def is_of(values: Dictionary | Opaque | None, planned: Dictionary | Opaque | None) -> bool:
    """Whether codes or numbers are of what a plan has for them."""
    return values is planned or (planned is not None and isinstance(values, Opaque) and values.stands_for is planned)


def _is_taken(column: int, readers: Sequence[Pipeline | PipelineBreaker]) -> bool:
    """Whether array functions alone read a column, which ask how it lies."""
    return bool(readers) and not any(_is_in_kernel(column, r) for r in readers)


def _is_in_kernel(column: int, reader: Pipeline | PipelineBreaker) -> bool:
    if isinstance(reader, Pipeline):
        return not isinstance(reader.source, ReadStage) or column in reader.source.origins
    return not isinstance(reader, Takes | RankEncode | RankDecode)


def _widened(column: ColumnData, device: Device) -> ColumnData | None:
    """A text column with 64-bit offsets, as kernels expect it of a frame; None for views."""
    match column.physical_type:
        case PhysicalType.STRING64:
            return column
        case PhysicalType.STRING32:
            offsets = device.empty_spillable(column.length + 1, np.int64, "offsets of text")
            store(column.data.on(device), offsets)
            return replace(column, physical_type=PhysicalType.STRING64, data=Buffer(offsets, device))
        case _:
            return None
