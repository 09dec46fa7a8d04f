"""Hash partitioning: the rows of a frame, put in the order of the parts that their keys' hashes belong to.

An exchange sends each part to a rank, a spill writes each to a file; `kernels.builtin.key_hashes` says which part a row belongs
to, the same on every rank. Sizes are known first, then each column is written once (`kernels.builtin.row_partition`). Rows of a
part keep their order, so that a part of rows in order is in order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData, ColumnStatistics
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.errors import InternalError
from gquery.expression.frozen import frozen_single
from gquery.expression.types import Bounds, PhysicalType, physical_type_for
from gquery.kernels.builtin import row_partition, row_scatter
from gquery.kernels.builtin.define import address
from gquery.kernels.builtin.elements import added, converted, row_numbers, store
from gquery.kernels.builtin.gathers import take_strings
from gquery.kernels.builtin.key_hashes import OwnPart, PartRule, label_rows
from gquery.kernels.builtin.scans import check_rows
from gquery.kernels.readback import read_scalar
from gquery.operators.base import Frame, words_a_row
from gquery.runtime.records import replace


@frozen_single
class HashPartitioning:
    """By which columns rows are partitioned, and how: the same record gives equal keys the same part wherever they are.

    ``seed`` tells the levels of a recursion apart: parts of a part are made with another. Rows of ``own`` hashes (see
    `heavy_keys`) go to the part that it names, which may be one more than there are by the hash: number ``parts``.
    """

    keys: tuple[int, ...]
    parts: int
    seed: int = 0
    own: OwnPart | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.parts <= row_partition.MOST_PARTS:
            raise InternalError(f"rows go to 1 to {row_partition.MOST_PARTS} parts at once, not {self.parts}")

    @property
    def all_parts(self) -> int:
        """How many parts there are, with that of heavy keys."""
        return self.parts + (self.own is not None and self.own.part == self.parts)


@frozen_single
class CutPartitioning:
    """Rows by an integer column ``key``: those from ``bounds[p - 1]`` on that are below ``bounds[p]`` go to part p. A NULL goes
    where a 0 goes."""

    key: int
    bounds: tuple[int, ...]

    @property
    def all_parts(self) -> int:
        """How many parts there are."""
        return len(self.bounds) + 1


@frozen_single
class RangePartitioning:
    """Rows by an integer column ``key`` without NULLs, whose values from ``base`` on go to parts of ``width`` values each."""

    key: int
    base: int
    width: int
    parts: int


@frozen_single
class Partitioned:
    """A frame whose rows lie in the order of parts: those of part p from ``starts[p]`` on, up to ``starts[p + 1]``."""

    frame: Frame
    starts: tuple[int, ...]

    @property
    def parts(self) -> int:
        """How many parts there are, with or without rows."""
        return len(self.starts) - 1

    def part(self, number: int) -> Frame:
        """The rows of one part, as views of the same memory."""
        return rows_between(self.frame, self.starts[number], self.starts[number + 1])


def partition_by_range(frame: Frame, by: RangePartitioning, device: Device, workers: int, label: str) -> Partitioned:
    """The same by ranges of a key."""
    if by.parts == 1 or frame.rows == 0:
        return Partitioned(frame, (0,) + (frame.rows,) * by.parts)
    with device.activate():
        data = frame.columns[by.key].data.on(device)
        labels = row_partition.labels_for(frame.rows, by.parts, device, label)
        step = tuning.partitioning.unit_rows if device.is_cpu else frame.rows
        for low in range(0, frame.rows, step):
            part = converted(data[low : low + step], np.int64)
            if device.is_cpu:
                labels[low : low + step] = (part - by.base) // by.width
            else:
                from gquery.kernels.builtin.choosing import label_by_ranges  # of GPUs alone

                label_by_ranges(part, by.base, by.width, labels)
        columns, starts = _move(frame, labels, by.parts, device, workers, label)
    return Partitioned(Frame(columns, frame.rows, frame.rank_values), tuple(starts))


def shifted(frame: Frame, key: int, low: int, width: int, device: Device) -> Frame:
    """The frame with ``low`` less in an integer column, whose values are from there on less than ``width`` more."""
    column, known = frame.columns[key], Bounds(0, width - 1)
    physical_type, data = physical_type_for(known), column.data.on(device)
    made = device.empty_spillable(frame.rows, physical_type.numpy, "groups by range")
    step = tuning.partitioning.unit_rows if device.is_cpu else max(frame.rows, 1)
    for at in range(0, frame.rows, step):
        store(added(converted(data[at : at + step], np.int64), -low), made[at : at + step])
    own = replace(column, physical_type=physical_type, data=Buffer(made, device), statistics=ColumnStatistics(known))
    return Frame({**frame.columns, key: own}, frame.rows)


def partition_rows(
    frame: Frame,
    by: HashPartitioning | CutPartitioning,
    device: Device,
    workers: int,
    label: str,
    kept: Sequence[int] | None = None,
) -> Partitioned:
    """The frame partitioned, or those of its columns that are ``kept``; they are new ones, but where all rows are in the first
    part. ``label`` is for errors of memory. The frame's rows are counted: what waits for a GPU's numbers waits here."""
    if frame.number is not None:
        frame = rows_between(frame, 0, read_scalar(frame.number))
    parts, moved = by.all_parts, frame
    if kept is not None:
        moved = Frame({i: frame.columns[i] for i in kept}, frame.rows, frame.rank_values)
    if parts == 1 or frame.rows == 0:
        return Partitioned(moved, (0,) + (frame.rows,) * parts)
    with device.activate():
        labels = labels_of(frame, by, device, workers, label)
        columns, starts = _move(moved, labels, parts, device, workers, label)
    return Partitioned(Frame(columns, frame.rows, frame.rank_values), tuple(starts))


def labels_of(frame: Frame, by: HashPartitioning | CutPartitioning, device: Device, workers: int, label: str) -> Array:
    """The part that each row belongs to."""
    with device.activate():
        labels = row_partition.labels_for(frame.rows, by.all_parts, device, label)
        if isinstance(by, CutPartitioning):
            bounds = device.from_host(np.array(by.bounds, np.int64))
            values = frame.columns[by.key].data.on(device)
            if device.is_cpu:
                labels[:] = np.searchsorted(bounds, values.astype(np.int64), side="right")
            else:
                from gquery.kernels.builtin.choosing import label_by_bounds  # of GPUs alone

                label_by_bounds(converted(values, np.int64), bounds, labels)
        elif frame.rows:
            keys = [frame.columns[k] for k in by.keys]
            label_rows(keys, labels, PartRule(by.parts, by.seed, by.own), device, workers)
    return labels


def rows_between(frame: Frame, low: int, high: int) -> Frame:
    """Rows ``low`` to ``high`` of a frame, as views of the same memory."""
    columns = {i: c.slice(low, high) for i, c in frame.columns.items()}
    return Frame(columns, high - low, frame.rank_values)


Moved = tuple[dict[int, ColumnData], list[int]]


def _move(frame: Frame, labels: Array, parts: int, device: Device, workers: int, label: str) -> Moved:
    if device.is_cpu:
        return _move_on_cpu(frame, labels, parts, device, workers, label)
    return _move_on_gpu(frame, labels, parts, device, label)


def _move_on_cpu(frame: Frame, labels: Array, parts: int, device: Device, workers: int, label: str) -> Moved:
    units, starts = row_scatter.count_units(labels, parts, workers)
    columns = {}
    for i, column in frame.columns.items():
        validity = None
        if column.validity is not None:
            validity = row_scatter.move_fixed(units, column.validity.on(device), 1, device, label)
        if column.physical_type.is_string:
            columns[i] = _text_column(column, row_scatter.move_text(units, column, device, label), validity, device)
        else:
            words = words_a_row(column.physical_type)
            data = row_scatter.move_fixed(units, column.data.on(device), words, device, label)
            columns[i] = _column(column, data, validity, device)
    return columns, starts


def _move_on_gpu(frame: Frame, labels: Array, parts: int, device: Device, label: str) -> Moved:
    """All columns of numbers go in one launch, and with them the numbers of rows, if texts are to follow them."""
    starts = row_partition.count_on_gpu(labels, parts, device, label)
    moving = _Moving(device, label)
    validities = {i: moving.add(c.validity.on(device)) for i, c in frame.columns.items() if c.validity is not None}
    numbers = {
        i: moving.add(c.data.on(device), words_a_row(c.physical_type))
        for i, c in frame.columns.items()
        if not c.physical_type.is_string
    }
    texts = [i for i in frame.columns if i not in numbers]
    rows = None
    if texts:
        check_rows(frame.rows)
        rows = moving.add(row_numbers(device.xp, frame.rows))
    row_partition.move_on_gpu(labels, starts, parts, moving.moves, device)
    columns = {}
    for i, column in frame.columns.items():
        if rows is not None and i in texts:
            columns[i] = _text_column(column, take_strings(column, rows, device), validities.get(i), device)
        else:
            columns[i] = _column(column, numbers[i], validities.get(i), device)
    return columns, row_partition.starts_of_parts(starts, frame.rows)


class _Moving:
    """Arrays that are moved together; those that they come from stay until they are."""

    def __init__(self, device: Device, label: str) -> None:
        self.moves: list[row_partition.Move] = []
        self._device, self._label = device, label
        self._sources: list[Array] = []

    def add(self, source: Array, words: int = 1) -> Array:
        """Have an array moved; the one that it will be in."""
        made = self._device.empty(source.size, source.dtype, self._label)
        self._sources.append(source)
        self.moves.append((address(source), address(made), source.dtype.itemsize, words))
        return made


def _column(column: ColumnData, data: Array, validity: Array | None, device: Device) -> ColumnData:
    """The column with its values elsewhere, in another order."""
    return replace(
        column,
        data=Buffer(data, device),
        validity=None if validity is None else Buffer(validity, device),
        statistics=replace(column.statistics, is_sorted=False, zones=None, longest_run=None),
    )


def _text_column(
    column: ColumnData, strings: tuple[Array, Array], validity: Array | None, device: Device
) -> ColumnData:
    """A column of texts of its own, with 64-bit offsets, as kernels expect it of a frame."""
    offsets, characters = strings
    whole = replace(column, physical_type=PhysicalType.STRING64, characters=Buffer(characters, device), owners=())
    return _column(whole, offsets, validity, device)
