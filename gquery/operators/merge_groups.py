"""Groups of several ranks become one: each rank has the groups of its own rows, and in the end all have the groups of all rows.

What the ranks exchange is the same whatever the layout of a rank's state is: the encoded keys of its groups, and their words.
Arrays that are addressed by the key, and read as they are (sparse groups), are combined slot by slot instead. A text that
depends on the key is an address in a state; of it the characters are exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Protocol, TypeVar

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.buffer import Buffer, device_of
from gquery.device.copies import brought
from gquery.device.device import Device
from gquery.expression.frozen import frozen_single
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin import gathers, grouping, scans
from gquery.kernels.builtin.define import fill, namespace
from gquery.operators.base import make_column
from gquery.operators.cut_keys import CutKeys, GroupParts
from gquery.operators.finalize import finalize_aggregate
from gquery.operators.group_state import GroupState
from gquery.operators.materialize import contiguous
from gquery.planner.aggregates import AggregatePlan
from gquery.planner.physical import Group
from gquery.runtime.records import replace

T = TypeVar("T")


class Exchange(Protocol):
    """Hands values to other ranks. ``parts``: each rank gets a part of the groups; None: every rank gets all."""

    @property
    def parts(self) -> GroupParts | None:
        """See `Exchange`."""

    @property
    def ranges(self) -> CutKeys | None:
        """Which values of the one key of a join table each rank's rows have; None where that is not known."""

    @property
    def rank(self) -> int:
        """The number of this rank."""

    @property
    def ranks(self) -> int:
        """How many there are."""

    def agree(self, vote: bool) -> bool:
        """Whether all ranks say so; all call it."""

    def __call__(self, value: T, /) -> list[T]:
        """What every rank has, in rank order; all ranks call it."""

    def unmoved(self, value: T) -> list[T]:
        """The same, all of it where it lies: for who reads it there."""

    def send(self, values: Sequence[T]) -> list[T]:
        """``values[d]`` goes to rank d; what came here, in rank order. All ranks call it."""

    def send_unmoved(self, values: Sequence[T]) -> list[T]:
        """The same, all of it where it lies."""


@frozen_single
class PartGroups:
    """The groups of one rank, where that has them: ``encoded`` keys (int64, one a group), a word a group for each accumulator
    (int64 or float64), and for each aggregate that is text a column (None for others)."""

    encoded: Array
    words: tuple[Array, ...]
    texts: tuple[ColumnData | None, ...]


def bytes_of(value: object) -> int:
    """The bytes of what a rank hands over: arrays, columns, and what is made of them."""
    match value:
        case np.ndarray():
            return int(value.nbytes)
        case ColumnData():
            return value.nbytes
        case PartGroups():
            return bytes_of(value.encoded) + bytes_of(value.words) + bytes_of(value.texts)
        case list() | tuple():
            return sum(map(bytes_of, value))
        case _:  # an array of a GPU, or nothing of any size
            return int(getattr(value, "nbytes", 0))


def merges_slots(sink: Group) -> bool:
    """Whether ranks combine their states slot by slot: arrays of few words, which take less time than to find out which groups
    there are. Texts in a state are addresses."""
    if sink.layout != "direct-address" or sink.sparse or any(p.is_text for _, p in sink.aggregates):
        return False
    assert sink.key_encoding is not None
    return sink.key_encoding.size * (len(sink.accumulators) + 1) <= tuning.distribution.merged_slot_words


def merge_state(sink: Group, state: GroupState, exchange: Exchange, device: Device) -> GroupState:
    """The state of all ranks, where slots mean the same; its arrays are fresh."""
    from gquery.operators.combined_arrays import Stretch, combined_stretches, word_stretches  # of ranks alone

    words: Array = state.words_i64
    flags = state.touched if state.bits is None else state.bits
    parts = exchange.unmoved((words, *([] if flags is None else [flags])))
    slots = words.size // max(len(sink.accumulators), 1)
    stretches = word_stretches(sink.accumulators, slots)
    if flags is not None:
        stretches.append(Stretch(1, 0, int(flags.size), "max" if state.bits is None else "or", flags.dtype))
    total, *made = combined_stretches(parts, stretches, device)
    columns = [total[n * slots : (n + 1) * slots] for n in range(len(sink.accumulators))]
    typed = [c if a.word == "i64" else c.view(np.float64) for c, a in zip(columns, sink.accumulators, strict=True)]
    return replace(
        state,
        words_i64=total,
        accumulators=tuple(typed),
        touched=made[0] if made and state.bits is None else None,
        bits=None if state.bits is None else made[0],
    )


def merged_sink(sink: Group) -> Group:
    """The sink whose kernel makes the columns of aggregates, texts aside, where the groups of all ranks were merged: they are in
    order, as those of a table of row numbers, unless states are combined slot by slot."""
    if merges_slots(sink):
        return sink
    numbers = tuple([(c, plan) for c, plan in sink.aggregates if not plan.is_text])
    return replace(sink, layout="row-id hash", aggregates=numbers)


def part_groups(sink: Group, encoded: Array, words: Sequence[Array], device: Device) -> PartGroups:
    """What a rank hands over of its groups, whose keys and words lie on ``device``: of texts their characters."""
    xp = namespace(encoded)
    texts = [_text(plan, words, xp, int(encoded.size), device) for _, plan in sink.aggregates]
    return PartGroups(encoded, tuple(words), tuple(texts))


def _text(
    plan: AggregatePlan, words: Sequence[Array], xp: ModuleType, groups: int, device: Device
) -> ColumnData | None:
    if not plan.is_text:
        return None
    views, validity = finalize_aggregate(plan, words, xp)
    return contiguous(make_column(plan.result, PhysicalType.VIEW, views, validity, groups, device), device)


@frozen_single
class MergedGroups:
    """The groups of all ranks, ascending by their encoded keys where every rank has all: keys and words on the device, and the
    columns of texts."""

    encoded: Array
    words: list[Array]
    texts: tuple[ColumnData | None, ...]


def merge_groups(sink: Group, parts: Sequence[PartGroups], device: Device, in_order: bool) -> MergedGroups:
    """The groups of all ranks, on ``device``: ``in_order``, or in any."""
    if has_few(sink, parts, device):
        from gquery.kernels.builtin.combining import merge_few  # of ranks alone

        of_ranks = [[p.words[k] for p in parts] for k in range(len(sink.accumulators))]
        keys, words = merge_few([p.encoded for p in parts], of_ranks, [a.op for a in sink.accumulators], device)
        return MergedGroups(keys, words, (None,) * len(sink.aggregates))
    size = None if sink.key_encoding is None else sink.key_encoding.size
    from gquery.kernels.builtin.group_columns import full_of  # of ranks alone

    encoded, inverse = _distinct(_in_a_row([p.encoded for p in parts], device), size, in_order)
    words = []
    for k, accumulator in enumerate(sink.accumulators):
        values = _in_a_row([p.words[k] for p in parts], device)
        total = full_of(values, int(encoded.size), accumulator.identity, values.dtype)
        grouping.accumulate_at(total, inverse, values, accumulator.op)
        words.append(total)
    texts = tuple(
        [
            None if not plan.is_text else _merged_text(plan, n, parts, inverse, int(encoded.size), device)
            for n, (_, plan) in enumerate(sink.aggregates)
        ]
    )
    return MergedGroups(encoded, words, texts)


def has_few(sink: Group, parts: Sequence[PartGroups], device: Device) -> bool:
    """Whether all ranks together have so few groups, of numbers, that a GPU tells them apart by comparing each with all others:
    three launches in place of fifty, of which most sort."""
    from gquery.operators.combined_arrays import reads_there  # of ranks alone

    count = sum(int(p.encoded.size) for p in parts)
    if not 0 < count <= tuning.accumulators.few_merged or any(plan.is_text for _, plan in sink.aggregates):
        return False
    return all(reads_there(device, device_of(a)) for p in parts for a in (p.encoded, *p.words))


def _in_a_row(parts: Sequence[Array], device: Device) -> Array:
    """The arrays of all ranks, one behind another, on ``device``."""
    return gathers.concatenated([brought(p, device_of(p), device) for p in parts])


def _distinct(keys: Array, size: int | None, in_order: bool = True) -> tuple[Array, Array]:
    """The distinct keys, ascending where they are asked for ``in_order``, and the number of each key among them. Keys are less
    than ``size``, if that is known."""
    limits = tuning.accumulators
    if isinstance(keys, np.ndarray):
        most = limits.numbered_slots_on_host * keys.size
    else:
        most = max(limits.numbered_slots * keys.size, limits.numbered_at_once)
    if size is not None and size <= most:
        if not isinstance(keys, np.ndarray):
            from gquery.kernels.builtin.group_columns import distinct_slots  # of GPUs alone

            return distinct_slots(keys, size)
        flags = np.zeros(size, np.uint8)
        flags[keys] = 1
        distinct, of_slot = scans.flagged(flags), np.empty(size, np.uint32)
        of_slot[distinct] = np.arange(distinct.size, dtype=np.uint32)
        return distinct, of_slot[keys].astype(np.int64)
    if isinstance(keys, np.ndarray):
        distinct, slots = np.unique(keys, return_inverse=True)
        return distinct, slots
    from gquery.kernels.builtin.group_columns import distinct_sorted

    return distinct_sorted(keys) if in_order else grouping.numbered_keys(keys)


def _merged_text(
    plan: AggregatePlan, n: int, parts: Sequence[PartGroups], slots: Array, groups: int, device: Device
) -> ColumnData:
    """A text for each group, which is the same in every part that has one: that of the first."""
    columns = [_text_on(c, device) for p in parts if (c := p.texts[n]) is not None]
    views = gathers.concatenated([gathers.string_views(c, device) for c in columns])
    valid = gathers.concatenated([_flags(c, device) for c in columns])
    if device.is_cpu:
        none, rows = int(valid.size), np.full(groups, valid.size, np.int64)
        grouping.accumulate_at(rows, slots, np.where(valid, np.arange(none), none), "min")
        there = (rows < none).astype(np.uint8)
        pairs: Array = np.zeros((groups, 2), np.int64)
        if none:
            pairs = views.reshape(-1, 2)[np.where(there, rows, 0)] * there[:, None]
        taken = np.ascontiguousarray(pairs).reshape(-1)
    else:
        from gquery.kernels.builtin.group_texts import first_texts  # of GPUs alone

        taken, there = first_texts(views, valid, slots, groups)
    offsets, characters = gathers.gather_strings(taken)
    del columns  # the views were addresses in them
    validity = Buffer(there, device) if plan.result.nullable else None
    data, text = Buffer(offsets, device), Buffer(characters, device)
    return ColumnData(plan.result.dtype, PhysicalType.STRING64, groups, data, validity, text)


def _flags(column: ColumnData, device: Device) -> Array:
    """Which rows are not NULL (uint8)."""
    if column.validity is not None:
        return column.validity.on(device)
    flags: Array = device.empty(column.length, np.uint8)
    fill(flags, 1)
    return flags


def _text_on(column: ColumnData, device: Device) -> ColumnData:
    """A column of another rank in memory of this one."""

    def here(buffer: Buffer) -> Buffer:
        (at,) = buffer.devices
        return Buffer(brought(buffer.on(at), at, device), device)

    validity = None if column.validity is None else here(column.validity)
    assert column.characters is not None
    return replace(column, data=here(column.data), validity=validity, characters=here(column.characters))


def merge_arrays(arrays: Sequence[Array], ops: Sequence[str], exchange: Exchange, device: Device) -> list[Array]:
    """Arrays whose slots mean the same on every rank, combined slot by slot; fresh arrays on ``device``."""
    from gquery.operators.combined_arrays import combined  # of ranks alone

    return combined(exchange.unmoved(list(arrays)), ops, exchange.rank, device)
