"""Groups of which each rank merges a part are told apart by a hash table on GPUs, in any order: here on CPUs as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.device.array import Array
from gquery.kernels.builtin import grouping
from gquery.operators import merge_groups as module
from tests.support.harness import assert_same
from tests.support.tuned import Tune

ROWS = 3000
RNG = np.random.default_rng(8)
DRAWN = RNG.integers(0, 700, ROWS)
TABLES = {
    "t": pa.table(
        {
            "k": DRAWN * 10**12,
            "n": pa.array([None if v % 13 == 0 else int(v) * 10**10 for v in DRAWN]),
            "a": RNG.integers(-50, 50, ROWS) * 10**6,
            "b": DRAWN % 23 * 10**7,
            "skewed": np.where(RNG.random(ROWS) < 0.7, 10**15, DRAWN * 10**9),
            "few": RNG.integers(0, 7, ROWS),
            "v": pa.array([None if i % 7 == 0 else int(v) for i, v in enumerate(RNG.integers(-(10**9), 10**9, ROWS))]),
            "f": RNG.integers(-100, 100, ROWS) / 8,
            "s": [f"text {v % 50}" for v in DRAWN],
        }
    ),
    "none": pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}),
}
QUERIES = [
    "SELECT k, sum(v), count(v), min(v), max(f) FROM t GROUP BY k",
    "SELECT n, sum(v), avg(f), count(*) FROM t GROUP BY n",
    "SELECT a, b, sum(v), stddev(f) FROM t GROUP BY a, b",
    "SELECT skewed, count(*), bool_or(v > 0) FROM t WHERE f > 0 GROUP BY skewed",
    "SELECT DISTINCT n, few FROM t",
    "SELECT k, min(s), max(s), count(v) FROM t GROUP BY k",
    "SELECT count(*), sum(m) FROM (SELECT n, few, sum(v) AS m FROM t GROUP BY n, few)",
    "SELECT k, sum(v) AS m FROM t GROUP BY k ORDER BY m DESC NULLS LAST, k LIMIT 9",
    "SELECT k, sum(v) FROM t WHERE v > 10000000000 GROUP BY k",
    """SELECT x.k, m, c FROM (SELECT k, sum(v) AS m FROM t GROUP BY k) x JOIN
       (SELECT k, count(*) AS c FROM t GROUP BY k) y USING (k)""",
]


@pytest.fixture(autouse=True)
def taken(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """By call how many groups there are. Groups are merged by hash, however many rows each has."""
    few = {"parted_bytes": 1, "merged_slot_words": 0, "gathered_rows": 1, "gathered_located_rows": 1}
    tune(tuning.distribution, grouped_fraction=1e9, **few)
    found: list[int] = []
    real = module._distinct

    def distinct(keys: Array, size: int | None, in_order: bool = True) -> tuple[Array, Array]:
        if in_order:
            return real(keys, size, in_order)
        made = grouping.numbered_keys(keys)
        found.append(int(made[0].size))
        return made

    monkeypatch.setattr(module, "_distinct", distinct)
    return found


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("sql", QUERIES)
def test_answers(sql: str, ranks: int, taken: list[int]) -> None:
    assert_same(sql, TABLES, targets=("python",) if ranks == 2 else ("cpu",), ranks=(ranks,))
    assert len(taken) >= ranks


@pytest.mark.cuda
@pytest.mark.parametrize("sql", QUERIES)
def test_on_gpus(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for _ in range(3):  # the first, a speculated one, a recorded one
        assert_same(sql, TABLES, targets=("cuda",), ranks=(2,))


def test_every_rank_has_all_groups_in_one_order(taken: list[int], tune: Tune) -> None:
    """Where rows of several ranks meet later by their places: nothing is merged in any order then."""
    tune(tuning.distribution, parted_bytes=2**40)
    assert_same("SELECT k, sum(f) FROM t GROUP BY k", TABLES, targets=("cpu",), ranks=(3,))
    assert not taken


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_groups_that_become_more_and_fewer(device: str, taken: list[int]) -> None:
    with gquery.connect(device=device, devices=3) as db, gquery.connect(device="cpu") as one:
        for c in (db, one):
            c.register("t_", TABLES["t"])
            c.sql("CREATE TABLE t AS SELECT * FROM t_")
        for change in (None, "INSERT INTO t SELECT k + 7, n, a, b, skewed, few, v, f, s FROM t_", "DELETE FROM t WHERE b > 0"):
            for sql in QUERIES[:4]:
                for c in (db, one):
                    if change is not None and sql is QUERIES[0]:
                        c.sql(change)
                for _ in range(3):
                    got, want = (rounded(c.sql(sql).fetchall()) for c in (db, one))
                    assert got == want
        assert taken


def rounded(rows: list[Any]) -> list[str]:
    return sorted(str([round(v, 6) if isinstance(v, float) else v for v in row]) for row in rows)
