"""Random queries over carried columns and moments: unions of joins of unions, against DuckDB.

GQUERY_FUZZ_CARRIED=n runs n queries instead of a few; a failing one prints its seed and SQL.
"""

from __future__ import annotations

import datetime as dt
import os
import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import gquery

QUERIES = int(os.environ.get("GQUERY_FUZZ_CARRIED", "90"))
MOMENT = pa.timestamp("us", "UTC")


def table(rnd: random.Random, rows: int) -> pa.Table:
    def column(type_: Any, *values: Any) -> pa.Array:
        return pa.array([rnd.choice([None, *(v() if callable(v) else v for v in values)]) for _ in range(rows)], type_)

    day = dt.datetime(2020, 1, 1)
    return pa.table({
        "id": pa.array([rnd.randrange(8) for _ in range(rows)], pa.int64()),
        "k": column(pa.int32(), 1, 2, 3),
        "l": column(pa.list_(pa.int32()), [], [1], [None, 2], lambda: [rnd.randrange(99)]),
        "s": column(pa.struct([("a", pa.int64()), ("b", pa.string())]), {"a": 3, "b": "x"}, {"a": None, "b": None}),
        "b": column(pa.binary(), b"", b"\xff", lambda: bytes([rnd.randrange(256)])),
        "z": column(MOMENT, lambda: day + dt.timedelta(hours=rnd.randrange(27 * 24))),
    })  # fmt: skip


class Generator:
    """Queries over tables t, u and the empty e, which have the columns of `table`."""

    def __init__(self, seed: int) -> None:
        self.rnd = random.Random(seed)

    def predicate(self, of: str = "") -> str:
        carried = self.rnd.choice("lsb")
        return self.rnd.choice((
            f"{of}id > 3", f"{of}k = 2", f"{of}k IS NULL", f"{of}{carried} IS NULL", f"{of}{carried} IS NOT NULL",
            f"{of}z > '2020-01-10 00:00:00+00'", f"({of}id < 4 OR {of}l IS NULL)", f"{of}z IS NULL",
            f"{of}id IN (SELECT id FROM u WHERE l IS NOT NULL)", f"{of}z IN (SELECT z FROM u)",
            f"EXISTS (SELECT 1 FROM u WHERE u.id = {of}id AND {of}s IS NOT NULL)" if of else "id <> 5",
        ))  # fmt: skip

    def source(self, depth: int = 0) -> str:
        rnd, chance = self.rnd, self.rnd.random()
        if chance < 0.5 or depth > 1:
            return rnd.choice("tue")
        if chance < 0.6:
            return f"(SELECT * FROM {self.source(depth + 1)} WHERE {self.predicate()})"
        if chance < 0.75:
            return f"(SELECT * FROM {self.source(depth + 1)} UNION ALL SELECT * FROM {self.source(depth + 1)})"
        if chance < 0.85:
            changed = f"CASE WHEN {self.predicate()} THEN l END AS l, s, coalesce(b, b) AS b, z"
            return f"(SELECT id, k, {changed} FROM {self.source(depth + 1)})"
        kind = rnd.choice(("LEFT", "", "FULL", "RIGHT"))
        on = rnd.choice(("x.id = y.id", "x.k = y.k", "x.z = y.z", "x.id = y.id AND x.k < y.k", "x.z < y.z"))
        columns = "x.id, x.k, y.l, x.s, y.b, greatest(x.z, y.z) AS z"
        return f"(SELECT {columns} FROM {self.source(depth + 1)} x {kind} JOIN {self.source(depth + 1)} y ON {on})"

    def query(self) -> str:
        rnd, chance = self.rnd, self.rnd.random()
        if chance < 0.5:
            return f"SELECT * FROM {self.source()} q WHERE {self.predicate('q.')}"
        if chance < 0.65:
            return f"SELECT k, count(l), count(s), count(*), max(z) FROM {self.source()} q GROUP BY k"
        if chance < 0.8:
            shared = f"WITH w AS (SELECT * FROM {self.source()} q)"
            on = f"x.id = y.k AND {self.predicate('y.')}"
            return f"{shared} SELECT x.l, y.b, x.s, y.z FROM w x {rnd.choice(('', 'LEFT'))} JOIN w y ON {on}"
        if chance < 0.9:
            return f"SELECT count(*) FROM (SELECT l, s FROM {self.source()} q LIMIT {rnd.randrange(5)})"
        kind, on = rnd.choice(("SEMI", "ANTI")), "x.id = y.k AND x.l IS NOT NULL"
        return f"SELECT x.l, x.b FROM {self.source()} x {kind} JOIN {self.source()} y ON {on}"


def rows(found: pa.Table) -> list[str]:
    columns = [c.cast(MOMENT) if pa.types.is_timestamp(c.type) else c for c in found.columns]
    return sorted(map(str, zip(*(c.to_pylist() for c in columns), strict=True)))


@pytest.mark.long
@pytest.mark.parametrize(("target", "partitions", "share"), [("python", 1, 1), ("python", 3, 1), ("cpu", 1, 30)])
def test_random_queries(target: str, partitions: int, share: int) -> None:
    rnd = random.Random(5)
    tables = {"t": table(rnd, 30), "u": table(rnd, 12), "e": table(rnd, 0)}
    oracle = duckdb.connect()
    oracle.execute("SET TimeZone = 'UTC'")
    with gquery.connect(device=target, partitions=partitions) as connection:
        if target == "cpu":
            connection.sql("SET interpret_limit = 0")
        for name, data in tables.items():
            oracle.register("registered", data)
            oracle.execute(f"CREATE TABLE {name} AS FROM registered")
            oracle.unregister("registered")
            connection.register(name, data)
        for seed in range(0, QUERIES, share):
            sql = Generator(seed).query()
            want, got = rows(oracle.sql(sql).to_arrow_table()), rows(connection.sql(sql).to_arrow_table())
            assert got == want, f"seed {seed}: {sql}"
