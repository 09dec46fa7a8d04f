"""Threads of a block of a GPU, played in turns by one thread of the machine.

Each runs until it waits for others or meets them (`simulated.turns`). Whose turn it is comes from a generator of random numbers
with a fixed seed: orders differ from round to round, and are the same in every run of the tests. With a thread of the machine for
each, waiting at a barrier took most of the time, and who came first was the scheduler's.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from greenlet import getcurrent, greenlet

from gquery.kernels.primitives import simulated


def in_turns(threads: Sequence[Callable[[], object]]) -> None:
    """Runs them until each has ended. The first error ends all; so does a round in which all wait for what none of them does."""
    order = random.Random(len(threads))
    main = getcurrent()

    def begin(thread: Callable[[], object]) -> None:
        simulated.turns.set(main.switch)
        thread()

    alive = [greenlet(partial(begin, thread)) for thread in threads]
    try:
        while alive:
            order.shuffle(alive)
            waited = [thread.switch() is True for thread in alive]
            assert not all(waited), f"{len(alive)} threads wait for others, which do not come"
            alive = [thread for thread in alive if not thread.dead]
    finally:
        for thread in alive:
            thread.throw()


@dataclass(frozen=True)
class _Lane:
    """What Numba's simulator asks the current thread for."""

    blockIdx: Any  # noqa: N815  Numba's name
    threadIdx: Any  # noqa: N815


_lane: ContextVar[_Lane] = ContextVar("_lane")


def take_turns_in_numba() -> None:
    """Numba's simulator has threads of the machine and polls them without a pause; from here on its threads take turns."""
    from numba.cuda.simulator import kernel, kernelapi

    def run(manager: Any, at: Any, *arguments: Any) -> None:
        def play(thread: Any) -> None:
            _lane.set(_Lane(kernelapi.Dim3(*at), kernelapi.Dim3(*thread)))
            manager._f(*arguments)

        in_turns([partial(play, thread) for thread in np.ndindex(*manager._block_dim)])

    kernel.BlockManager.run = run
    kernelapi.threading = SimpleNamespace(current_thread=_lane.get)
