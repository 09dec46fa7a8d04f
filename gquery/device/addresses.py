"""Arrays whose addresses somebody has noted, on a CPU under a limit: any thread that wants memory has columns moved into files
there (`io.column_cache`), and nobody but the arrays themselves tells whether their memory is still read.

A string view is an address, and so is what a kernel takes: neither holds the array. Within `staying` all arrays whose addresses
are asked for stay.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gquery.device.device import Device


class _Thread(threading.local):
    arrays: list[Any] | None = None


_thread = _Thread()
_NOTHING = nullcontext()


def staying(device: Device) -> AbstractContextManager[None]:
    """Within it, arrays that `stay` on this thread do, if columns may be moved from a device."""
    return _Staying() if device.keeps_columns else _NOTHING


def stay(array: Any) -> None:
    """Have an array stay until the innermost `staying` of this thread ends."""
    arrays = _thread.arrays
    if arrays is not None:
        arrays.append(array)


class _Staying:
    def __enter__(self) -> None:
        self._before, _thread.arrays = _thread.arrays, []

    def __exit__(self, *_: object) -> None:
        _thread.arrays = self._before
