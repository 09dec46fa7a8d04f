"""Arrays whose addresses somebody has noted, where any thread that wants memory lets go of columns (`io.column_cache`): on a CPU
under a limit they move into files, on a GPU that is full to the host. Nobody but the arrays themselves tells whether their memory
is still read.

A string view is an address, and so is what a kernel takes: neither holds the array. Within `staying` the arrays of columns that
a GPU's cache may let go of stay once they are asked for; on a CPU all arrays do whose addresses are asked for, as their memory is
another's as soon as nobody holds them, where a GPU's kernels still run before what is put there.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gquery.device.device import Device


class _Thread(threading.local):
    arrays: list[Any] | None = None
    columns: list[Any] | None = None


_thread = _Thread()
_NOTHING = nullcontext()


def staying(device: Device) -> AbstractContextManager[None]:
    """Within it, arrays that `stay` on this thread do, if columns may be moved from a device."""
    if device.keeps_columns:
        return _Staying("arrays")
    return _Staying("columns") if device.is_cuda and not device.streams else _NOTHING  # under a limit `Attempt` holds its own


def stay(array: Any) -> None:
    """Have an array stay until the innermost `staying` of this thread ends."""
    arrays = _thread.arrays
    if arrays is not None:
        arrays.append(array)


def stay_of_column(array: Any) -> None:
    """As `stay`, of an array that is a column's copy on a GPU."""
    columns = _thread.columns
    if columns is not None:
        columns.append(array)


class _Staying:
    def __init__(self, which: str) -> None:
        self._which = which

    def __enter__(self) -> None:
        self._before = getattr(_thread, self._which)
        setattr(_thread, self._which, [])

    def __exit__(self, *_: object) -> None:
        setattr(_thread, self._which, self._before)
