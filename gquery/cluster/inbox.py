"""What ranks on other workers hand to the ranks on this one, until they take it.

Dask's event loop puts it here, a rank's thread waits for it. What comes for a run that has not begun on this worker waits, too;
what comes for one that has ended is dropped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from gquery import tuning
from gquery.runtime import interrupt
from gquery.runtime.recent import Recent
from gquery.runtime.tuples import NamedTuple

Run = str


class Message(NamedTuple):
    """What a rank hands over at one exchange: the collective with its name, and how the value is had."""

    call: str
    value: Callable[[], object]


class Inbox:
    """The messages for one rank of a run, by the number of the exchange and the rank that sends."""

    def __init__(self) -> None:
        self._bell = threading.Condition()
        self._came: dict[tuple[int, int], Message] = {}
        self._awaited: set[tuple[int, int]] = set()
        self._error: Exception | None = None

    def put(self, step: int, source: int, message: Message) -> None:
        """A message has come."""
        with self._bell:
            self._came[step, source] = message
            if self._awaited <= self._came.keys():
                self._bell.notify_all()

    def fail(self, error: Exception) -> None:
        """Have the rank raise this when it takes something next, or waits; the first error wins."""
        with self._bell:
            self._error = self._error or error
            self._bell.notify_all()

    def take(
        self, step: int, sources: Sequence[int], look: Callable[[int, Sequence[int]], None] | None = None
    ) -> list[Message]:
        """The messages of an exchange from these ranks, once all are there. InterruptError where the run is stopped. Where it
        takes long, ``look`` is called with the ranks whose messages are missing (`cluster.missing`)."""
        with self._bell:
            self._awaited, since = {(step, s) for s in sources}, time.monotonic()
            while self._error is None and not self._awaited <= self._came.keys():
                self._bell.wait(tuning.memory.wait_seconds)
                interrupt.check()
                if look is not None and time.monotonic() - since >= tuning.cluster.ask_seconds:
                    since = time.monotonic()
                    look(step, [s for s in sources if (step, s) not in self._came])
            if self._error is not None:
                raise self._error
            return [self._came.pop((step, s)) for s in sources]


class Inboxes:
    """Those of a process. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inboxes: dict[tuple[Run, int], Inbox] = {}
        self._ended: Recent[tuple[Run, int | None], bool] = Recent(tuning.cluster.remembered_ranks)  # None: all ranks

    def of(self, run: Run, rank: int) -> Inbox | None:
        """The inbox of a rank, made when it is first asked for; None where the rank or its run has ended here."""
        with self._lock:
            if self.has_ended(run, rank):
                return None
            return self._inboxes.setdefault((run, rank), Inbox())

    def has_ended(self, run: Run, rank: int) -> bool:
        """Whether a rank, or its run, has ended here."""
        return (run, rank) in self._ended or (run, None) in self._ended

    def end(self, run: Run, rank: int) -> None:
        """A rank has ended: nothing comes for it any more."""
        with self._lock:
            self._ended[run, rank] = True
            self._inboxes.pop((run, rank), None)

    def end_all(self, run: Run, error: Exception) -> None:
        """A run has ended: nothing comes for it any more, and a rank that still waits raises this."""
        with self._lock:
            self._ended[run, None] = True
            found = [self._inboxes.pop(at) for at in list(self._inboxes) if at[0] == run]
        for inbox in found:
            inbox.fail(error)
