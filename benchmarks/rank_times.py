"""What the ranks of a cluster spend within a query: the CPU time of their threads and the clock, between exchanges and by stage.

`benchmarks.cluster --ranks` has each worker `note` it and asks for what it `noted`. With ``turns``, a file that all processes
lock, one rank computes at a time and none of them disturbs another: what is left is what a rank has to do.
"""

from __future__ import annotations

import fcntl
import statistics
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from gquery.cluster import direct, inbox, worker
from gquery.execution import run_stages


@dataclass
class RankTimes:
    """What a rank has spent in one run, in seconds. Clocks are that of the machine, the same for all its processes."""

    rank: int
    began: float = 0.0
    ended: float = 0.0
    cpu: list[float] = field(default_factory=list)  # of each part between two exchanges
    clock: list[float] = field(default_factory=list)
    stages: dict[str, float] = field(default_factory=dict)  # CPU time of each


class Notes:
    """Those of a process, whose ranks have a thread each. Where it has no ranks, all stages are noted as of one."""

    def __init__(self, turns: str | None = None) -> None:
        self.done: list[RankTimes] = []
        self._turns, self._mine, self._alone = turns, threading.local(), RankTimes(-1)
        self._run, self._take, self._stage = worker.run_rank, inbox.Inbox.take, run_stages._stage
        patch.object(direct, "run_rank", self._run_rank).start()
        patch.object(inbox.Inbox, "take", lambda *arguments: self._taken(*arguments)).start()
        patch.object(run_stages, "_stage", self._run_stage).start()

    def taken(self) -> list[RankTimes]:
        """What was noted since this was asked last; stages of a process without ranks are its only one."""
        done, self.done = self.done, []
        alone, self._alone = self._alone, RankTimes(-1)
        return done or [alone]

    def _run_rank(self, session: Any, request: worker.Request, *others: Any) -> worker.RanToEnd:
        mine = self._mine
        mine.times = RankTimes(request.rank, time.perf_counter())
        with ExitStack() as held:
            mine.lock = None if self._turns is None else held.enter_context(open(self._turns, "wb"))
            self._begin_part()
            try:
                return self._run(session, request, *others)
            finally:
                self._end_part()
                mine.times.ended = time.perf_counter()
                self.done.append(mine.times)

    def _taken(self, *arguments: Any) -> list[inbox.Message]:
        self._end_part()
        try:
            return self._take(*arguments)
        finally:
            self._begin_part()

    def _run_stage(self, state: Any, stage: Any, report: Any) -> None:
        start = time.thread_time()
        try:
            self._stage(state, stage, report)
        finally:
            times: RankTimes = getattr(self._mine, "times", self._alone)
            times.stages[f"{stage.number}: {stage.label}"] = time.thread_time() - start

    def _begin_part(self) -> None:
        if self._mine.lock is not None:
            fcntl.flock(self._mine.lock, fcntl.LOCK_EX)
        self._mine.part = time.thread_time(), time.perf_counter()

    def _end_part(self) -> None:
        cpu, clock = self._mine.part
        self._mine.times.cpu.append(time.thread_time() - cpu)
        self._mine.times.clock.append(time.perf_counter() - clock)
        if self._mine.lock is not None:
            fcntl.flock(self._mine.lock, fcntl.LOCK_UN)


_notes: list[Notes] = []


def note(turns: str | None) -> None:
    """Have this process note what its ranks spend from here on."""
    _notes.append(Notes(turns))


def noted() -> list[RankTimes]:
    """What was noted since this was asked last."""
    return _notes[0].taken()


@dataclass
class Spent:
    """What the ranks of a cluster have spent in runs of one query, in seconds, by the least of all runs."""

    mean: float  # CPU time of a rank
    longest: float  # CPU time of the slowest rank of each part between two exchanges
    clock: float  # the same by the clock, the median of the runs
    before: float  # from the query's beginning until the last rank has begun, the median
    behind: float  # from the end of the last rank until the answer is there, the median
    stages: dict[str, list[float]]  # CPU time by rank


def spent(runs: Sequence[tuple[float, float, Sequence[RankTimes]]]) -> Spent:
    """Of runs with the clock at the query's beginning and end."""
    parts = list(zip(*[zip(*[r.cpu for r in ranks]) for _, _, ranks in runs]))
    least = [[min(of_runs) for of_runs in zip(*part)] for part in parts]
    clocks = [sum(max(part) for part in zip(*[r.clock for r in ranks])) for _, _, ranks in runs]
    ranks = len(runs[0][2])
    return Spent(
        sum(map(sum, least)) / ranks,
        sum(map(max, least)),
        statistics.median(clocks),
        statistics.median(max(r.began for r in ranks) - begin for begin, _, ranks in runs),
        statistics.median(end - max(r.ended for r in ranks) for _, end, ranks in runs),
        {
            stage: [min(ranks[n].stages[stage] for _, _, ranks in runs) for n in range(ranks)]
            for stage in runs[0][2][0].stages
        },
    )


def sum_of(queries: Sequence[Spent]) -> Spent:
    """Of several queries, without stages."""
    return Spent(
        sum(q.mean for q in queries),
        sum(q.longest for q in queries),
        sum(q.clock for q in queries),
        sum(q.before for q in queries),
        sum(q.behind for q in queries),
        {},
    )
