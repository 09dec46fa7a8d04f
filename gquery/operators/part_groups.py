"""Groups of several ranks become parts of all groups: each rank merges those that belong to it, and has no others in the end.

Of arrays that are addressed by the key, and read as they are (sparse groups), each rank gets the slots of its own keys.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.types import BIGINT, DOUBLE, PhysicalType
from gquery.operators.base import Frame
from gquery.operators.group_state import GroupState
from gquery.operators.merge_groups import Exchange, PartGroups
from gquery.operators.partition_rows import CutPartitioning, HashPartitioning, partition_rows
from gquery.planner.layouts import KeyEncoding
from gquery.planner.physical import Group
from gquery.runtime.records import replace

Identity = int | float


def send_groups(
    own: PartGroups, keys: Sequence[ColumnData], exchange: Exchange, device: Device, workers: int, label: str
) -> list[PartGroups]:
    """The groups of all ranks that belong to this one; ``keys`` are the columns of the keys of its own groups."""
    parts = exchange.parts
    assert parts is not None
    texts = [n for n, text in enumerate(own.texts) if text is not None]
    state = [_words(a, device) for a in (own.encoded, *own.words)] + [t for t in own.texts if t is not None]
    by = tuple(range(len(state), len(state) + len(keys)))
    frame = Frame(dict(enumerate([*state, *keys])), int(own.encoded.size))
    rule = HashPartitioning(by, exchange.ranks) if parts.cut is None else CutPartitioning(by[parts.position], parts.cut.bounds)
    made = partition_rows(frame, rule, device, workers, label, kept=range(len(state)))  # encoded keys tell what keys are
    return exchange.send(
        [_groups(made.part(n), len(own.words), texts, len(own.texts), device) for n in range(made.parts)]
    )


def _words(array: Array, device: Device) -> ColumnData:
    dtype, physical_type = (DOUBLE, PhysicalType.F64) if array.dtype.kind == "f" else (BIGINT, PhysicalType.I64)
    return ColumnData(dtype, physical_type, int(array.size), Buffer(array, device))


def _groups(frame: Frame, words: int, texts: Sequence[int], aggregates: int, device: Device) -> PartGroups:
    columns = [frame.columns[n] for n in range(1 + words + len(texts))]
    encoded, *state = [c.data.on(device) for c in columns[: 1 + words]]
    of_text: list[ColumnData | None] = [None] * aggregates
    for n, column in zip(texts, columns[1 + words :], strict=True):
        of_text[n] = column
    return PartGroups(encoded, tuple(state), tuple(of_text))


def has_slots(sink: Group) -> bool:
    """Whether the groups of a sink are in arrays over one key, so that ranks can send each other slots: their words are numbers,
    and no key is NULL."""
    if sink.layout != "direct-address" or sink.sparse or sink.partitioned or any(p.is_text for _, p in sink.aggregates):
        return False
    encoding = sink.key_encoding
    return encoding is not None and len(encoding.parts) == 1 and not encoding.parts[0].nullable


def own_slots(
    sink: Group, state: GroupState, exchange: Exchange, device: Device
) -> tuple[Group, GroupState]:
    """The slots of a rank's own keys with the words of all ranks, as parts of the arrays that it has, and the sink whose arrays
    these are. What it hands over are the others' slots, so that it may write its own."""
    from gquery.operators.combined_arrays import add_to  # of ranks alone

    encoding, parts = sink.key_encoding, exchange.parts
    assert encoding is not None and parts is not None and parts.cut is not None
    (key,) = encoding.parts
    arrays = list(state.accumulators) if state.touched is None else [*state.accumulators, state.touched]
    ops = [a.op for a in sink.accumulators] + ["max"] * (state.touched is not None)
    ranges = [parts.cut.slots(rank, key.base, key.width) for rank in range(exchange.ranks)]
    low, high = ranges[exchange.rank]
    sent = [[] if rank == exchange.rank else [a[lo:hi] for a in arrays] for rank, (lo, hi) in enumerate(ranges)]
    own = [_where_memory_begins(a, low, high, device) for a in arrays]
    found = exchange.send_unmoved(sent)
    if low < high:
        add_to(own, [part for rank, part in enumerate(found) if rank != exchange.rank], ops, device)
    if low == high:  # a slot that no row has
        low, high = min(low, key.width - 1), min(low, key.width - 1) + 1
        own = [device.zeros(1, a.dtype) for a in arrays]
    made = replace(sink, key_encoding=KeyEncoding((replace(key, base=key.base + low, width=high - low, is_own=True),)))
    words, touched = own[: len(sink.accumulators)], own[-1] if state.touched is not None else None
    return made, replace(state, mask=high - low - 1, accumulators=tuple(words), touched=touched)


def _where_memory_begins(array: Array, low: int, high: int, device: Device) -> Array:
    """A part of an array that begins where memory could, as kernels read several elements at once: itself, or a copy."""
    part = array[low:high]
    if low * array.itemsize % tuning.transfers.together_alignment == 0:
        return part
    with device.activate():
        made = device.empty(high - low, array.dtype)
        device.xp.copyto(made, part)
    return made


def send_slots(
    arrays: Sequence[Array],
    ops: Sequence[str],
    empty: Sequence[Identity],
    exchange: Exchange,
    base: int,
    device: Device,
) -> list[Array]:
    """Arrays of one slot a value of a key from ``base`` on, of which each rank gets its own range (`CutKeys.own`): a slot that is
    ``empty`` where it has none. Fresh arrays on ``device``."""
    from gquery.operators.combined_arrays import combined  # of ranks alone

    parts = exchange.parts
    assert parts is not None and parts.cut is not None
    size = int(arrays[0].size)
    ranges = [parts.cut.slots(rank, base, size) for rank in range(exchange.ranks)]
    found = combined(exchange.send_unmoved([[a[low:high] for a in arrays] for low, high in ranges]), ops, exchange.rank, device)
    low, high = ranges[exchange.rank]
    if low < high:
        return found
    return [device.full(1, nothing, own.dtype) for own, nothing in zip(found, empty, strict=True)]
