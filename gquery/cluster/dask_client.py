"""Clients of Dask that connect or are gone."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from distributed import Client
from distributed.comm.addressing import get_address_host


def check_address(address: str) -> None:
    """ValueError for a text that is no scheduler's address. A client would say so too, but only once it has a thread of its own,
    for which Dask waits 10 seconds and then ends with an AssertionError.
    """
    get_address_host(address)


def connected(scheduler: Any, **options: Any) -> Client:
    """A client of a scheduler or cluster, or the error of why there is none.

    One that cannot connect is closed here. Dask closes it when Python collects it, and that takes a lock which another client
    holds while it starts: collected just then, both would wait for ever.
    """
    made = Client.__new__(Client)
    try:
        Client.__init__(made, scheduler, set_as_default=False, **options)
    except BaseException:
        with suppress(Exception):
            made.close()
        with suppress(Exception):
            made._loop_runner.stop()  # where Dask has closed it itself, its thread is left
        raise
    return made
