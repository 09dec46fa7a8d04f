"""TPC-H under a device's memory limit: columns lie on the host, and what does not fit goes through the device in chunks.

    python -m benchmarks.streamed --sf 100 --limit 8GB --queries 1,6,1-22      on a GPU
    python -m benchmarks.streamed --sf 1 --limit 60MB --device cpu             on a CPU that stands for one

A line has, for a query, the seconds of its first run (with reading, compiling, locking pages) and the least of its hot runs, the
bytes that went through the device in chunks, that divided by the hot seconds, and whether the answer has the checksum that a run
without a limit wrote (``python -m tpch run --checksums FILE``). At the end stand the sums, and the most memory of the GPU that
was in use, as its driver has it, above that of an idle connection.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import gquery
from gquery.errors import Error
from gquery.execution.program import run_with_report
from tpch import queries
from tpch.attach import attach
from tpch.checksum import Checksum, checksum, mismatch, read
from tpch.validate import order_columns

GB = 1e9


def used_bytes(connection: gquery.Connection) -> int:
    """What is in use of the device: of a GPU as the driver has it, for all that run there."""
    device = connection.device
    if not device.is_cuda:
        return device.account.peak
    free, total = device.xp.cuda.runtime.memGetInfo()
    return int(total - free)


_most = [0]


@contextmanager
def watched(connection: gquery.Connection) -> Iterator[None]:
    """Within it, the most memory of the device that is in use is looked for every 5 ms."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.005):
            _most[0] = max(_most[0], used_bytes(connection))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def measured(connection: gquery.Connection, sql: str, runs: int) -> tuple[float, float, int, Any]:
    """Seconds of the first run and the least of others, bytes that were streamed, and the result."""
    seconds = []
    for n in range(1 + runs):
        start = time.perf_counter()
        with watched(connection) if n == 0 else nullcontext():
            made = connection.sql(sql).to_arrow_table()
        seconds.append(time.perf_counter() - start)
    prepared = connection.sql(sql).prepared
    assert prepared is not None
    _, reports = run_with_report(connection._program(prepared), connection._context(), prepared.feedback)
    return seconds[0], min(seconds[1:]), sum(r.streamed_bytes for r in reports), made


def verdict(sql: str, made: Any, expected: Checksum | None) -> str:
    """``right``, ``unchecked``, or what is wrong."""
    if expected is None:
        return "unchecked"
    return mismatch(checksum(_rows(made), order_columns(sql, made.column_names)), expected) or "right"


def _rows(made: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in made.columns), strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sf", type=float, default=1.0)
    parser.add_argument("--limit", default="8GB")
    parser.add_argument("--queries", default="1-22")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--expect-checksums", type=Path)
    parser.add_argument("--free", action="store_true", help="answers are those of runs without a limit, made before")
    given = parser.parse_args()
    known = {} if given.expect_checksums is None else read(given.expect_checksums, {})
    if given.free:
        with gquery.connect(given.device, devices=[0]) as free:
            attach(free, given.sf, print)
            for number in queries.parse_numbers(given.queries):
                made, sql = free.sql(queries.sql(number)).to_arrow_table(), queries.sql(number)
                known[number] = checksum(_rows(made), order_columns(sql, made.column_names))
    connection = gquery.connect(given.device, memory_limit=given.limit, devices=[0])
    attach(connection, given.sf, print)
    idle, most, total, bad = used_bytes(connection), 0, 0.0, 0
    print(f"{'':5}{'first s':>9}{'hot s':>9}{'streamed GB':>13}{'GB/s':>7}")
    for number in queries.parse_numbers(given.queries):
        sql = queries.sql(number)
        try:
            first, hot, streamed, made = measured(connection, sql, given.runs)
        except Error as error:
            bad += 1
            print(f"Q{number:<4}{type(error).__name__}: {error}", flush=True)
            continue
        wrong = verdict(sql, made, known.get(number))
        bad += wrong not in ("right", "unchecked")
        total += hot
        most = max(most, used_bytes(connection), _most[0])
        print(f"Q{number:<4}{first:9.3f}{hot:9.4f}{streamed / GB:13.3f}{streamed / GB / hot:7.1f}  {wrong}", flush=True)
    print(f"hot, all: {total:.3f} s; {bad} wrong or refused; at most {(most - idle) / GB:.2f} GB above idle")
    return min(bad, 1)


if __name__ == "__main__":
    raise SystemExit(main())
