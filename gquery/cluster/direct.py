"""A run whose ranks meet: each is a thread of its worker from its first stage to its last, and hands over to the others directly.

Values go from worker to worker (`cluster.direct_comm`), each to the rank that it is for, arrays as they lie. The scheduler hears
of the run as a whole, not of its exchanges: one takes a millisecond at most, and not a task's twenty. Nothing is kept of what
was handed over: where a worker is lost, the connection has the run made anew in fragments (`cluster.fragments`), which Dask
computes again one by one.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import threading
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from gquery.cluster.direct_comm import (
    DirectComm,
    Sender,
    aborted,
    inboxes,
    lines,
    message_of,
    receive,
    value_of,
    waited,
)
from gquery.cluster.host_sockets import Handler, Listener
from gquery.cluster.missing import OutOfReachError, Stands
from gquery.cluster.moving import Packed, packed, unpacked
from gquery.cluster.worker import PackedProgram, Request, end_run, forget_session, known_session, run_rank, session_of
from gquery.distributed.transport import RankAbortedError
from gquery.errors import InternalError
from gquery.runtime import interrupt
from gquery.runtime.forking import free_in_child
from gquery.runtime.tuples import NamedTuple

if TYPE_CHECKING:
    from distributed import Worker

_running: dict[tuple[str, int], _Rank] = {}
"""The ranks that run in this process, by run and number."""
_lock = free_in_child(threading.Lock())
_TRIES = 3  # to send what goes by a line that others use


class Order(NamedTuple):
    """A run for the workers: what each rank is asked, and on which worker it is. ``plan`` goes with it where a worker may not
    have it, with the keys under which Dask has the tables in memory that it reads. ``names`` are those at which workers listen
    for processes of their hosts, by worker."""

    requests: tuple[Request, ...]
    places: tuple[str, ...]
    key: str
    plan: PackedProgram | None
    memory: Mapping[str, str]
    names: Mapping[str, str] = {}

    def of(self, place: str) -> list[Request]:
        """What is asked of a worker."""
        return [r for r, at in zip(self.requests, self.places, strict=True) if at == place]


class Ran(NamedTuple):
    """What became of a rank: what it has made, packed; or its error; or neither, where it followed another that failed,
    where it ``needs_plan``, or where ``lost`` says what else is not there."""

    made: Packed | None = None
    error: BaseException | None = None
    lost: str | None = None
    needs_plan: bool = False


def serve(dask_worker: Worker) -> str | None:
    """Have this worker take what others send to it directly. The name at which it listens for processes of its host; None where
    it cannot."""
    if "gquery_run" not in dask_worker.handlers:
        dask_worker.handlers.update(
            gquery_run=_runs(dask_worker), gquery_is_here=_is_here, gquery_hand_over=receive, gquery_abort=aborted,
            gquery_stands=_stands,
        )  # fmt: skip
        _served[dask_worker.address] = dask_worker
    return listening()


async def run_ranks(order: Order, dask_worker: Worker) -> dict[int, Ran]:
    """Run the ranks that are placed on this worker; what became of each."""
    serve(dask_worker)
    loop = asyncio.get_running_loop()
    made: dict[int, asyncio.Future[Ran]] = {}

    def tell(rank: int, ran: Ran) -> None:
        with suppress(RuntimeError):  # the worker's loop has ended, and with it all that waits
            loop.call_soon_threadsafe(_set, made[rank], ran)

    for request in order.of(dask_worker.address):
        made[request.rank] = loop.create_future()
        _Rank(request, order, dask_worker, partial(tell, request.rank)).start()
    return {rank: await ran for rank, ran in made.items()}


def _set(made: asyncio.Future[Ran], ran: Ran) -> None:
    if not made.done():
        made.set_result(ran)


def end(key: str, run: str) -> None:
    """Stop the ranks of a run of a connection in this process, wherever they are; those in fragments, too."""
    with _lock:
        ranks = [rank for at, rank in _running.items() if at[0] == run]
    for rank in ranks:
        rank.token.stopped = True
    inboxes.end_all(run, RankAbortedError("the run has ended"))
    end_run(key, run)


def end_session(key: str) -> None:
    """Forget all of a connection that closes, and stop its ranks. Orders of it that come later begin nothing."""
    forget_session(key)
    with _lock:
        runs = {run for (run, _), rank in _running.items() if rank.request.session == key}
    for run in runs:
        end(key, run)


class _Rank:
    """A rank on a thread of its own, which in the end is to ``tell`` what became of it."""

    def __init__(self, request: Request, order: Order, worker: Worker, tell: Callable[[Ran], None]) -> None:
        self.request, self._order, self._tell = request, order, tell
        self._sender = Sender(worker, worker.loop.asyncio_loop, order.names)
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
        inbox = inboxes.of(*at)
        try:
            made = Ran()
            if inbox is not None:
                self.comm = DirectComm(request, self._order.places, inbox, self._sender)
                made = self._ran(self.comm)
            inboxes.end(*at)
            self._tell(made)
        finally:
            inboxes.end(*at)
            with _lock:
                del _running[at]

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

    def _planned(self) -> tuple[PackedProgram, Mapping[str, Packed]]:
        """The plan, and the tables in memory that were sent to all workers."""
        order = self._order
        if order.plan is None:
            raise _NoPlanError
        data = waited(self._sender.fetched(list(order.memory.values()))) if order.memory else {}
        return order.plan, {name: data[key] for name, key in order.memory.items()}


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


def _runs(worker: Worker) -> Callable[..., Coroutine[Any, Any, dict[str, Any]]]:
    """What a worker does with an order that comes from the client itself."""

    async def run(head: bytes, buffers: Sequence[Any]) -> dict[str, Any]:
        ran = await run_ranks(value_of({"head": head, "buffers": buffers}), worker)
        return message_of(packed(ran, copies=False))

    return run


def _is_here() -> bool:
    return True


def _stands(run: str, rank: int, step: int, asks: int) -> Stands:
    """How a rank of this worker stands towards one that ``asks``, and waits for it at an exchange; or towards the `CONNECTION`,
    which waits for what becomes of it."""
    if asks == CONNECTION and (run, rank) in _running:
        return "not sent"
    if inboxes.has_ended(run, rank):
        return "ended"
    found = _running.get((run, rank))
    if found is None:
        return "not begun"
    return "sent" if found.comm is not None and found.comm.has_sent(step, asks) else "not sent"


# ---- sockets of the host ------------------------------------------------------------------------------------------------

_listener: list[Listener | None] = []
"""That of this process, once it was asked for; None where the system has none."""
_served: WeakValueDictionary[str, Worker] = WeakValueDictionary()
"""The workers of this process, by address."""
CONNECTION = -1  # who asks how a rank stands, in the place of a rank
answered: dict[str, Callable[[int, Packed], None]] = {}
"""What is done with what comes for whom this process has asked: by the name of what was asked, a run, with a number, a rank."""


def listening() -> str | None:
    """The name at which this process listens for others of its host; None where it cannot."""
    with _lock:
        if not _listener:
            handlers: dict[str, Handler] = {
                "hand_over": receive, "run": _run_here, "greet": _greet, "answer": _answer,
            }  # fmt: skip
            try:
                _listener.append(Listener(handlers))
            except OSError:
                _listener.append(None)
        return None if _listener[0] is None else _listener[0].name


def _run_here(place: str, asks: str, head: bytes, buffers: Sequence[Any]) -> None:
    """What a worker does with an order of a process that listens at ``asks``."""
    order: Order = unpacked(Packed(head, tuple(buffers)), copies=False)
    worker = _served.get(place)
    for request in order.of(place):
        tell = partial(_tell, asks, request)
        if worker is None:
            _in_background(partial(tell, Ran(lost=f"the worker at {place} is gone")))
        else:
            _Rank(request, order, worker, tell).start()


def _tell(asks: str, request: Request, ran: Ran) -> None:
    data = packed(ran, copies=False)
    _send(asks, "answer", (request.run, request.rank, data.head), data.buffers)


def greet(name: str, reached: Callable[[], object]) -> None:
    """Ask the process that listens at a name to answer, and call ``reached`` once it has."""
    own, token = listening(), uuid.uuid4().hex
    if own is None:
        return

    def answer(number: int, data: Packed) -> None:
        del answered[token]
        reached()

    def send() -> None:
        if not _send(name, "greet", (own, token)):
            del answered[token]

    answered[token] = answer
    _in_background(send)


def _greet(asks: str, token: str, buffers: Sequence[Any]) -> None:
    """Show the process that listens at ``asks`` that it is reached from here."""
    _in_background(partial(_send, asks, "answer", (token, 0, b"")))


def _send(name: str, operation: str, message: tuple[Any, ...], buffers: Sequence[Any] = ()) -> bool:
    """Whether it was sent: somebody listens at that name. A line on which another thread was stopped in the midst of a message is
    closed; there is another one then."""
    for _ in range(_TRIES):
        line = lines.to(name)
        if line is None:
            break
        with suppress(OSError):
            line.send(operation, message, buffers)
            return True
    return False


def _in_background(send: Callable[[], object]) -> None:
    """Have a thread send for one that reads, or for an event loop: they may be what the other end waits for."""
    threading.Thread(target=send, name="gquery-greeting", daemon=True).start()


def _answer(asked: str, number: int, head: bytes, buffers: Sequence[Any]) -> None:
    take = answered.get(asked)
    if take is not None:
        take(number, Packed(head, tuple(buffers)))


def _forget() -> None:
    """A forked child listens at a name of its own, and has no rank of its parent."""
    _listener.clear()
    answered.clear()
    _running.clear()
    _served.clear()
    lines.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
