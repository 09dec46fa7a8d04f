"""Pauses Python's cyclic garbage collector while many objects are made that all stay: plans, kernel text, a compiler's state.

The collector looks at every new object some times before it leaves it alone. That took a fifth of the time of planning and
compiling long queries, and found nothing. References are still counted meanwhile, so memory is freed but for circles.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_paused = 0  # callers, of all threads
_was_on = False


@contextmanager
def paused() -> Iterator[None]:
    """No collection while the block runs, on any thread; behind the last such block it is as it was."""
    global _paused, _was_on
    with _lock:
        if _paused == 0:
            _was_on = gc.isenabled()
            gc.disable()
        _paused += 1
    try:
        yield
    finally:
        with _lock:
            _paused -= 1
            if _paused == 0 and _was_on:
                gc.enable()
