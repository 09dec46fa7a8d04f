"""DuckDB beside: a query over Parquet files under a memory limit, in a fresh process."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Beside:
    """What DuckDB gave, the seconds that it took, and those of the processor."""

    rows: list[tuple[Any, ...]]
    seconds: float
    cpu: float
    error: str = ""


def in_duckdb(sqls: Sequence[str], limit: str, threads: str, paths: Mapping[str, Path]) -> list[Beside]:
    """Queries over files, as views, with so many threads, one after another in a process that has read nothing."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(_run, sqls, limit, threads, dict(paths)).result()


def _run(sqls: Sequence[str], limit: str, threads: str, paths: dict[str, Path]) -> list[Beside]:
    import duckdb

    made = []

    with duckdb.connect(config={"memory_limit": limit, "threads": threads}) as connection:
        for table, path in paths.items():
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM '{path}'")
        for sql in sqls:
            began, cpu = time.perf_counter(), time.process_time()
            rows, error = [], ""
            try:
                rows = connection.execute(sql).fetchall()
            except duckdb.Error as raised:
                error = f"DuckDB: {str(raised).splitlines()[0]}"
            made.append(Beside(rows, time.perf_counter() - began, time.process_time() - cpu, error))
    return made
