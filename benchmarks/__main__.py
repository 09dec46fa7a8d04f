"""The suite of microbenchmarks: scans, filters, groups, aggregates, joins, sorts, strings and windows.

    python -m benchmarks                              on the best device, 100 million rows
    python -m benchmarks --only group/ --profile      some cases, with their stages and kernels
    python -m benchmarks --device cpu --rows 1000000 --json out.jsonl
    python -m benchmarks --device cpu --rows 1e7 --duckdb --only window/,aggregate/    beside DuckDB, in turns

Every answer is checked. A time is that of a run whose result stays on the device (`benchmarks.measure`); "of copy" is
the bytes of the columns that a query reads, over that time, as a share of what a copy on this device moves. Times of
libcudf and targets stand where the data is what they are for: 100 million rows on a GPU. The exit code is 1 where an
answer is wrong or a case fails, not where one is over its target.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TextIO

import gquery
from benchmarks import report
from benchmarks.cases import cases
from benchmarks.cases.sizes import number
from benchmarks.data import Maker, Tables, register
from benchmarks.duckdb_resident import DuckDB
from benchmarks.measure import Case, Measurement, measure


def main(arguments: list[str] | None = None) -> int:
    """Run the suite; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, python")
    parser.add_argument("--rows", type=number, default=report.REFERENCE_ROWS, help="1000000, 1e6 or 1M")
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="cases whose names hold this; * for anything, a comma for or"
    )
    parser.add_argument("--runs", type=int, default=7, help="hot runs of each case (7)")
    parser.add_argument("--json", metavar="PATH", help="write the machine and every case there, a line of JSON each")
    parser.add_argument("--profile", action="store_true", help="print the stages and kernels of each case")
    parser.add_argument("--duckdb", action="store_true", help="ask DuckDB too, over the same tables, in turns")
    parser.add_argument("--list", action="store_true", help="print the names and queries, run nothing")
    options = parser.parse_args(arguments)
    if options.rows < 100 or options.runs < 1:
        parser.error("at least 100 rows and one run")
    chosen = cases(options.rows, options.only)
    if not chosen:
        parser.error(f'no case has "{options.only}" in its name')
    if options.list:
        print("\n".join(f"{c.name:30}{c.sql}" for c in chosen))
        return 0
    with ExitStack() as stack:
        connection = stack.enter_context(gquery.connect(device=options.device))
        output = stack.enter_context(open(options.json, "w", encoding="utf-8")) if options.json else None
        stack.enter_context(connection.device.activate())  # where CuPy makes arrays
        peer = stack.enter_context(DuckDB(connection.settings.worker_count)) if options.duckdb else None
        return run(connection, chosen, Runs(options.rows, options.runs, options.profile), output, peer)


@dataclass(frozen=True)
class Runs:
    """How cases are run: over tables of so many rows, so many times, and once more for a profile."""

    rows: int
    count: int
    profile: bool


def run(
    connection: gquery.Connection, chosen: list[Case], runs: Runs, output: TextIO | None, peer: DuckDB | None = None
) -> int:
    """Measure cases one by one and print each when it is done; 1 where one is wrong or fails."""
    machine = report.Machine.of(connection, runs.rows)
    print(
        f"{machine.device} ({machine.model}), a copy moves {machine.bandwidth / 1e9:,.0f} GB/s, medians of {runs.count} runs"
    )
    print(report.HEAD, flush=True)
    _write(output, machine.record())
    medians: dict[str, float] = {}
    beside: list[Measurement] = []
    made, tables = "", Tables()
    failed = False
    for case in chosen:
        try:
            if case.data.name != made:
                made, tables = "", Tables()
                _forget(connection)
                tables = case.data.make(Maker(connection.device))
                register(connection, tables)
                if peer is not None:
                    peer.take_tables(connection)
                made = case.data.name
            measured = measure(connection, case, tables, runs.count, runs.profile, peer)
        except Exception as error:  # the others can be measured still
            failed = True
            print(f"{case.name:30}{case.rows:13,}  FAILED: {type(error).__name__}: {error}", flush=True)
            _write(output, {"record": "failure", "name": case.name, "error": f"{type(error).__name__}: {error}"})
            continue
        beside += [measured] if measured.peer else []
        medians[case.name] = measured.median * 1e3
        target = report.target_of(case, machine, medians)
        print(report.line(measured, machine, target), flush=True)
        for text in report.stage_lines(measured):
            print(text, flush=True)
        _write(output, report.record(measured, machine, target))
        failed |= measured.wrong is not None
    if beside:
        print(report.together(beside))
    return int(failed)


def _forget(connection: gquery.Connection) -> None:
    """Give the memory of one dataset back before the next one is made."""
    for (name,) in connection.sql("SHOW TABLES").fetchall():
        connection.unregister(name)
    connection._plans.clear()  # a plan holds on to the tables that it reads
    connection.device.make_room()


def _write(output: TextIO | None, record: dict[str, object]) -> None:
    if output is not None:
        output.write(json.dumps(record) + "\n")
        output.flush()


if __name__ == "__main__":
    sys.exit(main())
