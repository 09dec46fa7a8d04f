"""Blocks of rows that cannot pass are not scanned: the answers stay the same, whatever lies in the blocks. Blocks have 64 rows
in tests (see conftest)."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.import_arrow import import_table
from gquery.columns.zones import ZonesOfParts, value_range
from gquery.operators.base import Frame
from gquery.operators.scan_ranges import ScanRanges, scan_ranges
from gquery.planner.physical import Pipeline
from tests.support.harness import TARGETS, assert_error, assert_same
from tests.support.marks import one_in
from tests.support.tuned import Tune

ROWS = 2000
RNG = random.Random(12)


def _some(n: int, make: Callable[[int], object], nulls: float = 0.0) -> list[object]:
    return [None if RNG.random() < nulls else make(i) for i in range(n)]


@cache
def tables() -> dict[str, pa.Table]:
    facts = {
        "up": pa.array(_some(ROWS, lambda i: i // 7)),
        "down": pa.array(_some(ROWS, lambda i: 500 - i // 3, 0.1), pa.int32()),
        "near": pa.array(_some(ROWS, lambda i: i // 10 + RNG.randrange(20), 0.05), pa.int32()),
        "zero": pa.array([None if 300 < i < 700 else (i - 1000) // 5 for i in range(ROWS)], pa.int16()),
        "day": pa.array(_some(ROWS, lambda i: date(2020, 1, 1) + timedelta(days=i // 4), 0.02)),
        "price": pa.array(_some(ROWS, lambda i: Decimal(i // 9) / 100), pa.decimal128(9, 2)),
        "huge": pa.array([(-(2**63) if i < 900 else 2**63 - 1) for i in range(ROWS)], pa.int64()),
        "far": pa.array([(i // 7 - 100) * 10**12 for i in range(ROWS)]),
        "free": pa.array(_some(ROWS, lambda i: RNG.randrange(50), 0.1)),
        "word": pa.array(_some(ROWS, lambda i: f"w{i // 100}", 0.1)),
        "text": pa.array([str(i) if i != 1500 else "no number" for i in range(ROWS)]),
        "half": pa.array(_some(ROWS, lambda i: float("nan") if i % 50 == 3 else i / 2, 0.1)),
    }
    dims = {
        "id": pa.array(range(300), pa.int32()),
        "kind": pa.array([i % 11 for i in range(300)]),
        "name": pa.array([f"n{i % 4}" for i in range(300)]),
    }
    many = {"id": pa.array([40, 40, None, 41, 290, 40, 7], pa.int32()), "v": pa.array(range(7))}
    wide = {
        "id": pa.array([0, 10**12, -99 * 10**12, None, 10**15, 77 * 10**12], pa.int64()),
        "near": pa.array([24, 10, 1, 1, 1, None], pa.int64()),
        "w": pa.array(range(6)),
    }
    nothing = {"of": pa.array([None] * 300, pa.int32()), "x": pa.array(range(300))}
    return {
        n: pa.table(t)
        for n, t in {"facts": facts, "dims": dims, "many": many, "wide": wide, "nothing": nothing}.items()
    }


@cache
def empty() -> dict[str, pa.Table]:
    return {name: table.slice(0, 0) for name, table in tables().items()}


FILTERS = [
    "up = 77", "up < 3", "up >= 284", "up > 100000", "up BETWEEN 50 AND 60 AND up <> 55", "5 > up", "up IN (1, 2, 280, -9)",
    "up < 2 OR up > 280", "up < 2 OR free = 4", "up < 50 AND (near > 40 OR down = 3)", "down = 400", "down <= -160", "near > 205",
    "zero = 0", "zero < -150", "zero IS NULL", "zero > -300", "NOT (up > 10)", "day = DATE '2020-03-01'",
    "day >= DATE '2021-05-01' AND day < DATE '2021-05-04'", "price = 1.50", "price < 0.02", "price > 99999.5",
    "huge < 0", "huge = 9223372036854775807", "huge > 9223372036854775806", "huge >= -9223372036854775808", "word = 'w3'",
    "half > 990", "up = free", "up + 1 = 5", "up = NULL", "up % 100 = 3 AND up < 150",
]  # fmt: skip


@pytest.mark.parametrize("where", one_in(2, FILTERS))
def test_filters(where: str) -> None:
    for sql in (
        f"SELECT count(*), sum(free), min(near), max(day) FROM facts WHERE {where}",
        f"SELECT up, near, word, half FROM facts WHERE {where}",
        f"SELECT word, count(*), sum(price) FROM facts WHERE {where} GROUP BY word",
    ):
        assert_same(sql, tables())
    assert_same(sql, empty(), targets=TARGETS[:1])  # which kernels run over no rows at all


JOINS = [
    "SELECT up, w FROM facts JOIN wide ON far = id",
    "SELECT up, w FROM facts JOIN (SELECT * FROM wide UNION ALL SELECT * FROM wide WHERE w < 2) w ON far = id",
    "SELECT up FROM facts WHERE far IN (SELECT id FROM wide WHERE w <> 0)",
    "SELECT count(*) FROM facts WHERE far IN (SELECT id FROM wide)",
    "SELECT up, w FROM facts JOIN wide ON far = id AND facts.near = wide.near",
    "SELECT up FROM facts WHERE (far, near) IN (SELECT id, near FROM wide)",
    "SELECT up, w FROM facts JOIN wide ON far = id AND up = CAST(wide.near AS INTEGER) + 76",
    "SELECT count(*) FROM facts JOIN dims ON up = id AND near = kind WHERE id < 30",
    "SELECT count(*), sum(free) FROM facts JOIN dims ON up = id WHERE kind = 3 AND id < 40",
    "SELECT up, name FROM facts JOIN dims ON near = id WHERE id BETWEEN 100 AND 103",
    "SELECT up, v FROM facts JOIN many ON near = id",
    "SELECT up, v FROM facts LEFT JOIN many ON near = id",
    "SELECT up, v FROM facts FULL JOIN many ON near = id",
    "SELECT up, v FROM many LEFT JOIN facts ON near = id",
    "SELECT up, v FROM facts JOIN many ON near IS NOT DISTINCT FROM id",
    "SELECT up, v FROM facts JOIN many ON near = id AND v > free",
    "SELECT up, v FROM facts JOIN many ON near = id AND up = v + 24",
    "SELECT up FROM facts WHERE near IN (SELECT id FROM many)",
    "SELECT up FROM facts WHERE near NOT IN (SELECT id FROM many WHERE id > 10)",
    "SELECT up FROM facts WHERE EXISTS (SELECT 1 FROM many WHERE id = near AND v > free)",
    "SELECT count(*) FROM facts WHERE near IN (SELECT id FROM many WHERE v > 100)",
    "SELECT count(*), sum(x) FROM facts JOIN nothing ON near = of",
    "SELECT zero, count(*) FROM facts JOIN dims ON zero = id WHERE kind < 2 GROUP BY zero",
    "SELECT up, (SELECT max(v) FROM many WHERE id = near) AS most FROM facts WHERE up < 9",
    "SELECT d.name, count(*) FROM facts f JOIN dims d ON f.up = d.id JOIN many m ON m.id = f.near GROUP BY d.name",
    "SELECT up FROM facts WHERE up IN (SELECT id FROM dims WHERE kind = 4) AND near < 60 ORDER BY up, near LIMIT 5",
    "SELECT word, up FROM facts JOIN dims ON up = id WHERE id = 33 UNION ALL SELECT word, up FROM facts WHERE up = 3",
]


@pytest.mark.parametrize("sql", JOINS)
def test_joins(sql: str) -> None:
    assert_same(sql, tables(), ordered="ORDER BY" in sql)
    assert_same(sql, empty(), ordered="ORDER BY" in sql, targets=TARGETS[:1])


def test_an_error_in_a_block_that_cannot_pass_stays_one() -> None:
    sql = (
        "SELECT count(*) FROM facts JOIN dims ON CAST(text AS INTEGER) = id WHERE up < 10 OR CAST(text AS INTEGER) < 0"
    )
    assert_error(sql, tables(), gquery.ConversionError)


def test_random_filters_and_joins() -> None:
    rng = random.Random(5)
    names = ["up", "down", "near", "zero", "free"]
    for _ in range(10):
        terms = [
            f"{rng.choice(names)} {rng.choice(['<', '<=', '=', '>', '>='])} {rng.randrange(-220, 520)}"
            for _ in range(3)
        ]
        where = f"{terms[0]} {rng.choice(['AND', 'OR'])} {terms[1]}"
        key = rng.choice(names)
        assert_same(f"SELECT count(*), sum(up) FROM facts WHERE {where}", tables())
        sql = f"SELECT up, kind FROM facts JOIN dims ON {key} = id WHERE {where} AND kind = {rng.randrange(11)}"
        assert_same(sql, tables())


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_changed_data_have_other_blocks(device: str) -> None:
    with gquery.connect(device) as connection:
        connection.sql("SET interpret_limit = 0")
        sql = "SELECT count(*), min(x), max(x) FROM t WHERE x BETWEEN 10 AND 12"
        for shift in (0, 5, -900, 3000):
            connection.sql(f"CREATE OR REPLACE TABLE t AS SELECT range // 5 + {shift} AS x FROM range(3000)")
            want = [x for i in range(3000) if 10 <= (x := i // 5 + shift) <= 12]
            assert connection.sql(sql).fetchall() == [(len(want), min(want, default=None), max(want, default=None))]


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_other_constants_of_one_plan_have_other_blocks(device: str) -> None:
    with gquery.connect(device) as connection:
        connection.sql("SET interpret_limit = 0")
        for name, table in tables().items():
            connection.register(name, table)
        up = [n // 7 for n in range(ROWS)]
        for at in (3, 200, 77, 10**6, -5, 3):
            assert connection.sql(f"SELECT count(*) FROM facts WHERE up = {at}").fetchall() == [(up.count(at),)]
            assert connection.sql("SELECT count(*) FROM facts WHERE up = ?", [at]).fetchall() == [(up.count(at),)]
            sql = f"SELECT count(*) FROM facts JOIN dims ON up = id WHERE id BETWEEN {at} AND {at + 1}"
            assert connection.sql(sql).fetchall() == [(sum(n in (at, at + 1) for n in up),)]
            sql = f"SELECT count(*) FROM facts WHERE up IN ({at}, {at + 2}, 5, 6, 7, 8)"
            assert connection.sql(sql).fetchall() == [(sum(n in (at, at + 2, 5, 6, 7, 8) for n in up),)]


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_explain_analyze_tells_how_many_blocks_were_skipped(device: str) -> None:
    with gquery.connect(device) as connection:
        connection.sql("SET interpret_limit = 0")
        for name, table in tables().items():
            connection.register(name, table)
        blocks = -(-ROWS // 64)
        text = str(connection.sql("EXPLAIN ANALYZE SELECT sum(free) FROM facts WHERE up = 77").fetchall())
        assert f"blocks of rows: {blocks - 1} of {blocks} skipped" in text
        sql = "EXPLAIN ANALYZE SELECT sum(free) FROM facts JOIN dims ON up = id WHERE name = 'n1' AND id < 5"
        assert f"blocks of rows: {blocks - 1} of {blocks} skipped" in str(connection.sql(sql).fetchall())
        assert "blocks of rows" not in str(
            connection.sql("EXPLAIN ANALYZE SELECT sum(free) FROM facts WHERE free = 1").fetchall()
        )


def test_zones_contain_their_values_and_no_nulls() -> None:
    rng = np.random.default_rng(3)
    block = tuning.encoding.zone_rows
    for rows in (0, 1, block - 1, block, block + 1, 7 * block, 7 * block + 5):
        for low, high in ((-5, 5), (0, 1), (3, 90), (-90, -3), (-(2**31), 2**31 - 1)):
            for share in (0.0, 0.3, 1.0):
                values = np.sort(rng.integers(low, high, rows, np.int64)).astype(np.int32)
                ok = (rng.random(rows) >= share).astype(np.uint8)
                ok[: rows // 3] = 0
                values[ok == 0] = 0
                found = value_range(values, ok)
                kept = values[ok == 1]
                assert (found.bounds is None) == (len(kept) == 0)
                if found.bounds is not None:
                    assert (found.bounds.low, found.bounds.high) == (kept.min(), kept.max())
                if found.zones is None:
                    continue
                for n in range(-(-rows // block)):
                    part = values[n * block : (n + 1) * block][ok[n * block : (n + 1) * block] == 1]
                    zone = (found.zones.low[n], found.zones.high[n])
                    assert zone == ((part.min(), part.max()) if len(part) else (2**63 - 1, -(2**63)))
                    for value in (low, 0, high, 2**70, -(2**70)):
                        inside = len(part) > 0 and part.min() <= value <= part.max()
                        assert found.zones.between(value, value)[n] == inside


@pytest.mark.parametrize("seed", range(12))
def test_zones_of_parts_that_threads_see(seed: int, tune: Tune) -> None:
    """Cut anywhere, seen in any order, they are those of the whole array."""
    rng = np.random.default_rng(seed)
    tune(tuning.encoding, zone_rows=int(rng.choice([1, 7, 64, 100])))
    rows = int(rng.integers(0, 1500))
    values = rng.integers(-9, 9, rows) + (np.arange(rows) // 5 if seed % 2 else 0)
    ok = (rng.random(rows) < rng.choice([0.0, 0.2, 0.9, 1.0])).astype(np.uint8) if seed % 3 else None
    if ok is not None:
        ok[rows // 2 : rows // 2 + 200] = 0
        values[ok == 0] = 0
    cuts = sorted({0, rows, *rng.integers(0, rows + 1, 9).tolist()})
    parts = ZonesOfParts(rows)
    with ThreadPoolExecutor(4) as pool:
        spans = [slice(*span) for span in itertools.pairwise(cuts)]
        rng.shuffle(spans)
        list(pool.map(lambda s: parts.see(s.start, values[s], None if ok is None else ok[s]), spans))
    found, whole = parts.found(), value_range(values, ok)
    assert found.bounds == whole.bounds and (found.zones is None) == (whole.zones is None)
    for zones in (found.zones, whole.zones):
        if zones is not None:
            blocks = [values[n : n + zones.block_rows] for n in range(0, rows, zones.block_rows)]
            there = (
                [ok[n : n + zones.block_rows] == 1 for n in range(0, rows, zones.block_rows)] if ok is not None else ()
            )
            kept = [b[t] for b, t in zip(blocks, there, strict=True)] if ok is not None else blocks
            assert zones.low.tolist() == [int(k.min()) if len(k) else 2**63 - 1 for k in kept]
            assert zones.high.tolist() == [int(k.max()) if len(k) else -(2**63) for k in kept]


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_a_column_have_zones_of_their_own(seed: int, tune: Tune) -> None:
    """Wherever they begin: their blocks contain their values, and are as wide as two blocks of the column at most."""
    rng = np.random.default_rng(seed)
    tune(tuning.encoding, zone_rows=int(rng.choice([1, 7, 64])))
    rows = int(rng.integers(500, 1500))
    values = np.sort(rng.integers(-900, 900, rows))
    ok = (rng.random(rows) < rng.choice([0.3, 1.0])).astype(np.uint8)
    ok[rows // 2 : rows // 2 + 200] = 0
    values[ok == 0] = 0
    array = pa.array(values, pa.int32(), mask=ok == 0)
    column = import_table(pa.table({"v": array})).columns[0]
    whole, block = column.statistics.zones, tuning.encoding.zone_rows
    assert whole is not None
    for low, high in [(0, rows), (5, 5), *np.sort(rng.integers(0, rows + 1, (20, 2))).tolist()]:
        zones = column.slice(low, high).statistics.zones
        assert zones is not None and len(zones.low) == len(zones.high) == -(-(high - low) // block)
        for n, first in enumerate(range(low, high, block)):
            last = min(first + block, high)
            kept = values[first:last][ok[first:last] == 1]
            assert len(kept) == 0 or zones.low[n] <= kept.min() <= kept.max() <= zones.high[n]
            around = values[first // block * block : -(-last // block) * block]
            there = ok[first // block * block : -(-last // block) * block] == 1
            assert not there.any() or (zones.low[n] >= around[there].min() and zones.high[n] <= around[there].max())


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_a_scan_of_all_blocks_is_not_asked_about_again(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys take longer to look through than nothing saves; one that skips, and other constants, are asked about."""
    asked: list[int] = []

    def watched(pipeline: Pipeline, frame: Frame, *others: Any) -> ScanRanges:
        asked.append(frame.rows)
        return scan_ranges(pipeline, frame, *others)

    monkeypatch.setattr("gquery.execution.pipelines.scan_ranges", watched)
    with gquery.connect(device) as connection:
        connection.sql("SET interpret_limit = 0")
        connection.register("facts", tables()["facts"])

        def times(sql: str) -> list[int]:
            counts = []
            for _ in range(3):
                asked.clear()
                connection.sql(sql).fetchall()
                counts.append(asked.count(ROWS))
            return counts

        assert times("SELECT count(*) FROM facts WHERE up >= 0") == [1, 0, 0]
        assert times("SELECT count(*) FROM facts WHERE up >= 200") == [1, 1, 1]
        assert times("SELECT count(*) FROM facts WHERE up >= -1") == [1, 0, 0]


@pytest.mark.parametrize(
    ("sql", "is_skipped"),
    [
        ("SELECT count(*), sum(free), min(word) FROM facts JOIN dims ON free = id WHERE kind > 99", True),
        ("SELECT free, count(*) FROM facts JOIN dims ON free = id WHERE kind > 99 AND far > 1 GROUP BY free", True),
        ("SELECT free FROM facts WHERE free IN (SELECT id FROM dims WHERE kind > 99)", False),  # a bitmap, not counted
        ("SELECT count(*) FROM facts, (SELECT id FROM dims WHERE kind > 99 AND id % 2 = 0) d", True),
        ("SELECT count(*), max(free) FROM facts WHERE free NOT IN (SELECT id FROM dims WHERE kind > 99)", False),
        ("SELECT count(*), count(id) FROM facts LEFT JOIN (SELECT id FROM dims WHERE kind > 99) d ON free = id", False),
        ("SELECT count(*), count(id) FROM (SELECT id FROM dims WHERE kind > 99) d FULL JOIN facts ON free = id", False),
        ("SELECT free, (SELECT max(id) FROM dims WHERE kind > 99 AND id = free) FROM facts WHERE up < 9", False),
    ],
)
def test_a_join_table_without_rows_lets_no_row_past(sql: str, is_skipped: bool) -> None:
    assert_same(sql, tables())
    connection = gquery.connect("cpu")
    for name, table in tables().items():
        connection.register(name, table)
    for _ in range(2):
        told = connection.sql(f"EXPLAIN ANALYZE {sql}").fetchall()[0][-1]
        reads = told[told.index("read facts") :].split("\n\n")[0]
        assert ("32 of 32 skipped" in reads) == is_skipped


def test_a_step_that_fails_before_an_empty_join_table_still_fails() -> None:
    empty = "(SELECT id FROM dims WHERE kind > 99) d"
    connection = gquery.connect("cpu")
    for name, table in tables().items():
        connection.register(name, table)
    sql = f"SELECT count(*) FROM facts JOIN {empty} ON CAST(text AS INTEGER) = id"
    with pytest.raises(gquery.Error, match="no number"):
        connection.sql(sql).fetchall()
