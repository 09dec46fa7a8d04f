"""Text scans (`kernels.builtin.text_scan`) of a column that does not fit a device's limit: chunks of its texts come to the
device one after another, and the bitmap of the rows that match stays there. A column that is there, or that there is room for,
is scanned whole.
"""

from __future__ import annotations

from bisect import bisect_right

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.chunks import chunk_buffers, lock_pages, room_of
from gquery.device.device import Device
from gquery.expression.facts import BITMAP_BITS
from gquery.kernels.builtin.define import address
from gquery.kernels.builtin.text_scan import Texts, mark_matches, matching_rows
from gquery.kernels.patterns import ScannedPattern
from gquery.runtime.interrupt import check


def matched_texts(column: ColumnData, pattern: ScannedPattern, packed: Array, device: Device, label: str) -> Array:
    """What `matching_rows` gives."""
    if not _is_streamed(column, device):
        return matching_rows(column, pattern, packed, device, label)
    offsets = column.data.cpu
    assert offsets is not None and column.characters is not None
    characters = column.characters.cpu
    assert characters is not None
    bits = device.zeros(max(1, -(-column.length // BITMAP_BITS)), "uint32", label)
    chunks = list(_chunks(offsets, device))
    for array in (offsets, characters):
        lock_pages(device, array)
    parts = [(offsets[a : b + 1], characters[int(offsets[a]) : int(offsets[b])]) for a, b in chunks]
    buffers = chunk_buffers(device, max(room_of([int(p.nbytes) for p in pair]) for pair in parts), label)
    try:
        for (low, high), pair in zip(chunks, parts, strict=True):
            check()
            with buffers.filled(pair) as (own, texts):
                first = int(offsets[low])
                chunk = Texts(
                    column.physical_type, high - low, own, address(texts) - first if texts.size else 0, int(texts.size)
                )
                mark_matches(chunk, pattern, packed, bits[low // BITMAP_BITS :], device, label)
    except BaseException:
        buffers.close()
        raise
    return bits


def _is_streamed(column: ColumnData, device: Device) -> bool:
    """Whether a column lies on the host, and would leave a device's limit too little for states."""
    if not device.streams or column.characters is None or not column.length or column.characters.is_on(device):
        return False
    if column.data.cpu is None or column.characters.cpu is None:
        return False
    return device.used_bytes + column.nbytes > device.total_bytes * tuning.streaming.most_resident


def _chunks(offsets: Array, device: Device) -> list[tuple[int, int]]:
    """Rows from and to, of about so many bytes as a chunk is to have; one text may have more."""
    most = min(tuning.streaming.chunk_bytes, device.total_bytes // tuning.streaming.chunk_parts)
    rows, unit, found, low = int(offsets.size) - 1, tuning.materialization.unit, [], 0
    while low < rows:
        room = most - unit * int(offsets.itemsize)
        behind = bisect_right(offsets, int(offsets[low]) + max(room, 0), low, key=int) - 1 - low  # of characters alone
        step = min(behind, most // (2 * int(offsets.itemsize)))
        high = min(low + max(step // unit * unit, unit), rows)
        found.append((low, high))
        low = high
    return found
