"""TPC-H on workers of Dask, each a process: the answers, the time of each query, and what goes through the connection's sockets.

    python -m benchmarks.cluster [--sf 0.1] [--workers 3] [--threads 1]
    python -m benchmarks.cluster --sf 30 --workers 8 --threads 4 --beside 32     and one process of so many threads
    python -m benchmarks.cluster --sf 5 --workers 4 --beside 1 --runs 5 --ranks [--turns] [--stages]   and what ranks spend

The scheduler and the workers are processes of their own, so that the connection's sockets carry what it sends and gets and no
more (Linux's `ss` tells). Each query runs twice: the first run has workers read and encode columns, and compile what the kernel
cache does not have. Last, all workers are killed: a query has to end with an error.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gquery
from benchmarks import rank_times
from tpch import queries
from tpch.generate import files, generate
from tpch.oracle import Oracle
from tpch.validate import difference, order_columns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sf", type=float, default=0.1)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--beside", type=int, metavar="THREADS", help="a connection of this process, asked after the workers"
    )
    parser.add_argument("--runs", type=int, default=1, help="hot runs, of which the median counts")
    parser.add_argument("--only", type=int, nargs="*", default=queries.NUMBERS, help="queries by number")
    parser.add_argument("--ranks", action="store_true", help="what each rank's thread spends")
    parser.add_argument("--turns", action="store_true", help="the same, one rank computing at a time")
    parser.add_argument("--stages", action="store_true", help="the same by stage")
    given = parser.parse_args()
    given.ranks |= given.turns or given.stages
    folder = generate(given.sf, echo=False)
    oracle = Oracle(given.sf, folder)
    oracle.prepare(given.only)
    with cluster(given.workers, given.threads) as (address, workers):
        start = time.perf_counter()
        db = gquery.connect("cpu", cluster=address, workers=given.workers)
        alone = None if given.beside is None else gquery.connect("cpu", threads=given.beside)
        for connection in (db,) if alone is None else (db, alone):
            for name, path in files(folder).items():
                connection.sql(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")
        ranks = _Ranks(address, given.turns, given.stages) if given.ranks else None
        print(f"{'query':>5} {'first ms':>9} {'second ms':>9} {'result B':>9} {'sockets B':>10}")
        more, first, again, beside = 0, 0.0, 0.0, 0.0
        for number in given.only:
            text, before = queries.sql(number), socket_bytes()
            result, seconds = timed(db, text)
            size, through = result.to_arrow_table().nbytes, socket_bytes() - before
            want = oracle.expected(number, [str(t) for t in result.types])
            wrong = "no answer is known"
            if want is not None:
                wrong = difference(result.fetchall(), want, order_columns(text, list(result.columns))) or ""
            hot = ranks.hot(db, text, given.runs) if ranks is not None else _hot(db, text, given.runs)
            line = f"{number:>5} {1e3 * seconds:9.0f} {1e3 * hot:9.0f} {size:>9} {through:>10}"
            if alone is not None:
                timed(alone, text)
                one = ranks.alone(alone, text, given.runs) if ranks is not None else _hot(alone, text, given.runs)
                beside, line = beside + one, f"{line} {1e3 * one:9.0f} in one process"
            print(f"{line} {wrong}", flush=True)
            if ranks is not None:
                ranks.print_query()
            first, again, more = first + seconds, again + hot, max(more, through - size)
        print(f"first {first:.1f} s, second {again:.1f} s, all {time.perf_counter() - start:.1f} s with connecting")
        if alone is not None:
            print(f"one process of {given.beside} threads, second {beside:.1f} s: {again / beside:.3f} times that")
        if ranks is not None:
            ranks.print_all()
        if shutil.which("ss") is None:
            print("through the sockets: not known, there is no program ss")
        else:
            print(f"through the sockets beyond a result at most {more / 1e6:.2f} MB")
        for worker in workers:
            worker.send_signal(signal.SIGKILL)
        start = time.perf_counter()
        try:
            db.sql("SELECT count(*), sum(l_tax) FROM lineitem WHERE l_discount > 0.05").fetchall()
        except gquery.Error as error:
            print(f"all killed: after {time.perf_counter() - start:.1f} s {type(error).__name__}: {error}")
        else:
            print("all killed: the query has an answer, which cannot be")


class _Ranks:
    """Prints what the ranks of the workers of a scheduler spend, and what one process does."""

    def __init__(self, address: str, in_turns: bool, by_stage: bool) -> None:
        from distributed import Client

        self._client, self._by_stage = Client(address, set_as_default=False), by_stage
        turns = str(Path(tempfile.mkdtemp()) / "turns") if in_turns else None
        self._client.run(rank_times.note, turns)
        self._notes = rank_times.Notes()  # of this process
        self._of_query: rank_times.Spent | None = None
        self._alone, self._stages = 0.0, dict[str, float]()
        self._all: list[tuple[rank_times.Spent, float]] = []

    def hot(self, db: gquery.Connection, text: str, runs: int) -> float:
        """The median of the seconds of so many runs on the cluster."""
        ran, seconds = [], []
        self._client.run(rank_times.noted)
        for _ in range(runs):
            begin = time.perf_counter()
            db.sql(text).fetchall()
            end = time.perf_counter()
            found = [t for noted in self._client.run(rank_times.noted).values() for t in noted if t.rank >= 0]
            ran.append((begin, end, sorted(found, key=lambda t: t.rank)))
            seconds.append(end - begin)
        self._of_query = rank_times.spent(ran)
        return statistics.median(seconds)

    def alone(self, db: gquery.Connection, text: str, runs: int) -> float:
        """The same in this process."""
        cpu, seconds, stages = [], [], []
        for _ in range(runs):
            self._notes.taken()
            start = time.thread_time()
            seconds.append(timed(db, text)[1])
            cpu.append(time.thread_time() - start)
            stages.append(self._notes.taken()[0].stages)
        self._alone, self._stages = min(cpu), {s: min(of_run[s] for of_run in stages) for s in stages[0]}
        return statistics.median(seconds)

    def print_query(self) -> None:
        """A line of the query that ran last, and one of each stage."""
        spent = self._of_query
        assert spent is not None
        self._all.append((spent, self._alone))
        print(f"      {_told(spent, self._alone)}")
        if self._by_stage:
            for stage, of_ranks in spent.stages.items():
                print(f"      {stage:40} {' '.join(f'{1e3 * s:6.1f}' for s in of_ranks)}")
            for stage, seconds in self._stages.items():
                print(f"        alone {stage:34} {1e3 * seconds:6.1f}")

    def print_all(self) -> None:
        """The sums."""
        of_all = [s for s, _ in self._all]
        print(_told(rank_times.sum_of(of_all), sum(alone for _, alone in self._all)))


def _told(spent: rank_times.Spent, alone: float) -> str:
    beside = f"; one process {1e3 * alone:.1f} ms, the longest way {spent.longest / alone:.3f} of it" if alone else ""
    return (
        f"CPU ms of a rank {1e3 * spent.mean:.1f}, the longest way {1e3 * spent.longest:.1f}, "
        f"by the clock {1e3 * spent.clock:.1f}, before {1e3 * spent.before:.1f}, behind {1e3 * spent.behind:.1f}{beside}"
    )


def timed(db: gquery.Connection, text: str) -> tuple[gquery.Relation, float]:
    """A query that has run, and its seconds."""
    start = time.perf_counter()
    result = db.sql(text)
    result.fetchall()
    return result, time.perf_counter() - start


def _hot(db: gquery.Connection, text: str, runs: int) -> float:
    return statistics.median(timed(db, text)[1] for _ in range(runs))


@contextmanager
def cluster(workers: int, threads: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler with so many workers, all processes of this machine that end with it."""
    from distributed import Client

    where = Path(tempfile.mkdtemp()) / "scheduler.json"
    common = ["--scheduler-file", str(where), "--dashboard-address", "127.0.0.1:0"]
    own = [["scheduler", "--host", "127.0.0.1", "--port", "0"]]
    own += [["worker", "--no-nanny", "--nthreads", str(threads), "--memory-limit", "0"]] * workers
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{name}", *more, *common], stderr=subprocess.DEVNULL
        )
        for name, *more in own
    ]
    try:
        while not where.exists() or not where.read_text():
            time.sleep(0.1)
        address: str = json.loads(where.read_text())["address"]
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)
        yield address, processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def socket_bytes() -> int:
    """What this process has sent and got through its TCP sockets, which are open still; 0 where there is no `ss` to tell."""
    if shutil.which("ss") is None:
        return 0
    listed = subprocess.run(["ss", "-tinpO"], capture_output=True, text=True, check=True).stdout
    own = [line for line in listed.splitlines() if f"pid={os.getpid()}," in line]
    return sum(int(n) for line in own for n in re.findall(r"bytes_(?:received|sent):(\d+)", line))


if __name__ == "__main__":
    main()
