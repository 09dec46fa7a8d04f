"""Numbers that a GPU makes and the host needs, to allocate or to branch: how a thread learns of them.

Array functions ask `number` for every such integer. Usually that waits for the GPU. While a query runs that has run before,
`execution.speculation` answers from what it saw then, and has the GPU compare.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_local = threading.local()


def number(array: Any) -> int:
    """The integer in an array of one (NumPy or CuPy)."""
    ask: Callable[[Any], int] = getattr(_local, "ask", waited_for)
    return ask(array)


def waited_for(array: Any) -> int:
    """The integer, once it is there."""
    return array if isinstance(array, int) else int(array.item())


def confirm() -> None:
    """See that every number so far is right: before the host reads what a GPU has made, other than numbers."""
    check: Callable[[], None] | None = getattr(_local, "check", None)
    if check is not None:
        check()


@contextmanager
def asking(ask: Callable[[Any], int], check: Callable[[], None]) -> Iterator[None]:
    """Within it, this thread's `number` is ``ask``, and `confirm` is ``check``."""
    before = getattr(_local, "ask", waited_for), getattr(_local, "check", None)
    _local.ask, _local.check = ask, check
    try:
        yield
    finally:
        _local.ask, _local.check = before
