"""What every engine is: three methods, and the options and answers that go in and out."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from tpch.generate import files

Row = tuple[Any, ...]
Io = Literal["resident", "parquet"]
IOS: tuple[Io, ...] = get_args(Io)


class NotRunError(Exception):
    """An engine cannot run a query; the text says why."""


@dataclass(frozen=True)
class Answer:
    """A result on the host: an Arrow table and the SQL types of its columns."""

    table: Any
    types: tuple[str, ...]

    @property
    def rows(self) -> list[Row]:
        return list(zip(*(column.to_pylist() for column in self.table.columns)))


@dataclass(frozen=True)
class Options:
    """How engines are to run. Threads and io hold for all, the rest is gquery's alone."""

    device: str = "auto"
    devices: int | tuple[int, ...] = 1  # so many, or their numbers
    threads: int | None = None
    interpret_limit: int | None = None
    io: Io = "resident"
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def thread_count(self) -> int:
        return self.threads or len(os.sched_getaffinity(0))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> Options:
        """The options that `as_dict` gave, through JSON or not."""
        settings = tuple((str(name), str(value)) for name, value in values["settings"])
        named = {"devices" if name == "partitions" else name: value for name, value in values.items()}  # of older runs
        if not isinstance(named.get("devices", 1), int):
            named["devices"] = tuple(named["devices"])
        return Options(**{**named, "settings": settings})


class Engine(Protocol):
    name: str
    description: str

    def run(self, sql: str) -> Answer:
        """A query's rows on the host. NotRunError where the engine does not have what it needs."""

    def stream(self) -> Engine:
        """The same tables for another thread."""

    def close(self) -> None:
        """Give up the tables."""


def named_files(sql: str, folder: Path) -> dict[str, Path]:
    """The files of the tables that a query names."""
    words = set(re.findall(r"\w+", sql))
    return {table: path for table, path in files(folder).items() if table in words}


def quoted(path: Path) -> str:
    """A path within single quotes of SQL."""
    return str(path).replace("'", "''")
