"""Faults by seed in the 22 queries of TPC-H, with every group-by, join table and sort made in parts: an allocation, a copy
between tiers, a file, or a look at the token of the run fails at some turn; where columns are read anew, a read of the file, a
kernel that reads pages, and allocations and looks at the token meanwhile, too. Behind each the answer is right or there is an
error, nothing is left on the device, on the host, in files or of threads, and the connection answers.

``GQUERY_FAULTS=2000 make faults`` injects so many over the queries, or more: where a query comes to a place less often than
faults are wanted there, others get them. Without it there are a few.
"""

from __future__ import annotations

import gc
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gquery
from gquery import tuning
from gquery.device import spill
from gquery.errors import FileError, InterruptError, OutOfMemoryError
from gquery.io import pages
from gquery.io.parquet import ParquetSource
from gquery.io.parquet_opened import OpenedParquet
from gquery.kernels.builtin import narrowing, parquet_pages
from gquery.kernels.targets import get_target
from tests.support.faults import Count, failing_allocations, interrupted
from tests.support.in_parts import all_in_parts
from tests.support.tuned import Tune
from tpch import queries
from tpch.generate import files, generate

ALL = int(os.environ.get("GQUERY_FAULTS", "0"))
SHARED = 4096  # bytes of a file that small arrays share
PLACES = ("files", "host", "files below the host")


@contextmanager
def failing(module: Any, name: str, error: Callable[[], Exception], at: int) -> Iterator[Count]:
    """Within it, call number ``at`` of a function fails."""
    count, whole = Count(at), getattr(module, name)

    def call(*args: Any, **options: Any) -> Any:
        if count.now():
            raise error()
        return whole(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, call)
        yield count


@contextmanager
def hindered(at: int, refuses: bool) -> Iterator[Count]:
    """Within it, the kernel that reads pages refuses at turn ``at``, as it does where it does not know one, or cannot read the
    file."""
    count, whole = Count(at), parquet_pages._Kernels.read_chunks

    def read_chunks(self: Any, state: Any, words: Any, room: Any) -> int:
        if not count.now():
            return whole(self, state, words, room)
        if refuses:
            state[pages.MADE] = 0
            return pages.FAILED
        state[pages.FILE] = -1
        return whole(self, state, words, room)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_pages._Kernels, "read_chunks", read_chunks)
        yield count


def _no_input() -> OSError:
    return OSError(5, "Input/output error, on purpose")


Fault = Callable[[int], AbstractContextManager[Count]]
READING: dict[str, Fault] = {  # that strike while columns are read anew
    "window": lambda at: hindered(at, refuses=False),
    "page": lambda at: hindered(at, refuses=True),
    "batches": lambda at: failing(OpenedParquet, "batches", _no_input, at),
    "allocation while reading": failing_allocations,
    "interrupt while reading": interrupted,
}
KINDS: dict[str, Fault] = {
    "file": lambda at: failing(spill, "allocate", lambda: OSError(28, "No space left on device"), at),
    "copy": lambda at: failing(np, "copyto", lambda: MemoryError("no memory for a copy, on purpose"), at),
    **READING,
    "interrupt": interrupted,
    "allocation": failing_allocations,
}
ERRORS: dict[str, type[Exception]] = {
    "interrupt": InterruptError, "interrupt while reading": InterruptError, "window": FileError, "batches": FileError,
}  # fmt: skip


@pytest.fixture(autouse=True)
def page_kernels(tune: Tune) -> None:
    """Kernels read the pages of small files, too, and of columns that are read anew rows that a filter keeps alone."""
    tune(tuning.encoding, compiled_rows=0)
    tune(tuning.reading, selected_memory=0.0)
    for kernel in (*narrowing.LOOPS.values(), *parquet_pages.KERNELS):
        get_target("cpu").compile(kernel.kernel)


def connected(place: str, folder: Path, data: Path) -> gquery.Connection:
    devices = None if place == "files" else [0]
    db = gquery.connect("python", devices=devices, memory_limit="1GB", threads=2)
    db.set("spill_directory", str(folder))
    if place == "files below the host":
        db.set("host_memory_limit", "1kB")
    for table, path in files(data).items():
        db.sql(f"CREATE VIEW {table} AS SELECT * FROM '{path}'")
    return db


def forget(db: gquery.Connection, columns: bool = False) -> None:
    """Let go of plans, and of columns that were read."""
    db._plans.clear()
    db._templates.clear()
    if columns:
        db._cache._columns.clear()
        for source in [each for each in gc.get_objects() if isinstance(each, ParquetSource)]:
            source._read_in_parts.clear()
    gc.collect()


def left(db: gquery.Connection) -> tuple[int, int, int]:
    """Bytes that are taken while nothing runs: in memory, on the host below a device, and in files."""
    forget(db)
    device = db.device
    if device.below is None:
        assert device.spill is not None
        return device.account.taken, 0, device.spill.taken
    assert device.below.spill is not None
    device.make_room()
    return device.account.taken, device.below.account.taken, device.below.spill.taken


def is_right(db: gquery.Connection, sql: str, want: list[Any], kind: str = "") -> bool:
    """Whether a query gives the rows; False where it fails by a fault of that kind."""
    expected = ERRORS.get(kind, OutOfMemoryError) if kind else ()
    try:
        got = db.sql(sql).fetchall()
    except expected:
        return False
    assert got == want
    return True


def some_turns(rng: random.Random, most: int, seen: int) -> list[int]:
    """Turns to fail at, of those that were seen."""
    return sorted(rng.sample(range(1, seen + 1), min(seen, most)))


def injected(db: gquery.Connection, sql: str, want: list[Any], kind: str, turns_at: Callable[[int], list[int]]) -> int:
    """Inject faults of a kind at turns out of those that the query comes to; how many struck."""
    for _ in range(
        1 if kind in READING else 2
    ):  # what a plan had rows of alone is read whole when it is asked for again
        assert is_right(db, sql, want)
        idle = left(db)
    threads, struck = threading.active_count(), 0
    forget(db, kind in READING)
    with KINDS[kind](0) as count:
        assert is_right(db, sql, want)
    for at in turns_at(count.seen):
        forget(db, kind in READING)
        with KINDS[kind](at) as count:
            is_right(db, sql, want, kind)
        struck += count.seen >= at
        now = left(db)
        assert sum(now) <= sum(idle) + 4 * SHARED, (kind, at, now, idle)  # columns may have moved into files
        assert now[1] == 0 and threading.active_count() <= threads, (kind, at)
        assert is_right(db, sql, want), (kind, at)
    return struck


@pytest.mark.parametrize("number", queries.NUMBERS if ALL else (15,))
def test_faults(number: int, tmp_path: Path, tune: Tune) -> None:
    tune(tuning.memory, least_spilled=64, shared_file=SHARED)
    tune(tuning.spilling, least_parts=3, slice_fraction=1e-9)
    data, sql, rng = generate(0.001, echo=False), queries.sql(number), random.Random(number)
    places = PLACES if ALL else [rng.choice(PLACES)]
    kinds = list(KINDS) if ALL else rng.sample(sorted(KINDS), 2)
    wanted, struck, cells = -(-ALL // len(queries.NUMBERS)) or 4, 0, len(places) * len(kinds)
    tried = wanted + wanted // 8  # a run does not come to a turn always
    for place in places:
        with all_in_parts(500):
            db = connected(place, tmp_path, data)
            want = db.sql(sql).fetchall()
            assert is_right(db, sql, want)
            for kind in kinds:
                most = max(-(-(tried - struck) // cells), 2)
                struck += injected(db, sql, want, kind, partial(some_turns, rng, most))
                cells -= 1
            db.close()
    print(f"Q{number}: {struck} faults struck")
    assert struck >= (wanted if ALL else 2) and os.listdir(tmp_path) == []
