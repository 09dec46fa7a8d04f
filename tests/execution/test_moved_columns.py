"""Under a limit any thread may have the columns moved into files that others read: their memory stays until no kernel has its
address."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery.device.spill import is_spilled
from gquery.errors import OutOfMemoryError
from gquery.kernels.targets import cpu
from gquery.kernels.targets.base import Compiled
from tests.support.marks import in_turns

ROWS = 60_000
TABLE = pa.table(
    {
        "k": np.arange(ROWS) % 97,
        "v": np.arange(ROWS),
        "n": pa.array([None if n % 7 == 0 else n for n in range(ROWS)]),
        "s": [f"a text of row {n}" for n in range(ROWS)],
    }
)
QUERIES = {
    "reduce": "SELECT sum(v * 3), count(n), max(n) FROM t",
    "group": "SELECT k, sum(v), count(n) FROM t GROUP BY k ORDER BY k",
    "hash": "SELECT v, sum(n), max(s) FROM t GROUP BY v ORDER BY v LIMIT 5",
    "join": "SELECT b.k, sum(a.v), max(b.n) FROM t a JOIN t b ON a.v = b.n GROUP BY b.k ORDER BY b.k",
    "text": "SELECT v, s FROM t WHERE s LIKE '%9' ORDER BY n, v LIMIT 7",
    "rows": "SELECT v, n, s FROM t WHERE k < 3 ORDER BY v DESC LIMIT 9",
    "sort": "SELECT s, v FROM t ORDER BY k, v DESC",
    "text window": "SELECT first_value(s) OVER (PARTITION BY k ORDER BY v DESC) AS r, v FROM t ORDER BY v",
    "window": "SELECT v, row_number() OVER (PARTITION BY k ORDER BY n) AS r FROM t ORDER BY v LIMIT 9",
}


LAUNCHES = 5  # of a query, the first ones


@pytest.fixture
def db(tmp_path: Path) -> Iterator[gquery.Connection]:
    with gquery.connect("cpu", threads=2, memory_limit=200_000_000) as connection:
        connection.set("spill_directory", str(tmp_path))
        connection.set("interpret_limit", 0)
        pq.write_table(TABLE, tmp_path / "t.parquet")
        yield connection.sql(f"CREATE VIEW t AS SELECT * FROM '{tmp_path}/t.parquet'").connection


class _Moving:
    """Has another thread want memory before a launch of a kernel, which has been told where its columns lie."""

    def __init__(self, db: gquery.Connection, launch: int) -> None:
        self.db, self.launch = db, launch
        self.moved = 0
        self.gone: list[str] = []  # kernels whose columns are not there any more
        self._others: list[np.ndarray] = []

    def before(self, compiled: Compiled, arguments: Sequence[Sequence[object]]) -> None:
        self.launch -= 1
        if self.launch:
            return
        device, cache = self.db.device, self.db._cache
        buffers = [b for _, column in cache._by_use() for b in column.buffers if not is_spilled(b.on(device))]
        sizes = [b.nbytes for b in buffers]
        there = [(b.on(device).ctypes.data, weakref.ref(b.on(device))) for b in buffers]
        other = threading.Thread(target=cache.evict_bytes, args=(device, 2**60))
        other.start()
        other.join()
        self.moved = sum(is_spilled(b.on(device)) for b in buffers)
        told = {a for given in arguments for a in given if isinstance(a, int)}
        self.gone += [compiled.name for address, array in there if address in told and array() is None]
        self._others = [np.full(n, 0x55, np.uint8) for n in sizes for _ in range(4)]  # in memory that was let go of


@pytest.mark.parametrize(("name", "launch"), in_turns(3, QUERIES, range(1, LAUNCHES + 1)))
def test_what_a_kernel_reads_stays(
    name: str, launch: int, db: gquery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    want = gquery.connect("cpu").register("t", TABLE).sql(QUERIES[name]).fetchall()
    db.sql("SELECT max(k), max(v), max(n), max(s) FROM t").fetchall()  # all are there
    run, run_morsels, moving = cpu.CpuTarget.run, cpu.CpuTarget.run_morsels, _Moving(db, launch)

    def moved_run(self: cpu.CpuTarget, compiled: Compiled, lo: int, hi: int, arguments: Any, *rest: Any) -> None:
        moving.before(compiled, [arguments])
        run(self, compiled, lo, hi, arguments, *rest)

    def moved_run_morsels(self: cpu.CpuTarget, compiled: Compiled, ranges: Any, arguments: Any, *rest: Any) -> None:
        moving.before(compiled, arguments)
        run_morsels(self, compiled, ranges, arguments, *rest)

    monkeypatch.setattr(cpu.CpuTarget, "run", moved_run)
    monkeypatch.setattr(cpu.CpuTarget, "run_morsels", moved_run_morsels)
    assert db.sql(QUERIES[name]).fetchall() == want
    assert moving.launch > 0 or moving.moved
    assert not moving.gone


def test_several_threads_under_a_small_limit(db: gquery.Connection) -> None:
    """Each moves what the others read."""
    whole = gquery.connect("cpu").register("t", TABLE)
    want = {sql: whole.sql(sql).fetchall() for sql in QUERIES.values()}
    wrong, errors = list[str](), list[BaseException]()
    db.set("memory_limit", 4_000_000)

    def ask(first: int) -> None:
        texts = [*QUERIES.values()]
        for sql in texts[first:] + texts[:first]:
            try:
                if db.sql(sql).fetchall() != want[sql]:
                    wrong.append(sql)
            except OutOfMemoryError:
                pass  # others have taken it
            except BaseException as error:
                errors.append(error)

    threads = [threading.Thread(target=ask, args=(n,), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert not wrong and not errors
