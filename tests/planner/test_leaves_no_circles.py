"""What planning leaves behind is freed as it is let go of: objects that hold each other stay until the collector finds them,
which looks at all that is there."""

from __future__ import annotations

import gc

import pytest

import gquery
from gquery.runtime import collector
from tests.support.mutation_pools import tpch_tables
from tpch import queries

MOST = 60
"""Objects: sqlglot's nodes know their parents, and a few are made for nothing."""
SUMS = ", ".join(f"sum(CASE WHEN l_linenumber = {n} THEN l_quantity * l_tax ELSE 0 END) AS s{n}" for n in range(40))
LONG = f"SELECT l_shipmode, {SUMS} FROM lineitem WHERE l_shipmode IN ('AIR') GROUP BY l_shipmode"


@pytest.fixture(scope="module")
def db() -> gquery.Connection:
    connection = gquery.connect(device="cpu")
    for name, table in tpch_tables().items():
        connection.register(name, table)
    return connection


@pytest.mark.parametrize("sql", [*map(queries.sql, queries.NUMBERS), LONG], ids=[*map(str, queries.NUMBERS), "long"])
def test_few_objects_of_a_plan_hold_each_other(db: gquery.Connection, sql: str) -> None:
    with collector.paused():
        db.kernels(sql)  # tables and modules are loaded
        gc.collect()
        kept = db.sql(sql.replace("SELECT", "SELECT ", 1))
        found = gc.collect()
    assert found <= MOST
    del kept
