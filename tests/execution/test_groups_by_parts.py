"""Groups that are made by parts of their keys' hashes, of what threads write in chunks."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.operators.part_output import PartOutput
from gquery.operators.partitioned_run import PartitionedRun
from gquery.planner.physical import Group, Pipeline
from gquery.runtime.records import replace
from tests.execution.test_threads import HIGH, QUERIES, ROWS, SPREAD, TABLES, assert_right
from tests.support.paths import GOLDEN
from tests.support.tuned import Tune


@pytest.fixture
def db(tune: Tune) -> gquery.Connection:
    """A connection whose threads all have something to do, and whose tables count as large."""
    tune(tuning.threads, morsel_rows=1000)
    tune(tuning.accumulators, own_words=0, own_group_rows=2**40)
    tune(tuning.accumulators, partitioned_words=0, partitioned_rows=2**40, part_bytes=2**12)
    connection = gquery.connect(device="cpu", threads=4)
    connection.sql("SET interpret_limit = 0")
    connection.register("t", TABLES["t"])
    return connection


PARTS = "hash table for each part of the keys"
BY_PARTS = {
    "one key": QUERIES[SPREAD],
    "two keys": "SELECT narrow, n, count(*), sum(f), min(n) FROM t GROUP BY narrow, n",
    "keys in bits": "SELECT n, f > 0, narrow, count(n), count(*) FROM t GROUP BY ALL",
    "no words": "SELECT DISTINCT spread FROM t",
    "one count": "SELECT spread, count(*) FROM t GROUP BY spread",
    "skewed": "SELECT skewed, count(*), sum(f), count(*) FILTER (WHERE n > 5) FROM t GROUP BY skewed",
    "edges": "SELECT edges, count(*), min(v), max(f) FROM t GROUP BY edges",
    "NULLs": "SELECT absent, min(f), max(n), count(text) FROM t GROUP BY absent",
    "texts": "SELECT spread, any_value(text), max(n) FROM t GROUP BY spread",
    "no rows": "SELECT spread, sum(v) FROM t WHERE v > 10000000000000 GROUP BY spread",
    "wide sums": "SELECT spread, avg(big), sum(wide), avg(wide), avg(money) FROM t GROUP BY spread",
    "fan-out": "SELECT a.spread, count(*), sum(b.v) FROM t a JOIN t b ON a.n = b.n AND b.v % 100 = 1 GROUP BY a.spread",
}


@pytest.mark.parametrize(("threads", "partitions"), [(2, 3), (5, 1)])
@pytest.mark.parametrize("name", BY_PARTS)
def test_groups_by_parts(name: str, threads: int, partitions: int, db: gquery.Connection) -> None:
    """Contributions of threads in chunks, of which some are full and some are not, and tables of parts."""
    db.sql(f"SET threads = {threads}")
    assert PARTS in db.explain(BY_PARTS[name], "pipelines")
    db.sql(f"SET partitions = {partitions}")
    assert_right(db, BY_PARTS[name])


def test_a_sum_of_a_part_that_does_not_fit(db: gquery.Connection) -> None:
    db.register("o", pa.table({"k": np.arange(ROWS) % (ROWS // 2) * 10**12, "b": np.repeat([HIGH, 1], ROWS // 2)}))
    assert PARTS in db.explain("SELECT k, sum(b)::BIGINT FROM o GROUP BY k", "pipelines")
    with pytest.raises(gquery.DataError, match="BIGINT"):
        db.sql("SELECT k, sum(b)::BIGINT FROM o GROUP BY k").fetchall()


def test_room_for_contributions_grows(db: gquery.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    full: list[int] = []
    make, grow = PartitionedRun.__init__, PartitionedRun.grow

    def small(self: PartitionedRun, *arguments: Any) -> None:
        make(self, *arguments)
        if not full:
            self.capacity = 512

    def counted(self: PartitionedRun) -> bool:
        full.append(self.capacity)
        return grow(self)

    monkeypatch.setattr(PartitionedRun, "__init__", small)
    monkeypatch.setattr(PartitionedRun, "grow", counted)
    assert_right(db, QUERIES[SPREAD])
    assert full[0] == 512
    before = len(full)
    assert_right(db, QUERIES[SPREAD])
    assert len(full) == before, "a later run begins with what was enough"


@pytest.mark.parametrize("name", ["", "partitioned_rows", "partitioned_words", "partitioned_memory"])
def test_who_has_groups_by_parts(name: str, db: gquery.Connection, tune: Tune) -> None:
    """Nearly as many groups as rows, in a large table, and memory for contributions."""
    tune(tuning.accumulators, partitioned_rows=16)
    if name:
        tune(tuning.accumulators, **{name: 0 if name == "partitioned_rows" else 2**40})
    assert (PARTS in db.explain("SELECT spread, count(*) FROM t GROUP BY spread", "pipelines")) == (not name)


def test_golden_code(db: gquery.Connection) -> None:
    """The kernel that writes contributions, and the one that makes columns of them."""
    sql = "SELECT narrow, n, sum(v), min(n), avg(f) FROM t GROUP BY narrow, n"
    (pipeline,) = [s.work for s in db.program(sql).stages if isinstance(s.work, Pipeline)][:1]
    assert isinstance(pipeline.sink, Group)
    output = PartOutput(replace(pipeline.sink, partitioned=True), "cpu")
    got = f"{db.explain(sql, 'code')}-- output\n{output.unit[0].text}"
    path = GOLDEN / "threads" / "parts.txt"
    if os.environ.get("GQUERY_UPDATE_GOLDEN"):
        path.write_text(got)
    assert got == path.read_text(), "GQUERY_UPDATE_GOLDEN=1 writes it anew"
