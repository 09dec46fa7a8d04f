"""Who waits for another thread of the process is interrupted, and what Python's collector calls waits for nobody."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery.api import readers
from gquery.columns.table import ColumnData
from gquery.errors import InterruptError
from gquery.io import made_table, memory, parquet, parquet_rows
from gquery.io.column_cache import ColumnCache
from gquery.runtime import interrupt

TABLE = pa.table({"k": np.arange(900) % 7, "v": np.arange(900)})


@pytest.fixture
def db(tmp_path: Path) -> Iterator[gquery.Connection]:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    with gquery.connect("python") as made:
        made.sql(f"CREATE VIEW file AS SELECT * FROM '{tmp_path}/t.parquet'")
        made.register("memory", TABLE)
        made.sql("CREATE TABLE made AS SELECT * FROM memory")
        yield made


PLACES: dict[str, tuple[Any, str, str]] = {
    "reading": (parquet_rows, "run_phases", "SELECT sum(v) FROM file"),
    "encoding": (memory.ArrowSource, "_encoded", "SELECT sum(v) FROM memory"),
    "looking over": (made_table.MadeTable, "_look_over", "SELECT sum(v) FROM made"),
    "opening": (readers, "open_files", "SELECT sum(v) FROM 'other.parquet'"),
    "finding": (parquet.ParquetSource, "_open", "SELECT max(v) FROM file"),
}


@pytest.mark.parametrize("place", PLACES)
def test_who_waits_for_another_is_interrupted(
    place: str, db: gquery.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, sql = PLACES[place]
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "other.parquet")
    plain, is_there, goes_on = getattr(owner, name), threading.Event(), threading.Event()

    def slow(*given: Any, **named: Any) -> Any:
        is_there.set()
        assert goes_on.wait(60)
        return plain(*given, **named)

    if place == "looking over":
        monkeypatch.setattr(made_table.MadeTable, "_is_small", lambda *given: False)
        db.sql("CREATE OR REPLACE TABLE made AS SELECT * FROM memory")
    if place == "finding":
        db.sql(sql).fetchall()
        pq.write_table(TABLE.slice(1), "t.parquet")
    monkeypatch.setattr(owner, name, slow)
    first, second = _Asked(db, sql), None
    try:
        assert is_there.wait(20)
        second = _Asked(db, sql.replace("v", "k"))
        second.join(0.2)
        assert second.is_alive()
        db.interrupt()
        second.join(20)
        assert isinstance(second.made, InterruptError)
    finally:
        goes_on.set()
    first.join(20)
    assert not first.is_alive()
    assert db.sql(sql).fetchall() in ([(899 * 450,)], [(899,)])


class _Asked(threading.Thread):
    def __init__(self, db: gquery.Connection, sql: str) -> None:
        super().__init__(daemon=True)
        self._db, self._sql = db, sql
        self.made: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.made = self._db.sql(self._sql).fetchall()
        except BaseException as error:
            self.made = error


def test_a_lock_that_is_interrupted_is_taken_again() -> None:
    """By its owner as often as it likes; who was interrupted has not got it."""
    lock, token, said = interrupt.Lock(), interrupt.Token(), list[str]()

    def wait() -> None:
        with interrupt.acting_for(token):
            try:
                with lock:
                    said.append("has it")
            except InterruptError:
                said.append("interrupted")

    with lock, lock:
        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        token.stopped = True
        thread.join(20)
    assert said == ["interrupted"]
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(20)
    assert said[1:] in (["has it"], ["interrupted"]) and not thread.is_alive()
    with lock:
        pass


# ---- what the collector calls ----------------------------------------------------------------------------------------


def _columns(tmp_path: Path) -> list[ColumnData]:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    return list(parquet.ParquetSource([str(tmp_path / "t.parquet")], ColumnCache()).load([0, 1]).columns)


def test_a_source_goes_while_another_thread_has_the_columns(tmp_path: Path) -> None:
    """Its thread may hold what that one waits for. The columns go all the same."""
    cache, (k, v) = ColumnCache(), _columns(tmp_path)
    cache.put(1, {0: k, 1: v}, "t")
    cache.put(2, {0: k}, "u")
    going = threading.Thread(target=cache.forget, args=(1,), daemon=True)
    with cache._held():
        going.start()
        going.join(20)
        assert not going.is_alive()
    assert [key for key, _ in cache._by_use()] == [(2, 0)]


@pytest.mark.parametrize("use", ["held", "find", "nbytes", "put", "_by_use"])
def test_a_source_goes_in_the_midst(use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector runs while this thread goes through the columns."""
    cache, (k, v) = ColumnCache(limit=2**40), _columns(tmp_path)
    for n in range(1, 9):
        cache.put(n, {0: k, 1: v}, "t")
    uses: dict[str, Callable[[], Any]] = {
        "held": lambda: cache.held(5),
        "find": lambda: cache.find(5, _Going(cache, 3)),
        "nbytes": lambda: cache.nbytes,
        "put": lambda: cache.put(20, {0: k}, "t"),
        "_by_use": cache._by_use,
    }

    def held_bytes(column: ColumnData) -> int:
        cache.forget(4)
        return 8

    monkeypatch.setattr(ColumnData, "held_bytes", property(held_bytes))
    uses[use]()
    cache.forget(3)
    cache.forget(4)
    assert cache.get(3, 0) is None and cache.get(4, 0) is None and cache.get(5, 0) is k
    assert not cache._users and not cache._gone


class _Going(list[int]):
    """Fields of a source, in the midst of which another one goes."""

    def __init__(self, cache: ColumnCache, source: int) -> None:
        super().__init__([0, 1])
        self._cache, self._source = cache, source

    def __iter__(self) -> Iterator[int]:
        for field in (0, 1):
            self._cache.forget(self._source)
            yield field
