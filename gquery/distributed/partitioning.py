"""Partitioning: how a source's rows are split, each part for one run of a pipeline.

The partitions of a rank are row ranges of the arrays of its one device; the sinks combine their states as they combine those of
workers.
"""

from __future__ import annotations


def row_ranges(rows: int, partitions: int, unit: int) -> tuple[tuple[int, int], ...]:
    """Split ``rows`` rows into at most ``partitions`` ranges that begin at multiples of ``unit``; one empty range for no rows.

    >>> row_ranges(10, 3, 1)
    ((0, 4), (4, 8), (8, 10))
    """
    if rows == 0:
        return ((0, 0),)
    size = max(unit, -(-rows // partitions))
    size = -(-size // unit) * unit
    if size >= rows:
        return ((0, rows),)
    return tuple((lo, min(lo + size, rows)) for lo in range(0, rows, size))
