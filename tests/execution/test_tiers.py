"""States that do not fit a device's limit are made in parts, which lie on the host or, beyond its limit, in files: DuckDB's
answers on a CPU that stands for a device, which refuses what lies elsewhere, and nothing stays behind.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.api.connection import Connection
from gquery.device.device import Device
from gquery.device.host_tier import HostTier
from gquery.device.kept_memory import block_size
from gquery.device.spill import SpillSpace
from gquery.errors import OutOfMemoryError
from gquery.execution.behind import Behind
from gquery.execution.collected import Collected
from gquery.expression.types import PhysicalType
from tests.execution.test_parts import GROUPS, JOINS, ORDERED, SORTS, TABLES
from tests.support.faults import failing_allocations
from tests.support.frames import column, frame
from tests.support.harness import compare, expect, oracle
from tests.support.in_parts import Refused, all_in_parts
from tests.support.marks import in_turns, one_in
from tests.support.queries import Generator, random_tables
from tests.support.tuned import Tune

TIERS = ["host", "files"]
TURNS = 40 if os.environ.get("GQUERY_FAULTS") else 3


@pytest.fixture
def everything(tune: Tune) -> Iterator[Refused]:
    """Every group-by, join table and sort is made in parts, of slices of 256 rows at most."""
    tune(tuning.spilling, least_parts=4, least_rows=2, levels=4, slice_fraction=1e-9)
    tune(tuning.materialization, unit=256)
    with all_in_parts(100) as refused:
        yield refused


def limited(target: str, tier: str, folder: Path, tables: dict[str, pa.Table], limit: str = "50MB") -> Connection:
    db = gquery.connect(device=target, devices=[0], threads=2, memory_limit=limit)
    db.set("interpret_limit", 0)
    db.set("spill_directory", str(folder))
    if tier == "files":
        db.set("host_memory_limit", "1kB")
    for name, table in tables.items():
        db.register(name, table)
    return db


def tier_of(db: Connection) -> HostTier:
    below = db.device.below
    assert isinstance(below, HostTier)
    return below


def check_nothing_left(db: Connection, folder: Path) -> None:
    """Nothing on the host or in files; on the device copies of columns, which are given up for whatever wants the room."""
    db._plans.clear()
    db._templates.clear()
    gc.collect()
    below = tier_of(db)
    assert below.account.taken == 0 and below.spill is not None and below.spill.taken == 0
    db.device.make_room()
    assert db.device.account.taken < 1000
    assert os.listdir(folder) == []


def check(sql: str, target: str, tier: str, folder: Path, ordered: bool = False) -> Connection:
    types, want = expect(sql, TABLES)
    db = limited(target, tier, folder, TABLES)
    for _ in range(2):
        got = db.sql(sql).fetchall()
        assert compare(got, want, ordered, types) is None
        del got
    below = tier_of(db)
    assert below.spill is not None
    if tier == "files":
        assert below.account.peak <= 1000 and (below.spill.account.peak > 0 or not want[0][0])
    else:
        assert below.spill.account.peak == 0
    check_nothing_left(db, folder)
    return db


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("sql", one_in(4, GROUPS))
def test_groups(sql: str, tier: str, tmp_path: Path, everything: Refused) -> None:
    check(sql, "cpu", tier, tmp_path)
    assert everything.groups


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("sql", one_in(4, JOINS))
def test_joins(sql: str, tier: str, tmp_path: Path, everything: Refused) -> None:
    check(sql, "cpu", tier, tmp_path)
    assert everything.tables


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("sql", one_in(3, SORTS))
def test_sorts(sql: str, tier: str, tmp_path: Path, everything: Refused) -> None:
    check(sql, "cpu", tier, tmp_path, ordered=True)
    assert everything.sorts


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, rank() OVER (PARTITION BY k ORDER BY v), sum(v) OVER (PARTITION BY k ORDER BY v) FROM t",
        "SELECT k, median(v), string_agg(s, '-' ORDER BY v, s), count(*) FROM t GROUP BY k",
    ],
)
def test_partitions(sql: str, tier: str, tmp_path: Path, everything: Refused) -> None:
    check(sql, "cpu", tier, tmp_path)
    assert everything.windows or everything.ordered


@pytest.mark.parametrize("sql", ORDERED)
def test_sorted_rows_that_are_joined_keep_their_order(sql: str, tmp_path: Path, everything: Refused) -> None:
    check(sql, "python", "host", tmp_path, ordered=True)


def test_random_queries(tmp_path: Path, everything: Refused) -> None:
    for seed in range(5_100_000, 5_100_030):
        tables = random_tables(seed // 20 % 40)
        sql = Generator(seed).query()
        try:
            oracle(tables).execute(sql)
        except duckdb.Error:
            continue
        types, want = expect(sql, tables)
        try:
            wrong = compare(limited("python", "host", tmp_path, tables).sql(sql).fetchall(), want, False, types)
            assert wrong is None, wrong
        except Exception as error:
            error.add_note(f"seed {seed}:\n{sql}")
            raise
    assert min(everything.groups, everything.tables, everything.sorts) > 2


# ---- by the account alone --------------------------------------------------------------------------------------------

ROWS = 60_000


def large() -> dict[str, pa.Table]:
    r = np.random.default_rng(5)
    keys = r.integers(0, 2**48, ROWS)
    text = pa.array([f"text {k % 999}" * (1 + k % 3) for k in keys.tolist()])
    return {
        "t": pa.table({"k": keys, "v": r.integers(0, 1000, ROWS), "s": text}),
        "u": pa.table({"k": r.permutation(np.concatenate([keys, keys[:5000]])), "w": np.arange(ROWS + 5000)}),
        "x": pa.table({"k": np.where(r.random(ROWS) < 0.6, keys[0], keys), "v": np.arange(ROWS)}),
    }


LARGE = large()
QUERIES = [
    "SELECT count(*), sum(n), sum(s), min(k) FROM (SELECT k, count(*) AS n, sum(v) AS s FROM t GROUP BY k)",
    "SELECT k, v FROM t ORDER BY k, v LIMIT 10 OFFSET 30000",
    "SELECT count(*), sum(t.v), sum(u.w) FROM t JOIN u ON t.k = u.k",
    "SELECT count(*), sum(x.v), sum(u.w) FROM x JOIN u ON x.k = u.k",
    "SELECT s, k FROM t WHERE v < 900 ORDER BY s, k LIMIT 5 OFFSET 40000",
    "SELECT k + 1 AS a, v * 2 AS b FROM t WHERE v % 7 <> 3",
    "SELECT max(length(s)), count(*) FROM (SELECT s, k FROM t GROUP BY s, k)",
    "SELECT sum(a.v) FROM t a WHERE EXISTS (SELECT * FROM u WHERE u.k = a.k AND u.w <> a.v)",
]


@pytest.mark.parametrize(("sql", "tier"), in_turns(2, QUERIES, TIERS))
def test_a_limit_that_is_kept(sql: str, tier: str, tmp_path: Path, tune: Tune) -> None:
    """States take some five times the limit: nothing is refused but by the account."""
    tune(tuning.spilling, least_rows=64)
    tune(tuning.streaming, chunk_bytes=1 << 15)
    limit = 700_000
    types, want = expect(sql, LARGE)
    db = limited("cpu", tier, tmp_path, LARGE, str(limit))
    ordered = "ORDER BY" in sql
    for _ in range(2):
        assert compare(db.sql(sql).fetchall(), want, ordered, types) is None
    assert db.device.account.peak <= limit
    check_nothing_left(db, tmp_path)


def test_explain_analyze_tells_of_parts(tmp_path: Path) -> None:
    db = limited("cpu", "host", tmp_path, LARGE, "700kB")
    for sql in QUERIES[:3]:
        text = "\n".join(r[0] for r in db.sql(f"EXPLAIN ANALYZE {sql}").fetchall())
        assert "made in " in text and " parts, " in text, text


@pytest.mark.parametrize("sql", one_in(2, QUERIES[:4]))
def test_failed_allocations_leave_nothing(sql: str, tmp_path: Path) -> None:
    types, want = expect(sql, LARGE)
    db = limited("cpu", "files", tmp_path, LARGE, "700kB")
    db.sql(sql).fetchall()
    with failing_allocations(0) as count:
        db.sql(sql).fetchall()
    for at in sorted(random.Random(7).sample(range(1, count.seen), TURNS)):
        with failing_allocations(at):
            try:
                got = db.sql(sql).fetchall()
                assert compare(got, want, "ORDER BY" in sql, types) is None
                del got
            except OutOfMemoryError:
                pass
        check_nothing_left(db, tmp_path)
    assert compare(db.sql(sql).fetchall(), want, "ORDER BY" in sql, types) is None


# ---- the tier --------------------------------------------------------------------------------------------------------


def test_the_tier_keeps_its_limit(tmp_path: Path) -> None:
    """Arrays beyond the limit lie in files; memory is given back with the last view."""
    tier = HostTier(Device("cpu", 1, 1000), 10_000, SpillSpace(str(tmp_path)))
    inside, outside = tier.empty_spillable(1000, np.int64), tier.empty_spillable(1000, np.int64)
    assert tier.account.taken == 8000 and tier.spill is not None and tier.spill.taken == 8000
    view = inside[10:20]
    del inside, outside
    assert tier.account.taken == 8000 and tier.spill.taken == 0
    del view
    assert tier.account.taken == 0


def test_what_is_collected_lies_in_the_tier(tmp_path: Path) -> None:
    """As many rows as expected, fewer, more, of another width, and none: nothing of a frame is held on the device."""
    device = Device("cpu", 1, 10**6)
    device.below = HostTier(device, None, SpillSpace(str(tmp_path)))
    for expected in (0, 5, 300, 1000):
        going, want = Behind(device, "test"), list[int | None]()
        made = Collected(device, "test", going, expected)
        for size, kind in (
            (100, PhysicalType.I16),
            (0, PhysicalType.I16),
            (200, PhysicalType.I16),
            (7, PhysicalType.I64),
        ):
            values = [None if n % 5 == 0 else n for n in range(size)]
            made.add(frame(column(values, kind, device, nullable=True)))
            want += values
        going.wait()
        gc.collect()
        assert device.account.taken == 0
        found = made.all().columns[0]
        assert not found.data.is_on(device) and made.rows == 307
        assert found.validity is not None
        there = zip(found.data.host.tolist(), found.validity.host.tolist(), strict=True)
        assert [v for v, ok in there if ok] == [v for v in want if v is not None]


def test_sizes_of_blocks() -> None:
    for wanted in (1, 15, 16, 17, 999, 12345, 2**20 + 1):
        assert wanted <= block_size(wanted) <= wanted * 1.125 + 1


@pytest.mark.cuda
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("sql", QUERIES)
def test_on_a_gpu(sql: str, tier: str, tmp_path: Path) -> None:
    """The limit holds for all that the pool has taken of the GPU."""
    types, want = expect(sql, LARGE)
    db = gquery.connect("cuda", memory_limit="6MB")
    for name, value in {"interpret_limit": 0, "spill_directory": str(tmp_path)}.items():
        db.set(name, value)
    if tier == "files":
        db.set("host_memory_limit", "1kB")
    for name, table in _many(20).items():
        db.register(name, table)
    types, want = expect(sql, _many(20))
    for _ in range(3):
        assert compare(db.sql(sql).fetchall(), want, "ORDER BY" in sql, types) is None
    with db.device.activate():
        assert db.device.pool.used_bytes() + db.device.pool.free_bytes() <= 6_000_000


_repeated: dict[int, dict[str, Any]] = {}


def _many(times: int) -> dict[str, pa.Table]:
    """The same tables, so many times as long, with other keys in each copy."""
    if times not in _repeated:
        _repeated[times] = {
            name: pa.concat_tables([
                table.set_column(0, "k", pa.array(np.asarray(table["k"]) ^ (n << 50))) for n in range(times)
            ]).combine_chunks()
            for name, table in LARGE.items()
        }  # fmt: skip
    return _repeated[times]
