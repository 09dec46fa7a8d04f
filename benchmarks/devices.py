"""TPC-H hot on one GPU and on several, both connections in one process, and a hash join with a heavy key.

    python -m benchmarks.devices --sf 100 --devices 2 --runs 11
    python -m benchmarks.devices --sf 0.1 --device cpu --devices 3 --runs 3     CPU ranks, to try it out
    python -m benchmarks.devices --join 300_000_000 --devices 2                 join of so many rows with as many
    python -m benchmarks.devices --sf 100 --devices 2 --peak                    memory, in a process for each connection
    python -m benchmarks.devices --sf 300 --devices 2 --apart                   one connection behind the other
    python -m benchmarks.devices --sf 30 --devices 2 --together --runs 15       a connection and a thread for each device

A line has a query's median with one device and with all, milliseconds, what it is divided by, and whether the rows are equal.
Runs, from the text to Arrow, alternate behind as many as it takes until they no longer change (on a GPU: until they are
replayed). At the end stand the sums and the queries over 1.1 times one device. With ``--apart`` all queries are asked of one
device, whose connection is closed then, before they are asked of all: for tables of which a device has no room for the whole
and its part beside. ``--peak`` prints the most memory of each device
in place of times, above that of an idle connection: of a GPU as the driver has it, every 5 ms (`benchmarks.memory_peaks`).
``--together`` gives each device a connection of its own, and each of these a thread: the 22 in all, medians of the rounds, of
each alone and of all at once. It says what threads of one process take from each other.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import gquery
from benchmarks import memory_peaks
from benchmarks.literals import learn
from tests.support.harness import compare
from tpch import queries
from tpch.attach import attach
from tpch.checksum import checksum, write
from tpch.validate import order_columns

WORSE = 1.1  # times one device, from where on a query is named


@dataclass(frozen=True)
class Line:
    """Medians of one query in seconds."""

    name: str
    one: float
    all_: float
    wrong: str | None

    @property
    def ratio(self) -> float:
        return self.all_ / self.one


def timed(connection: gquery.Connection, sql: str) -> float:
    start = time.perf_counter()
    connection.sql(sql).to_arrow_table()
    return time.perf_counter() - start


def measured(pair: Sequence[gquery.Connection], name: str, sql: str, runs: int) -> Line:
    """Both connections asked in turns; the rows of both compared."""
    rows = [c.sql(sql).fetchall() for c in pair]
    for c in pair:
        learn(c, sql)
    seconds: list[list[float]] = [[], []]
    for _ in range(runs):
        for c, kept in zip(pair, seconds, strict=True):
            kept.append(timed(c, sql))
    types = [str(t) for t in pair[0].sql(sql).types]
    return Line(
        name, statistics.median(seconds[0]), statistics.median(seconds[1]), compare(rows[1], rows[0], False, types)
    )


@dataclass(frozen=True)
class Settled:
    """A query of one connection behind as many runs as it takes until they no longer change."""

    seconds: float
    rows: list[tuple[object, ...]]
    names: list[str]
    types: list[str]


def settled(connection: gquery.Connection, sql: str, runs: int) -> Settled:
    relation = connection.sql(sql)
    rows, types = relation.fetchall(), [str(t) for t in relation.types]
    learn(connection, sql)
    seconds = statistics.median(timed(connection, sql) for _ in range(runs))
    return Settled(seconds, rows, list(relation.columns), types)


def apart(given: argparse.Namespace) -> list[Line]:
    """All queries of one device, then of all, with the rows of both compared; each connection has the memory for itself."""
    numbers = queries.parse_numbers(given.queries)
    found: list[dict[int, Settled]] = []
    for count in (1, given.devices):
        with with_tables(given, connected(given.device, count)) as connection:
            found.append({n: settled(connection, queries.sql(n), given.runs) for n in numbers})
    if given.checksums is not None:
        made = {n: checksum(s.rows, order_columns(queries.sql(n), s.names)) for n, s in found[0].items()}
        write(given.checksums, {}, made)
    lines = []
    for n, one in found[0].items():
        all_ = found[1][n]
        lines.append(shown(Line(f"Q{n}", one.seconds, all_.seconds, compare(all_.rows, one.rows, False, one.types))))
    return lines


def report(lines: Sequence[Line]) -> None:
    one, all_ = sum(line.one for line in lines), sum(line.all_ for line in lines)
    print(
        f"all: {1e3 * one:.2f} and {1e3 * all_:.2f} ms, {all_ / one:.3f} times; "
        f"{sum(line.wrong is not None for line in lines)} wrong"
    )
    worse = [f"{line.name} {line.ratio:.2f}" for line in lines if line.ratio > WORSE]
    print(f"over {WORSE} times: {', '.join(worse) or 'none'}")


def with_tables(given: argparse.Namespace, connection: gquery.Connection) -> gquery.Connection:
    if given.data is None:
        attach(connection, given.sf, lambda _: None)
    else:
        for path in sorted(given.data.glob("*.parquet")):
            connection.sql(f"CREATE OR REPLACE VIEW {path.stem} AS SELECT * FROM '{path}'")
    return connection


def tpch(given: argparse.Namespace, pair: Sequence[gquery.Connection]) -> list[Line]:
    for c in pair:
        with_tables(given, c)
    return [show(pair, f"Q{n}", queries.sql(n), given.runs) for n in queries.parse_numbers(given.queries)]


def joined(given: argparse.Namespace, pair: Sequence[gquery.Connection]) -> list[Line]:
    """A join on sparse keys; half of the probes have one key in the second one."""
    rows = given.join
    numbers = np.arange(rows, dtype=np.int64)
    keys = numbers * 0x1E3779B97F4A7C15
    probes = keys[(numbers * 7919) % rows]
    heavy = np.where(numbers % 2 == 0, keys[rows // 3], probes)
    for c in pair:
        c.register("build", {"k": keys, "v": numbers})
        c.register("uniform", {"k": probes, "w": numbers})
        c.register("skewed", {"k": heavy, "w": numbers})
    sql = "SELECT count(*), sum(v), sum(w) FROM {} JOIN build USING (k)"
    return [show(pair, name, sql.format(name), given.runs) for name in ("uniform", "skewed")]


def together(given: argparse.Namespace) -> None:
    """Connections that each have a device and a thread: milliseconds of a round of all queries, one alone and all at once."""
    texts = [queries.sql(n) for n in queries.parse_numbers(given.queries)]
    connections = [with_tables(given, on_device(given.device, place)) for place in range(given.devices)]
    for c in connections:
        for sql in texts:
            learn(c, sql)
    for c in connections:
        rounds(c, texts, 2)
    alone = [rounds(c, texts, given.runs) for c in connections]
    start = threading.Barrier(len(connections))
    with ThreadPoolExecutor(len(connections)) as threads:
        beside = list(threads.map(lambda c: rounds(c, texts, given.runs, start), connections))
    for name, found in (("alone", alone), ("together", beside)):
        print(f"{name:>9}" + "".join(f"{1e3 * seconds:10.2f}" for seconds in found))
    print(f"together {', '.join(f'{b / a:.3f}' for a, b in zip(alone, beside, strict=True))} times alone")


def rounds(
    connection: gquery.Connection, texts: Iterable[str], runs: int, start: threading.Barrier | None = None
) -> float:
    """The median of rounds in seconds, which begin when all threads are there."""
    if start is not None:
        start.wait()
    return statistics.median(sum(timed(connection, sql) for sql in texts) for _ in range(runs))


def show(pair: Sequence[gquery.Connection], name: str, sql: str, runs: int) -> Line:
    return shown(measured(pair, name, sql, runs))


def shown(line: Line) -> Line:
    wrong = "" if line.wrong is None else f"  WRONG {line.wrong[:200]}"
    print(f"{line.name:>8}{1e3 * line.one:10.2f}{1e3 * line.all_:10.2f}{line.ratio:8.2f}{wrong}", flush=True)
    return line


def on_device(device: str, place: int) -> gquery.Connection:
    """A connection to one device; the CPU has one, whatever the place."""
    return gquery.connect(device, devices=[place] if device == "cuda" else None)


def connected(device: str, devices: int, limit: str | None = None) -> gquery.Connection:
    if device == "cuda":
        return gquery.connect("cuda", devices=list(range(devices)))
    return gquery.connect(device, devices=None if devices == 1 else devices, memory_limit=limit)


def peaks(given: argparse.Namespace) -> None:
    """Each connection runs in a process of its own, as memory that one lets go of, the other would take."""
    found = [memory_peaks.of_process([*sys.argv[1:], "--alone", str(n)]) for n in (1, given.devices)]
    (one,), all_ = found
    print(f"most memory of a device, GB: {one / 1e9:.3f} alone; {' '.join(f'{b / 1e9:.3f}' for b in all_)}")
    print(f"at most {max(all_) / max(one, 1):.3f} times that of one")


def alone(given: argparse.Namespace) -> None:
    """The peaks of one connection, which runs each query as often as it takes to be replayed."""
    connection = connected(given.device, given.alone, "64GB")  # a CPU counts what is reserved where there is a limit
    with memory_peaks.watched(connection) as most:
        with_tables(given, connection)
        for n in queries.parse_numbers(given.queries):
            learn(connection, queries.sql(n))
    memory_peaks.tell(most)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sf", type=float, default=1.0)
    parser.add_argument("--data", type=Path, help="folder of the Parquet files")
    parser.add_argument("--queries", default="1-22")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--join", type=int, metavar="ROWS", help="the join in place of TPC-H")
    parser.add_argument("--apart", action="store_true", help="one connection behind the other")
    parser.add_argument("--checksums", type=Path, help="with --apart: write checksums of the answers of one device")
    parser.add_argument("--peak", action="store_true", help="memory in place of times")
    parser.add_argument("--together", action="store_true", help="a connection and a thread for each device")
    parser.add_argument("--alone", type=int, metavar="DEVICES", help="one connection's memory, for --peak")
    given = parser.parse_args()
    if given.alone is not None or given.peak:
        (peaks if given.alone is None else alone)(given)
        return 0
    if given.together:
        together(given)
        return 0
    print(f"{'':8}{'one ms':>10}{f'{given.devices} ms':>10}{'times':>8}")
    if given.apart:
        lines = apart(given)
    else:
        pair = connected(given.device, 1), connected(given.device, given.devices)
        lines = tpch(given, pair) if given.join is None else joined(given, pair)
    report(lines)
    return min(1, sum(line.wrong is not None for line in lines))


if __name__ == "__main__":
    raise SystemExit(main())
