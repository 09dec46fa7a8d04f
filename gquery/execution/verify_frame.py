"""What is checked of the columns that stages make and read under test (`kernels.checks`): that their values are what was
promised of them, whatever target made them. Tables are sized and checks left out by these promises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from weakref import WeakSet

import numpy as np

from gquery.columns.opaque import Opaque
from gquery.columns.table import ColumnData, Dictionary
from gquery.device.array import Array
from gquery.execution.state import Run
from gquery.expression.facts import INT64_BITS, UINT64_MAX
from gquery.expression.types import Bounds, PhysicalType
from gquery.kernels import checks
from gquery.kernels.checks import OutOfBoundsError
from gquery.operators.base import Frame, words_a_row
from gquery.planner.physical import Group, Pipeline, Stage, Stored
from gquery.planner.stage_columns import stage_columns

_seen: WeakSet[ColumnData] = WeakSet()  # columns of tables, which many queries read


def verify_stage(state: Run, stage: Stage) -> None:
    """Where checks are on, raises OutOfBoundsError for a column of a stage that does not keep what is known of it; those on a GPU
    alone are left out, and sparse groups, of which those without rows have no value: who reads them drops these first. No kernel
    knows how a result lies."""
    frame = state.frames.get(stage.number)
    if not checks.ENABLED or frame is None or frame.number is not None or state.context.device.stays:
        return
    match stage.work:
        case Pipeline(sink=Group(sparse=sparse)) if sparse:
            return
        case work:
            _verify(stage_columns(work), frame, f"stage {stage.number}", state.makes_result(stage.number))


def _verify(stored: Iterable[Stored], frame: Frame, where: str, lies_anyhow: bool = False) -> None:
    for s in stored:
        column = frame.columns[s.column.id]
        if any(b.cpu is None for b in column.buffers):
            continue
        if not lies_anyhow and not column.physical_type.is_string and column.physical_type is not s.physical_type:
            raise OutOfBoundsError(
                f"{where}: {s.column.name}#{s.column.id} is {column.physical_type.value}, not {s.physical_type.value}"
            )
        for problem in _problems(s, column, frame.rows):
            raise OutOfBoundsError(f"{where}: {s.column.name}#{s.column.id} {s.properties.dtype}: {problem}")


def verify_loaded(stored: Iterable[Stored], frame: Frame, where: str) -> None:
    """The same for columns of a table, once each."""
    new = [s for s in stored if frame.columns[s.column.id] not in _seen]
    _verify(new, frame, where)
    for s in new:
        _seen.add(frame.columns[s.column.id])


def _problems(stored: Stored, column: ColumnData, rows: int) -> Iterator[str]:
    what = stored.properties
    if column.dictionary is not what.dictionary and not is_pending(what.dictionary):
        yield f"has codes of {column.dictionary}, not of {what.dictionary}"
    if column.length != rows:
        yield f"has {column.length} rows of {rows}"
    valid = None if column.validity is None or column.validity.cpu is None else column.validity.cpu[:rows]
    if valid is not None and valid.size != rows:
        yield f"has {valid.size} flags for {rows} rows"
    if valid is not None and rows and valid.max() > 1:
        yield "has a flag that is neither 0 nor 1"
    if valid is not None and not what.nullable and not valid.all():
        yield "has a NULL, and is NOT NULL"
    data = column.data.cpu
    assert data is not None
    if column.physical_type in (PhysicalType.STRING32, PhysicalType.STRING64):
        yield from _text_problems(data, column, rows)
    elif data.size < rows * words_a_row(column.physical_type):
        yield f"has room for {data.size} elements, which are {rows} rows"
    elif what.bounds is not None and not column.physical_type.is_string and rows:
        yield from _value_problems(data, valid, column, what.bounds, rows)
    if valid is not None and rows and valid.size == rows and _lies_under_null(data, valid, column.physical_type):
        yield "has other than 0 under a NULL"


def _lies_under_null(data: Array, valid: Array, physical_type: PhysicalType) -> bool:
    """Whether a NULL has a value under it: sorts would tell it from another, and their peers would be two groups. A text is its
    bytes, wherever it has none."""
    if physical_type in (PhysicalType.STRING32, PhysicalType.STRING64):
        return bool(np.diff(data[: valid.size + 1])[valid == 0].any())
    words = words_a_row(physical_type)
    values = data[: words * valid.size].reshape(valid.size, words)[valid == 0]
    return bool((values[:, 1:] if physical_type is PhysicalType.VIEW else values).any())


def is_pending(dictionary: Dictionary | Opaque | None) -> bool:
    """Whether a plan has something that stands for the values of a run."""
    return isinstance(dictionary, Opaque) and dictionary.is_pending


def values_of(dictionary: Dictionary | Opaque) -> int:
    """What is above all codes or numbers of values."""
    return dictionary.numbers if isinstance(dictionary, Opaque) else len(dictionary)


def _text_problems(offsets: Array, column: ColumnData, rows: int) -> Iterator[str]:
    if offsets.size < rows + 1:
        yield f"has {offsets.size} offsets for {rows} rows"
        return
    offsets = offsets[: rows + 1]
    size = 0 if column.characters is None else column.characters.length
    if offsets[0] < 0 or offsets[-1] > size or (np.diff(offsets) < 0).any():
        yield f"has offsets from {offsets.min()} to {offsets.max()} into {size} characters, or falling ones"


def _value_problems(data: Array, valid: Array | None, column: ColumnData, bounds: Bounds, rows: int) -> Iterator[str]:
    if column.physical_type is PhysicalType.I128:
        words = data[: 2 * rows].tolist()
        values: Array | list[int] = [
            (high << INT64_BITS) | (low & UINT64_MAX) for low, high in zip(words[::2], words[1::2], strict=True)
        ]
        values = values if valid is None else [v for v, ok in zip(values, valid, strict=True) if ok]
    else:
        values = data[:rows] if valid is None else data[:rows][valid != 0]
    if not len(values):
        return
    least, most = (min(values), max(values)) if isinstance(values, list) else (values.min(), values.max())
    low, high = int(least), int(most)
    if not Bounds(low, high).within(bounds):
        yield f"has values from {low} to {high}, and promises {bounds}"
    if column.dictionary is not None and not 0 <= low <= high < values_of(column.dictionary):
        yield f"has codes from {low} to {high} of a dictionary of {len(column.dictionary)}"
