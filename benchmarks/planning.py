"""What a TPC-H query costs before its first kernel is launched: parse, bind, optimize, lower, and the kernels' source.

    python benchmarks/planning.py                             data/sf0.01, the cpu target
    python benchmarks/planning.py --data data/sf1 --queries 2,9 --profile
    python -m benchmarks.planning --tpcds 0.01                TPC-DS's queries that gquery runs, the longest first
    python -m benchmarks.planning --long                      queries that nest deeply or are long, no data needed

Columns are loaded first (each query runs once) and kept plans are cleared before every sample, so what is timed is the
way of a new text over tables that are there, whose plan is made as a template's; nothing is compiled in it. A row is the
medians of ``--runs`` samples after one more, in milliseconds: the phases one after another, their sum, and ``kept``, the
way of the same text again up to where its program starts, with the plan kept. ``other`` is the same of texts with other
random parameters, each of which is new, and ``hits`` how many of them a template served. ``--profile`` prints cProfile's
table of the planning of all queries instead. ``--long`` prints for each long query the seconds of its planning, and of
compiling its kernels for the cpu target with an empty cache. Where others use the machine, ``calls`` of ``--tpcds`` are
what can be compared.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pyarrow as pa

import gquery
import gquery.execution
from benchmarks.rules import workloads
from gquery.api.connection import Connection
from gquery.execution import ExecutionContext
from gquery.execution.prepare import forecast
from gquery.kernels.targets import compile_many, get_target
from gquery.operators.codegen import units
from gquery.planner.physical import Program
from gquery.runtime import collector
from gquery.sql.parse import parse
from gquery.sql.statement import SelectStatement
from tpch import parameters, queries

now = time.perf_counter
PHASES = ("parse", "bind", "optimize", "lower", "source")


def connected(folder: Path) -> Connection:
    """A connection to the tables of a folder."""
    connection = gquery.connect(device="cpu")
    for table in queries.TABLES:
        connection.sql(f"CREATE TABLE {table} AS SELECT * FROM '{folder / table}.parquet'")
    return connection


def phases(connection: Connection, sql: str) -> list[float]:
    """Seconds of each phase of a text's way, one call a phase as `Connection.sql` and `run_plan` make them."""
    clock = [now()]

    def lap() -> None:
        clock.append(now())

    with collector.paused():  # as `Connection.sql` has it
        question = connection._templates.question(sql, None, connection.settings)
        assert question is not None
        (parsed,) = parse(sql, question.tokens)
        lap()
        statement, template = connection._bind(parsed, None, question, "")
        assert isinstance(statement, SelectStatement)
        parsed.release()
        del parsed
        lap()
        planned = connection._plan(statement.query, template=template)
    lap()
    program = connection._program(planned)
    lap()
    write_source(program, connection._context())
    lap()
    return [after - before for before, after in pairwise(clock)]


def write_source(program: Program, context: ExecutionContext) -> None:
    """The kernels of every pipeline, and the hashes by which they are found on disk."""
    for found in forecast(program, replace(context, settings=replace(context.settings, interpret_limit=0))):
        for unit in units(found.runs.pipeline, found.runs.target):
            _ = unit.kernel.digest


@contextmanager
def no_execution() -> Iterator[None]:
    """Programs are handed over but not run."""
    with mock.patch.object(gquery.execution, "run"):
        yield


def kept(connection: Connection, sql: str) -> list[float]:
    """Seconds from a text whose plan is kept to the start of its program."""
    start = now()
    connection.sql(sql).execute()
    return [now() - start]


def other_texts(connection: Connection, number: int, sf: float, runs: int) -> tuple[float, int]:
    """The median milliseconds from a text of the same shape with other constants to the start of its program, and how many
    of the texts a template served; the first texts make templates."""
    texts = [parameters.sql(number, seed, sf) for seed in range(runs + 3)]
    for sql in texts[:3]:
        connection.sql(sql).execute()
    taken: list[float] = []
    hits = 0
    for sql in texts[3:]:
        connection._plans.clear()
        with no_execution():
            start = now()
            relation = connection.sql(sql)
            relation.execute()
            taken.append(now() - start)
        hits += relation.prepared is not None and relation.prepared.template == "hit"
    return statistics.median(taken) * 1e3, hits


def median_of(runs: int, sample: Callable[[], list[float]]) -> list[float]:
    """The median of each number of the samples, after one that does not count, in milliseconds."""
    taken = [sample() for _ in range(runs + 1)][1:]
    return [statistics.median(column) * 1e3 for column in zip(*taken, strict=True)]


def profile(connection: Connection, texts: list[str], lines: int) -> None:
    """cProfile's table of planning all texts, by time spent in the function itself."""
    profiler = cProfile.Profile()
    for sql in texts * 3:
        profiler.enable()
        phases(connection, sql)
        profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data/sf0.01"), help="folder of the Parquet files")
    parser.add_argument("--queries", default="1-22", help="as in 1,3-5")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--profile", type=int, nargs="?", const=50, metavar="LINES")
    parser.add_argument("--cpu-time", action="store_true", help="of the planning thread, where others use the machine")
    parser.add_argument("--long", action="store_true", help="long queries: seconds of planning and of compiling")
    parser.add_argument("--tpcds", type=float, metavar="SF", help="TPC-DS's queries at a scale factor")
    given = parser.parse_args()
    if given.cpu_time:
        global now
        now = time.thread_time
    if given.long:
        print_long()
        return
    if given.tpcds:
        print_tpcds(given.tpcds, given.runs)
        return
    connection = connected(given.data)
    numbers = queries.parse_numbers(given.queries)
    texts = {n: queries.sql(n) for n in numbers}
    for sql in texts.values():
        connection.sql(sql).execute()
    if given.profile:
        profile(connection, list(texts.values()), given.profile)
        return
    print(f"{'ms':4}" + "".join(f"{name:>10}" for name in (*PHASES, "total", "kept", "other", "hits")))
    sf = float(given.data.name.removeprefix("sf"))
    rows: list[list[float]] = []
    for number, sql in texts.items():
        times = median_of(given.runs, partial(_fresh, connection, sql))
        with no_execution():
            times += median_of(given.runs, partial(kept, connection, sql))
        other, hits = other_texts(connection, number, sf, given.runs)
        times.append(other)
        rows.append(times)
        print(f"{number:<4}" + "".join(f"{t:10.2f}" for t in times[:-2]) + f"{times[-2]:10.3f}{other:10.3f}{hits:10}")
    summaries: dict[str, Callable[[Any], float]] = {"med": statistics.median, "max": max}
    for name, summary in summaries.items():
        columns = [summary(column) for column in zip(*rows, strict=True)]
        print(f"{name:4}" + "".join(f"{t:10.2f}" for t in columns[:-2]) + "".join(f"{t:10.3f}" for t in columns[-2:]))


def nested(template: str, levels: int) -> str:
    """A template put into itself at its ``@``, with the number of the level for ``#``."""
    text = "x"
    for n in range(levels):
        text = template.replace("@", text).replace("#", str(n))
    return f"SELECT {text} AS v FROM t"


def long_queries() -> dict[str, str]:
    chain = ["c0 AS (SELECT x, y FROM t)"]
    chain += [f"c{n} AS (SELECT a.x, b.y FROM c{n - 1} a JOIN c{n - 1} b ON a.x = b.x)" for n in range(1, 20)]
    terms = " AND ".join(f"x + {k} {'<>' if k % 3 else '<'} y * {k}" for k in range(2000))
    return {
        "CASE, 60 levels": nested("CASE WHEN y > # THEN @ ELSE # END", 60),
        "coalesce, 60 levels": nested("coalesce(@, y - #)", 60),
        "greatest, 60 levels": nested("greatest(@, y - #)", 60),
        "20 chained CTEs": f"WITH {', '.join(chain)} SELECT count(*) FROM c19",
        "2,000 AND terms": f"SELECT count(*) FROM t WHERE {terms}",
        "500 columns": f"SELECT {', '.join(f'x * {k} + coalesce(y, {k}) AS c{k}' for k in range(500))} FROM t",
    }


def print_tpcds(sf: float, runs: int) -> None:
    """A line for each query that runs: medians of its phases, and the calls of functions that its planning makes."""
    workload = workloads.tpcds(sf)
    connection = workload.connect()
    rows: list[tuple[list[float], int, str]] = []
    for name, sql in workload.texts.items():
        with suppress(gquery.Error):
            connection.sql(sql).execute()
            times = median_of(runs, partial(_fresh, connection, sql))
            rows.append((times, _calls(connection, sql), name))
    print(f"{'ms':4}" + "".join(f"{name:>10}" for name in (*PHASES, "total", "calls")))
    for times, calls, name in sorted(rows, key=lambda row: -row[0][-1]):
        print(f"{name:<4}" + "".join(f"{t:10.2f}" for t in times) + f"{calls:10}")
    totals = [times[-1] for times, _, _ in rows]
    print(f"{len(rows)} queries: median {statistics.median(totals):.2f}, greatest {max(totals):.2f}")


def _calls(connection: Connection, sql: str) -> int:
    profiler = cProfile.Profile()
    profiler.enable()
    phases(connection, sql)
    profiler.disable()
    return sum(entry.callcount for entry in profiler.getstats())


def print_long() -> None:
    """A line for each long query; the first one, of no account, has the compiler imported."""
    connection = gquery.connect(device="cpu").register("t", pa.table({"x": [1, None, 7], "y": [0, 7, None]}))
    connection.sql("SET interpret_limit = 0")
    with TemporaryDirectory() as folder, mock.patch.dict(os.environ, GQUERY_CACHE_DIR=folder):
        connection.sql("SELECT x + y FROM t").fetchall()
        print(f"{'seconds':22}{'planning':>10}{'compiling':>11}{'first run':>11}")
        for name, sql in long_queries().items():
            planning = sum(phases(connection, sql))
            start = now()
            compile_many(get_target("cpu"), connection.kernels(sql))
            compiling = now() - start
            start = now()
            connection.sql(sql).fetchall()
            print(f"{name:22}{planning:10.2f}{compiling:11.2f}{now() - start:11.2f}", flush=True)


def _fresh(connection: Connection, sql: str) -> list[float]:
    connection._plans.clear()
    taken = phases(connection, sql)
    return [*taken, sum(taken)]


if __name__ == "__main__":
    main()
