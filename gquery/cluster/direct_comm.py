"""How a rank that meets others hands over to them: a `Comm` through Dask's connections, and through sockets within a host.

What comes is put in the inbox of the rank that it is for, by Dask's event loop or by the thread that reads a socket.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gquery import tuning
from gquery.cluster.host_sockets import Line, Lines
from gquery.cluster.inbox import Inbox, Inboxes, Message
from gquery.cluster.missing import MissingMessages, OutOfReachError, Stands
from gquery.cluster.moving import Packed, packed, unpacked
from gquery.cluster.worker import Request
from gquery.distributed.transport import RankAbortedError
from gquery.errors import InternalError
from gquery.runtime import interrupt

if TYPE_CHECKING:
    from distributed import Worker

T = TypeVar("T")

inboxes = Inboxes()
"""Of the ranks of this process."""
lines = Lines()
"""Of this process to others of its host."""
atexit.register(lines.close)


def message_of(data: Packed) -> dict[str, Any]:
    """What is packed as Dask sends it, what large arrays hold as it lies."""
    from distributed.protocol import to_serialize

    return {"head": data.head, "buffers": [to_serialize(b) for b in data.buffers]}


def value_of(message: Mapping[str, Any]) -> Any:
    """The value of a message that has come."""
    return unpacked(Packed(message["head"], tuple(message["buffers"])), copies=False)


def receive(at: tuple[str, int, int, int], call: str, head: bytes, buffers: Sequence[Any]) -> None:
    """What another rank hands over to one of this worker: ``at`` is the run, the rank, the exchange and the rank that sends."""
    run, rank, step, source = at
    inbox = inboxes.of(run, rank)
    if inbox is not None:
        data = Packed(head, tuple(buffers))
        inbox.put(step, source, Message(call, lambda: unpacked(data, copies=False)))


def aborted(run: str, rank: int, said: str) -> None:
    """Another rank of a run has failed, and so does this one."""
    inbox = inboxes.of(run, rank)
    if inbox is not None:
        inbox.fail(RankAbortedError(said))


class Sender:
    """Sends from the thread of a rank by the event loop of its worker. ``names`` are those at which workers listen."""

    def __init__(self, worker: Worker, loop: asyncio.AbstractEventLoop, names: Mapping[str, str]) -> None:
        self.worker, self.loop, self._names = worker, loop, names

    def line(self, place: str) -> Line | None:
        """The line to a worker of this host; None to others."""
        return None if place not in self._names else lines.to(self._names[place])

    def is_here(self, place: str) -> bool:
        """Whether a worker is this one."""
        return bool(place == self.worker.address)

    def send(self, place: str, operation: str, **message: Any) -> Future[Any]:
        """Have a worker's handler called. What has no ``reply`` is done once it is on its way."""
        call = getattr(self.worker.rpc(place), operation)
        return asyncio.run_coroutine_threadsafe(call(**message), self.loop)

    def fetched(self, keys: Sequence[str]) -> Future[dict[str, Packed]]:
        """What Dask has under these keys. It was sent to all workers, but Dask's memory manager drops copies of it, and a worker
        may have come later: it is got from another one then. OutOfReachError where none has it."""
        return asyncio.run_coroutine_threadsafe(self._fetched(keys), self.loop)

    async def _fetched(self, keys: Sequence[str]) -> dict[str, Packed]:
        data = self.worker.data
        if missing := [key for key in keys if key not in data]:
            await self.worker.gather(await self.worker.scheduler.who_has(keys=missing))
        if any(key not in data for key in keys):
            raise OutOfReachError("a table in memory is on no worker any more")
        return {key: cast(Packed, data[key]) for key in keys}


class DirectComm:
    """See `distributed.transport.Comm`; of a rank that meets others through Dask's connections."""

    def __init__(self, request: Request, places: Sequence[str], inbox: Inbox, sender: Sender) -> None:
        self.rank, self.size = request.rank, len(places)
        self._run, self._places, self._inbox, self._sender = request.run, places, inbox, sender
        self._others = [(self.rank + n) % self.size for n in range(1, self.size)]  # not all to the first rank first
        self.exchanges = self.handed_over = 0
        self._sent: dict[tuple[int, int], Future[Any]] = {}  # by exchange and rank, what is on its way to the rank
        self._missing = MissingMessages(self._ask, inbox.fail)

    def has_sent(self, step: int, rank: int) -> bool:
        """Whether all that goes to a rank at an exchange was sent."""
        sent = self._sent.get((step, rank))
        return sent is not None and sent.done()

    def all_gather(self, what: str, value: T) -> list[T]:
        """See `Comm`."""
        return cast("list[T]", self._meet(f"all_gather of {what!r}", [value] * self.size))

    def exchange(self, what: str, parts: Sequence[T]) -> list[T]:
        """See `Comm`."""
        if len(parts) != self.size:
            raise InternalError(f"rank {self.rank} has {len(parts)} parts for {self.size} ranks in {what!r}")
        return cast("list[T]", self._meet(f"exchange of {what!r}", parts))

    def agree(self, what: str, vote: bool) -> bool:
        """See `Comm`."""
        return all(self._meet(f"agree of {what!r}", [vote] * self.size))

    def abort(self, error: BaseException) -> None:
        """See `Comm`."""
        for rank in self._others:
            if self._is_here(rank):
                aborted(self._run, rank, str(error))
            else:
                self._sender.send(self._places[rank], "gquery_abort", run=self._run, rank=rank, said=str(error))

    def _ask(self, rank: int, step: int) -> Future[Stands | None]:
        at = {"run": self._run, "rank": rank, "step": step, "asks": self.rank}
        if not self._is_here(rank):
            return self._sender.send(self._places[rank], "gquery_stands", **at)
        here = Future[Stands | None]()
        here.set_result("not sent")  # nothing is lost within a process
        return here

    def _is_here(self, rank: int) -> bool:
        return self._sender.is_here(self._places[rank])

    def _meet(self, call: str, values: Sequence[object]) -> list[Any]:
        """What all have handed over to this rank: each value goes to the rank of its number, by reference or packed. What is
        packed is on its way while the next is; the same value is packed once."""
        step = self.exchanges
        self.exchanges += 1
        self.handed_over += 1
        being_sent = []
        self._sent = {at: sent for at, sent in self._sent.items() if at[0] == step - 1}  # who waits is one behind at most
        last: tuple[object, Packed] | None = None
        for rank in self._others:
            value = values[rank]
            if self._is_here(rank):
                self._hand_over_here(rank, step, call, value)
                continue
            if last is None or last[0] is not value:
                last = value, packed(value, copies=False)
            self._sent[step, rank] = future = self._send(rank, step, call, last[1])
            if last[1].buffers:  # which lie in this rank's arrays until they are there
                being_sent.append(future)
        came = dict(zip(self._others, self._inbox.take(step, self._others, self._missing.look), strict=True))
        for future in being_sent:
            waited(future)
        for rank, message in came.items():
            if message.call != call:
                raise InternalError(f"rank {self.rank} is at {call}, rank {rank} at {message.call}")
        return [values[r] if r == self.rank else came[r].value() for r in range(self.size)]

    def _hand_over_here(self, rank: int, step: int, call: str, value: object) -> None:
        inbox = inboxes.of(self._run, rank)
        if inbox is not None:
            inbox.put(step, self.rank, Message(call, lambda: value))

    def _send(self, rank: int, step: int, call: str, data: Packed) -> Future[Any]:
        place, at = self._places[rank], (self._run, rank, step, self.rank)
        line = self._sender.line(place)
        if line is not None:
            return self._sent_on(line, place, (at, call, data.head), data.buffers)
        future = self._sender.send(place, "gquery_hand_over", at=at, call=call, reply=bool(data.buffers), **message_of(data))
        future.add_done_callback(partial(self._look, place))
        return future

    def _sent_on(self, line: Line, place: str, message: tuple[Any, ...], buffers: Sequence[Any]) -> Future[Any]:
        sent = Future[Any]()
        try:
            line.send("hand_over", message, buffers)
        except OSError as error:
            raise OutOfReachError(f"the worker at {place} is not reached: {error}") from None
        sent.set_result(None)
        return sent

    def _look(self, place: str, sent: Future[Any]) -> None:
        """Have the rank fail where a worker was not reached."""
        error = None if sent.cancelled() else sent.exception()
        if error is not None:
            self._inbox.fail(OutOfReachError(f"the worker at {place} is not reached: {error}"))


def waited(sent: Future[T]) -> T:
    """What comes of it. InterruptError where the rank is stopped meanwhile."""
    while True:
        try:
            return sent.result(tuning.memory.wait_seconds)
        except NotYetError:
            interrupt.check()
        except OSError as error:
            raise OutOfReachError(str(error)) from None
