"""What a worker is asked to do, and a worker seen from outside: a process for one engine, told its job as JSON on stdin,
which answers with an event a line on stdout.

An engine gets a process of its own so that none shares memory, threads, or a library's state with another, so that a
first run is one, and so that an engine that dies takes nobody with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tpch.engines import Options

CACHES = ("GQUERY_CACHE_DIR", "NUMBA_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")  # compiled code, for --cold


@dataclass(frozen=True)
class Text:
    """A query to run: its number and its SQL."""

    number: int
    sql: str


@dataclass(frozen=True)
class Job:
    """Queries for one engine. ``first`` is what the first run of each is called; ``runs`` hot ones follow, after one to
    warm up. ``answers`` is a folder for results. With ``streams``, each a list of queries, these run at once instead,
    after ``queries`` ran once. ``measures`` adds copy bandwidth and each query's traffic where the engine can tell."""

    engine: str
    folder: Path
    options: Options
    queries: tuple[Text, ...]
    answers: Path
    first: str = "first"
    runs: int = 0
    measures: bool = False
    streams: tuple[tuple[Text, ...], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> str:
        values = asdict(self) | {"folder": str(self.folder), "answers": str(self.answers)}
        return json.dumps(values)

    @staticmethod
    def from_json(text: str) -> Job:
        values = json.loads(text)
        values |= {
            "folder": Path(values["folder"]),
            "answers": Path(values["answers"]),
            "options": Options.from_dict(values["options"]),
            "queries": tuple(Text(**q) for q in values["queries"]),
            "streams": tuple(tuple(Text(**q) for q in stream) for stream in values["streams"]),
        }
        return Job(**values)


Event = dict[str, Any]


def events(job: Job) -> Iterator[Event]:
    """Runs a worker; its events as they come. The last is ``{"event": "end", "code": ...}``, not 0 where it died."""
    environment = os.environ | dict(job.environment)
    if job.options.threads is not None:
        environment["POLARS_MAX_THREADS"] = str(job.options.threads)
    worker = subprocess.Popen(
        [sys.executable, "-m", "tpch", "worker"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=environment,
    )  # fmt: skip
    assert worker.stdin is not None and worker.stdout is not None
    try:
        worker.stdin.write(job.as_json())
        worker.stdin.close()
        for line in worker.stdout:
            yield json.loads(line)
        yield {"event": "end", "code": worker.wait()}
    except BrokenPipeError:
        yield {"event": "end", "code": worker.wait()}
    finally:
        if worker.poll() is None:
            worker.kill()
        worker.wait()
        worker.stdout.close()


def cold_environment(folder: Path) -> dict[str, str]:
    """Variables under which nothing that was compiled before is found; what is compiled is kept in ``folder``."""
    made = {}
    for name in CACHES:
        place = folder / name.lower()
        place.mkdir(mode=0o700, exist_ok=True)
        made[name] = str(place)
    return made
