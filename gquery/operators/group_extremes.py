"""Least and greatest texts (or 128-bit integers) of groups, as codes that compare as the values do.

On a CPU the best row of each group so far is kept for texts (`kernels.builtin.best_rows`), and the code of all rows of a group
is the group's number, which stands for the text of its best row. Elsewhere no more than a few rows of each group are told apart.
Of each group the rows are found whose first eight bytes are the least, of those the ones whose next eight bytes are, and so on
(`operators.leading_rows`). The few that are left are sorted, which ranks them. Where nothing else is aggregated, they are the
frame; else every other row has a code that stands in no other's way: the greatest where the least is asked for, and vice versa.
"""

from __future__ import annotations

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.kernels.builtin import gathers, scans
from gquery.kernels.builtin.best_rows import best_rows
from gquery.kernels.builtin.choosing import both_set
from gquery.kernels.builtin.define import fill
from gquery.kernels.builtin.elements import put
from gquery.kernels.builtin.group_columns import mark
from gquery.kernels.builtin.key_groups import firsts_of, group_rows, tells_apart
from gquery.kernels.builtin.leading import Slots, Values
from gquery.operators.base import Frame
from gquery.operators.leading_rows import least_texts, numbered, slots_of
from gquery.operators.value_ranks import code_column, rank
from gquery.planner.physical import RankEncode, RankOf
from gquery.runtime.records import replace


def rank_within_groups(frame: Frame, work: RankEncode, device: Device, workers: int) -> Frame:
    """The frame with a column of codes for each of the extremes that are asked for; its values are kept for `RankDecode`."""
    if tells_apart(device, frame.rows, tuning.sorting.leading_least) and _are_texts(frame, work):
        return _by_best_rows(frame, work, device, workers)
    slots = _slots(frame, work, device)
    found: list[Array | None] = [None] * len(work.pairs)
    if slots is not None:
        found = [
            _candidates(frame, stored.column.id, how, slots, device, workers)
            for (stored, _), how in zip(work.pairs, work.within, strict=True)
        ]
        if work.alone:
            rows = _union(found, frame.rows, device)
            frame = Frame(
                {i: gathers.take(c, rows, device) for i, c in frame.columns.items()}, int(rows.size), frame.rank_values
            )
            found = [None] * len(work.pairs)
    columns, rank_values = dict(frame.columns), dict(frame.rank_values)
    made = {s.column.id: s for s in work.columns}
    for (stored, code), how, few in zip(work.pairs, work.within, found, strict=True):
        column, ranks = frame.columns[stored.column.id], made[code.id]
        codes, rank_values[code.id] = rank(column, device) if few is None else _codes(column, few, how, device)
        columns[code.id] = code_column(ranks, codes, column, device)
    return Frame(columns, frame.rows, rank_values)


def _are_texts(frame: Frame, work: RankEncode) -> bool:
    columns = [frame.columns[stored.column.id] for stored, _ in work.pairs]
    return all(c.physical_type.is_string and c.dictionary is None for c in columns)


def _by_best_rows(frame: Frame, work: RankEncode, device: Device, workers: int) -> Frame:
    """The frame with the number of a row's group as the code of each extreme. Where nothing else is aggregated it is that of the
    best rows alone, and of one row of each group that has none."""
    groups, some = group_rows([frame.columns[c.id] for c in work.keys], frame.rows, device, workers, device.task)
    best = [
        best_rows(_values(frame, stored.column.id, how, device), groups, int(some.size), workers)
        for (stored, _), how in zip(work.pairs, work.within, strict=True)
    ]
    made, rank_values, codes = {s.column.id: s for s in work.columns}, dict(frame.rank_values), groups
    for (stored, code), found in zip(work.pairs, best, strict=True):
        values = replace(frame.columns[stored.column.id], validity=None)
        rank_values[code.id] = gathers.take(values, np.maximum(found, 0).astype(np.uint32), device)
    columns, rows = dict(frame.columns), frame.rows
    if work.alone:
        if any(bool((found < 0).any()) for found in best):
            some = firsts_of(groups, int(some.size))  # always the same
        kept = _union([np.where(found < 0, some, found) for found in best], frame.rows, device)
        columns, rows = {i: gathers.take(c, kept, device) for i, c in columns.items()}, int(kept.size)
        codes = gathers.gather(groups, kept)
    for stored, code in work.pairs:
        columns[code.id] = code_column(made[code.id], codes, columns[stored.column.id], device)
    return Frame(columns, rows, rank_values)


def _slots(frame: Frame, work: RankEncode, device: Device) -> Slots | None:
    """The group of each row; None where there are few rows, or few to a group."""
    if frame.rows < tuning.sorting.leading_least:
        return None
    slots = slots_of([frame.columns[c.id] for c in work.keys], frame.rows, 1, device) or numbered(
        frame, work.keys, device
    )
    return slots if slots.count * tuning.sorting.leading_rows <= frame.rows else None


def _candidates(frame: Frame, column: int, how: RankOf, slots: Slots, device: Device, workers: int) -> Array:
    """Rows (uint32, ascending) among which those with the extreme of each group are; all rows of groups without a value."""
    return least_texts(_values(frame, column, how, device), slots, workers)


def _values(frame: Frame, column: int, how: RankOf, device: Device) -> Values:
    """The values of a column that count."""
    there = None
    if how.only is not None:
        only = frame.columns[how.only.id]
        there = only.data.on(device)
        if only.validity is not None:
            there = both_set(there, only.validity.on(device))
    values = frame.columns[column]
    if there is not None and values.validity is not None:
        there, values = both_set(there, values.validity.on(device)), replace(values, validity=None)
    return Values(values, device, how.greatest, there=there)


def _union(found: list[Array | None], rows: int, device: Device) -> Array:
    """The rows that are in any of these arrays."""
    if len(found) == 1 and found[0] is not None:
        return found[0]
    flags = device.zeros(rows, np.uint8)
    for some in found:
        if device.is_cpu:
            flags[some] = 1
        elif some is not None:
            mark(flags, some)
    return scans.compact(flags)


def _codes(column: ColumnData, few: Array, how: RankOf, device: Device) -> tuple[Array, ColumnData]:
    """A code for each row, and the values of the codes: some rows are ranked, others come behind all of them."""
    if column.validity is not None:
        few = gathers.gather(few, scans.compact(gathers.gather(column.validity.on(device), few)))
    ranks, values = rank(gathers.take(column, few, device), device)
    behind = 0 if how.greatest else max(values.length - 1, 0)
    codes = device.empty(column.length, np.int64)
    fill(codes, behind)
    put(codes, few, ranks)
    return codes, values
