"""Numbers that a GPU makes and the host needs, to allocate or to branch: how a thread learns of them.

Array functions ask `read_scalar` for every such integer. Usually that waits for the GPU. While a query runs that has
run before, `execution.speculation` answers from what it saw then, and has the GPU compare.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gquery.device.array import Array

_local = threading.local()
Ask = Callable[[Array | int, int | None], int]
"""Gives the integer in an array of one; the second is what it is in all likelihood, None where that is not known."""


def read_scalar(array: Array | int, expected: int | None = None) -> int:
    """The integer in an array of one (NumPy or CuPy). ``expected`` is what it is but in rare cases: of what is only checked."""
    ask: Ask = getattr(_local, "ask", wait_for_scalar)
    return ask(array, expected)


def wait_for_scalar(array: Array | int, _: int | None = None) -> int:
    """The integer, once it is there."""
    return array if isinstance(array, int) else int(array.item())


def validate() -> None:
    """See that every number so far is right: before the host reads what a GPU has made, other than numbers."""
    check: Callable[[], None] | None = getattr(_local, "check", None)
    if check is not None:
        check()


@contextmanager
def scalar_readback(ask: Ask, check: Callable[[], None]) -> Iterator[None]:
    """Within it, this thread's `read_scalar` is ``ask``, and `validate` is ``check``."""
    before = getattr(_local, "ask", wait_for_scalar), getattr(_local, "check", None)
    _local.ask, _local.check = ask, check
    try:
        yield
    finally:
        _local.ask, _local.check = before
