"""First and hot runs of a workload, a query after the other, with DuckDB beside it.

    python -m benchmarks.runs tpcds --sf 1                    first runs with an empty cache, then hot ones
    python -m benchmarks.runs tpch --compiler numba           the same with the second compiler
    python -m benchmarks.runs clickbench --no-duckdb --device cuda --rows 5_000_000
    python -m benchmarks.runs tpcds --files FOLDER --device cuda --learn     tables from files; views of them: --views

*first* is the time of a query's first run in this process, from its text to its rows, planning and compiling included; the
cache of compiled kernels is empty at the beginning and kept by `--cache`. *hot* is the median of the runs behind it; with
`--learn` of those behind the last one that changed how the query runs (on a GPU, behind its recording).
The tables are in memory in both engines (`benchmarks.rules.workloads` says where they come from). Rows are compared up
to ties of a LIMIT (`benchmarks.ties`), and a query whose rows differ is named. Queries that gquery refuses are listed with
what it says.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gquery
from benchmarks.literals import learn
from benchmarks.rules import workloads
from benchmarks.ties import difference
from gquery.runtime.stopwatch import PARTS, Part, Watch, watched

LEAST_SHOWN = 0.005  # seconds

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Run:
    """Seconds of one query in both engines; ``wrong`` says how the rows differ, ``state`` whether it is replayed on a GPU,
    ``parts`` what the first run spent its seconds on."""

    name: str
    first: float
    hot: float
    duckdb: float | None
    wrong: str | None
    state: str
    parts: Mapping[Part, float]


def timed(work: Callable[[], Rows]) -> tuple[float, Rows]:
    start = time.perf_counter()
    rows = work()
    return time.perf_counter() - start, rows


def median(work: Callable[[], Rows], runs: int) -> float:
    return statistics.median(timed(work)[0] for _ in range(runs))


def oracle_of(
    connection: gquery.Connection, threads: int | None, files: Path | None = None, views: bool = False
) -> Any:
    """DuckDB with the same tables or views."""
    import duckdb

    made = duckdb.connect(config={} if threads is None else {"threads": threads})
    if files is not None:
        for path in files.glob("*.parquet"):
            made.execute(f"CREATE {'VIEW' if views else 'TABLE'} \"{path.stem}\" AS SELECT * FROM '{path}'")
        return made
    for (name,) in connection.sql("SHOW TABLES").fetchall():
        made.register("given", connection.table(name).arrow())
        made.execute(f'CREATE TABLE "{name}" AS SELECT * FROM given')
        made.unregister("given")
    return made


def replay_state(connection: gquery.Connection, sql: str) -> str:
    """On a GPU, whether a text's runs are replayed as a graph, and what stands in the way."""
    plan = connection._plans.find(sql, None, connection.settings)
    if connection.device.is_cpu or plan is None:
        return ""
    progress = plan.feedback.replay
    return "replayed" if progress.recorded else progress.refused or "not recorded"


def measured(connection: gquery.Connection, oracle: Any | None, name: str, sql: str, given: argparse.Namespace) -> Run:
    """One query; gquery's error where it is refused."""
    runs = given.runs
    with watched(watch := Watch()):
        first, got = timed(lambda: connection.sql(sql).fetchall())
    if given.learn:
        learn(connection, sql)
    hot = median(lambda: connection.sql(sql).fetchall(), runs)
    state = replay_state(connection, sql)
    if oracle is None:
        return Run(name, first, hot, None, None, state, watch.seconds)
    beside, want = timed(lambda: oracle.execute(sql).fetchall())
    types = [str(d[1]) for d in oracle.description]
    if not given.views:  # whose run takes seconds, of reading
        beside = median(lambda: oracle.execute(sql).fetchall(), runs)
    return Run(name, first, hot, beside, difference(oracle, sql, got, want, types), state, watch.seconds)


def print_line(r: Run, parts: bool = False) -> None:
    beside = "" if r.duckdb is None else f"{1e3 * r.duckdb:11.1f}{r.hot / r.duckdb:12.2f}"
    wrong = "" if r.wrong is None else "  WRONG"
    spent = ", ".join(f"{part} {1e3 * s:.0f}" for part, s in r.parts.items() if s >= LEAST_SHOWN) if parts else r.state
    print(f"{r.name:>8}{1e3 * r.first:10.1f}{1e3 * r.hot:10.1f}{beside}{wrong}  {spent}", flush=True)


def print_sums(runs: Sequence[Run], refused: dict[str, str]) -> None:
    first, hot = sum(r.first for r in runs), sum(r.hot for r in runs)
    line = f"{len(runs)} queries: first {first:.2f} s, the slowest {max(r.first for r in runs):.2f} s; hot {hot:.3f} s"
    peers = [r for r in runs if r.duckdb is not None]
    if peers:
        all_ = sum(r.duckdb or 0.0 for r in peers)
        line += f"; DuckDB {all_:.3f} s: {hot / all_:.2f} times, one {max(r.hot / (r.duckdb or 1.0) for r in peers):.2f} times"
    print(line)
    spent = {part: sum(r.parts[part] for r in runs) for part in PARTS}
    print("first runs by part: " + ", ".join(f"{part} {s:.2f} s" for part, s in spent.items() if s >= LEAST_SHOWN))
    for r in runs:
        if r.wrong is not None:
            print(f"WRONG {r.name}: {r.wrong}")
    for name, why in refused.items():
        print(f"refused {name}: {why}")


def made(given: argparse.Namespace) -> workloads.Workload:
    """The workload that was asked for."""
    match given.workload:
        case "tpch":
            return workloads.tpch(given.sf)
        case "tpcds":
            return workloads.tpcds(given.sf, given.files, given.views)
        case "clickbench":
            return workloads.clickbench(given.rows)
        case _:
            return workloads.job()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("workload", choices=["tpch", "tpcds", "job", "clickbench"])
    parser.add_argument("--sf", type=float, default=1.0, help="scale factor of TPC-H and TPC-DS")
    parser.add_argument("--runs", type=int, default=3, help="hot runs")
    parser.add_argument(
        "--learn", action="store_true", help="let a query run until nothing more is learned before hot runs"
    )
    parser.add_argument("--parts", action="store_true", help="what each first run spent its milliseconds on")
    parser.add_argument("--queries", help="names of queries, with commas between them")
    parser.add_argument("--rows", type=int, default=workloads.HITS, help="rows of ClickBench's table")
    parser.add_argument("--files", type=Path, help="folder of TPC-DS's Parquet files")
    parser.add_argument(
        "--views", action="store_true", help="views of the files in both engines, which first runs read"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compiler", default="llvm")
    parser.add_argument("--interpret-limit", type=int)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--partitions", type=int, help="ranks")
    parser.add_argument("--memory-limit", dest="memory_limit")
    parser.add_argument("--cache", help="a folder of compiled kernels that stays")
    parser.add_argument("--duckdb", action=argparse.BooleanOptionalAction, default=True)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # kernels proper may still be written
        os.environ["GQUERY_CACHE_DIR"] = given.cache or folder
        workload = made(given)
        connection = workload.connect(given.device)
        for name in ("compiler", "interpret_limit", "threads", "partitions", "memory_limit"):
            if getattr(given, name) is not None:
                connection.set(name, getattr(given, name))
        oracle = oracle_of(connection, given.threads, given.files, given.views) if given.duckdb else None
        wanted = given.queries.split(",") if given.queries else list(workload.texts)
        runs, refused = [], {}
        print(f"{workload.name}, {workload.data}, compiler {given.compiler}")
        print(f"{'query':>8}{'first ms':>10}{'hot ms':>10}{'DuckDB ms':>11}{'hot/DuckDB':>12}", flush=True)
        for name in wanted:
            try:
                runs.append(measured(connection, oracle, name, workload.texts[name], given))
            except (gquery.NotSupportedError, gquery.BindError) as error:
                refused[name] = str(error).splitlines()[0]
            else:
                print_line(runs[-1], given.parts)
        print_sums(runs, refused)


if __name__ == "__main__":
    main()
