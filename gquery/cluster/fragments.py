"""Fragments: the run of a rank, cut where it hands something to the others.

A fragment goes from one exchange to the next. It is a function of the program, the rank, the number of ranks and what was handed
over at the exchanges before, so any worker can compute it again. The rank's code is that of ranks in one process: it runs on a
thread of its own, which waits at each exchange for what the next fragment brings. A worker that has no such thread, or one that
has gone further, begins the rank anew and hands it all that was handed over so far.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar, cast

from gquery.cluster.moving import Packed, packed, unpacked
from gquery.distributed.transport import RankAbortedError
from gquery.errors import InternalError
from gquery.runtime import interrupt
from gquery.runtime.tuples import NamedTuple

T = TypeVar("T")


class Handed(NamedTuple):
    """What a rank hands over at one exchange: the collective with its name, and the value, packed."""

    call: str
    value: Packed


class Ended(NamedTuple):
    """What a rank has made in the end, packed."""

    made: Packed


Outcome = Handed | Ended
Received = Sequence[Sequence[Outcome]]
"""By exchange, what each rank handed over."""


class RankThread:
    """The run of a rank on this worker, between fragments asleep."""

    def __init__(self, rank: int, size: int, work: Callable[[FragmentComm], object]) -> None:
        self._made: SimpleQueue[Outcome | BaseException] = SimpleQueue()
        self._given: SimpleQueue[Received | None] = SimpleQueue()
        self._token = interrupt.Token()
        self._work = work
        self._waits = False
        self._comm = FragmentComm(rank, size, self._hand_over)
        run = partial(copy_context().run, self._run)
        self._thread = threading.Thread(target=run, name=f"gquery-rank-{rank}", daemon=True)

    def advance(self, received: Received) -> Outcome:
        """Run on to the exchange behind those that were received, or to the end. Raises what the rank raises."""
        self._waits = False
        if self._thread.ident is None:
            self._comm.received = received
            self._thread.start()
        else:
            self._given.put(received)
        made = self._made.get()
        if isinstance(made, BaseException):
            raise made
        return made

    def stop(self) -> None:
        """End it, wherever it is."""
        self._token.stopped = True
        self._given.put(None)

    def _hand_over(self, call: str, value: object) -> Received:
        handed = Handed(call, packed(value))
        self._waits = True
        self._made.put(handed)
        given = self._given.get()
        if given is None:
            raise RankAbortedError("the run has ended")
        return given

    def _run(self) -> None:
        try:
            with interrupt.acting_for(self._token):
                self._made.put(Ended(packed(self._work(self._comm))))
        except BaseException as error:  # raised again by the task that waits
            self._made.put(error)

    def can_go_on(self, received: Received) -> bool:
        """Whether it waits at an exchange of which these are what was handed over."""
        return self._waits and len(self._comm.received) < len(received)


class FragmentComm:
    """See `distributed.transport.Comm`; of a rank that is cut into fragments."""

    def __init__(self, rank: int, size: int, hand_over: Callable[[str, object], Received]) -> None:
        self.rank, self.size = rank, size
        self.received: Received = ()
        self._hand_over = hand_over
        self._at = self._own = 0

    @property
    def exchanges(self) -> int:
        """How many it has gone through."""
        return self._at

    @property
    def handed_over(self) -> int:
        """At how many of these it has handed something over itself, and was not told what an earlier attempt had."""
        return self._own

    def all_gather(self, what: str, value: T) -> list[T]:
        """See `Comm`."""
        return cast("list[T]", self._meet(f"all_gather of {what!r}", value))

    def exchange(self, what: str, parts: Sequence[T]) -> list[T]:
        """See `Comm`."""
        return [sent[self.rank] for sent in cast("list[Sequence[T]]", self._meet(f"exchange of {what!r}", list(parts)))]

    def agree(self, what: str, vote: bool) -> bool:
        """See `Comm`."""
        return all(self._meet(f"agree of {what!r}", vote))

    def abort(self, error: BaseException) -> None:
        """Nothing: who fails ends its task, and the connection ends the others."""

    def _meet(self, call: str, value: object) -> list[Any]:
        if self._at == len(self.received):
            self._own += 1
            self.received = self._hand_over(call, value)
        handed = self.received[self._at]
        self._at += 1
        calls = [h.call if isinstance(h, Handed) else "the end" for h in handed]
        if any(c != call for c in calls):
            raise InternalError(f"the ranks come to different exchanges: {calls}")
        return [unpacked(h.value) for h in handed if isinstance(h, Handed)]
