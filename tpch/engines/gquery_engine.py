"""gquery over views of the Parquet files: columns are read when a query first touches them, and stay with the connection."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gquery
from tpch.engines.base import Answer, Options, named_files, quoted
from tpch.generate import files


class GQueryEngine:
    """One connection, or with io ``parquet`` one a query. ``parent`` is the engine whose tables a stream shares."""

    name = "gquery"

    def __init__(self, folder: Path, options: Options, parent: GQueryEngine | None = None) -> None:
        self.folder, self.options = folder, options
        self.connection: gquery.Connection = self._connect(files(folder)) if parent is None else parent.connection
        self._cursor: Any = None if parent is None else parent.connection.cursor()
        limit = "" if options.interpret_limit is None else f", interpret_limit {options.interpret_limit}"
        changed = "".join(f", {name} {value}" for name, value in options.settings)
        place = self.connection.device_name
        cores = f" with {self.connection.settings.worker_count} threads" if place.startswith("cpu") else ""
        where = "" if options.io == "resident" else ", reading the files for every query"
        self.description = (
            f"gquery {gquery.__version__} on {place}{cores}, devices {options.devices}{limit}{changed}{where}"
        )

    def run(self, sql: str) -> Answer:
        if self.options.io == "resident":
            return self._answer(sql, self.connection)
        with self._connect(named_files(sql, self.folder)) as connection:
            return self._answer(sql, connection)

    def _answer(self, sql: str, connection: gquery.Connection) -> Answer:
        if self._cursor is not None and self.options.io == "resident":
            self._cursor.execute(sql)
            types = tuple(str(column[1]) for column in self._cursor.description)
            return Answer(self._cursor.fetch_arrow_table(), types)
        result = connection.sql(sql)
        return Answer(result.to_arrow_table(), tuple(str(t) for t in result.types))

    def stream(self) -> GQueryEngine:
        return GQueryEngine(self.folder, self.options, self)

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
        else:
            self.connection.close()

    def _connect(self, tables: Mapping[str, Path]) -> gquery.Connection:
        options = self.options
        devices = options.devices if isinstance(options.devices, int) else list(options.devices)
        connection = gquery.connect(
            device=options.device, threads=options.threads, devices=None if devices == 1 else devices
        )
        if options.interpret_limit is not None:
            connection.set("interpret_limit", options.interpret_limit)
        for name, value in options.settings:
            connection.set(name, value)
        for table, path in tables.items():
            connection.sql(f"CREATE VIEW {table} AS SELECT * FROM '{quoted(path)}'")
        return connection
