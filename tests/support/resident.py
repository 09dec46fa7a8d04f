"""How much memory a process takes, watched from outside, and a process that runs statements under a limit to be watched.

What counts is what cannot be given back without being written somewhere: anonymous pages (``RssAnon``) and shared ones
(``RssShmem``, a file system in memory among them). Pages of mapped files are the page cache's.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from typing import Any

import gquery
from gquery.device.host import trim_freed_memory

STEP = 0.005  # seconds between two looks


def resident_bytes(pid: int) -> int:
    """Bytes of a process in memory that are no file's; 0 once it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as lines:
            found = dict(line.split(":", 1) for line in lines)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(found[key].split()[0]) * 1024 for key in ("RssAnon", "RssShmem") if key in found)


class Watch:
    """Within it, the most that a process takes is noted every 5 ms; ``peak`` in bytes."""

    def __init__(self, pid: int) -> None:
        self._pid, self._ended = pid, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.peak = 0

    def _look(self) -> None:
        while not self._ended.wait(STEP):
            self.peak = max(self.peak, resident_bytes(self._pid))

    def __enter__(self) -> Watch:
        self.peak = resident_bytes(self._pid)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


@dataclass(frozen=True)
class Answer:
    """What a statement gave: rows and their SQL types, or an error's kind and words. ``above`` is the most memory above the idle
    connection, ``seconds`` of the wall and ``cpu`` of all threads. ``account``: bytes that the connection counts behind it;
    ``spilled``: bytes in files."""

    rows: list[tuple[Any, ...]]
    types: list[str]
    error: str
    seconds: float
    cpu: float
    account: int
    spilled: int
    above: int = 0


class Limited:
    """A process with a connection under settings, warmed up by statements on another one. To be used in a with statement."""

    def __init__(
        self, settings: Mapping[str, Any], views: Mapping[str, str], warm: Sequence[tuple[Mapping[str, str], str]] = ()
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, dict(settings), dict(views), list(warm)))
        self._process.start()
        theirs.close()
        self.idle = int(self._pipe.recv())

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def start(self, sql: str) -> None:
        """Have a statement run, whose answer nobody waits for."""
        self._pipe.send(sql)

    def run(self, sql: str) -> Answer:
        """The answer, with the most memory that it took."""
        with Watch(self.pid) as watch:
            self._pipe.send(sql)
            got: Answer = self._pipe.recv()
        return Answer(**{**vars(got), "above": watch.peak - self.idle})

    def close(self) -> None:
        """End the process."""
        if self._process.is_alive():
            self._pipe.send("")
        self._process.join()
        self._pipe.close()

    def __enter__(self) -> Limited:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(
    pipe: Pipe, settings: dict[str, Any], views: dict[str, str], warm: list[tuple[Mapping[str, str], str]]
) -> None:
    with gquery.connect(device="cpu") as other:
        for tables, sql in warm:
            _view(other, tables)
            other.sql(sql).fetchall()
    del other
    connection = gquery.connect(device="cpu")
    for name, value in settings.items():
        connection.set(name, value)
    _view(connection, views)
    gc.collect()
    trim_freed_memory()
    pipe.send(resident_bytes(os.getpid()))
    while sql := pipe.recv():
        pipe.send(_answer(connection, sql))
        gc.collect()


def _view(connection: gquery.Connection, views: Mapping[str, str]) -> None:
    for name, path in views.items():
        connection.sql(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM '{path}'")


def _answer(connection: gquery.Connection, sql: str) -> Answer:
    began, cpu = time.perf_counter(), time.process_time()
    rows: list[tuple[Any, ...]] = []
    types: list[str] = []
    error = ""
    try:
        relation = connection.sql(sql)
        rows, types = relation.fetchall(), [str(t) for t in relation.types]
    except gquery.Error as raised:
        error = f"{type(raised).__name__}: {raised}"
    spent = time.process_time() - cpu
    device = connection.device
    files = 0 if device.spill is None else device.spill.taken
    return Answer(rows, types, error, time.perf_counter() - began, spent, device.used_bytes, files)
