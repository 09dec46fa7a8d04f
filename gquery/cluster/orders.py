"""How the connection's orders reach the workers: through Dask's scheduler at first, straight from then on.

The scheduler opens a connection to each worker for what it passes on. A client may have connections of its own to workers, which
are kept, but not everywhere: so behind the first order to a worker it is asked directly, while nobody waits for it. Workers that
answer get later orders so; to others they go through the scheduler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gquery import tuning
from gquery.cluster import direct, direct_comm
from gquery.cluster.moving import packed

if TYPE_CHECKING:
    from distributed import Client


class Orders:
    """Those of a connection. Its coroutines run on the client's event loop, and nothing else touches what they keep."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reached: set[str] = set()
        self._tried: dict[str, asyncio.Task[None]] = {}
        self._names: dict[str, str] = {}  # by worker, at which it listens for processes of its host

    async def ran(self, order: direct.Order, workers: Sequence[str]) -> list[Any]:
        """What became of the ranks on each of these workers; an OSError among it where a worker, or the way to it, is gone."""
        new = [w for w in workers if w not in self._tried]
        if new:  # a rank that begins sends to others, which may not have heard of the run
            names = await self._client.run(direct.serve, workers=new, on_error="ignore", asynchronous=True)
            self._names |= {worker: name for worker, name in names.items() if name is not None}
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
        self._tried.pop(worker, None)

    async def _try(self, worker: str) -> None:
        """Find out whether a worker is reached."""
        with suppress(Exception):
            call = self._client.rpc(worker).gquery_is_here()
            if await asyncio.wait_for(call, tuning.cluster.connect_seconds):
                self._reached.add(worker)

