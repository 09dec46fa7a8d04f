"""Groups of several ranks become parts of all groups: each rank merges those that belong to it, and has no others in the end.

Of arrays that are addressed by the key, and read as they are (sparse groups), each rank gets the slots of its own keys.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.types import BIGINT, DOUBLE, PhysicalType
from gquery.operators.base import Frame
from gquery.operators.merge_groups import Exchange, PartGroups, combined
from gquery.operators.partition_rows import CutPartitioning, HashPartitioning, partition_rows

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
    parts = exchange.parts
    assert parts is not None and parts.cut is not None
    size = int(arrays[0].size)
    ranges = [parts.cut.slots(rank, base, size) for rank in range(exchange.ranks)]
    found = combined(exchange.send([[a[low:high] for a in arrays] for low, high in ranges]), ops, exchange.rank, device)
    low, high = ranges[exchange.rank]
    if low < high:
        return found
    return [device.full(1, nothing, own.dtype) for own, nothing in zip(found, empty, strict=True)]
