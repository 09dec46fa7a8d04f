"""Arrays in files: the same columns and answers as in memory, an account that is right behind every error, no file that stays."""

from __future__ import annotations

import errno
import gc
import os
import random
import signal
import sys
import threading
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery import errors, tuning
from gquery.columns.arrow import export_table
from gquery.columns.statistics import all_differ
from gquery.device import spill
from gquery.device.device import Device
from gquery.device.memory import Account
from gquery.device.spill import SpillSpace, is_spilled
from gquery.expression.types import Bounds
from gquery.io.column_cache import ColumnCache
from gquery.io.parquet import ParquetSource
from tests.columns.test_assemble import table_of_everything
from tests.execution.test_faults import QUERIES, turns
from tests.execution.test_faults import tables as small_tables
from tests.support.faults import failing_allocations
from tests.support.marks import one_in
from tests.support.resident import Limited
from tests.support.tuned import Tune

ROWS = 1_000_000
LIMIT = 20_000_000
WHOLE = "SELECT sum(a), sum(b), count(s), min(s), max(s), sum(length(t)) FROM 'large.parquet'"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "files").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "files"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, Path]:
    """A table, and the file that it lies in: it takes a second to make."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 2**40, ROWS), rng.integers(-(2**20), 2**20, ROWS)
    table = pa.table(
        {
            "k": pa.array(range(ROWS)),
            "a": a,
            "b": pa.array(b, pa.int64(), mask=b % 5 == 0),
            "s": pa.array([f"c{v % 40}" if v % 7 else None for v in b.tolist()]),
            "t": pa.array([f"some longer text {v}" for v in a.tolist()]),
        }
    )
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    pq.write_table(table, path, row_group_size=200_000)
    return table, path


@pytest.fixture
def large(made: tuple[pa.Table, Path], folder: Path) -> pa.Table:
    """The table, whose file lies in the test's folder, too."""
    os.link(made[1], folder.parent / "large.parquet")
    return made[0]


def limited(folder: Path, limit: int = LIMIT, **settings: Any) -> gquery.Connection:
    connection = gquery.connect(device="cpu", threads=2, memory_limit=limit)
    for name, value in ({"spill_directory": str(folder), "interpret_limit": 0} | settings).items():
        connection.set(name, value)
    return connection


def kept_bytes(db: gquery.Connection) -> tuple[int, int]:
    """What the cached columns take in memory and in files."""
    arrays = [b.host for c in db._cache._columns.values() for b in c.buffers]
    dictionaries = [c.dictionary.values.nbytes for c in db._cache._columns.values() if c.dictionary is not None]
    return sum(a.nbytes for a in arrays if not is_spilled(a)) + sum(dictionaries), sum(
        a.nbytes for a in arrays if is_spilled(a)
    )


def check_account(db: gquery.Connection) -> None:
    """Nothing is taken but by cached columns, once plans and their constants are gone."""
    db._plans.clear()
    db._templates.clear()
    gc.collect()
    (memory, files), space = kept_bytes(db), db.device.spill
    assert space is not None and db.device.account.taken == memory
    assert files <= space.taken <= files + tuning.memory.shared_file


# ---- columns -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("narrow", [True, False])
def test_columns_in_files_are_those_in_memory(
    tmp_path: Path, folder: Path, tune: Tune, statistics: bool, narrow: bool
) -> None:
    """Physical types, bounds, NULLs, order, zones, dictionaries and every byte, with and without footers that tell."""
    table = table_of_everything()
    for n, (low, high) in enumerate(pairwise([0, 6_000, 6_000, table.num_rows])):
        path = tmp_path / f"{n}.parquet"
        pq.write_table(table.slice(low, high - low), path, row_group_size=1_500, write_statistics=statistics)
    fields = range(table.num_columns)
    whole = ParquetSource(str(tmp_path / "*.parquet"), ColumnCache(workers=2), narrow).load(fields)
    tune(tuning.memory, ordered_share=1e-9, least_spilled=1)
    tune(tuning.reading, limited_bytes=5_600)
    device = Device("cpu", 0, 50_000_000, SpillSpace(str(folder)))
    source = ParquetSource(str(tmp_path / "*.parquet"), ColumnCache(None, device, 2), narrow)
    loaded = source.load(fields)
    for name, column, other in zip(table.column_names, loaded.columns, whole.columns, strict=True):
        made, want = column.statistics, other.statistics
        assert (column.physical_type, column.length) == (other.physical_type, other.length), name
        assert (made.bounds, made.null_count, made.is_sorted, made.is_unique, made.longest_run, made.values) == (
            want.bounds, want.null_count, want.is_sorted, want.is_unique, want.longest_run, want.values
        ), name  # fmt: skip
        assert (made.zones is None) == (want.zones is None), name
        for buffer, same in zip(column.buffers, other.buffers, strict=True):
            assert buffer.host.tobytes() == same.host.tobytes(), name
        if name not in ("u64", "huge", "nothing", "no_text"):  # these are encoded from Arrow as a whole
            assert all(is_spilled(b.host) or b.length == 0 for b in column.buffers), name
        if other.dictionary is not None:
            assert column.dictionary is not None and column.dictionary.values.equals(other.dictionary.values), name
    assert export_table(loaded).to_pydict() == table.to_pydict()
    assert device.account.peak <= 50_000_000 and os.listdir(folder) == []


@pytest.mark.parametrize(
    ("values", "unique"),
    [([5, 3, 1, 9, 40, 38], True), ([5, 3, 1, 9, 40, 5], False), ([7], True), ([0, 20, 20], False)],
)
def test_values_that_differ_are_looked_at_in_windows(values: list[int], unique: bool, tune: Tune) -> None:
    tune(tuning.encoding, marked=8, step=2)
    array = np.array(values, np.uint8)
    assert all_differ(array, Bounds(min(values), max(values))) is unique


# ---- answers -------------------------------------------------------------------------------------------------------

ANSWERS = (
    WHOLE,
    "SELECT s, count(*), sum(a), min(b) FROM 'large.parquet' GROUP BY s ORDER BY s",
    "SELECT k, b FROM 'large.parquet' WHERE b > 1000000 ORDER BY b, k LIMIT 50",
    "SELECT count(*), sum(x.a) FROM 'large.parquet' x JOIN 'large.parquet' y ON x.k = y.k + 1 WHERE y.b > 1000000",
    "SELECT max(t), count(*) FROM 'large.parquet' WHERE t LIKE '%99%'",
)


@pytest.mark.parametrize("sql", one_in(2, ANSWERS), ids=range(len(ANSWERS)))
def test_answers_under_a_limit(large: pa.Table, folder: Path, sql: str) -> None:
    """Columns of 50 MB under a limit of 20 MB: right, twice, and nothing is taken behind them but by columns."""
    with gquery.connect(device="cpu") as free:
        want = free.sql(sql).fetchall()
    db = limited(folder)
    for _ in range(2):
        assert db.sql(sql).fetchall() == want
        check_account(db)
    assert db.device.spill is not None and db.device.spill.taken > 0 and db.device.account.peak <= LIMIT


def test_rows_between_stages_lie_in_files(large: pa.Table, folder: Path) -> None:
    """Rows that a stage makes, too many for half of the limit; EXPLAIN ANALYZE tells how much lies in files."""
    db = limited(folder, 60_000_000)
    sql = "SELECT a + 1 AS x, b, k FROM 'large.parquet' WHERE a % 10 < 8"
    table = db.sql(sql).to_arrow_table()
    assert table.num_rows == int((large.column("a").to_numpy() % 10 < 8).sum())
    want = np.sort(large.column("a").to_numpy()[large.column("a").to_numpy() % 10 < 8] + 1)
    assert np.array_equal(np.sort(table.column("x").to_numpy()), want)
    told = str(db.sql(f"EXPLAIN ANALYZE {sql}").fetchall())
    assert "in files, as memory_limit asks for: " in told
    with gquery.connect(device="cpu") as free:
        assert "in files" not in str(free.sql(f"EXPLAIN ANALYZE {sql}").fetchall())


def test_a_result_larger_than_the_limit(folder: Path) -> None:
    db = limited(folder, 20_000_000)
    result = db.sql("SELECT range * 2 AS a FROM range(6000000)").to_arrow_table()
    assert np.array_equal(result.column("a").to_numpy(), np.arange(6_000_000) * 2)
    assert db.device.account.peak <= 20_000_000


def test_cached_columns_give_way(large: pa.Table, folder: Path) -> None:
    """Columns that were in memory move into files when others need it, also for plans that hold them."""
    db = limited(folder, 60_000_000)
    first = db.sql("SELECT sum(k), sum(b) FROM 'large.parquet'")
    want = first.fetchall()
    assert kept_bytes(db)[0] > 1_000_000
    with db.device.scratch(59_500_000, "a sort"):
        assert kept_bytes(db)[0] < 500_000 and kept_bytes(db)[1] > 1_000_000
        with pytest.raises(errors.OutOfMemoryError, match="in another sort: 1.0 MB wanted"):
            db.device.take(1_000_000, "another sort")
    assert db.sql("SELECT sum(k), sum(b) FROM 'large.parquet'").fetchall() == want
    db = limited(folder, 60_000_000)
    assert db.sql("SELECT sum(k), sum(b) FROM 'large.parquet'").fetchall() == want
    db.set("memory_limit", "1MB")
    assert kept_bytes(db)[0] <= 1_000_000 and kept_bytes(db)[1] > 1_000_000
    assert db.sql("SELECT sum(k), sum(b) FROM 'large.parquet'").fetchall() == want


def test_groups_that_do_not_fit_are_made_in_parts(large: pa.Table, folder: Path) -> None:
    db = limited(folder)
    groups = "SELECT a, b, t, count(*) AS n, sum(k) AS k FROM 'large.parquet' GROUP BY a, b, t"
    sql = f"SELECT count(*), sum(n), sum(k * (a % 1000)), sum(b), min(t), sum(length(t)) FROM ({groups})"
    want = gquery.connect(device="cpu").sql(sql).fetchall()
    for _ in range(2):
        assert db.sql(sql).fetchall() == want
        check_account(db)
    assert db.device.account.peak <= LIMIT


def test_what_has_to_lie_in_memory_is_refused(large: pa.Table, folder: Path) -> None:
    db = limited(folder)
    with pytest.raises(errors.OutOfMemoryError, match=r" wanted.*memory_limit of 20\.0 MB.*raise memory_limit"):
        db.sql("SELECT s, max(t) FROM 'large.parquet' GROUP BY s").fetchall()
    check_account(db)
    assert db.sql("SELECT count(*) FROM 'large.parquet'").fetchall() == [(ROWS,)]


# ---- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", QUERIES[: 11 if os.environ.get("GQUERY_FAULTS") else 1])
def test_the_account_behind_failed_allocations(sql: str, folder: Path, tune: Tune) -> None:
    """Whatever allocation fails: taken is what cached columns take, and the next answer is right."""
    tune(tuning.memory, ordered_share=0.001, least_spilled=256)
    table = small_tables()["t"]
    pq.write_table(table.append_column("n", table.column("id")), "p.parquet", row_group_size=100)

    def connect() -> gquery.Connection:
        db = limited(folder, 40_000_000)
        for name, small in small_tables().items():
            pq.write_table(small, f"{name}.parquet", row_group_size=60)
            db.sql(f"CREATE VIEW {name} AS SELECT * FROM '{name}.parquet'")
        return db

    db = connect()
    want = db.sql(sql).fetchall()
    check_account(db)
    with failing_allocations(0) as count:
        connect().sql(sql).fetchall()
    failed = 0
    for at in turns(count.seen, 5, random.Random(sql)):
        db = connect()
        with failing_allocations(at):
            try:
                got = db.sql(sql).fetchall()  # outside of an assertion, which would hold on to the result
                assert got == want
            except errors.OutOfMemoryError:
                failed += 1
        check_account(db)
        assert db.sql(sql).fetchall() == want
    assert failed


def test_a_full_disk(large: pa.Table, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The n-th file finds no room: one error that names the folder and what helps; then the answer is right."""
    db = limited(folder)
    want, whole, seen = gquery.connect(device="cpu").sql(WHOLE).fetchall(), spill.allocate, 0

    def allocate(file: int, size: int) -> None:
        nonlocal seen
        seen += 1
        if seen == full:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(file, size)

    monkeypatch.setattr(spill, "allocate", allocate)
    for turn in (1, 2, 5):
        seen, full = 0, turn
        with pytest.raises(
            errors.OutOfMemoryError, match=r"files.*No space left on device.*Remedies: .*spill"
        ) as raised:
            db.sql(WHOLE).fetchall()
        assert str(folder) in str(raised.value)
        check_account(db)
    full = 0
    assert db.sql(WHOLE).fetchall() == want


def test_a_limit_of_files(large: pa.Table, folder: Path) -> None:
    db = limited(folder, spill_limit="1MB")
    with pytest.raises(errors.OutOfMemoryError, match=r"spill_limit of 1\.0 MB.*raise spill_limit"):
        db.sql(WHOLE).fetchall()
    check_account(db)
    db.set("spill_limit", "100MB")
    assert len(db.sql(WHOLE).fetchall()) == 1


def test_a_folder_that_is_not_there(large: pa.Table, folder: Path) -> None:
    db = limited(folder, spill_directory=str(folder / "none"))
    with pytest.raises(errors.OutOfMemoryError, match="spill_directory.*none"):
        db.sql(WHOLE).fetchall()
    assert db.sql("SELECT 1").fetchall() == [(1,)]


def test_interrupts_leave_nothing(large: pa.Table, folder: Path) -> None:
    told, rng = 0, random.Random(4)
    for _ in range(5):
        db = limited(folder)
        timer = threading.Timer(rng.choice((0.002, 0.01, 0.03)), db.interrupt)
        timer.start()
        try:
            db.sql(WHOLE).fetchall()
        except errors.InterruptError:
            told += 1
        timer.join()
        check_account(db)
    assert told and os.listdir(folder) == []


def open_files() -> list[str]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing's own
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
@pytest.mark.parametrize("unnamed", [True, False])
def test_files_have_no_name(folder: Path, monkeypatch: pytest.MonkeyPatch, unnamed: bool) -> None:
    """Also where the file system knows no files without one."""
    if not unnamed:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    space = SpillSpace(str(folder))
    array = space.empty((1000, 3), np.int64)
    array[:] = 7
    space.rest()
    assert os.listdir(folder) == [] and space.taken == 24_000 and int(array.sum()) == 21_000
    parts = [space.copy_of(np.full(n, n, np.uint16)) for n in (1, 33, 1000)]
    assert [int(p.sum()) for p in parts] == [1, 33 * 33, 1000 * 1000] and all(map(is_spilled, parts))
    del array, parts, space
    gc.collect()
    assert not [link for link in open_files() if str(folder) in link]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_a_killed_process_leaves_no_file(large: pa.Table, folder: Path) -> None:
    settings = {"memory_limit": LIMIT, "spill_directory": str(folder), "threads": 2}
    with Limited(settings, {}) as process:
        want = process.run(WHOLE)
        assert want.error == "" and want.spilled > 0
        process.start(WHOLE)
        os.kill(process.pid, signal.SIGKILL)
    assert os.listdir(folder) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_the_peak_is_within_the_limit(folder: Path) -> None:
    """Columns of 96 MB under 40 MB, watched from outside."""
    rows, rng = 6_000_000, np.random.default_rng(1)
    pq.write_table(
        pa.table({"a": rng.integers(0, 2**50, rows), "b": rng.integers(0, 2**60, rows)}),
        "x.parquet",
        row_group_size=10**6,
    )
    sql = "SELECT sum(a % 1000), sum(b % 1000), count(*) FROM 'x.parquet'"
    pq.write_table(pa.table({"a": range(10), "b": range(10)}), "y.parquet")
    warm: list[tuple[dict[str, str], str]] = [({}, sql.replace("x.", "y."))]
    with Limited({"memory_limit": "40MB", "spill_directory": str(folder), "threads": 2}, {}, warm) as process:
        first = process.run(sql)
        assert first.error == "" and first.spilled > 90_000_000
        assert process.run(sql).rows == first.rows
        assert first.above < 42_000_000


def test_an_account() -> None:
    account = Account(100)
    assert account.take(60) and not account.take(41) and account.take(40)
    account.give(60)
    assert (account.taken, account.peak) == (40, 100)
    owner = np.empty(30, np.uint8)
    account.add(30)
    account.bind(owner, 30)
    assert account.knows(owner[3:9]) and not account.knows(owner.copy())
    del owner
    assert account.taken == 40

    done = []

    def race() -> None:
        done.append(sum(account.take(1) for _ in range(1000)))

    threads = [threading.Thread(target=race) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sum(done), account.taken) == (60, 100)
