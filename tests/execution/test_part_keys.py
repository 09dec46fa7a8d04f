"""Groups that are made in parts lie as the whole would: what reads them was planned for that."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from tests.support.harness import compare, connect, expect
from tests.support.in_parts import all_in_parts


@pytest.mark.parametrize("seed", range(4))
def test_keys_of_parts_lie_as_those_of_the_whole(seed: int) -> None:
    """Groups by a text that is made on the host and by columns as they are stored: a stage behind them reads these so."""
    rng = random.Random(seed)
    size = rng.choice((9, 60))
    texts = rng.choice(((None,), (None, "a", "b", "")))  # those that are all NULL lie in other bytes than made ones
    values = {
        "txt": pa.array([rng.choice(texts) for _ in range(size)], pa.string()),
        "f": pa.array([rng.choice((None, 1.5, 2.0)) for _ in range(size)], pa.float64()),
        "i": pa.array([rng.choice((None, 1, 300)) for _ in range(size)], pa.int64()),
        "day": pa.array([rng.choice((0, 40000)) for _ in range(size)], pa.date32()),
        "yes": pa.array([rng.choice((None, True, False)) for _ in range(size)], pa.bool_()),
    }
    data = {"t": pa.table(values)}
    struct = "{'a': i, 'b': CAST(txt AS VARCHAR)}"  # has a text without a dictionary as a key
    keys = "f::VARCHAR AS g, txt, i, yes, day"
    for sql in (
        f"SELECT DISTINCT CASE WHEN x.st = x.st THEN x.st ELSE x.st END AS c FROM (SELECT {struct} AS st FROM t) AS x",
        f"SELECT g, txt, i, yes, count(*) AS n FROM (SELECT DISTINCT {keys} FROM t) GROUP BY ALL",
        f"SELECT txt, min(day), max(i), count(g), bool_or(yes) FROM (SELECT DISTINCT {keys} FROM t) GROUP BY 1",
        f"SELECT a.txt, a.g, b.day FROM (SELECT DISTINCT {keys} FROM t) AS a JOIN t AS b ON a.i = b.i AND a.txt = b.txt",
    ):
        with all_in_parts() as count:
            db = connect("python", 1, data, {"memory_limit": "1GB"})
            types, rows = expect(sql, data)
            assert compare(db.sql(sql).fetchall(), rows, False, types) is None
        assert count.groups, sql
