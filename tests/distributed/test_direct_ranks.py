"""Ranks that meet through the connections of Dask's workers: what goes to whom, and what becomes of those that wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numpy as np
import pytest

from gquery import tuning
from gquery.cluster.host_sockets import Line
from gquery.cluster.inbox import Inboxes
from gquery.cluster.missing import OutOfReachError
from gquery.cluster.worker import Request
from gquery.distributed.transport import RankAbortedError
from gquery.errors import InternalError, InterruptError
from gquery.runtime import interrupt
from gquery.settings import Settings

pytest.importorskip("distributed")

from gquery.cluster import direct, direct_comm

T = TypeVar("T")
LARGE = tuning.cluster.beside_bytes // 8


class _Wire:
    """Sends as a worker's event loop does, on another thread; counts bytes by destination. Where workers are of one host, by
    sockets: each of ``listens``."""

    def __init__(
        self, own: str, bytes_to: dict[str, int], dead: frozenset[str] = frozenset(), listens: str | None = None
    ) -> None:
        self._own, self._bytes_to, self._dead, self._listens = own, bytes_to, dead, listens
        self._pool = ThreadPoolExecutor(1)

    def line(self, place: str) -> Line | None:
        return None if self._listens is None else direct_comm.lines.to(self._listens)

    def is_here(self, place: str) -> bool:
        return place == self._own

    def send(self, place: str, operation: str, **message: Any) -> Future[Any]:
        return self._pool.submit(self._call, place, operation, message)

    def _call(self, place: str, operation: str, message: dict[str, Any]) -> None:
        if place in self._dead:
            raise OSError("connection refused")
        if operation == "gquery_abort":
            direct_comm.aborted(**message)
            return
        buffers = [b.data.copy() for b in message.pop("buffers")]
        assert message.pop("reply") == bool(buffers)
        self._bytes_to[place] = self._bytes_to.get(place, 0) + len(message["head"]) + sum(b.nbytes for b in buffers)
        direct_comm.receive(**message, buffers=buffers)


def meet(
    run: str,
    work: Callable[[direct_comm.DirectComm], T],
    places: Sequence[str] = ("a", "b", "c"),
    dead: frozenset[str] = frozenset(),
    listens: str | None = None,
) -> tuple[list[T | BaseException], dict[str, int]]:
    """What each rank has made, or its error, and the bytes that were sent to each place."""
    bytes_to: dict[str, int] = {}
    made: list[T | BaseException] = [InternalError("not run")] * len(places)

    def one(rank: int) -> None:
        request = Request("session", run, rank, "python", Settings(), False, False)
        inbox = direct_comm.inboxes.of(run, rank)
        assert inbox is not None
        comm = direct_comm.DirectComm(request, places, inbox, cast(Any, _Wire(places[rank], bytes_to, dead, listens)))
        try:
            made[rank] = work(comm)
        except BaseException as error:  # as the worker tells it
            comm.abort(error)
            made[rank] = error
        direct_comm.inboxes.end(run, rank)

    threads = [threading.Thread(target=one, args=(r,)) for r in range(len(places)) if places[r] not in dead]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    return made, bytes_to


@pytest.mark.parametrize("places", [("a", "b", "c"), ("a", "a", "b"), ("a", "a", "a")])
@pytest.mark.parametrize("size", [0, 3, 3 * LARGE])
@pytest.mark.parametrize("by_sockets", [False, True])
def test_collectives(size: int, by_sockets: bool, places: Sequence[str]) -> None:
    def work(comm: direct_comm.DirectComm) -> list[Any]:
        own = np.arange(size) + comm.rank
        gathered = comm.all_gather("g", own)
        parts = comm.exchange("e", [own * 10 + to for to in range(3)])
        return [gathered, parts, comm.agree("v", comm.rank < 2)]

    listens = direct.listening() if by_sockets else None
    made, bytes_to = meet(f"collectives {size} {by_sockets} {places}", work, places, listens=listens)
    assert bool(bytes_to) == (len(set(places)) > 1 and not by_sockets)
    for rank, found in enumerate(made):
        assert not isinstance(found, BaseException), found
        gathered, parts, all_agree = found
        for source in range(3):
            assert np.array_equal(gathered[source], np.arange(size) + source)
            assert np.array_equal(parts[source], (np.arange(size) + source) * 10 + rank)
        assert not all_agree


def test_each_rank_is_sent_what_is_for_it_alone() -> None:
    def work(comm: direct_comm.DirectComm) -> int:
        parts = [np.zeros(LARGE * 100 if to == 2 else 1) for to in range(3)]
        return sum(len(p) for p in comm.exchange("e", parts))

    made, bytes_to = meet("one destination", work)
    assert made == [3, 3, 3 * 100 * LARGE]
    assert bytes_to["c"] >= 2 * 100 * LARGE * 8
    assert max(bytes_to["a"], bytes_to["b"]) < 10_000


def test_what_was_received_is_not_changed_by_who_sent_it() -> None:
    """A rank goes on with its arrays when those of all have come."""

    def work(comm: direct_comm.DirectComm) -> list[float]:
        found, own = [], np.full(LARGE * 50, float(comm.rank))
        for _ in range(5):
            own += 1
            found += [float(a.sum()) / len(own) for a in comm.all_gather("g", own)]
        return found

    made, _ = meet("changed", work)
    assert made == [[float(r + step) for step in range(1, 6) for r in range(3)]] * 3


def test_a_rank_that_fails_ends_the_others() -> None:
    def work(comm: direct_comm.DirectComm) -> int:
        comm.agree("before", True)
        if comm.rank == 1:
            raise ZeroDivisionError("as a query's error")
        return len(comm.all_gather("never", 1))

    made, _ = meet("fails", work)
    assert isinstance(made[1], ZeroDivisionError)
    assert all(isinstance(made[r], RankAbortedError) and "as a query's error" in str(made[r]) for r in (0, 2))


def test_ranks_that_are_at_different_collectives() -> None:
    made, _ = meet("different", lambda comm: comm.all_gather(f"stage {comm.rank % 2}", 0))
    assert any(isinstance(m, InternalError) and "is at all_gather of 'stage" in str(m) for m in made)
    assert all(isinstance(m, InternalError | RankAbortedError) for m in made)


def test_a_worker_that_is_not_reached() -> None:
    made, _ = meet("out of reach", lambda comm: comm.all_gather("g", np.zeros(2 * LARGE)), dead=frozenset("c"))
    assert isinstance(made[0], OutOfReachError | RankAbortedError)
    assert isinstance(made[1], OutOfReachError | RankAbortedError)
    direct_comm.inboxes.end_all("out of reach", RankAbortedError("tidy"))


def test_an_interrupt_ends_the_wait() -> None:
    token = interrupt.Token()

    def work(comm: direct_comm.DirectComm) -> int:
        if comm.rank > 0:
            return 0
        threading.Timer(0.1, setattr, (token, "stopped", True)).start()
        with interrupt.acting_for(token):
            return len(comm.all_gather("g", 0))

    made, _ = meet("interrupted", work)
    assert isinstance(made[0], InterruptError)


def test_inboxes_drop_what_comes_for_runs_that_have_ended() -> None:
    inboxes = Inboxes()
    waiting = inboxes.of("run", 0)
    assert waiting is not None and inboxes.of("run", 0) is waiting
    inboxes.end("run", 1)
    assert inboxes.of("run", 1) is None
    inboxes.end_all("run", RankAbortedError("ended"))
    assert inboxes.of("run", 0) is None and inboxes.of("run", 2) is None
    with pytest.raises(RankAbortedError):
        waiting.take(0, [1])
    assert inboxes.of("another", 0) is not None
    assert len(inboxes._inboxes) == 1
