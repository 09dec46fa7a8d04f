"""The keys of a join table that is built, for the scan of what probes it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gquery import tuning
from gquery.device.device import cpu_device
from gquery.operators.base import JoinIndex


def key_set(index: JoinIndex) -> npt.NDArray[np.int64] | None:
    """The keys (int64, ascending) of a direct-address table of one key on the host; None of another, or a large one."""
    table, arrays = index.table, index.arrays
    encoding = table.key_encoding
    if table.layout != "direct-address" or encoding is None or len(encoding.parts) != 1 or any(table.null_safe):
        return None
    if encoding.size > tuning.join_layouts.small_array:
        return None
    host = cpu_device()
    held = next((b for b in (arrays.bits, arrays.slots, arrays.starts) if b is not None), None)
    if held is None or not held.is_on(host):
        return None
    array = held.on(host)
    if held is arrays.bits:
        slots = np.flatnonzero(np.unpackbits(array.view(np.uint8), bitorder="little")[: encoding.size])
    elif held is arrays.slots:
        slots = np.flatnonzero(array[: encoding.size])
    else:
        slots = np.flatnonzero(np.diff(array[: encoding.size + 1]))
    return slots.astype(np.int64) + encoding.parts[0].base
