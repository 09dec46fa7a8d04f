"""Runs one case of the suite and times it.

What is timed is a run of the program whose result stays on the device, until the device has finished: what a user waits
for who works on with `Relation.to_cupy` or `column`. Planning, which is done once a text, and the download of large
results are not in it; results of one row make no difference. The first runs are apart, since they compile, load columns
and may adapt; they go on for half a second, so that the clocks of a GPU have risen.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import gquery
from benchmarks.data import Maker, Tables
from benchmarks.duckdb_resident import DuckDB, Spent
from gquery.columns.table import Table
from gquery.execution import StageReport, run_with_report
from gquery.execution.measure import KernelReport, Meter
from gquery.expression.types import PhysicalType
from gquery.planner.logical.nodes import Plan, Scan
from gquery.planner.logical.tree import walk

WARM_RUNS = 3
WARM_SECONDS = 0.5
Checks = Iterator[tuple[str, int, int]]  # what it is, as the query has it, as it is


@dataclass(frozen=True)
class Dataset:
    """Tables that several cases read; those of one name are made once for cases in a row."""

    name: str
    make: Callable[[Maker], Tables]


@dataclass(frozen=True)
class Answer:
    """The result of a query where it lies."""

    table: Table
    maker: Maker

    @property
    def rows(self) -> int:
        return self.table.rows

    def integers(self, position: int) -> Any:
        """A column as int64 (the low words of wide ones) on the device."""
        column = self.table.columns[position]
        array = column.data.on(self.maker.device)
        return array[0::2] if column.physical_type is PhysicalType.I128 else array.astype(np.int64)

    def bytes(self, position: int, width: int) -> Any:
        """A column of texts of ``width`` bytes as a matrix of bytes, a row each, on the device."""
        column = self.table.columns[position]
        assert column.physical_type is PhysicalType.STRING64 and column.characters is not None
        offsets, characters = column.data.on(self.maker.device), column.characters.on(self.maker.device)
        return characters[int(offsets[0]) : int(offsets[-1])].reshape(-1, width)


@dataclass(frozen=True)
class Case:
    """One query over one dataset. ``libcudf`` and ``target`` are milliseconds at 100 million rows on an H200; ``times`` is
    a target in terms of another case: its name and a factor."""

    name: str
    sql: str
    rows: int
    data: Dataset
    check: Callable[[Maker, Tables, Answer], Checks]
    libcudf: float | None = None
    target: float | None = None
    times: tuple[str, float] | None = None


@dataclass(frozen=True)
class Measurement:
    """Seconds of the hot runs and of the first one (compiling included), the bytes of the columns that the query reads,
    what is wrong with the answer (None if nothing is), the profile of a run of its own, and where a peer was asked in
    turns, its runs and the processor's seconds of the hot runs."""

    case: Case
    samples: tuple[float, ...]
    first: float
    bytes_read: int
    result_rows: int
    wrong: str | None
    stages: tuple[tuple[StageReport, tuple[KernelReport, ...]], ...] = ()
    peer: tuple[Spent, ...] = ()
    cpu: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


def measure(
    connection: gquery.Connection, case: Case, tables: Tables, runs: int, profile: bool, peer: DuckDB | None = None
) -> Measurement:
    """Check one answer and time ``runs`` more, in turns with those of a peer."""
    start = time.perf_counter()
    table, _ = _run(connection, case.sql)
    first = time.perf_counter() - start
    maker = Maker(connection.device)
    wrong = "; ".join(
        f"{what} is {got}, not {expected}"
        for what, got, expected in case.check(maker, tables, Answer(table, maker))
        if got != expected
    )
    rows = table.rows
    del table
    if connection.device.is_cuda:
        connection.device.make_room()  # checks of 100 million rows take more than queries
    warm = time.perf_counter() + WARM_SECONDS
    count = 0
    while count < WARM_RUNS or time.perf_counter() < warm:
        _run(connection, case.sql)
        count += 1
    samples: list[float] = []
    cpu: list[float] = []
    beside: list[Spent] = []
    if peer is not None:
        peer.run(case.sql)
    for _ in range(runs):
        began = time.process_time()
        samples.append(_run(connection, case.sql)[1])
        cpu.append(time.process_time() - began)
        if peer is not None:
            beside.append(peer.run(case.sql))
    stages = tuple(_profile(connection, case.sql)) if profile else ()
    read = _bytes_read(connection, case.sql)
    return Measurement(case, tuple(samples), first, read, rows, wrong or None, stages, tuple(beside), tuple(cpu))


def _run(connection: gquery.Connection, sql: str) -> tuple[Table, float]:
    """A result left on the device, and the seconds that its run took."""
    planned = connection.sql(sql)._prepared
    assert planned is not None
    program, context = connection._program(planned), connection._context()
    connection.device.synchronize()
    start = time.perf_counter()
    table, _ = run_with_report(program, context, planned.feedback)
    connection.device.synchronize()
    return table, time.perf_counter() - start


def _profile(connection: gquery.Connection, sql: str) -> Iterator[tuple[StageReport, tuple[KernelReport, ...]]]:
    """The stages of one more run, each waited for, with their kernels. Slower than the runs that are timed: those do not
    wait between stages."""
    planned = connection.sql(sql)._prepared
    assert planned is not None
    meter = Meter(connection.device)
    context = replace(connection._context(), meter=meter)
    _, reports = run_with_report(connection._program(planned), context, planned.feedback)
    for report in reports:
        yield report, tuple(meter.kernels.get(report.number, {}).values())


def _bytes_read(connection: gquery.Connection, sql: str) -> int:
    """The bytes of the columns that a query scans, each once, in the physical types that hold them."""
    planned = connection.sql(sql)._prepared
    assert planned is not None
    plan: Plan = planned.query.plan
    wanted: dict[int, tuple[Any, set[int]]] = {}
    for node in walk(plan):
        if isinstance(node, Scan):
            wanted.setdefault(id(node.source), (node.source, set()))[1].update(node.fields)
    return sum(source.load(sorted(fields)).nbytes for source, fields in wanted.values() if fields)
