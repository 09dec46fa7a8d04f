"""Proofs that integers are unique which are dense but in no order: each is marked in a bitmap, where no other has been.

Joins on unique keys need no lists of rows, so the proof pays wherever it is cheap. A compiled loop marks the values of long
columns on all cores; kernels lie above columns, so the engine hands it down when it is loaded (`kernels.builtin.narrowing`).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.expression.types import Bounds


class Marking(Protocol):
    """A loop over contiguous integers of 4 or 8 bytes."""

    def __call__(self, values: Array, low: int, width: int) -> bool:
        """Whether the integers from ``low`` on, so many of them, stand no more than once each among values."""
        ...


_marking: Marking | None = None


def use_marking(marking: Marking) -> None:
    """Take the loop from here on, in all of the process."""
    global _marking
    _marking = marking


def all_differ(values: Array, bounds: Bounds) -> bool:
    """Proves integers unique that are dense but in no order; False where they repeat, or are too sparse to look. The bitmap has
    `tuning.encoding.marked` bits at most: values are read once for each so many integers between their bounds."""
    if not len(values) <= bounds.width <= 8 * len(values):
        return len(values) == 0
    is_long = len(values) >= tuning.encoding.compiled_rows and values.itemsize >= 4
    differ = _marking if is_long and _marking is not None else _differ_within
    width = min(bounds.width, tuning.encoding.marked)
    return all(differ(values, low, width) for low in range(bounds.low, bounds.high + 1, width))


def _differ_within(values: Any, low: int, width: int) -> bool:
    """`Marking` by NumPy, in bytes."""
    marks, rows = np.zeros(width, np.bool_), 0
    for at in range(0, len(values), tuning.encoding.step):
        places = values[at : at + tuning.encoding.step].astype(np.int64) - low
        places = places[(places >= 0) & (places < width)]
        marks[places] = True
        rows += len(places)
    return int(np.count_nonzero(marks)) == rows
