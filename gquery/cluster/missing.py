"""What a rank does while it waits for long: it asks the ranks that it waits for how they stand.

A message is lost where a connection breaks behind its last byte, a rank's failure where nobody is reached to be told of it, an
order where its connection is killed. No one hears of that, and who waits would do so for ever. So it asks every few seconds. What
was sent and is not there when it asks again does not come any more; what is not sent yet is waited for, however long it takes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Literal

from gquery import tuning

Stands = Literal["not begun", "not sent", "sent", "ended"]
"""How a rank stands towards one that waits: its worker has no order for it; it has not come to the exchange, or sends still; it
has sent what it hands over; it has ended, with a result or an error."""


class OutOfReachError(Exception):
    """A rank of the run is on no worker, or what the run needs is not on this one."""


class MissingMessages:
    """Those that one rank asks. ``ask`` has the worker of a rank called: about an exchange, for the rank that asks; ``fail`` is
    told where that worker is not reached."""

    def __init__(
        self, ask: Callable[[int, int], Future[Stands | None]], fail: Callable[[OutOfReachError], None]
    ) -> None:
        self._ask, self._fail = ask, fail
        self._pending: dict[int, Future[Stands | None]] = {}
        self._sent: Counter[tuple[int, int]] = Counter()  # how often a rank has said that it has sent, or ended
        self._idle: dict[int, float] = {}  # since when a rank is known not to have begun

    def look(self, step: int, missing: Sequence[int]) -> None:
        """Ask the ranks whose messages of an exchange are missing. OutOfReachError where one does not come any more."""
        for rank in missing:
            if self._sent[step, rank] > 1:
                raise OutOfReachError(f"what rank {rank} has handed over at exchange {step} is lost")
            if time.monotonic() - self._idle.get(rank, time.monotonic()) > tuning.cluster.answer_seconds:
                raise OutOfReachError(f"the worker of rank {rank} has no order for it")
            if rank not in self._pending:
                self._pending[rank] = asked = self._ask(rank, step)
                asked.add_done_callback(partial(self._heard, rank, step))

    def _heard(self, rank: int, step: int, asked: Future[Stands | None]) -> None:
        stands = None if asked.cancelled() or asked.exception() is not None else asked.result()
        match stands:
            case "sent" | "ended":
                self._sent[step, rank] += 1
            case "not begun":
                self._idle.setdefault(rank, time.monotonic())
            case "not sent":
                self._idle.pop(rank, None)
            case _:  # an error, or as a Dask worker answers to what it does not know
                self._fail(OutOfReachError(f"the worker of rank {rank} is not reached"))
        self._pending.pop(rank, None)
