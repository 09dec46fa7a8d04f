"""A group-by, a sort and a join whose states need ten times a GPU's memory limit: parts lie on the host, or in files.

    python -m benchmarks.spilled_on_device                                on a GPU: 200 M keys, 400 M rows, 300 with 300
    python -m benchmarks.spilled_on_device --share 0.001 --device cpu     on a CPU that stands for one

Each query runs without a limit first, which gives its answer and the most memory of the pool, and then with a tenth of that. A
line has the seconds of the first run and the least of two more, GB that went below in parts, in how many parts, the most GB of
the GPU as its driver has it above an idle connection, and how many times the floor the hot run takes. The floor is what has to
cross the link at 55 GB/s: rows go in, out in parts, and in again; groups, and the sorted rows, go out as well, and groups in.

With --host-limit parts lie in files, and a second floor is what these take: rows go in over the link, and what goes out and in
again is written and read as fast as plain threads write new files of spill_directory and read them, which is measured first, with
as many bytes as the largest query has, 4 GB at most: so a disk that is slower than the link shows, and so does the page cache.
"""

from __future__ import annotations

import argparse
import gc
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

import gquery
from benchmarks.streamed import used_bytes
from gquery import tuning
from gquery.device.spill import default_directory, unnamed_file
from gquery.execution.program import run_with_report
from gquery.runtime.threads import core_count

ROWS = {"groups": 200_000_000, "rows": 400_000_000, "probed": 300_000_000, "built": 300_000_000}
QUERIES = {
    "group by": (("groups",), "SELECT count(*), sum(n), max(s), min(k) "
                 "FROM (SELECT k, count(*) AS n, sum(v) AS s FROM groups GROUP BY k)"),
    "order by": (("rows",), "SELECT k, v FROM rows ORDER BY k, v LIMIT 10 OFFSET {half}"),
    "join": (("probed", "built"), "SELECT count(*), sum(probed.v), sum(built.v) FROM probed JOIN built ON probed.k = built.k"),
}  # fmt: skip
LINK = 55e9


def table(rows: int, seed: int) -> pa.Table:
    """Keys, as many as rows and most of them once, spread over 48 bits, and values of 33 bits."""
    made = {}
    at = np.arange(rows, dtype=np.uint64)
    for name, bits, most in (("k", 48, rows), ("v", 33, 0)):
        mixed = (at + np.uint64(seed * 2**40 + bits)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed >>= np.uint64(64 - bits)
        if most:
            step = np.uint64(2**bits // most)
            mixed //= step
            mixed *= step
        made[name] = mixed.view(np.int64)
    return pa.table(made)


def seconds_of(connection: gquery.Connection, sql: str, runs: int) -> tuple[list[float], list[tuple[object, ...]]]:
    """The seconds of each run, and the rows."""
    seconds: list[float] = []
    rows: list[tuple[object, ...]] = []
    for _ in range(runs):
        start = time.perf_counter()
        rows = connection.sql(sql).fetchall()
        seconds.append(time.perf_counter() - start)
    return seconds, rows


@contextmanager
def peak_of(connection: gquery.Connection, peak: list[int]) -> Iterator[None]:
    """Within it, the most bytes that arrays of a device take are added to the list."""
    device = connection.device
    if not device.is_cuda:
        yield
        peak.append(device.account.peak)
        return
    import cupy

    most = 0

    class Hook(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = "peak"

        def malloc_postprocess(self, **_: object) -> None:
            nonlocal most
            most = max(most, device.pool.used_bytes())

    with Hook():
        yield
    peak.append(most)


def file_rates(size: int) -> tuple[float, float]:
    """Bytes a second that go to new files, one a thread, and come back from them."""
    threads = min(tuning.transfers.file_movers, core_count())
    block, steps = np.random.default_rng(1).bytes(1 << 21), max(size // threads >> 21, 1)
    rooms = [bytearray(1 << 21) for _ in range(threads)]
    files = [unnamed_file(default_directory()) for _ in range(threads)]

    def write(n: int) -> None:
        for at in range(steps):
            os.pwrite(files[n], block, at << 21)

    def read(n: int) -> None:
        for at in range(steps):
            os.preadv(files[n], [rooms[n]], at << 21)

    rates = []
    with ThreadPoolExecutor(threads) as pool:
        for work in (write, read):
            start = time.perf_counter()
            list(pool.map(work, range(threads)))
            rates.append((threads * steps << 21) / (time.perf_counter() - start))
    for file in files:
        os.close(file)
    print(f"files of {default_directory()}, {threads} threads: {rates[0] / 1e9:.2f} GB/s written, {rates[1] / 1e9:.2f} read")
    return rates[0], rates[1]


def measured(name: str, given: argparse.Namespace, limit: int, rates: tuple[float, float] | None) -> bool:
    """Print the line of a query; whether it is right, and was made in parts."""
    names, text = QUERIES[name]
    tables = {t: table(int(ROWS[t] * given.share), k) for k, t in enumerate(names)}
    sql, size = text.format(half=int(ROWS["rows"] * given.share) // 2), sum(t.nbytes for t in tables.values())
    peak: list[int] = []
    with gquery.connect(given.device, devices=[0], memory_limit="120GB") as free:
        for t, made in tables.items():
            free.register(t, made)
        with peak_of(free, peak):
            whole, want = seconds_of(free, sql, 2)
    gc.collect()
    limit = limit or peak[0] // 10
    with gquery.connect(given.device, devices=[0], memory_limit=limit) as small:
        if given.host_limit:
            small.set("host_memory_limit", given.host_limit)
        for t, made in tables.items():
            small.register(t, made)
        idle = used_bytes(small)
        try:
            seconds, got = seconds_of(small, sql, 1 + given.runs)
        except gquery.Error as error:
            print(f"{name:10}{peak[0] / 1e9:8.2f}{limit / 1e9:7.2f} {error}", flush=True)
            return False
        used = used_bytes(small) - idle
        prepared = small.sql(sql).prepared
        assert prepared is not None
        _, reports = run_with_report(small._program(prepared), small._context(), prepared.feedback)
    below, parts = sum(r.spilled_bytes for r in reports), sum(r.parts for r in reports)
    groups = 3 * int(0.632 * ROWS["groups"] * given.share) * 8
    out, again = {"group by": (groups, groups), "order by": (size, 0), "join": (0, 0)}[name]
    hot, is_right = min(seconds[1:]), got == want and parts > 0 and below > 0
    floor = (3 * size + out + again) / LINK
    of_files = size / LINK + (size + out) / rates[0] + (size + again) / rates[1] if rates else 0.0
    print(
        f"{name:10}{peak[0] / 1e9:8.2f}{limit / 1e9:7.2f}{seconds[0]:9.2f}{hot:8.3f}{min(whole):8.3f}{below / 1e9:10.2f}"
        f"{parts:7}{used / 1e9:7.2f}{hot / floor:8.2f}{f'{hot / of_files:10.2f}' if rates else ''}"
        f"  {'right' if is_right else 'wrong'}",
        flush=True,
    )
    return is_right


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--host-limit", help="host_memory_limit: beyond it parts lie in files")
    parser.add_argument("--limits", default="", help="bytes for each query, instead of a tenth of what it needs")
    given = parser.parse_args()
    asked = given.queries.split(",")
    limits = [int(float(w)) for w in given.limits.split(",") if w] or [0] * len(asked)
    words = ("needs", "limit", "first s", "hot s", "free s", "GB below", "parts", "peak", "floors")
    largest = max(sum(ROWS[t] for t in QUERIES[n][0]) for n in asked) * 16
    rates = file_rates(min(int(largest * given.share), 4 * 10**9)) if given.host_limit else None
    last = ("of files",) if rates else ()
    print(" " * 10 + "".join(w.rjust(n) for w, n in zip(words + last, (8, 7, 9, 8, 8, 10, 7, 7, 8, 10), strict=False)))
    right = [measured(name, given, limit, rates) for name, limit in zip(asked, limits, strict=True)]
    return int(not all(right))


if __name__ == "__main__":
    raise SystemExit(main())
