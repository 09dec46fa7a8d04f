"""Faults by seed in the 22 queries of TPC-H, with every group-by, join table and sort made in parts: an allocation, a copy
between tiers, a file, or a look at the token of the run fails at some turn. Behind each the answer is right or there is an error,
nothing is left on the device, on the host, in files or of threads, and the connection answers.

``GQUERY_FAULTS=2000 make faults`` injects so many over the queries; without it there are a few.
"""

from __future__ import annotations

import gc
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gquery
from gquery import tuning
from gquery.device import spill
from gquery.errors import InterruptError, OutOfMemoryError
from tests.execution.test_faults import turns
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


KINDS: dict[str, Callable[[int], AbstractContextManager[Count]]] = {
    "allocation": failing_allocations,
    "copy": lambda at: failing(np, "copyto", lambda: MemoryError("no memory for a copy, on purpose"), at),
    "file": lambda at: failing(spill, "allocate", lambda: OSError(28, "No space left on device"), at),
    "interrupt": interrupted,
}


def connected(place: str, folder: Path, data: Path) -> gquery.Connection:
    devices = None if place == "files" else [0]
    db = gquery.connect("python", devices=devices, memory_limit="1GB", threads=2)
    db.set("spill_directory", str(folder))
    if place == "files below the host":
        db.set("host_memory_limit", "1kB")
    for table, path in files(data).items():
        db.sql(f"CREATE VIEW {table} AS SELECT * FROM '{path}'")
    return db


def left(db: gquery.Connection) -> tuple[int, int, int]:
    """Bytes that are taken while nothing runs: in memory, on the host below a device, and in files."""
    db._plans.clear()
    db._templates.clear()
    gc.collect()
    device = db.device
    if device.below is None:
        assert device.spill is not None
        return device.account.taken, 0, device.spill.taken
    assert device.below.spill is not None
    device.make_room()
    return device.account.taken, device.below.account.taken, device.below.spill.taken


def is_right(db: gquery.Connection, sql: str, want: list[Any], kind: str = "") -> bool:
    """Whether a query gives the rows; False where it fails by a fault of that kind."""
    try:
        got = db.sql(sql).fetchall()
    except InterruptError:
        if kind != "interrupt":
            raise
        return False
    except OutOfMemoryError:
        if kind in ("", "interrupt"):
            raise
        return False
    assert got == want
    return True


@pytest.mark.parametrize("number", queries.NUMBERS if ALL else (15,))
def test_faults(number: int, tmp_path: Path, tune: Tune) -> None:
    tune(tuning.memory, least_spilled=64, shared_file=SHARED)
    tune(tuning.spilling, least_parts=3, slice_fraction=1e-9)
    data, sql, rng = generate(0.001, echo=False), queries.sql(number), random.Random(number)
    kinds = list(KINDS) if ALL else rng.sample(sorted(KINDS), 2)
    injected = 0
    for place in PLACES if ALL else [rng.choice(PLACES)]:
        with all_in_parts(500):
            db = connected(place, tmp_path, data)
            want = db.sql(sql).fetchall()
            assert is_right(db, sql, want)
            idle, threads = left(db), threading.active_count()
            for kind in kinds:
                with KINDS[kind](0) as count:
                    assert is_right(db, sql, want)
                most = max(ALL // (len(queries.NUMBERS) * len(PLACES) * len(KINDS)), 2)
                for at in turns(count.seen, most, rng):
                    with KINDS[kind](at):
                        is_right(db, sql, want, kind)
                    injected += 1
                    now = left(db)
                    assert sum(now) <= sum(idle) + 4 * SHARED, (
                        kind,
                        at,
                        now,
                        idle,
                    )  # columns may have moved into files
                    assert now[1] == 0 and threading.active_count() <= threads, (kind, at)
                    assert is_right(db, sql, want), (kind, at)
            db.close()
    assert injected >= 2 and os.listdir(tmp_path) == []
