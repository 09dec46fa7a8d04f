"""Pipeline breakers, operations on whole frames: sort, slice, concatenate, rank, and the unmatched rows of a FULL join."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import assert_never

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow import arrow_type
from gquery.columns.opaque import Pending
from gquery.columns.table import ColumnData
from gquery.device.addresses import staying
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device, cpu_device
from gquery.device.recording import CannotRecordError
from gquery.expression.expr import Column
from gquery.expression.types import Bounds, PhysicalType
from gquery.kernels.builtin import counted_order, gathers, order, scans
from gquery.kernels.builtin.define import builtin_kernel, fill, full, launch
from gquery.kernels.builtin.elements import clear_others, converted
from gquery.kernels.builtin.sort_room import room_to_sort
from gquery.kernels.readback import Count, validate
from gquery.kernels.values import ValueProperties
from gquery.operators.base import Frame, JoinIndex, KnownOrder, make_column, narrow, null_column
from gquery.operators.sort_keys import key_parts, sort_keys
from gquery.operators.value_ranks import code_column, rank
from gquery.planner.logical.tree import used_columns
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
    Stored,
    UnmatchedRows,
    UnnestRows,
    WindowRows,
)
from gquery.runtime.records import replace


def run_breaker(
    work: PipelineBreaker,
    frames: Mapping[int, Frame],
    joins: Mapping[int, JoinIndex],
    matched: Mapping[int, Array],
    device: Device,
    workers: int = 1,
) -> Frame:
    """The frame that a pipeline breaker makes, on ``device``, by so many threads where that is a CPU."""
    with staying(device):
        return _made(work, frames, joins, matched, device, workers)


def _made(
    work: PipelineBreaker,
    frames: Mapping[int, Frame],
    joins: Mapping[int, JoinIndex],
    matched: Mapping[int, Array],
    device: Device,
    workers: int,
) -> Frame:
    match work:
        case SortRows():
            return _sort(work, frames[work.stage], device, workers)
        case SliceRows(stage, columns, origins, limit, offset):
            frame = frames[stage]
            found = {s.column.id: frame.columns[o] for s, o in zip(columns, origins, strict=True)}
            part = counted_order.rows_between(Count(frame.rows, frame.number), offset, limit)
            if part.lo > 0 or part.hi < frame.rows:
                found = {i: c.slice(part.lo, part.hi) for i, c in found.items()}
            return Frame(found, part.hi - part.lo, number=part.number)
        case ConcatRows(stages, inputs, columns):
            return _concat([frames[n] for n in stages], inputs, columns, device)
        case RankEncode(stage=stage, keys=keys) if keys:
            from gquery.operators.group_extremes import rank_within_groups

            return rank_within_groups(frames[stage], work, device, workers)
        case RankEncode(stage=stage):
            return _rank_encode(frames[stage], work, device, workers)
        case RankDecode(stage, ranked_frame, pairs, _):
            return _rank_decode(frames[stage], frames[ranked_frame], pairs, device)
        case WindowRows(stage=stage):
            if frames[stage].number is not None:
                raise CannotRecordError("the rows of a window are not known before it runs")
            from gquery.operators.window import run_window  # many modules, which most queries do without

            return run_window(work, frames[stage], device, workers)
        case UnnestRows(stage=stage):
            from gquery.operators.unnest import unnest_rows

            return unnest_rows(work, frames[stage], device)
        case UnmatchedRows(table, _, columns):
            return _unmatched(joins[table.stage].frame, matched[table.stage], columns, device)
        case DistinctRows():
            return _distinct(work, frames[work.stage], device)
        case OrderedGroups():
            return _ordered_groups(work, frames[work.stage], device, workers)
        case HostRows():
            raise AssertionError("see `operators.host_rows`")
        case RoundRows() | RecursiveRows():
            raise AssertionError("see `execution.recursion`")
        case _:
            assert_never(work)


# ---- sort -----------------------------------------------------------------------------------------------------------


def _sort(work: SortRows, frame: Frame, device: Device, workers: int = 1) -> Frame:
    if device.is_cpu and frame.number is None and work.limit is not None:
        from gquery.operators.leading_rows import first_rows

        wanted = min(work.limit + work.offset, frame.rows)
        if (first := first_rows(frame, work.keys[0], wanted, device, workers)) is not None:
            return _sort(work, _few(work, frame, first, device), device)
    keys = sort_keys(work.keys, frame, device, workers)
    if frame.number is not None:
        return _counted_sort(work, keys, frame, frame.number, device)
    wanted = frame.rows if work.limit is None else min(work.limit + work.offset, frame.rows)
    is_small = device.is_cuda and frame.rows <= tuning.sorting.ranked_rows
    rows = counted_order.counted_order(keys, Count(frame.rows)) if is_small else None
    flags = order.are_candidates(keys, wanted) if rows is None and work.limit is not None else None
    if flags is not None and device.is_cuda:
        return _sort_candidates(work, keys, frame, flags, device)
    if rows is None:
        rows = order.sort_order(keys, None if flags is None else scans.compact(flags), workers)
    rows = rows[work.offset : wanted]
    taken = {s.column.id: gathers.take(frame.columns[s.column.id], rows, device) for s in work.columns}
    return Frame(taken, int(rows.size), known_order=KnownOrder(work.keys, None))


def _sort_candidates(
    work: SortRows, keys: Sequence[order.OrderKey], frame: Frame, flags: Array, device: Device
) -> Frame:
    """The same of the rows that have a flag, on a GPU: how many they are varies with the order of a frame's rows, so no run
    counts on it."""
    assert work.limit is not None
    rows, count = scans.counted_compact(flags)
    if device.stays:
        sorted_rows = counted_order.counted_order(keys, count, rows)
        if sorted_rows is None:  # of keys of too many bits: in a recording that counts on the number after all
            sorted_rows = order.sort_order(keys, scans.compact(flags))
        rows = sorted_rows[work.offset : min(work.limit + work.offset, frame.rows)]
        made = {s.column.id: gathers.take(frame.columns[s.column.id], rows, device) for s in work.columns}
        return Frame(made, int(rows.size))
    validate()
    rows = rows if count.number is None else rows[: int(count.number.item())]
    if rows.size <= tuning.materialization.sorted_on_host:
        return _sort(work, _few(work, frame, rows, device), cpu_device())
    rows = order.sort_order(keys, rows)[work.offset : work.limit + work.offset]
    return Frame(
        {s.column.id: gathers.take(frame.columns[s.column.id], rows, device) for s in work.columns}, int(rows.size)
    )


def _counted_sort(work: SortRows, keys: Sequence[order.OrderKey], frame: Frame, number: Array, device: Device) -> Frame:
    """The same of so many rows as ``number`` says on the GPU: nothing is read back."""
    rows, count = None, Count(frame.rows, number)
    if work.limit is not None:
        found = counted_order.counted_candidates(keys, work.limit + work.offset, number)
        rows, count = (rows, count) if found is None else found
    rows = counted_order.counted_order(keys, count, rows)
    if rows is None:
        raise CannotRecordError("the keys of a sort have too many bits for so many rows")
    part = counted_order.rows_between(count, work.offset, work.limit)
    rows = rows[part.lo : part.hi]
    columns = {s.column.id: gathers.take(frame.columns[s.column.id], rows, device, part.number) for s in work.columns}
    return Frame(columns, part.hi - part.lo, number=part.number)


def _few(work: SortRows, frame: Frame, rows: Array, device: Device) -> Frame:
    """Some rows of a frame, to be sorted on the host: it takes less time for that than a GPU for the first of many steps."""
    ids = {s.column.id for s in work.columns} | {i for k in work.keys for i in used_columns(k.expr)}
    few = Frame({i: gathers.take(frame.columns[i], rows, device) for i in ids}, int(rows.size))
    validate()
    return few


def _distinct(work: DistinctRows, frame: Frame, device: Device) -> Frame:
    values, starts = _sorted_starts(frame.columns[work.source.id].data.on(device), device.xp)
    if work.counted:
        count = scans.count_others(starts)
        made = {s.column.id: narrow(count, s.physical_type) for s in work.columns}
        rows = 1
    else:
        found = gathers.gather(values, scans.compact(starts))
        made = {s.column.id: narrow(found, s.physical_type) for s in work.columns}
        rows = int(found.size)
    return Frame(
        {
            s.column.id: make_column(s.properties, s.physical_type, made[s.column.id], None, rows, device)
            for s in work.columns
        },
        rows,
    )


def _ordered_groups(work: OrderedGroups, frame: Frame, device: Device, workers: int) -> Frame:
    if frame.rows:
        from gquery.operators.ordered_groups import ordered_groups

        return ordered_groups(work, frame, device, workers)
    rows = 0 if work.keys else 1
    return Frame({s.column.id: _nothing(s, rows, device) for s in work.columns}, rows)


def _nothing(stored: Stored, rows: int, device: Device) -> ColumnData:
    """NULLs for groups without rows."""
    if isinstance(stored.properties.dictionary, Pending):
        from gquery.operators.made_lists import list_column

        return list_column(stored, [pa.nulls(rows, arrow_type(stored.properties.dtype))], rows, device)
    return null_column(stored, rows, device)


def different(values: Array, xp: ModuleType) -> Array:
    """The different values of an array, ascending."""
    ordered, starts = _sorted_starts(values, xp)
    return gathers.gather(ordered, scans.compact(starts))


def _sorted_starts(values: Array, xp: ModuleType) -> tuple[Array, Array]:
    """Integers ascending, in memory of their own, and flags of those that are not the same as the one before."""
    if xp is not np:
        copy = xp.empty(values.size, values.dtype)
        xp.copyto(copy, values)
        room_to_sort(copy).sort()
        from gquery.kernels.builtin.choosing import changes_of  # of GPUs alone

        return copy, changes_of(copy)
    ordered = np.sort(values)
    starts = np.ones(values.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    return ordered, starts


# ---- concatenation --------------------------------------------------------------------------------------------------


def _concat(
    frames: Sequence[Frame], inputs: Sequence[Sequence[Stored]], columns: Sequence[Stored], device: Device
) -> Frame:
    rows = sum(f.rows for f in frames)
    made = {}
    for n, stored in enumerate(columns):
        parts = [f.columns[i[n].column.id] for f, i in zip(frames, inputs, strict=True)]
        made[stored.column.id] = concatenate(parts, stored, rows, device)
    return Frame(made, rows)


def concatenate(parts: Sequence[ColumnData], stored: Stored, rows: int, device: Device) -> ColumnData:
    """Columns of one type one after another, in the physical type of ``stored``."""
    validity = None
    if stored.properties.nullable:
        flags = [full(device, c.length, 1, "uint8", "", 1) if c.validity is None else c.validity.on(device) for c in parts]
        validity = gathers.concatenated(flags)
    if stored.physical_type.is_string:
        views = gathers.concatenated([gathers.string_views(c, device) for c in parts])
        offsets, characters = gathers.gather_strings(views)
        return ColumnData(
            stored.properties.dtype, PhysicalType.STRING64, rows, Buffer(offsets, device),
            None if validity is None else Buffer(validity, device), Buffer(characters, device),
        )  # fmt: skip
    data = gathers.concatenated([c.data.on(device) for c in parts], stored.physical_type.numpy)
    return make_column(stored.properties, stored.physical_type, data, validity, rows, device)


def _unmatched(frame: Frame, matched: Array, columns: Sequence[Stored], device: Device) -> Frame:
    """The build rows that no probe matched, with NULL for the columns of the probing side."""
    flags = Buffer(matched).on(device)[: frame.rows]
    rows = scans.compact(flags, 1)
    made = {}
    for stored in columns:
        if (own := frame.columns.get(stored.column.id)) is not None:
            made[stored.column.id] = _carried(gathers.take(own, rows, device), stored, device)
        else:
            made[stored.column.id] = null_column(stored, int(rows.size), device)
    return Frame(made, int(rows.size))


def _carried(column: ColumnData, stored: Stored, device: Device) -> ColumnData:
    """The column in the physical type of ``stored``: a table may hold it in a wider one than its bounds ask for."""
    if column.physical_type is stored.physical_type or column.physical_type.is_string:
        return column
    data = narrow(column.data.on(device), stored.physical_type)
    return replace(column, physical_type=stored.physical_type, data=Buffer(data, device))


# ---- ranks ----------------------------------------------------------------------------------------------------------

_END_CODES = builtin_kernel("codes:*u8", "store_u8(codes, i64(i), shl_i64(i64(i), 1))")
_MARK_ENDS = builtin_kernel(  # where the least is the greatest, too, all values are the same
    "rows:*u32 codes:*u8",
    "store_u8(codes, i64(rows[1]), 2)",
    "store_u8(codes, i64(rows[0]), 0)",
)
_CODED_ROWS = builtin_kernel("ends:*u32 rows:*u32", "store_u32(rows, i64(i), i64(ends[row_index(shr_i64(i64(i), 1))]))")


def _rank_encode(frame: Frame, work: RankEncode, device: Device, workers: int) -> Frame:
    """The frame with a column of ranks beside each of some columns; what they stand for is kept for `_decode`."""
    if work.alone:
        return _rank_encode_alone(frame, work, device, workers)
    columns, rank_values = dict(frame.columns), dict(frame.rank_values)
    made = {s.column.id: s for s in work.columns}
    for stored, code in work.pairs:
        column = frame.columns[stored.column.id]
        codes, values = extreme_codes(column, device, workers) if work.extremes else rank(column, device)
        columns[code.id] = code_column(made[code.id], codes, column, device)
        rank_values[code.id] = values
    return Frame(columns, frame.rows, rank_values)


def _rank_encode_alone(frame: Frame, work: RankEncode, device: Device, workers: int) -> Frame:
    """The same of nothing but the rows with extremes: two for each column, which are in the middle of the others."""
    ends = [_extreme_rows(frame.columns[s.column.id], device, workers) for s, _ in work.pairs]
    rows = gathers.concatenated(ends)
    columns = {s.column.id: gathers.take(frame.columns[s.column.id], rows, device) for s, _ in work.pairs}
    made, rank_values, at = {s.column.id: s for s in work.columns}, {}, 0
    for (stored, code), own in zip(work.pairs, ends, strict=True):
        codes = device.xp.empty(rows.size, np.int8)
        fill(codes.view(np.uint8), 1)
        launch(_END_CODES, own.size, codes, codes[at : at + own.size].view(np.uint8))
        at += own.size
        columns[code.id] = code_column(made[code.id], codes, columns[stored.column.id], device)
        rank_values[code.id] = _extreme_values(frame.columns[stored.column.id], own, device)
    return Frame(columns, int(rows.size), rank_values)


def extreme_codes(column: ColumnData, device: Device, workers: int = 1) -> tuple[Array, ColumnData]:
    """For each row a code: 0 for one with the least value, 2 for one with the greatest, 1 for others, and the values of the
    codes. The least code that a row has stands for the least value, the greatest for the greatest."""
    codes = device.xp.empty(column.length, np.int8)
    fill(codes.view(np.uint8), 1)
    rows = _extreme_rows(column, device, workers)
    launch(_MARK_ENDS, int(rows.size > 0), codes, rows, codes.view(np.uint8))
    return codes, _extreme_values(column, rows, device)


def _extreme_values(column: ColumnData, rows: Array, device: Device) -> ColumnData:
    """The values of codes 0 to 2, of the rows with the least and the greatest; nothing where there are none."""
    if rows.size:
        ends, rows = rows, device.xp.empty(rows.size + 1, np.uint32)
        launch(_CODED_ROWS, rows.size, rows, ends, rows)
    return gathers.take(replace(column, validity=None), rows, device)


def _extreme_rows(column: ColumnData, device: Device, workers: int) -> Array:
    """A row with the least and one with the greatest value (uint32); of a column without values any two, or none."""
    xp = device.xp
    if column.length == 0:
        none: Array = xp.empty(0, np.uint32)
        return none
    if device.is_cpu and column.physical_type.is_string:
        from gquery.kernels.builtin.text_extremes import text_extremes

        return np.array(text_extremes(column, workers) or (), np.uint32)
    ends = []
    for descending in (False, True):
        nulls = [] if column.validity is None else [order.Integers(column.validity.on(device), Bounds(0, 1), True)]
        ends.append(order.top_k([*nulls, *key_parts(column, device, descending)], 1)[0])
    return gathers.concatenated([row.reshape(1) for row in ends], "uint32")


def _rank_decode(
    frame: Frame, ranked_frame: Frame, pairs: Sequence[tuple[Column, Column, Column]], device: Device
) -> Frame:
    """The frame with codes turned back into the values that they rank, or that lie in the rows that they number."""
    columns = dict(frame.columns)
    for code, source, new in pairs:
        codes = columns.pop(code.id)
        ranked = ranked_frame.rank_values.get(source.id)
        values = ranked if ranked is not None else ranked_frame.columns[source.id]
        rows = converted(codes.data.on(device), np.int64)
        if codes.validity is not None:
            clear_others(rows, codes.validity.on(device))
        if values.length == 0:  # every value is NULL: there is nothing to take
            stored = Stored(new, _plain(values), values.physical_type)
            columns[new.id] = null_column(stored, frame.rows, device)
            continue
        there = None if codes.validity is None else codes.validity.on(device)
        columns[new.id] = gathers.take(values, rows, device, there=there)
    return Frame(columns, frame.rows, frame.rank_values)


def _plain(column: ColumnData) -> ValueProperties:
    return ValueProperties(column.dtype, column.statistics.bounds, True, column.dictionary)
