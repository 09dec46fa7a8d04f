"""Large joins and many groups are divided among the workers of a cluster by the hash of their keys, as among devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery import tuning
from gquery.cluster.rank_tables import OpenedTables
from gquery.cluster.tables import FileTable
from gquery.columns.arrow import export_table
from gquery.execution import run_with_report
from gquery.io.parquet import ParquetSource
from tests.distributed import test_divided_groups, test_hashed_joins
from tests.distributed.test_ranks import QUERIES, TABLES
from tests.support.harness import compare, expect
from tests.support.tuned import Tune
from tests.support.two_workers import two_workers, with_files

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with two_workers() as made:
        yield made


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.getbasetemp() / "divided"
    made.mkdir(exist_ok=True)
    return made


def asked(number: int, queries: Sequence[str], every: int) -> list[Any]:
    """Some of the queries; all in the slow tests."""
    return [pytest.param(q, marks=[] if n % every == number else pytest.mark.slow) for n, q in enumerate(queries)]


@pytest.mark.parametrize("sql", asked(0, test_hashed_joins.HASHED, 5))
def test_joins(sql: str, client: Any, folder: Path, tune: Tune) -> None:
    """Twice: heavy keys are found anew by each run, so that a worker that begins a rank anew comes to the same exchanges."""
    tune(tuning.cluster, whole_bytes=0)
    tables = test_hashed_joins.TABLES
    with gquery.connect(device="python", cluster=client, workers=3, threads=1) as db:
        with_files(db, tables, folder, 100)
        assert "by the hash of" in db.explain(sql, "physical")
        types, want = expect(sql, tables)
        for _ in range(2):
            assert compare(db.sql(sql).fetchall(), want, "ORDER BY" in sql, types) is None


@pytest.mark.parametrize("sql", asked(1, test_divided_groups.DIVIDED, 4))
def test_groups(sql: str, client: Any, folder: Path, tune: Tune) -> None:
    tune(tuning.cluster, whole_bytes=0)
    tables = {"t": test_divided_groups.TABLES["t"]}
    with gquery.connect(device="python", cluster=client, workers=3, threads=1) as db:
        with_files(db, tables, folder, 100)
        assert "by the hash of" in db.explain(sql, "physical")
        types, want = expect(sql, tables)
        assert compare(db.sql(sql).fetchall(), want, "ORDER BY" in sql, types) is None


@pytest.mark.parametrize("sql", asked(2, QUERIES, 12))
def test_join_tables_of_all_rows(sql: str, client: Any, tmp_path: Path, tune: Tune) -> None:
    """None is merged: workers read and gather what they build of."""
    tune(tuning.cluster, whole_bytes=0)
    tune(tuning.worker_distribution, unmerged_most=1e9, cut_frame_rows=1)
    with gquery.connect(device="python", cluster=client, workers=3, threads=1) as db:
        with_files(db, TABLES, tmp_path, 70)
        types, want = expect(sql, TABLES)
        assert compare(db.sql(sql).fetchall(), want, "ORDER BY" in sql, types) is None


@pytest.mark.parametrize(("devices", "workers"), [(256, 10**9), (10**9, 256)])
def test_workers_have_numbers_of_their_own(devices: int, workers: int, client: Any, folder: Path, tune: Tune) -> None:
    """What is a small table for GPUs may be a large one for threads of CPUs."""
    tune(tuning.cluster, whole_bytes=0)
    tune(tuning.distribution, hashed_bytes=devices)
    tune(tuning.worker_distribution, hashed_bytes=workers)
    with gquery.connect(device="python", cluster=client, workers=3, threads=1) as db:
        with_files(db, test_hashed_joins.TABLES, folder, 100)
        text = db.explain(test_hashed_joins.HASHED[0], "physical")
    assert ("by the hash of" in text) == (workers == 256)


@pytest.mark.parametrize(("limit", "most"), [(0, 1_000), (10**9, 10**9)])
def test_first_rows_are_found_before_they_are_sent(limit: int, most: int, client: Any, tmp_path: Path, tune: Tune) -> None:
    """By the numbers of workers, whatever those of GPUs are."""
    tune(tuning.cluster, whole_bytes=0)
    tune(tuning.distribution, sorted_later_bytes=10**9 - limit)
    tune(tuning.worker_distribution, sorted_later_bytes=limit)
    numbers = np.random.default_rng(3).permutation(6_000)
    with gquery.connect(device="cpu", cluster=client, workers=3, threads=1) as db:
        with_files(db, {"n": pa.table({"v": numbers, "w": numbers % 7})}, tmp_path, 500)
        prepared = db.sql("SELECT w + 1 AS x, v FROM n WHERE w <> 3 ORDER BY v DESC LIMIT 5").prepared
        assert prepared is not None
        table, reports = run_with_report(db._program(prepared), db._context(), prepared.feedback)
    assert [r["v"] for r in export_table(table).to_pylist()] == [v for v in range(5_999, 5_980, -1) if v % 7 != 3][:5]
    received = sum(r.of_ranks[0].received_bytes for r in reports)
    assert 0 < received <= most and (received > 10_000) == (limit > 0)


def test_a_small_table_is_cut_where_groups_of_its_key_are_merged(client: Any, tmp_path: Path, tune: Tune) -> None:
    """The large table's rows come in no order of that key; what ranks merge of its groups lies with the small one's rows."""
    tune(tuning.cluster, whole_bytes=10_000, joined_bytes=500)
    tune(tuning.worker_distribution, cut_frame_rows=10**6, gathered_rows=0, exchanged_us=0.0)
    r = np.random.default_rng(2)
    owners = pa.table({"k": np.arange(600, dtype=np.int32), "name": pa.array([f"n{n % 7}" for n in range(600)])})
    things = pa.table({"k": r.integers(0, 590, 9_000).astype(np.int32), "v": r.integers(0, 50, 9_000)})
    counts = "(SELECT k, count(*) AS n, sum(v) AS s FROM things WHERE v <> 3 GROUP BY k)"
    duck = duckdb.connect()
    with gquery.connect(device="python", cluster=client, workers=3, threads=1) as db:
        for name, table in (("owners", owners), ("things", things)):
            pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=200)
            for each in (duck, db):
                each.sql(f"CREATE VIEW {name} AS SELECT * FROM '{tmp_path}/{name}.parquet'")
        left = f"SELECT n, count(*) FROM owners LEFT JOIN {counts} USING (k) GROUP BY n ORDER BY n"
        text = db.explain(left, "physical")
        assert text.count("a part of the rows") == text.count("each of 3 ranks") and "gathered" not in text, text
        for sql in (
            left,
            f"SELECT name, sum(n), sum(s) FROM owners JOIN {counts} USING (k) WHERE k > 300 GROUP BY name ORDER BY name",
            f"SELECT count(*), sum(n), min(name) FROM owners FULL JOIN {counts} USING (k)",
            "SELECT count(*), min(name) FROM owners WHERE k NOT IN (SELECT k FROM things WHERE v = 3)",
            "SELECT name, count(*), sum(v) FROM things JOIN owners USING (k) GROUP BY name ORDER BY name",
        ):
            want = duck.sql(sql)
            found = compare(db.sql(sql).fetchall(), want.fetchall(), "ORDER BY" in sql, [str(t) for t in want.types])
            assert found is None, (sql, found)


@pytest.mark.parametrize("rows", [(300, 1_700), (0, 640)])
def test_ranks_have_zones_of_their_own_rows(rows: tuple[int, int], tmp_path: Path) -> None:
    """A rank whose rows begin within a row group, and within a block of it, skips what one process would of them."""
    low, high = rows
    late = [None if n % 5 == 0 else n // 9 for n in range(2_000)]
    pq.write_table(pa.table({"k": np.arange(2_000), "late": late}), tmp_path / "t.parquet", row_group_size=400)
    opened = OpenedTables()
    source = ParquetSource((str(tmp_path / "t.parquet"),), opened.cache)
    table = opened.rank_table(FileTable("t", source.asked, source.files, source.narrow), low, high)
    for made, values in zip(table.own([0, 1], zones=True), (range(2_000), late), strict=True):
        kept, zones = values[low:high], made.statistics.zones
        assert zones is not None
        for n, at in enumerate(range(0, high - low, zones.block_rows)):
            block = [v for v in kept[at : at + zones.block_rows] if v is not None]
            assert (zones.low[n], zones.high[n]) == (min(block), max(block))
