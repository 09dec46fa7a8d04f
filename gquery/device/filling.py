"""Arrays that are set to one value. Kernels lie above devices, so the engine hands down the one that fills those of GPUs when it
is loaded (`kernels.builtin.column_loops`): CuPy compiles its own for each type."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from gquery.device.array import Array


class Fill(Protocol):
    """Sets all of an array."""

    def __call__(self, values: Array, value: float) -> None:
        """See `filled`."""


_fill: Fill | None = None


def use_fill(kernel: Fill) -> None:
    """Fill GPUs' arrays so from here on, in all of the process."""
    global _fill
    _fill = kernel


def filled(values: Array, value: float) -> Array:
    """An array of numbers or booleans, whose elements lie one after another, wherever it lies, after all of it is set."""
    if _fill is None or value == 0 or isinstance(values, np.ndarray):
        values.fill(value)
    else:
        _fill(values, value)
    return values
