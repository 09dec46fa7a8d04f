"""Run queries on one engine or several, time them, check their answers.

A time is from the SQL text to the Arrow table on the host. *First* includes reading the columns that the query is the
first to touch, and compiling what is not in the kernel cache; *hot* is the median of the runs after one more to warm
up. Engines run one after another in one process, so that they see the same machine in the same state.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import gquery
from tpch import queries
from tpch.generate import files
from tpch.validate import Row, difference, expected, order_columns


@dataclass(frozen=True)
class Answer:
    """A result on the host: an Arrow table and the SQL types of its columns."""

    table: Any
    types: tuple[str, ...]

    @property
    def rows(self) -> list[Row]:
        return list(zip(*(column.to_pylist() for column in self.table.columns)))


@dataclass(frozen=True)
class Measurement:
    """One query on one engine. Seconds; ``wrong`` says what is wrong with the answer, None if it is right."""

    number: int
    engine: str
    rows: int
    first: float
    hot: float | None
    wrong: str | None


class Engine(Protocol):
    name: str
    description: str

    def run(self, sql: str) -> Answer: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Options:
    """How gquery is to run."""

    device: str = "auto"
    partitions: int = 1
    threads: int | None = None
    interpret_limit: int | None = None


class GQueryEngine:
    """gquery over views of the Parquet files: columns are read when a query first touches them, and stay."""

    name = "gquery"

    def __init__(self, folder: Path, options: Options) -> None:
        self.connection = gquery.connect(device=options.device, partitions=options.partitions, threads=options.threads)
        if options.interpret_limit is not None:
            self.connection.sql(f"SET interpret_limit = {options.interpret_limit}")
        for table, path in files(folder).items():
            self.connection.sql(f"CREATE VIEW {table} AS SELECT * FROM '{_quoted(path)}'")
        limit = "" if options.interpret_limit is None else f", interpret_limit {options.interpret_limit}"
        self.description = (
            f"gquery {gquery.__version__} on {self.connection.device_name}, partitions {options.partitions}{limit}"
        )

    def run(self, sql: str) -> Answer:
        result = self.connection.sql(sql)
        return Answer(result.to_arrow_table(), tuple(str(t) for t in result.types))

    def close(self) -> None:
        self.connection.close()


class DuckDBEngine:
    """DuckDB with the tables in its memory, on all cores."""

    name = "duckdb"

    def __init__(self, folder: Path, options: Options) -> None:
        import duckdb

        threads = options.threads or len(os.sched_getaffinity(0))
        self.connection = duckdb.connect(config={"threads": threads})
        for table, path in files(folder).items():
            self.connection.execute(f"CREATE TABLE {table} AS FROM read_parquet('{_quoted(path)}')")
        self.description = f"DuckDB {duckdb.__version__}, tables in memory, {threads} threads"

    def run(self, sql: str) -> Answer:
        result = self.connection.sql(sql)
        return Answer(result.to_arrow_table(), tuple(str(t) for t in result.types))

    def close(self) -> None:
        self.connection.close()


ENGINES: dict[str, Callable[[Path, Options], Engine]] = {"gquery": GQueryEngine, "duckdb": DuckDBEngine}


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def measure(
    engine: Engine, numbers: Sequence[int], sf: float, folder: Path, runs: int, progress: Callable[[str], None]
) -> Iterator[Measurement]:
    """Each query's measurement as soon as it is done. A query that raises is wrong, and the next one runs."""
    for number in numbers:
        progress(f"{engine.name} Q{number}")
        sql = queries.sql(number)
        start = time.perf_counter()
        try:
            answer = engine.run(sql)
            first = time.perf_counter() - start
            wrong = _check(number, sql, answer, sf, folder)
            hot = _hot(engine, sql, runs) if runs else None
            yield Measurement(number, engine.name, answer.table.num_rows, first, hot, wrong)
        except Exception as error:
            seconds = time.perf_counter() - start
            yield Measurement(number, engine.name, 0, seconds, None, f"{type(error).__name__}: {error}")


def _hot(engine: Engine, sql: str, runs: int) -> float:
    engine.run(sql)
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        engine.run(sql)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _check(number: int, sql: str, answer: Answer, sf: float, folder: Path) -> str | None:
    want = expected(number, sf, folder, answer.types)
    return difference(answer.rows, want, order_columns(sql, answer.table.column_names))
