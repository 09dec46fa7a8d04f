"""The way to Dask's scheduler. Whatever is asked of it ends: with an answer, an interrupt, or an error that says what is gone."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, wait
from contextlib import suppress
from queue import Empty
from typing import TYPE_CHECKING, Any, TypeVar

from gquery import tuning
from gquery.errors import InterfaceError, OperationalError
from gquery.runtime import interrupt

if TYPE_CHECKING:
    from distributed import Client, LocalCluster

T = TypeVar("T")
Address = Any
"""What `connect(cluster=...)` takes: "local", the address of a scheduler, or a Client of Dask."""


class LostError(Exception):
    """What was sent to workers is on none of them any more."""


class Link:
    """A Client of Dask. One that was made here, and the workers that were started for it, end with it."""

    def __init__(self, client: Client, is_own: bool, started: LocalCluster | None = None) -> None:
        if client.asynchronous:
            raise InterfaceError("cluster is a Client of Dask that is not asynchronous")
        self.client, self._is_own, self.started = client, is_own, started
        self._loop: Any = client.loop

    @classmethod
    def to(cls, address: Address, workers: int | None) -> Link:
        """A link to a scheduler. InterfaceError for what is no address, OperationalError where nobody answers."""
        from distributed import Client, LocalCluster

        from gquery.cluster.dask_client import check_address, connected

        if isinstance(address, Client):
            return cls(address, is_own=False)
        if not isinstance(address, str):
            raise InterfaceError(f'cluster is "local", the address of a scheduler or a Client of Dask, not {address!r}')
        if address == "local":
            page = "127.0.0.1:0"  # any port: another cluster of this machine may have the usual one
            started = LocalCluster(
                n_workers=workers or 2, threads_per_worker=1, dashboard_address=page, silence_logs=50, memory_limit=0
            )
            return cls(connected(started), is_own=True, started=started)
        try:
            check_address(address)
            return cls(connected(address, timeout=tuning.cluster.connect_seconds), is_own=True)
        except (OSError, TimeoutError, ValueError) as error:
            raise OperationalError(f"There is no scheduler of Dask at {address}: {error}") from None

    def workers(self) -> Mapping[str, Mapping[str, Any]]:
        """What the scheduler says of each worker, by its address."""
        self._check_open()
        limit, look = tuning.cluster.answer_seconds, tuning.cluster.look_seconds
        asked = asyncio.run_coroutine_threadsafe(self._identity(), self._loop.asyncio_loop)
        try:
            for _ in range(math.ceil(limit / look)):  # not by the clock: a machine may be at rest meanwhile
                if wait([asked], look).done:
                    workers: Mapping[str, Mapping[str, Any]] = asked.result()["workers"]
                    return workers
                interrupt.check()
                self._check_open()
        except OSError as error:  # also a TimeoutError of the connection
            raise OperationalError(f"The connection to the cluster's scheduler is lost: {error}") from None
        finally:
            asked.cancel()
        raise OperationalError(f"The cluster's scheduler has not answered for {limit:g} seconds")

    def _check_open(self) -> None:
        if self.client.status != "running":
            raise OperationalError("The connection to the cluster's scheduler is lost")

    async def _identity(self) -> Any:
        return await self.client.scheduler.identity(n_workers=-1)

    def results(self, tasks: Sequence[Any]) -> list[Any]:
        """What tasks have made, or the error of one that failed; see `waited`."""
        from distributed import wait as ended_of

        watch, waiting = _Watch(self), list(tasks)
        while waiting:
            try:
                with self.client.as_current():
                    ended = ended_of(waiting, timeout=tuning.cluster.look_seconds, return_when="FIRST_COMPLETED")
            except TimeoutError:
                watch.look()
                continue
            except CancelledError:  # which the call below says, too
                break
            waiting = [t for t in waiting if t not in ended.done]
            if any(t.status != "finished" for t in ended.done):
                break
        return list(self.waited(self.client.gather(list(tasks), asynchronous=True)))

    def waited(self, asked: Coroutine[Any, Any, Any], needs: Sequence[str] = ()) -> Any:
        """What comes of a call of the Client, for as long as the scheduler answers and there are workers; its errors. LostError
        where the workers have lost what it needs, or one of those that it ``needs`` is gone."""
        future, watch = asyncio.run_coroutine_threadsafe(asked, self._loop.asyncio_loop), _Watch(self, needs)
        try:
            while not wait([future], tuning.cluster.look_seconds).done:
                watch.look()
            return future.result()
        except TimeoutError as error:  # of what was asked, as where there was no worker for long
            raise LostError(str(error)) from None
        except CancelledError as error:
            self.workers()  # says so where the scheduler is gone
            raise LostError(str(error)) from None
        finally:
            future.cancel()

    def watched(self, take: Callable[[float], T], needs: Sequence[str]) -> T:
        """What is taken, by a call that waits for so many seconds and then raises `queue.Empty`; errors are those of `waited`."""
        watch = _Watch(self, needs)
        while True:
            try:
                return take(tuning.cluster.look_seconds)
            except Empty:
                watch.look()

    def tried(self, ask: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Ask for what is only tidy: for a short time, whatever comes of it."""
        with suppress(Exception), interrupt.holding():
            future = asyncio.run_coroutine_threadsafe(ask(), self._loop.asyncio_loop)
            try:
                future.result(tuning.cluster.leave_seconds)
            finally:
                future.cancel()

    def close(self) -> None:
        """End what was made here. Workers that do not end in time are killed."""
        limit = tuning.cluster.leave_seconds
        if self._is_own:
            with suppress(TimeoutError):
                self.client.close(timeout=limit)
        if self.started is not None:
            with suppress(TimeoutError):
                self.started.sync(_end_workers, self.started, limit, callback_timeout=2 * limit)
            with suppress(TimeoutError):
                self.started.close(timeout=limit)


async def _end_workers(cluster: LocalCluster, limit: float) -> None:
    """End the processes of a cluster's workers, which takes so many seconds at most: then they are killed. `LocalCluster.close`
    leaves them where they take longer than it is given."""
    await asyncio.gather(*[w.close(timeout=limit) for w in cluster.workers.values()], return_exceptions=True)


class _Watch:
    """What is looked at while something is waited for."""

    def __init__(self, link: Link, needs: Sequence[str] = ()) -> None:
        self._link, self._needs = link, needs
        self._alone: float | None = None  # since when there is no worker

    def look(self) -> None:
        """Raise where it was interrupted, the scheduler or a worker that is needed is gone, or there has been none for long."""
        interrupt.check()
        workers = self._link.workers()
        if gone := [w for w in self._needs if w not in workers]:
            raise LostError(f"the worker at {gone[0]} is gone")
        self._alone = None if workers else self._alone or time.monotonic()
        if self._alone is not None and time.monotonic() - self._alone > tuning.cluster.alone_seconds:
            raise OperationalError("No worker of the cluster is left: the query cannot go on")
