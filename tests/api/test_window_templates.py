"""Window functions asked again with other constants, which may reuse a plan, and with other parameters."""

from __future__ import annotations

import duckdb
import pytest

import gquery
from tests.support.harness import compare
from tests.support.tables import all_types

TEXTS = (
    "SELECT id, sum(i32) OVER (PARTITION BY s ORDER BY id ROWS BETWEEN {0} PRECEDING AND CURRENT ROW) FROM t WHERE id > {1}",
    "SELECT id, lag(i32, {0}, {1}) OVER (ORDER BY id) FROM t WHERE n <> {0}",
    "SELECT id, n FROM t QUALIFY row_number() OVER (PARTITION BY n ORDER BY i32, id) <= {0}",
    "SELECT id, sum(i32 + {0}) OVER (PARTITION BY s), ntile({0}) OVER (ORDER BY id) FROM t WHERE i32 < {1}",
    "SELECT id, count(*) OVER (ORDER BY n RANGE BETWEEN {0} PRECEDING AND {1} FOLLOWING) FROM t",
    "SELECT id FROM t WHERE i32 < {1} QUALIFY rank() OVER (ORDER BY i32) > {0}",
)
CONSTANTS = ((1, 10), (2, 20), (4, 5), (2, 20))


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.register("t", all_types()["t"])
    return made


@pytest.mark.parametrize("devices", [None, 3])
@pytest.mark.parametrize("text", TEXTS)
def test_other_constants(text: str, devices: int | None, oracle: duckdb.DuckDBPyConnection) -> None:
    db = gquery.connect(device="cpu") if devices is None else gquery.connect(device="cpu", devices=devices)
    db.register("t", all_types()["t"])
    for given in CONSTANTS:
        sql = text.format(*given)
        found = db.sql(sql)
        assert compare(found.fetchall(), oracle.sql(sql).fetchall(), False, [str(t) for t in found.types]) is None, sql


def test_other_parameters(oracle: duckdb.DuckDBPyConnection) -> None:
    db = gquery.connect(device="cpu")
    db.register("t", all_types()["t"])
    sql = "SELECT id, max(n) OVER (ORDER BY id ROWS BETWEEN ? PRECEDING AND CURRENT ROW), lag(n, ?) OVER (ORDER BY id) FROM t"
    for given in CONSTANTS:
        want = oracle.execute(sql, given).fetchall()
        assert sorted(db.sql(sql, given).fetchall(), key=str) == sorted(want, key=str)
