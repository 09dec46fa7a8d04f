"""What stages have made, in the account of a limited CPU.

Array functions make arrays of their own: a sort, a gather, the rows of a join table by key. They are counted when their stage has
ended, under its name; columns that would leave too little for what has to lie in memory move into files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from gquery import tuning
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.expr import Column
from gquery.expression.facts import ROW_ID_BYTES
from gquery.operators.base import Frame, JoinIndex
from gquery.planner.physical import (
    ConcatRows,
    DistinctRows,
    HostRows,
    OrderedGroups,
    PipelineBreaker,
    RankDecode,
    RankEncode,
    RecursiveRows,
    RoundRows,
    SliceRows,
    SortRows,
    UnmatchedRows,
    UnnestRows,
    WindowRows,
)


def scratch_of(work: PipelineBreaker, frames: Mapping[int, Frame]) -> int:
    """About how many bytes the array functions of a pipeline breaker take for themselves."""
    match work:
        case RankEncode(stage=stage, pairs=pairs, extremes=True) if all(s.physical_type.is_string for s, _ in pairs):
            return 0 if work.alone else frames[stage].rows * len(pairs)
        case SortRows(stage=stage, columns=columns, limit=None):
            gathered = sum(frames[stage].columns[s.column.id].nbytes for s in columns)
            return frames[stage].rows * tuning.memory.sorted_row + gathered
        case WindowRows(stage=stage, calls=calls):
            return frames[stage].rows * (tuning.memory.sorted_row + tuning.memory.windowed_value * len(calls))
        case OrderedGroups(stage=stage, calls=aggregates):
            texts = [frames[stage].columns[c.args[0].id] for _, c in aggregates if c.joins_texts
                     and isinstance(c.args[0], Column)]  # fmt: skip
            orders = len({(call.order, call.kept) for _, call in aggregates})
            row = tuning.memory.sorted_row + ROW_ID_BYTES * orders + tuning.memory.joined_text * len(texts)
            return frames[stage].rows * row + sum(c.nbytes for c in texts)
        case SortRows(stage=stage) | DistinctRows(stage=stage) | RankEncode(stage=stage):
            return frames[stage].rows * tuning.memory.sorted_row
        case UnnestRows(stage=stage, lists=lists):  # the numbers of the rows that come, and of their elements
            return frames[stage].rows * tuning.memory.sorted_row * len(lists)
        case ConcatRows(stages=stages):
            return sum(c.nbytes for n in stages for c in frames[n].columns.values())
        case SliceRows() | RankDecode() | UnmatchedRows() | HostRows() | RoundRows() | RecursiveRows():
            return 0
        case _:
            assert_never(work)


def count_made(made: Frame | JoinIndex | None, device: Device, label: str) -> None:
    """Count the arrays of a stage's result; OutOfMemoryError where they do not fit."""
    if made is None or not device.keeps_columns:
        return
    if isinstance(made, JoinIndex):
        for buffer in made.arrays.buffers:
            device.count(buffer.on(device), buffer.nbytes, label)
        made = made.frame
    for column in made.columns.values():
        for buffer in column.buffers:
            _count(buffer, device, label)


def _count(buffer: Buffer, device: Device, label: str) -> None:
    array = buffer.on(device)
    moved = device.ordered(array, label)
    if moved is not array:
        buffer.move(device, moved)
