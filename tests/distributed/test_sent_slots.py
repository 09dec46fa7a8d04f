"""Groups in arrays over their key: ranks send each other slots of those that are the others', and put what comes on their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.operators import group as module
from gquery.operators.part_groups import own_slots
from tests.support.harness import assert_same
from tests.support.tuned import Tune

ROWS = 20_000
RNG = np.random.default_rng(11)
SKEWED = np.where(RNG.random(ROWS) < 0.5, 700, RNG.integers(0, 3000, ROWS))
VALUES = [None if n % 7 == 0 else int(v) for n, v in enumerate(RNG.integers(-(10**9), 10**9, ROWS))]
TABLES = {
    "t": pa.table(
        {
            "k": SKEWED,
            "low": RNG.integers(-5000, -2000, ROWS),
            "one": [5] * ROWS,
            "gap": np.where(np.arange(ROWS) % 2 == 0, 17, 40_000),
            "n": pa.array([None if n % 11 == 0 else int(v) for n, v in enumerate(SKEWED)]),
            "v": pa.array(VALUES),
            "f": RNG.integers(-100, 100, ROWS) / 8,
            "s": [f"s{v % 10}" for v in SKEWED],
        }
    ),
    "u": pa.table({"k": range(0, 3000, 3), "w": range(1000)}),
    "none": pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}),
}
QUERIES = [
    "SELECT k, sum(v), count(v), min(v), max(f) FROM t GROUP BY k",
    "SELECT k, count(*) FROM t GROUP BY k",
    "SELECT DISTINCT low FROM t",
    "SELECT low, avg(f), sum(f), count(*) FROM t WHERE v > 0 GROUP BY low",
    "SELECT gap, sum(v), stddev(v) FROM t GROUP BY gap",
    "SELECT k, bool_and(v > 0), bit_xor(k) FROM t GROUP BY k",
    "SELECT m, count(*) FROM (SELECT k, count(v) AS m FROM t GROUP BY k) GROUP BY m",
    """SELECT a.k, a.m, b.m FROM (SELECT k, sum(v) AS m FROM t GROUP BY k) a JOIN
       (SELECT k, min(v) AS m FROM t GROUP BY k) b USING (k)""",
    "SELECT k, sum(v) AS m FROM t GROUP BY k ORDER BY m DESC NULLS LAST, k LIMIT 9",
    "SELECT t.k, sum(w) FROM t JOIN u ON t.k = u.k GROUP BY t.k",
    "SELECT k, sum(v) FROM t WHERE k < 3 GROUP BY k",
    "SELECT k, sum(v) FROM t WHERE k < 0 GROUP BY k",
]
WHERE_CUT = [
    "SELECT u.k, m, w FROM u LEFT JOIN (SELECT k, sum(v) AS m FROM t GROUP BY k) x ON u.k = x.k",
    "SELECT u.k, m, w FROM u JOIN (SELECT k, min(v) AS m FROM t WHERE k > 700 GROUP BY k) x ON u.k = x.k WHERE w > 8",
    "SELECT u.k, m, n FROM u LEFT JOIN (SELECT k, max(f) AS m, count(v) AS n FROM t GROUP BY k) x USING (k)",
    "SELECT count(*), sum(w) FROM u WHERE k NOT IN (SELECT k FROM t GROUP BY k HAVING count(*) > 3)",
]
"""Groups that lie where a table is cut, at any slot."""
OTHERS = [
    "SELECT n, sum(v) FROM t GROUP BY n",
    "SELECT k, low, sum(v) FROM t GROUP BY k, low",
]
"""Groups that have a key that may be NULL, or several keys."""


@pytest.fixture(autouse=True)
def taken(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Slots cost nothing; by call the slots of a rank."""
    few = {"parted_bytes": 1, "merged_slot_words": 0, "alone_bytes": 0, "gathered_rows": 1, "gathered_located_rows": 1}
    tune(tuning.distribution, merged_ps=1e12, **few)
    tune(tuning.group_layouts, hashed_least_slots=2**20)
    found: list[int] = []

    def noted(*given: Any) -> Any:
        made = own_slots(*given)
        found.append(made[1].mask + 1)
        return made

    monkeypatch.setattr(module, "own_slots", noted)
    return found


@pytest.mark.parametrize("apart", [1, 256, 2**13])
@pytest.mark.parametrize("sql", QUERIES)
def test_answers(sql: str, apart: int, taken: list[int], tune: Tune) -> None:
    """With ranks that have no slot, too."""
    tune(tuning.transfers, together_alignment=apart)
    assert_same(sql, TABLES, targets=("cpu",) if apart > 1 else ("cpu", "python"), ranks=(3,))
    assert len(taken) >= 3 and len(taken) % 3 == 0
    assert apart == 1 or min(taken) == 1 or min(taken) >= 256


@pytest.mark.parametrize("ranks", [2, 3, 7])
@pytest.mark.parametrize("sql", WHERE_CUT)
def test_groups_that_lie_where_a_table_is_cut(sql: str, ranks: int, taken: list[int]) -> None:
    assert_same(sql, TABLES, targets=("cpu", "python"), ranks=(ranks,))
    assert len(taken) >= 2 * ranks


@pytest.mark.cuda
@pytest.mark.parametrize("sql", QUERIES + WHERE_CUT)
def test_on_gpus(sql: str, taken: list[int]) -> None:
    assert_same(sql, TABLES, targets=("cuda",), ranks=(2,))
    assert taken


@pytest.mark.parametrize("sql", OTHERS)
def test_what_has_no_slots_to_send(sql: str, taken: list[int]) -> None:
    assert_same(sql, TABLES, targets=("cpu",), ranks=(3,))
    assert not taken


def test_one_rank_has_a_hash_table(taken: list[int], tune: Tune) -> None:
    """Where some ranks' join tables say that there are few groups, all ranks send groups, to the same ranks."""
    tune(tuning.group_layouts, hashed_least_slots=16, hashed_slots_a_group=1)
    for sql in QUERIES:
        assert_same(sql, TABLES, targets=("cpu",), ranks=(3,))


@pytest.mark.parametrize("voter", [0, 2])
def test_a_rank_that_has_no_slots_has_all_send_groups(
    voter: int, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module.GroupRun._takes_slots

    def takes(self: Any, exchange: Any) -> bool:
        if exchange.rank != voter or exchange.parts is None or not exchange.parts.by_slots:
            return real(self, exchange)
        agreed: bool = exchange.agree(False)
        return agreed

    monkeypatch.setattr(module.GroupRun, "_takes_slots", takes)
    for sql in QUERIES[:4] + QUERIES[6:9]:
        assert_same(sql, TABLES, targets=("cpu",), ranks=(3,))
    assert not taken


def test_groups_are_found_where_slots_cost_more(taken: list[int], tune: Tune) -> None:
    sql = "SELECT gap, sum(v) FROM t GROUP BY gap"
    tune(tuning.distribution, merged_ps=0.1)
    assert_same(sql, TABLES, targets=("cpu",), ranks=(2,))
    assert not taken


def test_explain_says_by_what() -> None:
    with gquery.connect(device="python", devices=2) as db:
        db.register("t", TABLES["t"])
        assert "merged by the range of keys" in str(db.sql(f"EXPLAIN {QUERIES[0]}").fetchall())
        assert "merged by the range of keys" not in str(db.sql(f"EXPLAIN {OTHERS[1]}").fetchall())
