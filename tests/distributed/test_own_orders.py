"""Queries on ranks that do not make the same of the same rows: one answer, and a right one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.distributed import placement
from tests.distributed import test_hashed_joins, test_ranks
from tests.support.harness import assert_same
from tests.support.marks import one_in
from tests.support.own_orders import own_orders

ROWS = 900
RNG = np.random.default_rng(21)
KEYS = RNG.permutation(np.repeat(np.arange(90), 10))
TABLES = {
    "t": pa.table(
        {
            "n": np.arange(ROWS),
            "d": KEYS / 8,
            "wide": pa.array([None if k == 5 else int(k) * 10**25 for k in KEYS], pa.decimal128(38, 2)),
            "sparse": KEYS * 10**12 + 1,
            "few": (np.arange(ROWS) % 7).astype(np.int8),
            "x": RNG.normal(size=ROWS),
        }
    ),
    "u": pa.table(
        {
            "m": np.arange(300),
            "d": np.arange(300) % 90 / 8,
            "wide": pa.array([n % 90 * 10**25 for n in range(300)], pa.decimal128(38, 2)),
            "sparse": np.arange(300) % 90 * 10**12 + 1,
        }
    ),
}
GROUPS = "(SELECT {k}, count(*) AS c, sum(x) AS s FROM t GROUP BY {k})"
SHAPES = (
    # cut at row numbers
    "SELECT {k}, count(*), count(DISTINCT few) FROM t GROUP BY {k}",
    "SELECT count(*), sum(c), count(DISTINCT c) FROM {groups}",
    "SELECT count(*), sum(n) FROM t JOIN {groups} g ON t.{k} = g.{k} WHERE c > 3",
    "SELECT count(*), sum(n) FROM t WHERE EXISTS (SELECT 1 FROM t o WHERE o.{k} = t.{k} AND o.n > t.n)",
    # the rows of a build that matched
    "SELECT g.c, t.n FROM t FULL JOIN {groups} g ON t.{k} = g.{k} AND t.few = 1 AND t.n % 40 = 3",
    "SELECT g.c, u.m FROM {groups} g FULL JOIN u ON g.{k} = u.{k} AND u.m % 3 = 1",
    # which rows they are is open, but for all ranks the same
    "SELECT count(*) FROM t WHERE {k} IN (SELECT {k} FROM t WHERE {k} IS NOT NULL GROUP BY {k} LIMIT 20)",
    "SELECT count(*) FROM t WHERE {k} IN (SELECT {k} FROM {groups} WHERE {k} IS NOT NULL ORDER BY c LIMIT 20 OFFSET 3)",
    # sums that are compared with themselves
    "SELECT count(*) FROM {groups} WHERE s = (SELECT max(s) FROM {groups})",
    "SELECT count(*) FROM {groups} a JOIN {groups} b ON a.s = b.s",
    "WITH g AS {groups} SELECT count(*) FROM g WHERE s = (SELECT max(s) FROM g)",
    "WITH g AS {groups} SELECT count(*), count(DISTINCT a.{k}) FROM g a JOIN g b ON a.s = b.s JOIN t ON t.{k} = b.{k}",
    "SELECT c, count(*) FROM {groups} GROUP BY c UNION ALL SELECT few, count(*) FROM t GROUP BY few",
)
QUERIES = [s.format(k=k, groups=GROUPS.format(k=k)) for k in ("d", "wide", "sparse") for s in SHAPES]


@pytest.mark.parametrize("ranks", [3, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("sql", QUERIES)
def test_answers(sql: str, ranks: int) -> None:
    with own_orders() as seen:
        assert_same(sql, TABLES, targets=("python",), ranks=(ranks,))
    assert seen or "sparse" in sql, "all ranks made the same"


@pytest.mark.parametrize("sql", [SHAPES[6], SHAPES[7]])
def test_ranks_that_do_not_agree_give_other_answers(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests above would find."""
    monkeypatch.setattr(placement, "agreeing", lambda program, placed: placed)
    sql = sql.format(k="d", groups=GROUPS.format(k="d"))
    with own_orders(), gquery.connect(device="python", devices=3) as connection:
        connection.register("t", TABLES["t"])
        assert connection.sql(sql).fetchall() != [(200,)]


def test_only_what_several_ranks_read_is_agreed_on() -> None:
    groups = "SELECT d, count(*) AS c FROM t GROUP BY d"
    said = "what the first makes is taken by all"
    with gquery.connect(device="python", devices=3) as connection:
        connection.register("t", TABLES["t"])
        assert said not in connection.sql(f"{groups} ORDER BY c, d").explain("physical")
        assert said in connection.sql(f"SELECT count(*) FROM t JOIN ({groups}) g ON t.d = g.d").explain("physical")


@pytest.mark.parametrize("sql", one_in(3, test_ranks.QUERIES))
def test_queries_of_ranks(sql: str) -> None:
    with own_orders():
        assert_same(sql, test_ranks.TABLES, targets=("python",), ranks=(3,))


@pytest.mark.parametrize("sql", one_in(3, test_hashed_joins.HASHED))
def test_hashed_joins_of_ranks(sql: str) -> None:
    with own_orders():
        assert_same(sql, test_hashed_joins.TABLES, targets=("python",), ranks=(3,))


@pytest.mark.cuda
@pytest.mark.parametrize("sql", QUERIES)
def test_on_gpus(sql: str) -> None:
    assert_same(sql, TABLES, targets=("cuda",), ranks=(3,))
