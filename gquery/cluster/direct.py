"""A run whose ranks meet: each is a thread of its worker from its first stage to its last, and hands over to the others directly.

Values go from worker to worker over Dask's own connections (TCP or UCX), each to the rank that it is for, arrays as they lie. The
scheduler hears of the run as a whole, not of its exchanges: one takes a millisecond, and not a task's twenty. Nothing is kept of
what was handed over: where a worker is lost, the connection has the run made anew in fragments (`cluster.fragments`), which Dask
computes again one by one.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gquery import tuning
from gquery.cluster.inbox import Inbox, Inboxes, Message
from gquery.cluster.missing import MissingMessages, OutOfReachError, Stands
from gquery.cluster.moving import Packed, packed, unpacked
from gquery.cluster.worker import Plan, Request, end_run, forget_session, known_session, run_rank, session_of
from gquery.distributed.transport import RankAbortedError
from gquery.errors import InternalError
from gquery.runtime import interrupt
from gquery.runtime.tuples import NamedTuple

if TYPE_CHECKING:
    from distributed import Worker

T = TypeVar("T")

_inboxes = Inboxes()
_running: dict[tuple[str, int], _Rank] = {}
"""The ranks that run in this process, by run and number."""
_lock = threading.Lock()


class Order(NamedTuple):
    """A run for the workers: what each rank is asked, and on which worker it is. ``plan`` goes with it where a worker may not
    have it, with the keys under which Dask has the tables in memory that it reads."""

    requests: tuple[Request, ...]
    places: tuple[str, ...]
    key: str
    plan: Plan | None
    memory: Mapping[str, str]


class Ran(NamedTuple):
    """What became of a rank: what it has made, packed; or its error; or neither, where it followed another that failed,
    where it ``needs_plan``, or where ``lost`` says what else is not there."""

    made: Packed | None = None
    error: BaseException | None = None
    lost: str | None = None
    needs_plan: bool = False


def serve(dask_worker: Worker) -> None:
    """Have this worker take what others send to it directly."""
    if "gquery_run" not in dask_worker.handlers:
        dask_worker.handlers.update(
            gquery_run=_runs(dask_worker), gquery_is_here=_is_here, gquery_hand_over=_receive, gquery_abort=_abort,
            gquery_stands=_stands,
        )  # fmt: skip


async def run_ranks(order: Order, dask_worker: Worker) -> dict[int, Ran]:
    """Run the ranks that are placed on this worker; what became of each."""
    serve(dask_worker)
    sender = _Sender(dask_worker, asyncio.get_running_loop())
    ranks = [
        _Rank(request, order, sender)
        for request, place in zip(order.requests, order.places, strict=True)
        if place == dask_worker.address
    ]
    for rank in ranks:
        rank.start()
    return {rank.request.rank: await rank.made for rank in ranks}


def end(key: str, run: str) -> None:
    """Stop the ranks of a run of a connection in this process, wherever they are; those in fragments, too."""
    with _lock:
        ranks = [rank for at, rank in _running.items() if at[0] == run]
    for rank in ranks:
        rank.token.stopped = True
    _inboxes.end_all(run, RankAbortedError("the run has ended"))
    end_run(key, run)


def end_session(key: str) -> None:
    """Forget all of a connection that closes, and stop its ranks. Orders of it that come later begin nothing."""
    forget_session(key)
    with _lock:
        runs = {run for (run, _), rank in _running.items() if rank.request.session == key}
    for run in runs:
        end(key, run)


class _Rank:
    """A rank on a thread of its own. ``made`` is for the worker's event loop to await."""

    def __init__(self, request: Request, order: Order, sender: _Sender) -> None:
        self.request, self._order, self._sender = request, order, sender
        self.made: asyncio.Future[Ran] = sender.loop.create_future()
        self.token = interrupt.Token()
        self.comm: DirectComm | None = None

    def start(self) -> None:
        """Begin."""
        run = partial(copy_context().run, self._run)
        threading.Thread(target=run, name=f"gquery-rank-{self.request.rank}", daemon=True).start()

    def _run(self) -> None:
        request, at = self.request, (self.request.run, self.request.rank)
        with _lock:
            _running[at] = self
        inbox = _inboxes.of(*at)
        try:
            made = Ran()
            if inbox is not None:
                self.comm = DirectComm(request, self._order.places, inbox, self._sender)
                made = self._ran(self.comm)
        finally:
            with _lock:
                del _running[at]
            _inboxes.end(*at)
        with suppress(RuntimeError):  # the worker's loop has ended, and with it all that waits
            self._sender.loop.call_soon_threadsafe(self._set, made)

    def _ran(self, comm: DirectComm) -> Ran:
        """Run its stages. Where it fails, the others are told."""
        order, request = self._order, self.request
        try:
            with interrupt.acting_for(self.token):
                plan = order.plan
                session = known_session(request.session) if plan is None else session_of(request.session, plan.engine)
                if session is None:
                    raise _NoPlanError
                return Ran(packed(run_rank(session, request, order.key, self._planned, comm)))
        except RankAbortedError:
            return Ran()
        except BaseException as error:  # raised again by the connection
            comm.abort(error)
            match error:
                case _NoPlanError():
                    return Ran(needs_plan=True)
                case OutOfReachError():
                    return Ran(lost=str(error))
                case _:
                    return Ran(error=_sendable(error))

    def _planned(self) -> tuple[Plan, Mapping[str, Packed]]:
        """The plan, and the tables in memory that were sent to all workers."""
        order = self._order
        if order.plan is None:
            raise _NoPlanError
        data = _waited(self._sender.fetched(list(order.memory.values()))) if order.memory else {}
        return order.plan, {name: data[key] for name, key in order.memory.items()}

    def _set(self, made: Ran) -> None:
        if not self.made.done():
            self.made.set_result(made)


class _NoPlanError(Exception):
    """The plan is not known here, and did not come with the order."""


def _sendable(error: BaseException) -> BaseException:
    """An error that goes to another process: itself, but where it holds what does not."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return InternalError(f"{type(error).__name__}: {error}")
    return error


# ---- handlers of Dask's worker ----------------------------------------------------------------------------------------


def message_of(data: Packed) -> dict[str, Any]:
    """What is packed as Dask sends it, what large arrays hold as it lies."""
    from distributed.protocol import to_serialize

    return {"head": data.head, "buffers": [to_serialize(b) for b in data.buffers]}


def value_of(message: Mapping[str, Any]) -> Any:
    """The value of a message that has come."""
    return unpacked(Packed(message["head"], tuple(message["buffers"])), copies=False)


def _runs(worker: Worker) -> Callable[..., Coroutine[Any, Any, dict[str, Any]]]:
    """What a worker does with an order that comes from the client itself."""

    async def run(head: bytes, buffers: Sequence[Any]) -> dict[str, Any]:
        ran = await run_ranks(value_of({"head": head, "buffers": buffers}), worker)
        return message_of(packed(ran, copies=False))

    return run


def _is_here() -> bool:
    return True


def _receive(at: tuple[str, int, int, int], call: str, head: bytes, buffers: Sequence[Any]) -> None:
    """What another rank hands over to one of this worker: ``at`` is the run, the rank, the exchange and the rank that sends."""
    run, rank, step, source = at
    inbox = _inboxes.of(run, rank)
    if inbox is not None:
        data = Packed(head, tuple(buffers))
        inbox.put(step, source, Message(call, lambda: unpacked(data, copies=False)))


def _stands(run: str, rank: int, step: int, asks: int) -> Stands:
    """How a rank of this worker stands towards one that ``asks``, and waits for it at an exchange."""
    if _inboxes.has_ended(run, rank):
        return "ended"
    found = _running.get((run, rank))
    if found is None:
        return "not begun"
    return "sent" if found.comm is not None and found.comm.has_sent(step, asks) else "not sent"


def _abort(run: str, rank: int, said: str) -> None:
    """Another rank of a run has failed, and so does this one."""
    inbox = _inboxes.of(run, rank)
    if inbox is not None:
        inbox.fail(RankAbortedError(said))


class _Sender:
    """Sends from the thread of a rank by the event loop of its worker."""

    def __init__(self, worker: Worker, loop: asyncio.AbstractEventLoop) -> None:
        self.worker, self.loop = worker, loop

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

    def __init__(self, request: Request, places: Sequence[str], inbox: Inbox, sender: _Sender) -> None:
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

    def broadcast(self, what: str, value: T | None, root: int) -> T:
        """See `Comm`."""
        own = value if self.rank == root else None
        return cast(T, self._meet(f"broadcast from rank {root} of {what!r}", [own] * self.size)[root])

    def agree(self, what: str, vote: bool) -> bool:
        """See `Comm`."""
        return all(self._meet(f"agree of {what!r}", [vote] * self.size))

    def abort(self, error: BaseException) -> None:
        """See `Comm`."""
        for rank in self._others:
            if self._is_here(rank):
                _abort(self._run, rank, str(error))
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
            _waited(future)
        for rank, message in came.items():
            if message.call != call:
                raise InternalError(f"rank {self.rank} is at {call}, rank {rank} at {message.call}")
        return [values[r] if r == self.rank else came[r].value() for r in range(self.size)]

    def _hand_over_here(self, rank: int, step: int, call: str, value: object) -> None:
        inbox = _inboxes.of(self._run, rank)
        if inbox is not None:
            inbox.put(step, self.rank, Message(call, lambda: value))

    def _send(self, rank: int, step: int, call: str, data: Packed) -> Future[Any]:
        at, waits = (self._run, rank, step, self.rank), bool(data.buffers)
        message = message_of(data)
        future = self._sender.send(self._places[rank], "gquery_hand_over", at=at, call=call, reply=waits, **message)
        future.add_done_callback(partial(self._look, self._places[rank]))
        return future

    def _look(self, place: str, sent: Future[Any]) -> None:
        """Have the rank fail where a worker was not reached."""
        error = None if sent.cancelled() else sent.exception()
        if error is not None:
            self._inbox.fail(OutOfReachError(f"the worker at {place} is not reached: {error}"))


def _waited(sent: Future[T]) -> T:
    """What comes of it. InterruptError where the rank is stopped meanwhile."""
    while True:
        try:
            return sent.result(tuning.memory.wait_seconds)
        except NotYetError:
            interrupt.check()
        except OSError as error:
            raise OutOfReachError(str(error)) from None
