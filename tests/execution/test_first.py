"""any_value is the first value that is not NULL, in the order of rows, as in DuckDB with one thread."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.support.harness import Tables, assert_same


def _tables() -> Tables:
    r = random.Random(3)
    rows = 3000
    made = {
        "g": pa.array([r.randint(0, 40) for _ in range(rows)], pa.int32()),
        "i": pa.array([r.choice((None, r.randint(-(10**6), 10**6))) for _ in range(rows)], pa.int64()),
        "x": pa.array([r.choice((None, r.random(), float("nan"))) for _ in range(rows)], pa.float64()),
        "s": pa.array([r.choice((None, f"é{r.randint(0, 10**9)}")) for _ in range(rows)]),
        "d": pa.array([r.choice(("a", "b", None)) for _ in range(rows)]).dictionary_encode(),
        "n": pa.array(
            [r.choice((None, Decimal(r.randint(-(10**37), 10**37)))) for _ in range(rows)], pa.decimal128(38, 0)
        ),
        "b": pa.array([r.choice((None, True, False)) for _ in range(rows)]),
    }
    return {"t": pa.table(made)}


TABLES = _tables()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT any_value(i), any_value(x), any_value(s), any_value(d), any_value(n), any_value(b) FROM t",
        "SELECT g, any_value(i), any_value(x), any_value(s), any_value(d), any_value(n), any_value(b) FROM t GROUP BY g",
        "SELECT g, any_value(i) FILTER (WHERE i > 0), min(i), max(s), min(s), any_value(s), count(*), sum(i) FROM t GROUP BY g",
        "SELECT any_value(i + 1), any_value(s) FROM t WHERE i < -999999999",
        "SELECT g, any_value(d), any_value(s), any_value(n) FROM t WHERE i > 9999999 GROUP BY g",
        "SELECT s, any_value(g) FROM t GROUP BY s",
        "SELECT x, s, any_value(i), any_value(d), min(n) FROM t GROUP BY x, s",
        "SELECT x IS NULL, s, any_value(g), any_value(i) FILTER (WHERE b) FROM t GROUP BY ALL",
        "WITH c AS (SELECT g, i, s FROM t WHERE i > 5) SELECT a.g, a.v, b.w, b.k"
        " FROM (SELECT g, any_value(i) v FROM c GROUP BY g) a"
        " JOIN (SELECT g, any_value(s) w, min(s) k FROM c GROUP BY g) b ON a.g = b.g",
        "SELECT any_value(k), any_value(n) FROM (SELECT i k, count(*) n FROM t WHERE i = 7 GROUP BY i)",
        "SELECT a.g, any_value(b.i) FROM (SELECT DISTINCT g FROM t) a JOIN t b ON a.g = b.g GROUP BY a.g",
    ],
)
def test_any_value_is_the_first(sql: str) -> None:
    assert_same(sql, TABLES)
