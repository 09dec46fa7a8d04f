"""Placement: which device runs each partition of a pipeline.

A rank has one device, which runs all of its partitions; build sides are frames of that device, so every partition shares them.
Between ranks, exchanges move rows before a pipeline begins.
"""

from __future__ import annotations

from gquery.device.device import Device
from gquery.distributed.partitioning import row_ranges
from gquery.runtime.tuples import NamedTuple


class Placed(NamedTuple):
    """One partition: rows ``lo`` to ``hi`` of the source, on a device."""

    lo: int
    hi: int
    device: Device


def place(rows: int, partitions: int, unit: int, device: Device) -> tuple[Placed, ...]:
    """The partitions of a source of so many rows."""
    return tuple(Placed(lo, hi, device) for lo, hi in row_ranges(rows, partitions, unit))
