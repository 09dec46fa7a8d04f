"""Join tables that are arrays over one key, merged of ranges: of each rank those of its own values come to their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.device.device import cpu_device
from gquery.operators import join_table as module
from gquery.operators.cut_keys import CutKeys
from gquery.operators.set_ranges import put_ranges, set_ranges
from gquery.planner.layouts import KeyEncoding, KeyPart
from tests.support.harness import assert_same
from tests.support.tuned import Tune

RNG = np.random.default_rng(12)
ROWS = 4000


def table(keys: Any) -> pa.Table:
    """Rows with these sorted keys, most of which are beside them, and large enough to be cut."""
    n = len(keys)
    wide = RNG.integers(-(10**6), 10**6, n)
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "few": np.arange(n) % 7,
            "half": (np.arange(n) < n // 2).astype(np.int8),
            "wide": wide,
            "maybe": pa.array([None if i % 5 == 0 else int(w) for i, w in enumerate(wide)]),
            "text": [f"t{i % 3}" for i in range(n)],
        }
    )


def lines(low: int, high: int) -> pa.Table:
    """Rows in no order, whose keys are about as far as these, some beside them, some NULL."""
    keys = RNG.integers(low - 20, high + 20, ROWS)
    return pa.table(
        {"l": pa.array([None if n % 9 == 0 else int(k) for n, k in enumerate(keys)]), "v": RNG.integers(0, 100, ROWS)}
    )


DATA = {
    "one key a row": (table(range(1, 1601)), lines(1, 1600)),
    "negative, with gaps": (table(sorted(RNG.choice(np.arange(-900, 3000), 1500, replace=False))), lines(-900, 3000)),
    "repeated at the cuts": (table(np.sort(np.repeat(np.arange(5, 505), 3))), lines(5, 505)),
    "few words": (table(np.sort(np.repeat(np.arange(7, 40), 40))), lines(7, 40)),
    "skewed": (table(np.concatenate([np.arange(600), np.arange(20_000, 20_700)])), lines(0, 20_700)),
}
INNER = [
    "SELECT sum(v * few), count(*) FROM l JOIN t ON l = k",
    "SELECT sum(v * wide), count(*) FROM l JOIN t ON l = k WHERE few > 2",
    "SELECT few, count(*), sum(v) FROM l LEFT JOIN (SELECT * FROM t WHERE half = 1) t ON l = k GROUP BY few",
    "SELECT text, sum(v), sum(maybe), count(maybe) FROM l JOIN t ON l = k WHERE half = 0 GROUP BY text",
    "SELECT sum(v * few), count(*) FROM l JOIN t ON l = k WHERE wide > 10000000",
    "SELECT sum(v * few), count(*) FROM l JOIN (SELECT * FROM t WHERE k = (SELECT max(k) FROM t)) t ON l = k",
]
EXISTS = [
    "SELECT sum(v), count(*) FROM l WHERE l IN (SELECT k FROM t WHERE few < 2)",
    "SELECT sum(v), count(*) FROM l WHERE l NOT IN (SELECT k FROM t WHERE half = 1)",
    "SELECT sum(v), count(*) FROM l WHERE NOT EXISTS (SELECT 1 FROM t WHERE k = l AND half = 0)",
    "SELECT sum(v), count(*) FROM l WHERE EXISTS (SELECT 1 FROM t WHERE k = l AND wide > 10000000)",
]
CASES = [
    (name, sql) for name in DATA for sql in (*(() if name in ("repeated at the cuts", "few words") else INNER), *EXISTS)
]


@pytest.fixture(autouse=True)
def taken(monkeypatch: pytest.MonkeyPatch, tune: Tune) -> list[int]:
    """By merged join table and rank the elements that are its own. No rows are exchanged instead."""
    tune(tuning.distribution, hashed_bytes=2**40)
    found: list[int] = []

    def noted(total: Any, parts: Any, ranges: Any, own: int, device: Any) -> None:
        found.append(ranges[own].end - ranges[own].first)
        put_ranges(total, parts, ranges, own, device)

    monkeypatch.setattr(module, "put_ranges", noted)
    return found


def tables_of(name: str) -> dict[str, pa.Table]:
    built, probed = DATA[name]
    return {"t": built, "l": probed}


TABLES = {name: tables_of(name) for name in DATA}


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize(("name", "sql"), CASES)
def test_answers(name: str, sql: str, ranks: int, taken: list[int]) -> None:
    """Ranks without rows, bits of several ranks in one word, keys at both ends and beside them, NULLs."""
    assert_same(sql, TABLES[name], targets=("python",) if ranks == 2 else ("cpu",), ranks=(ranks,))
    assert len(taken) % ranks == 0
    assert taken or "max(k)" in sql


@pytest.mark.cuda
@pytest.mark.parametrize(("name", "sql"), CASES)
def test_on_gpus(name: str, sql: str, taken: list[int]) -> None:
    for _ in range(3):  # the first, a speculated one, a recorded one
        assert_same(sql, TABLES[name], targets=("cuda",), ranks=(2,))
    assert taken


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize("sql", [INNER[0], INNER[3], EXISTS[0], EXISTS[1]])
def test_a_table_that_grows_and_shrinks(sql: str, device: str, taken: list[int]) -> None:
    """At its end, which the bounds of keys and the cuts follow; in its midst, after which it is not sorted; to nothing."""
    with gquery.connect(device=device, devices=3) as db, gquery.connect(device="cpu") as one:
        for c in (db, one):
            for name, rows in TABLES["one key a row"].items():
                c.register(f"{name}_", rows)
                c.sql(f"CREATE TABLE {name} AS SELECT * FROM {name}_")
        merged = []
        for change in (
            None,
            "INSERT INTO t SELECT k + 5000, few, half, wide, maybe, text FROM t_",
            "DELETE FROM t WHERE k BETWEEN 300 AND 1500",
            "INSERT INTO t SELECT k - 4000, few, half, wide, maybe, text FROM t_",
            "DELETE FROM t",
        ):
            for c in (db, one):
                if change is not None:
                    c.sql(change)
            del taken[:]
            want = sorted(map(str, one.sql(sql).fetchall()))
            for _ in range(3):
                assert sorted(map(str, db.sql(sql).fetchall())) == want
            merged.append(bool(taken))
        assert merged == [True, True, True, False, False]


@pytest.mark.parametrize("slots", [1, 32])
@pytest.mark.parametrize("bounds", [(10, 20), (40, 40), (33, 64), (-5, 1000), (64, 96), (1000, 1000), (-9, -9)])
def test_ranges_have_all_elements_once(bounds: tuple[int, int], slots: int) -> None:
    """Ends that two ranks share are combined; what no other has is copied."""
    width, base = 100, 5
    encoding = KeyEncoding((KeyPart(base, width, False),))
    ranges = set_ranges(CutKeys(bounds), encoding, 3, slots)
    size = width // slots + 1 if slots > 1 else width
    whole = RNG.integers(1, 2, width)  # each slot is set
    own = [CutKeys(bounds).slots(r, base, width) for r in range(3)]
    held = []
    for low, high in own:
        flags = np.zeros(size * slots, np.uint8)
        flags[low:high] = whole[low:high]
        held.append(np.packbits(flags, bitorder="little").view(np.uint32) if slots > 1 else flags.astype(np.uint16))
    parts = [r.of(a).copy() for r, a in zip(ranges, held, strict=True)]
    flags = np.zeros(size * slots, np.uint8)
    flags[:width] = whole
    want = np.packbits(flags, bitorder="little").view(np.uint32) if slots > 1 else flags.astype(np.uint16)
    for rank, total in enumerate(held):
        put_ranges(total, parts, ranges, rank, cpu_device())
        assert (total == want).all()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM l JOIN (SELECT k + 1 AS m FROM t) ON l = m",  # a value that says nothing of the rank
        "SELECT count(*) FROM l WHERE (l, v) IN (SELECT k, few FROM t)",  # of two keys
    ],
)
def test_other_tables_are_merged_whole(sql: str, taken: list[int]) -> None:
    assert_same(sql, TABLES["one key a row"], targets=("cpu",), ranks=(3,))
    assert not taken


def test_with_a_key_filter(tune: Tune, taken: list[int]) -> None:
    tune(tuning.key_filters, least_table_bytes=1)
    for sql in (*INNER, *EXISTS):
        assert_same(sql, TABLES["skewed"], targets=("cpu", "python"), ranks=(3,))
    assert taken
