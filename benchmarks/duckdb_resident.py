"""DuckDB in this process, over tables in its memory: the peer of the microbenchmarks, asked in turns with the engine.

Its answer is made a table of its own, as the engine's stays on its device. Both share the machine's other load then.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import TracebackType

import gquery


@dataclass(frozen=True)
class Spent:
    """What a run took: seconds by the clock, and those of this process's processors."""

    seconds: float
    cpu: float


class DuckDB:
    """A connection that has the tables of another one."""

    def __init__(self, threads: int) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": threads})

    def __enter__(self) -> DuckDB:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def take_tables(self, connection: gquery.Connection) -> None:
        """Copy the tables of a connection, and let go of those that there were."""
        for (name,) in self._connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            self._connection.execute(f'DROP TABLE "{name}"')
        for (name,) in connection.sql("SHOW TABLES").fetchall():
            self._connection.register("taken", connection.sql(f'SELECT * FROM "{name}"').to_arrow_table())
            self._connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM taken')
            self._connection.unregister("taken")

    def run(self, sql: str) -> Spent:
        """The time of one run, at the end of which the answer is a table."""
        start, cpu = time.perf_counter(), time.process_time()
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE answer AS {sql}")
        return Spent(time.perf_counter() - start, time.process_time() - cpu)
