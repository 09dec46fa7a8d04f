"""How the connection's orders reach the workers: through Dask's scheduler at first, straight from then on, and where all are
processes of this host through its sockets.

The scheduler opens a connection to each worker for what it passes on. A client may have connections of its own to workers, which
are kept, but not everywhere: so behind the first order to a worker it is asked directly, while nobody waits for it. Workers that
answer get later orders so; to others they go through the scheduler. At the same time workers of this host are greeted through its
sockets, and answer so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from gquery import tuning
from gquery.cluster import direct, direct_comm
from gquery.cluster.link import Link, LostError
from gquery.cluster.missing import MissingMessages, OutOfReachError, Stands
from gquery.cluster.moving import Packed, packed, unpacked


class Orders:
    """Those of a connection. Its coroutines run on the client's event loop; what is done on other threads are single calls of
    sets and dicts."""

    def __init__(self, link: Link) -> None:
        self._link, self._client = link, link.client
        self._reached: set[str] = set()
        self._tried: dict[str, asyncio.Task[None]] = {}
        self._names: Mapping[str, str] = {}  # by worker, at which it listens for processes of its host
        self._near: set[str] = set()  # workers of this host that have answered through a socket

    def ran_near(self, order: direct.Order, workers: Sequence[str]) -> dict[int, direct.Ran] | None:
        """What became of each rank, where all workers are of this host; None where they are not. LostError where one is gone."""
        own, names = direct.listening(), self._names
        if own is None or not self._near.issuperset(workers):
            return None
        there = {w: direct_comm.lines.to(names[w]) for w in workers if w in names}
        run, came = order.requests[0].run, SimpleQueue[tuple[int, Packed]]()
        data = packed(order._replace(names=names), copies=False)
        direct.answered[run] = lambda rank, ran: came.put((rank, ran))
        try:
            for worker in workers:
                line = there.get(worker)
                if line is None:
                    raise OSError(f"the worker at {worker} is gone")
                line.send("run", (worker, own, data.head), data.buffers)
            return self._answers(order, workers, came)
        except (OSError, OutOfReachError) as error:
            for worker in workers:
                self._forget(worker)
            raise LostError(str(error)) from None
        finally:
            direct.answered.pop(run, None)

    def _answers(
        self, order: direct.Order, workers: Sequence[str], came: SimpleQueue[tuple[int, Packed]]
    ) -> dict[int, direct.Ran]:
        """What comes from each rank. An order or an answer may be lost, as where a socket breaks behind its last byte: where it
        takes long, workers are asked, through Dask. OutOfReachError where nothing comes any more."""
        ran: dict[int, direct.Ran] = {}
        failures, asked = list[OutOfReachError](), time.monotonic()
        missing = MissingMessages(partial(self._stands, order), failures.append)

        def take(seconds: float) -> tuple[int, Packed]:
            nonlocal asked
            try:
                return came.get(timeout=seconds)
            except Empty:
                if time.monotonic() - asked >= tuning.cluster.ask_seconds:
                    asked = time.monotonic()
                    missing.look(0, [request.rank for request in order.requests if request.rank not in ran])
                if failures:
                    raise failures[0] from None
                raise

        while len(ran) < len(order.requests):
            rank, made = self._link.watched(take, workers)
            ran[rank] = unpacked(made, copies=False)
        return ran

    def _stands(self, order: direct.Order, rank: int, step: int) -> Future[Stands | None]:
        rpc, run = self._client.rpc(order.places[rank]), order.requests[rank].run
        call = rpc.gquery_stands(run=run, rank=rank, step=step, asks=direct.CONNECTION)
        return asyncio.run_coroutine_threadsafe(call, self._client.loop.asyncio_loop)

    async def ran(self, order: direct.Order, workers: Sequence[str]) -> list[Any]:
        """What became of the ranks on each of these workers; an OSError among it where a worker, or the way to it, is gone."""
        new = [w for w in workers if w not in self._tried]
        if new:  # a rank that begins sends to others, which may not have heard of the run
            names = await self._client.run(direct.serve, workers=new, on_error="ignore", asynchronous=True)
            self._names = {**self._names, **{worker: name for worker, name in names.items() if name is not None}}
            new = [w for w in new if w not in self._tried]  # another run of the connection has asked the same meanwhile
            self._tried |= {worker: asyncio.create_task(self._try(worker)) for worker in new}
        order = order._replace(names=self._names)
        if self._reached.issuperset(workers):
            return await self._directly(order, workers)
        told = await self._client.run(
            direct.run_ranks, order, workers=list(workers), on_error="return", asynchronous=True
        )
        for worker, answer in told.items():
            if isinstance(answer, OSError):
                self._forget(worker)
        return list(told.values())

    async def _directly(self, order: direct.Order, workers: Sequence[str]) -> list[Any]:
        """See `ran`; nothing but the error where a worker is gone, for whose ranks others may wait."""
        message = direct_comm.message_of(packed(order, copies=False))
        asked = [asyncio.create_task(self._asked(worker, message)) for worker in workers]
        try:
            return [await answer for answer in asyncio.as_completed(asked)]
        except OSError as error:
            return [error]
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def _asked(self, worker: str, message: Mapping[str, Any]) -> Any:
        try:
            answer = await self._client.rpc(worker).gquery_run(**message)
            if answer is None:  # as a Dask worker answers to what it does not know
                raise OSError(f"another worker has come at {worker}")
        except OSError:
            self._forget(worker)
            raise
        return direct_comm.value_of(answer)

    def _forget(self, worker: str) -> None:
        self._reached.discard(worker)
        self._near.discard(worker)
        self._tried.pop(worker, None)

    async def _try(self, worker: str) -> None:
        """Find out how a worker is reached."""
        if worker in self._names:
            direct.greet(self._names[worker], partial(self._near.add, worker))
        with suppress(Exception):
            call = self._client.rpc(worker).gquery_is_here()
            if await asyncio.wait_for(call, tuning.cluster.connect_seconds):
                self._reached.add(worker)
