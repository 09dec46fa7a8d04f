"""Runs the records of a sqllogictest file on an engine, gquery or DuckDB, on a connection of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import duckdb

import gquery
from tests.slt.compare import Row, difference
from tests.slt.records import Record, read


class Engine(Protocol):
    """What runs SQL: ``failures`` are the errors by which it refuses a statement, any other is a crash."""

    name: str
    failures: type[Exception]

    def run(self, sql: str) -> Sequence[Row]: ...

    def close(self) -> None: ...


class Gquery:
    """gquery on a device; ``compiled``: nothing is interpreted."""

    name = "gquery"
    failures: type[Exception] = gquery.Error

    def __init__(self, device: str = "python", devices: int | None = None, compiled: bool = False) -> None:
        self.connection = gquery.connect(device, devices=devices)
        if compiled:
            self.connection.sql("SET interpret_limit = 0")

    def run(self, sql: str) -> Sequence[Row]:
        made = self.connection.sql(sql)
        return [] if made is None else list(made.fetchall())

    def close(self) -> None:
        self.connection.close()


class DuckDB:
    """DuckDB, which says what the rows of new files are."""

    name = "duckdb"
    failures: type[Exception] = duckdb.Error

    def __init__(self) -> None:
        self.connection: Any = duckdb.connect(config={"threads": 1})

    def run(self, sql: str) -> Sequence[Row]:
        return list(self.connection.execute(sql).fetchall())

    def close(self) -> None:
        self.connection.close()


@dataclass(frozen=True)
class Fault:
    """A record that did not do what its file says."""

    record: Record
    said: str

    def __str__(self) -> str:
        return f"{self.record.place}: {self.said}\n    " + self.record.sql.replace("\n", "\n    ")


def faults(path: Path, engine: Engine) -> Iterator[Fault]:
    """The faults of a file's records, one after another; closes the engine."""
    by_label: dict[str, Sequence[Row]] = {}
    with closing(engine):
        for record in read(path):
            if record.is_for(engine.name) and (said := _fault(record, engine, by_label)) is not None:
                yield Fault(record, said)


def _fault(record: Record, engine: Engine, by_label: dict[str, Sequence[Row]]) -> str | None:
    try:
        rows = engine.run(record.sql)
    except engine.failures as error:
        return _refusal(record, str(error))
    if record.kind == "error":
        return f"an error expected, {len(rows)} rows came"
    if record.kind == "ok":
        return None
    if record.label and by_label.setdefault(record.label, rows) != rows:
        return f"other rows than the query before that is labelled {record.label}"
    return difference(record, rows)


def _refusal(record: Record, message: str) -> str | None:
    """What is wrong with an error."""
    if record.kind != "error":
        return message
    missing = [t for t in record.expected or () if t.strip() and t.strip().lower() not in message.lower()]
    return f"the error does not say {missing}: {message}" if missing else None
