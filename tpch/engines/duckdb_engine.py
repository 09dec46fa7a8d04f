"""DuckDB: tables in its memory, or views of the files in a database that lives as long as a query."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import duckdb

from tpch.engines.base import Answer, Options, named_files, quoted
from tpch.generate import files


class DuckDBEngine:
    """One database, or with io ``parquet`` one a query. ``parent`` is the engine whose tables a stream shares."""

    name = "duckdb"

    def __init__(self, folder: Path, options: Options, parent: DuckDBEngine | None = None) -> None:
        self.folder, self.options = folder, options
        where = "tables in memory" if options.io == "resident" else "reading the files for every query"
        self.description = f"DuckDB {duckdb.__version__}, {where}, {options.thread_count} threads"
        self.connection: duckdb.DuckDBPyConnection
        if parent is not None:
            self.connection = parent.connection.cursor()
        elif options.io == "resident":
            self.connection = self._connect("TABLE", files(folder))
        else:
            self.connection = duckdb.connect()

    def run(self, sql: str) -> Answer:
        if self.options.io == "resident":
            return self._answer(sql, self.connection)
        with self._connect("VIEW", named_files(sql, self.folder)) as connection:
            return self._answer(sql, connection)

    def _answer(self, sql: str, connection: duckdb.DuckDBPyConnection) -> Answer:
        result = connection.sql(sql)
        types = (str(t) for t in result.types)
        # Arrow knows no 128-bit integers and gets decimals
        return Answer(result.to_arrow_table(), tuple("DECIMAL(38,0)" if t == "HUGEINT" else t for t in types))

    def stream(self) -> DuckDBEngine:
        return DuckDBEngine(self.folder, self.options, self)

    def close(self) -> None:
        self.connection.close()

    def _connect(self, kind: str, tables: Mapping[str, Path]) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect(config={"threads": self.options.thread_count})
        connection.execute("SET enable_external_file_cache = false")
        for table, path in tables.items():
            connection.execute(f"CREATE {kind} {table} AS FROM read_parquet('{quoted(path)}')")
        return connection
