"""The keys of a join table that is built, for the scan of what probes it."""

from __future__ import annotations

from math import prod

import numpy as np
import numpy.typing as npt

from gquery import tuning
from gquery.device.buffer import Buffer
from gquery.kernels.builtin.scans import flagged
from gquery.operators.base import JoinIndex

Keys = npt.NDArray[np.int64]


def key_set(index: JoinIndex, number: int) -> Keys | None:
    """The values (ascending, none twice) that the key ``number`` of a table's keys has; None where they cannot be told: of a
    large table, one of row numbers, or one that does not lie on the host."""
    table, encoding = index.table, index.table.key_encoding
    if table.layout not in ("direct-address", "hash") or any(table.null_safe):
        return None
    encoded = _encoded(index)
    if encoded is None:
        return None
    if encoding is None:
        return np.sort(encoded)
    if len(encoding.parts) == 1:
        return (np.sort(encoded) if table.layout == "hash" else encoded) + encoding.parts[0].base
    part = encoding.parts[number]
    values = encoded // prod(p.width for p in encoding.parts[:number]) % part.width
    ordered = np.sort(values)
    is_first = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])  # `np.unique` imports numpy.ma
    return ordered[is_first] + part.base


def _encoded(index: JoinIndex) -> Keys | None:
    """All keys of a table, encoded, or as they are where nothing encodes them."""
    table, arrays, encoding = index.table, index.arrays, index.table.key_encoding
    if table.layout == "hash":
        if not table.inline_keys or arrays.capacity is None:
            return None
        keys = _inline(arrays.keys, arrays.pairs, arrays.capacity)
        return keys if keys is None or encoding is None else keys - 1
    assert encoding is not None
    held = next((b for b in (arrays.bits, arrays.slots, arrays.starts) if b is not None), None)
    array = _on_host(held, encoding.size)
    if array is None:
        return None
    if held is arrays.bits:
        return flagged(np.unpackbits(array.view(np.uint8), bitorder="little")[: encoding.size])
    if held is arrays.slots:
        return flagged(array[: encoding.size])
    return flagged(np.diff(array[: encoding.size + 1]))


def _inline(keys: Buffer | None, pairs: Buffer | None, capacity: int) -> Keys | None:
    """The keys of a hash table that holds them; what stands behind its slots says whether the key 0 is there."""
    held = _on_host(keys if pairs is None else pairs, capacity)
    if held is None:
        return None
    slots = held[:capacity] if pairs is None else held[: 2 * capacity : 2]
    found: Keys = slots[slots != 0]
    return np.append(found, np.int64(0)) if held[capacity if pairs is None else 2 * capacity + 1] else found


def _on_host(buffer: Buffer | None, slots: int) -> npt.NDArray[np.int64] | None:
    if buffer is None or slots > tuning.join_layouts.small_array or (host := buffer.cpu) is None:
        return None
    array: npt.NDArray[np.int64] = np.asarray(host)
    return array
