"""The engines: each holds the tables in memory, makes a table of an answer, and says what is in it."""

from __future__ import annotations

import math
import threading
from typing import Any, Protocol

import pyarrow as pa

import gquery
from benchmarks.h2o.questions import Question

Totals = tuple[float, ...]  # rows, and the sum of each column of numbers


class TooSlowError(Exception):
    """A question took more than the seconds that it may."""


class Engine(Protocol):
    """An engine under measure. ``run`` makes the answer where the engine keeps its tables and ends when it is there."""

    name: str

    def add(self, name: str, table: pa.Table) -> None: ...

    def run(self, question: Question) -> None: ...

    def totals(self) -> Totals: ...

    def forget(self, name: str) -> None: ...


def sums(columns: list[tuple[str, str]]) -> str:
    """A query for the totals of a table ``answer``; ``columns`` are names and types."""
    numbers = [n for n, t in columns if t.startswith(("INT", "BIGINT", "HUGEINT", "DOUBLE", "DECIMAL"))]
    return f"SELECT count(*), {', '.join(f'sum(CAST({n} AS DOUBLE))' for n in numbers)} FROM answer"


class Gquery:
    """gquery on a device; the answer stays there."""

    def __init__(self, device: str, threads: int | None) -> None:
        self.connection = gquery.connect(device)
        if threads is not None:
            self.connection.set("threads", threads)
        self.name = f"gquery ({self.connection.device_name})"

    def add(self, name: str, table: pa.Table) -> None:
        self.connection.register(name, table)

    def run(self, question: Question) -> None:
        self.connection.sql(f"CREATE OR REPLACE TABLE answer AS {question.sql}")
        self.connection.device.synchronize()

    def totals(self) -> Totals:
        made = self.connection.sql("SELECT * FROM answer LIMIT 0")
        columns = [(c, str(t)) for c, t in zip(made.columns, made.types, strict=True)]
        return _floats(self.connection.sql(sums(columns)).fetchall()[0])

    def forget(self, name: str) -> None:
        self.connection.unregister(name)


class DuckDB:
    """DuckDB with its tables in memory; a question that takes longer than ``limit`` seconds ends."""

    name = "DuckDB"

    def __init__(self, threads: int | None, limit: float | None = None) -> None:
        import duckdb

        self.limit, self.interrupted = limit, duckdb.InterruptException
        self.connection: Any = duckdb.connect(config={} if threads is None else {"threads": threads})

    def add(self, name: str, table: pa.Table) -> None:
        self.connection.register("given", table)
        self.connection.execute(f"CREATE TABLE {name} AS FROM given")
        self.connection.unregister("given")

    def run(self, question: Question) -> None:
        timer = None if self.limit is None else threading.Timer(self.limit, self.connection.interrupt)
        try:
            if timer is not None:
                timer.start()
            self.connection.execute(f"CREATE OR REPLACE TABLE answer AS {question.sql}")
        except self.interrupted:
            self.connection.execute("DROP TABLE IF EXISTS answer")
            raise TooSlowError(f"not within {self.limit:g} s") from None
        finally:
            if timer is not None:
                timer.cancel()

    def totals(self) -> Totals:
        columns = [(n, t) for n, t, *_ in self.connection.execute("DESCRIBE answer").fetchall()]
        return _floats(self.connection.execute(sums(columns)).fetchall()[0])

    def forget(self, name: str) -> None:
        self.connection.execute(f"DROP TABLE {name}")


class Polars:
    """Polars, its lazy frames collected by the usual engine."""

    name = "Polars"

    def __init__(self) -> None:
        import polars

        self.pl: Any = polars
        self.frames: dict[str, Any] = {}
        self.answer: Any = None

    def add(self, name: str, table: pa.Table) -> None:
        self.frames[name] = self.pl.from_arrow(table).lazy()

    def run(self, question: Question) -> None:
        self.answer = question.polars(self.frames).collect()

    def totals(self) -> Totals:
        numbers = [c for c in self.answer.columns if self.answer[c].dtype.is_numeric()]
        return _floats([self.answer.height, *(self.answer[c].cast(self.pl.Float64).sum() for c in numbers)])

    def forget(self, name: str) -> None:
        del self.frames[name]


def _floats(row: Any) -> Totals:
    return tuple(math.nan if v is None else float(v) for v in row)
