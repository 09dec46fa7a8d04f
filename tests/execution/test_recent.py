"""What is kept of queries is bounded: entries are counted, not megabytes (`python -m benchmarks.memory` prints those)."""

from __future__ import annotations

import gc
import linecache
import threading
import weakref
from pathlib import Path

import pytest

import gquery
from gquery import tuning
from gquery.kernels.targets import get_target, python
from gquery.kernels.targets.cpu import CpuTarget
from gquery.runtime.recent import Recent
from tests.kernels.test_targets import filtered_sum
from tests.support.queries import Generator, random_tables


def test_what_was_used_last_stays() -> None:
    gone: list[int] = []
    kept = Recent[int, int](8, lambda k, _: gone.append(k))
    for n in range(1, 100):
        kept[n] = n
        assert kept.get(1) == 1, "what is used stays"
        assert len(kept) <= 8
        assert all(kept.get(m) == m for m in range(max(1, n - 1), n + 1)), "the half used last"
    assert sorted([*gone, *(k for k, _ in kept.items())]) == list(range(1, 100))
    assert kept.get(2) is None
    assert 2 not in kept
    kept.clear()
    assert len(kept) == 0


def test_threads_find_what_is_theirs() -> None:
    kept = Recent[int, int](64)
    wrong: list[int] = []

    def work(seed: int) -> None:
        for n in range(20_000):
            key = n * seed % 97
            found = kept.get(key)
            if found is None:
                kept[key] = key
            elif found != key:
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(s,)) for s in (1, 3, 5, 7)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert len(kept) <= 64


def test_kernels_of_many_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than the bound, their texts too; what was dropped runs again."""
    most, target = 40, python.TARGET
    monkeypatch.setattr(target, "_compiled", Recent(most, python._forget_text))
    before = {f for f in linecache.cache if f.startswith("<gquery")}
    with gquery.connect("python") as connection:
        for name, table in random_tables(1).items():
            connection.register(name, table)
        first = connection.sql("SELECT k, sum(i) AS v FROM t0 GROUP BY k ORDER BY k")
        answer = first.fetchall()
        digests = {made.kernel.digest for made in target.held()}
        for seed in range(60):
            connection.sql(Generator(seed).query()).fetchall()
            assert len(target.held()) <= most
        assert not digests & {made.kernel.digest for made in target.held()}, "too few shapes"
        texts = {f for f in linecache.cache if f.startswith("<gquery")} - before
        assert texts <= {made.name for made in target.held()}
        first.execute()
        assert first.fetchall() == answer
        assert connection.sql("SELECT k, sum(i) AS v FROM t0 GROUP BY k ORDER BY k").fetchall() == answer


@pytest.mark.usefixtures("fresh_kernels")
def test_machine_code_of_many_kernels() -> None:
    target = CpuTarget()
    target._compiled = Recent(4)
    functions = [weakref.ref(target.compile(filtered_sum(f"recent{n}")).entry) for n in range(6)]
    gc.collect()
    assert len(target.held()) <= 4
    assert [f() is None for f in functions] == [True] * 4 + [False] * 2, "Numba keeps what was dropped"


@pytest.fixture
def fresh_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GQUERY_CACHE_DIR", str(tmp_path))


def test_every_target_has_a_bound() -> None:
    for name in ("python", "cpu"):
        compiled = get_target(name)._compiled  # type: ignore[attr-defined]
        assert isinstance(compiled, Recent)
        assert compiled.most == tuning.compiling.kept_kernels


def test_files_of_a_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those used last are kept open, with their columns; a relation keeps its own."""
    with gquery.connect("python") as connection:
        monkeypatch.setattr(connection, "_files", Recent(2))
        for n in range(5):
            connection.sql(f"SELECT {n} AS a").to_parquet(tmp_path / f"{n}.parquet")
        held = connection.read_parquet(tmp_path / "0.parquet")
        for n in (*range(5), *range(5)):
            assert connection.sql(f"SELECT a FROM '{tmp_path / f'{n}.parquet'}'").fetchall() == [(n,)]
        connection._plans.clear()
        connection._templates.clear()
        gc.collect()
        assert len({source for source, _ in connection._cache._columns}) <= 3
        assert held.fetchall() == [(0,)]
