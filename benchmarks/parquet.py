"""What it costs to come from Parquet files: reading TPC-H's columns table by table, and the 22 queries in a new process.

    python benchmarks/parquet.py                                      data/sf1, the CPU
    python benchmarks/parquet.py --data data/sf30 --device cuda       on the GPU, columns copied there
    python benchmarks/parquet.py --only columns                       or --only queries

Every part runs in a process of its own with nothing loaded; the files lie in the page cache, as each part first reads
them once. *Columns*: all columns that the 22 queries use, a table at a time. GB/s counts the bytes of these columns in
the files (compressed). ``decode``, ``encode`` and ``copy`` are seconds of all threads together, so with 16 threads
they may add up to 16 times the wall time. *Queries*: each query once, one after another, over views of the files;
``read`` is the wall time of loading within it, ``compile`` that of kernels. They run twice, in a process each: the
first fills the cache of kernels, so the second tells the time with a warm one.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from gquery.runtime.stopwatch import Part
from tpch import queries

PARTS = ("columns", "queries")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data/sf1"), help="the folder of the eight files (data/sf1)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1")
    parser.add_argument("--threads", type=int, help="threads that read (all cores)")
    parser.add_argument("--only", choices=PARTS, help="one part alone")
    parser.add_argument("--within", choices=PARTS, help=argparse.SUPPRESS)  # this process is the one that measures
    options = parser.parse_args()
    if options.within is not None:
        within = {"columns": measure_columns, "queries": measure_queries}[options.within]
        within(options.data, options.device, options.threads)
        return 0
    for table in queries.TABLES:
        warm(options.data / f"{table}.parquet")
    for part in [options.only] if options.only else ("columns", "queries", "queries"):
        print(f"== {part}, {options.data}, {options.device}", flush=True)
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--within", part], check=True)
    return 0


def warm(path: Path) -> None:
    """Have the page cache hold a file."""
    with path.open("rb") as file:
        while file.read(1 << 26):
            pass


def used_columns(names: tuple[str, ...]) -> list[int]:
    """The numbers of those columns that some query names (TPC-H's have names of their own in each table)."""
    text = " ".join(queries.sql(n) for n in queries.NUMBERS).lower()
    return [i for i, name in enumerate(names) if re.search(rf"\b{name}\b", text)]


def measure_columns(folder: Path, device: str, threads: int | None) -> None:
    """Print what reading each table's columns takes."""
    import gquery
    from gquery.io.parquet import ParquetSource

    connection = gquery.connect(device=device, threads=threads)
    connection.sql("SELECT 1").fetchall()
    connection.device.synchronize()
    if connection.device.is_cuda:
        from gquery.device.staging import staging

        began = time.perf_counter()
        staging(connection.device)
        print(f"page-locked buffers {time.perf_counter() - began:.3f} s")
    total, total_file, total_memory = 0.0, 0, 0
    kept = []
    for table in queries.TABLES:
        began = time.perf_counter()
        source = ParquetSource(folder / f"{table}.parquet", cache=connection._cache)
        opened = time.perf_counter() - began
        fields = used_columns(source.schema.names)
        loaded = source.load(fields)
        seconds = time.perf_counter() - began
        kept.append(source)
        in_file = sum(int(c.packed.sum()) for f in fields for c in source._chunks(f))
        spent = source.spent
        on_device = sum(b.nbytes for c in loaded.columns for b in c.buffers if b.is_on(connection.device))
        print(
            f"{table:10}{len(fields):3} columns {source.row_groups[1]:4} row groups {seconds:8.3f} s "
            f"{in_file / 1e9 / seconds:6.2f} GB/s   open {opened:.3f}  load {spent.wall:.3f}  "
            f"threads: decode {spent.decode:.3f}  encode {spent.encode:.3f}  copy {spent.copy:.3f}   "
            f"{in_file / 1e6:,.0f} MB in the file, {loaded.nbytes / 1e6:,.0f} MB, {on_device / 1e6:,.0f} on the device"
        )
        total, total_file, total_memory = total + seconds, total_file + in_file, total_memory + loaded.nbytes
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"all {total:.3f} s, {total_file / 1e9 / total:.2f} GB/s, {total_memory / 1e6:,.0f} MB of columns, peak of the "
        f"host {peak:.1f} GB, CPU {os.times().user:.2f} s, {os.times().system:.2f} in the kernel"
    )


def measure_queries(folder: Path, device: str, threads: int | None) -> None:
    """Print what each query takes, all from the same new process."""
    import gquery
    from gquery.runtime.stopwatch import PARTS as NAMES
    from gquery.runtime.stopwatch import Watch, watched

    began = time.perf_counter()
    connection = gquery.connect(device=device, threads=threads)
    connected = time.perf_counter()
    for table in queries.TABLES:
        connection.sql(f"CREATE VIEW {table} AS SELECT * FROM '{folder / table}.parquet'")
    print(f"connect {connected - began:.3f} s, views {time.perf_counter() - connected:.3f} s")
    sums = dict.fromkeys(NAMES, 0.0)
    total = 0.0
    for number in queries.NUMBERS:
        watch = Watch()
        began = time.perf_counter()
        with watched(watch):
            rows = len(connection.sql(queries.sql(number)).fetchall())
        seconds = time.perf_counter() - began
        total += seconds
        for name, spent in watch.seconds.items():
            sums[name] += spent
        print(f"Q{number:<3}{seconds:8.3f} s {rows:7} rows   {words(watch.seconds)}", flush=True)
    print(f"all {total:8.3f} s                {words(sums)}")


def words(seconds: Mapping[Part, float]) -> str:
    """What took time, in words."""
    return "  ".join(f"{name} {spent:.3f}" for name, spent in seconds.items() if spent >= 0.0005)


if __name__ == "__main__":
    sys.exit(main())
