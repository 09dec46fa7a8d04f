"""Memory of a process after many different queries: what is kept of each has to be bounded.

    python -m benchmarks.memory                               20,000 queries of random shapes, interpreted
    python -m benchmarks.memory --queries 1000000 --same      one shape, constants that differ
    python -m benchmarks.memory --target cpu --queries 500    compiled, every kernel of them

Queries are those of `tests.support.queries`, over tables of a few rows, so that what is measured is what plans and kernels leave
behind. A line has the resident memory of the process in MiB (Linux), what came to it since the first line, the kernels
that the target holds, their texts for tracebacks, objects that Python's collector knows, queries that took more than 5 seconds
or 64 MB and were ended, and seconds so far. With
``--target cpu`` workers compile in processes of their own, whose memory is not in it.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import linecache
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import gquery
from gquery.kernels.targets import get_target
from tests.support.queries import Generator, random_tables

MOST_SECONDS = 5  # a few random queries join a billion rows, which the interpreter takes hours for
MOST_MEMORY = (
    "64MB"  # a few random queries have hundreds of millions of rows, which as Python's values fill any machine
)
_SAME = (
    "SELECT k, count(*), sum(j + {0}) AS v FROM t0 WHERE i <> {1} AND s <> 'x{0}' GROUP BY k ORDER BY v + {0} LIMIT {1}"
)


def resident() -> float:
    """MiB of this process that lie in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def texts(same: bool, seed: int) -> Iterator[str]:
    """Queries that differ in their constants alone, or in all."""
    for n in itertools.count(seed):
        yield _SAME.format(n, n % 1000) if same else Generator(n).query()


def marks(first: int) -> Iterator[int]:
    """The numbers of queries after which a line is printed: 1000, 2000, 5000, 10000, ..."""
    for tens in itertools.count():
        yield from (first * factor * 10**tens for factor in (1, 2, 5))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=1_000, help="queries before the first line")
    parser.add_argument("--target", default="python", help="python, cpu, cuda")
    parser.add_argument("--same", action="store_true", help="queries of one shape, whose constants differ")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    connection = gquery.connect(given.target)
    if given.target != "python":
        connection.sql("SET interpret_limit = 0")
    connection.sql(f"SET memory_limit = '{MOST_MEMORY}'")
    for name, table in random_tables(given.seed).items():
        connection.register(name, table)
    print(f"{'queries':>9}{'MiB':>9}{'since':>9}{'kernels':>9}{'texts':>9}{'objects':>11}{'refused':>9}{'seconds':>9}")
    wanted = marks(given.first)
    mark, base, refused, start = next(wanted), None, 0, time.perf_counter()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for n, sql in enumerate(itertools.islice(texts(given.same, given.seed), given.queries), 1):
        try:
            signal.alarm(MOST_SECONDS)
            connection.sql(sql).fetchall()
            signal.alarm(0)  # one that has fired is raised here at the latest
        except (gquery.Error, KeyboardInterrupt):
            signal.alarm(0)
            refused += 1
        if n not in (mark, given.queries):
            continue
        mark = next(wanted) if n == mark else mark
        gc.collect()
        now = resident()
        base = now if base is None else base
        held, kept = len(get_target(given.target).held()), sum(f.startswith("<gquery") for f in linecache.cache)
        line = f"{n:9,}{now:9.0f}{now - base:9.0f}{held:9,}{kept:9,}{len(gc.get_objects()):11,}{refused:9,}"
        print(f"{line}{time.perf_counter() - start:9.0f}", flush=True)


if __name__ == "__main__":
    main()
