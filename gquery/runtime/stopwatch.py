"""Where a query's time goes and how far it has got: what the shell's timer and progress bars show.

A `Watch` is put on a thread with `watched`; the engine names what it does with `part`, and tells how far it is with
`begin`, `stage` and `advance`. Where nobody watches, these cost a look at a variable of the thread. A part within
another takes its time out of that, so that the parts add up to the whole.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal

Part = Literal["parse", "plan", "compile", "read", "copy", "run", "fetch", "measure"]
PARTS: tuple[Part, ...] = ("parse", "plan", "compile", "read", "copy", "run", "fetch", "measure")
_NOTHING = nullcontext()


class Watch:
    """Seconds of each part, and the share of the work that is done. Written by one thread, read by any."""

    def __init__(self) -> None:
        self.seconds: dict[Part, float] = dict.fromkeys(PARTS, 0.0)
        self.stack: list[Part] = []
        self.share = 0.0  # of the stages' work, 0 to 1
        self.share_since = self._since = time.perf_counter()
        self.at, self.stages = 0, 0  # the stage that runs, counted from 1, and how many there are
        self._weights: list[float] = []

    @property
    def doing(self) -> Part | None:
        """The part that runs now."""
        stack = self.stack
        return stack[-1] if stack else None

    @contextmanager
    def part(self, name: Part) -> Iterator[None]:
        self._book()
        self.stack.append(name)
        try:
            yield
        finally:
            self._book()
            self.stack.pop()

    def begin(self, weights: Sequence[float]) -> None:
        """A program with stages of so much work each starts."""
        self._weights = list(weights)
        self.share, self.share_since = 0.0, time.perf_counter()
        self.at, self.stages = 0, len(weights)

    def stage(self, number: int) -> None:
        """Stage ``number``, counted from 0, starts."""
        self.at = number + 1
        self.advance(0.0)

    def advance(self, share: float) -> None:
        """So much of the stage is done."""
        if self._weights:
            done = sum(self._weights[: self.at - 1]) + min(share, 1.0) * self._weights[self.at - 1]
            self.share = done / (sum(self._weights) or 1.0)

    def remaining(self) -> float | None:
        """An estimate of the seconds that the program has still to run; None where too little is known."""
        spent = time.perf_counter() - self.share_since
        return spent * (1 - self.share) / self.share if self.share > 0.02 else None

    def _book(self) -> None:
        now = time.perf_counter()
        if self.stack:
            self.seconds[self.stack[-1]] += now - self._since
        self._since = now


class _Thread(threading.local):
    watch: Watch | None = None


_thread = _Thread()


def current() -> Watch | None:
    """The watch on this thread."""
    return _thread.watch


@contextmanager
def watched(watch: Watch | None) -> Iterator[None]:
    """Have a watch on what this thread does; None has nobody watch it."""
    before, _thread.watch = _thread.watch, watch
    try:
        yield
    finally:
        _thread.watch = before


def part(name: Part) -> AbstractContextManager[None]:
    """What happens within belongs to that part of the query's time."""
    watch = _thread.watch
    return _NOTHING if watch is None else watch.part(name)
