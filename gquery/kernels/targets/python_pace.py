"""The pace of interpreted loops: a kernel that goes round for long looks at the clock, wherever in it that is.

Between two units of rows the runner looks whether the query is interrupted, and how long it has been interpreting. One row of a
unit may match a million rows of a join table, so the loops within a row look too: they are made of ``range`` and ``next_index``,
and in the interpreter these are the two functions here. A loop costs one call more, a turn of it none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from gquery import tuning
from gquery.runtime.interrupt import check


class _Pace(threading.local):
    left: int = 0  # turns of this thread's loops before the next look

    def __init__(self) -> None:
        self.look: Callable[[], None] = check


_pace = _Pace()


@contextmanager
def looking(look: Callable[[], None]) -> Iterator[None]:
    """Within it, loops of kernels that this thread interprets call ``look`` now and then; what that raises ends the kernel."""
    before, _pace.look, _pace.left = _pace.look, look, tuning.interpreting.paced_turns
    try:
        yield
    finally:
        _pace.look = before


def paced_range(low: int, high: int | None = None) -> Iterable[int]:
    """What a kernel's loop goes over: ``range``, with looks between."""
    if high is None:
        low, high = 0, low
    turns = high - low
    if turns <= _pace.left:
        _pace.left -= turns
        return range(low, high)
    return _watched(low, high)


def _watched(low: int, high: int) -> Iterator[int]:
    while low < high:
        _pace.look()
        end = min(low + tuning.interpreting.paced_turns, high)
        _pace.left = tuning.interpreting.paced_turns - (end - low)
        yield from range(low, end)
        low = end


def paced_next(i: int) -> int:
    """The index behind ``i``, in a loop that may end before its range does."""
    if _pace.left <= 0:
        _pace.look()
        _pace.left = tuning.interpreting.paced_turns
    _pace.left -= 1
    return i + 1
