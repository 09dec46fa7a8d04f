"""Many processes run blocks of seeds until a time is over; one table says what came of them.

A process sends the number of each seed before it runs it. So one that crashes, or does not come back from a seed, is found, named
and replaced: the next one goes on behind that seed.
"""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.fuzzing.engines import Choice, ready
from tests.fuzzing.tally import Tally

_BLOCK = 200  # seeds that a process takes at once: queries of ten sets of tables
_COLLECTED = 50  # seeds between two passes of the collector, which would take a fifth of the time
_TRIES = 150
_BUSY = 90.0  # seconds of CPU that a seed may take: where a machine has much to do, or stands still, a minute passes soon
_STUCK = 900.0  # seconds in all
_MOST = 8 << 30  # bytes of a process: a seed that takes more is a fault


@dataclass(frozen=True)
class Campaign:
    """Seeds from ``first`` on (to ``end``, if told) in so many processes for so long."""

    first: int
    end: int | None
    jobs: int
    seconds: float
    choice: Choice

    def run(self) -> Tally:
        """All of it."""
        began, total = time.monotonic(), Tally()
        blocks = itertools.count(self.first, _BLOCK)
        processes = [_Process(self, blocks, began + self.seconds) for _ in range(self.jobs)]
        said, seen = time.monotonic(), 0
        while alive := [p for p in processes if not p.is_over]:
            ready = wait([p.pipe for p in alive], timeout=1.0)
            for p in alive:
                p.listen(total, p.pipe in ready)
            if time.monotonic() - said > 30:
                said = time.monotonic()
                print(f"{total.outcomes.total()} seeds after {said - began:.0f} s", flush=True)
            for fault in total.faults[seen:]:
                print(f"\n{fault}", flush=True)
            seen = len(total.faults)
        return total


@dataclass
class _Process:
    """One process, and those that take its place."""

    campaign: Campaign
    blocks: Iterator[int]
    deadline: float
    is_over: bool = False
    seed: int = -1
    since: float = 0.0
    spent: float = 0.0  # seconds of CPU before the seed
    left: tuple[int, int] | None = None  # what is left of the block of one that went away
    pipe: Connection = field(init=False)
    process: Any = field(init=False)

    def __post_init__(self) -> None:
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(
            target=_work, args=(other, self.campaign.choice, self.deadline - time.monotonic()), daemon=True
        )
        self.process.start()
        other.close()
        self.since, self.spent = time.monotonic(), 0.0
        self._give()

    def _give(self) -> None:
        """Hand it the next seeds, or nothing."""
        first, end = self.left or (0, 0)
        if first >= end:
            first = next(self.blocks)
            end = first + _BLOCK if self.campaign.end is None else min(first + _BLOCK, self.campaign.end)
        self.left = first, end
        self.pipe.send((first, end) if first < end and time.monotonic() < self.deadline else None)

    def listen(self, total: Tally, is_ready: bool) -> None:
        """Take in what it has said; name the seed that it does not come back from."""
        try:
            while is_ready and self.pipe.poll():
                match self.pipe.recv():
                    case int(seed):
                        self.seed, self.since, self.left = seed, time.monotonic(), (seed + 1, (self.left or (0, 0))[1])
                        self.spent = self._cpu()
                    case Tally() as counted:
                        total.add(counted)
                        self.since = time.monotonic()
                        self._give()
                    case _:
                        self.is_over = True
                        self.process.join(5)
                        return
        except (EOFError, OSError):
            self._replace(total, f"seed {self.seed} ends the process")
            return
        if self._bytes() > _MOST:
            self.process.kill()
            self._replace(total, f"seed {self.seed} takes more than {_MOST >> 30} GB")
            return
        busy, waited = self._cpu() - self.spent, time.monotonic() - self.since
        if busy > _BUSY + 60 * (self.seed < 0) or waited > _STUCK:
            self.process.kill()
            self._replace(total, f"seed {self.seed} has not ended after {busy:.0f} s of CPU, {waited:.0f} s in all")

    def _bytes(self) -> int:
        """The memory that the process has in use."""
        try:
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError):  # it has ended
            return 0

    def _cpu(self) -> float:
        """The seconds of CPU that the process has taken."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError):  # it has ended
            return 0.0

    def _replace(self, total: Tally, said: str) -> None:
        self.process.join(5)
        total.outcomes["crashed"] += 1
        total.faults.append(f"{said}, exit code {self.process.exitcode}")
        is_new, self.seed = self.seed < 0, -1
        if time.monotonic() < self.deadline and not is_new:
            self._start()
        else:
            self.is_over = True


def _work(pipe: Connection, choice: Choice, seconds: float) -> None:
    """A process: blocks of seeds until there is no more, or the time is over."""
    deadline = time.monotonic() + seconds
    with ready(choice):
        gc.collect()
        gc.freeze()
        gc.disable()
        while (block := pipe.recv()) is not None:
            tally = Tally()
            for n, seed in enumerate(range(*block)):
                if time.monotonic() > deadline:
                    break
                pipe.send(seed)
                tally.seed(seed, choice, _TRIES)
                if n % _COLLECTED == _COLLECTED - 1:
                    gc.collect()
            pipe.send(tally)
        pipe.send(None)
