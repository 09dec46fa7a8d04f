"""Row numbers beyond 32 bits, and edges of sums over very many rows: a right answer or a clear error."""

from __future__ import annotations

import numpy as np
import pytest

import gquery
from gquery import errors

MANY = 2**31 + 1000
MORE = 2**32 + 1000


def check_range(connection: gquery.Connection, rows: int) -> None:
    connection.sql("SET interpret_limit = 0")
    found = connection.sql(f"SELECT count(*), sum(range // 8), min(range), max(range) FROM range({rows})").fetchall()
    assert found == [(rows, (rows // 8) * (rows // 8 - 1) // 2 * 8, 0, rows - 1)]
    total = rows * (rows - 1) // 2
    if total < 2**63:
        assert connection.sql(f"SELECT sum(range) FROM range({rows})").fetchall() == [(total,)]
    else:  # never a wrapped sum
        with pytest.raises(errors.OutOfRangeError):
            connection.sql(f"SELECT sum(range) FROM range({rows})").fetchall()
    last = connection.sql(f"SELECT range FROM range({rows}) WHERE range >= {rows - 3}").fetchall()
    assert last == [(rows - 3,), (rows - 2,), (rows - 1,)]
    groups = connection.sql(f"SELECT range % 2 AS k, count(*) FROM range({rows}) GROUP BY k ORDER BY k").fetchall()
    assert groups == [(0, (rows + 1) // 2), (1, rows // 2)]
    with pytest.raises(errors.OutOfRangeError):
        connection.sql(f"SELECT sum(range * 4) FROM range({rows})").fetchall()
    assert connection.sql("SELECT 1").fetchall() == [(1,)]


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 3])
def test_many_rows_on_the_cpu(partitions: int) -> None:
    check_range(gquery.connect(device="cpu", partitions=partitions), MANY)


@pytest.mark.slow
def test_row_numbers_beyond_32_bits_on_the_cpu() -> None:
    """Offsets, firsts and lasts, groups, sets and joins of every kind over 2 GB, and pairs that no table would hold."""
    values = np.ones(MANY, np.int8)
    values[5], values[2**31], values[-1] = 7, 50, 100
    connection = gquery.connect(device="cpu")
    connection.sql("SET interpret_limit = 0")
    connection.register("t", {"a": values})
    connection.sql("CREATE VIEW v AS SELECT * FROM (VALUES (50), (100), (3)) AS v(k)")
    for sql, want in (
        ("SELECT a FROM t LIMIT 3 OFFSET 2147483647", [(1,), (50,), (1,)]),
        ("SELECT a FROM t OFFSET 2147484646", [(1,), (100,)]),
        ("SELECT first(a), last(a), any_value(a) FROM t WHERE a > 7", [(50, 100, 50)]),
        ("SELECT first(a), last(a) FROM t", [(1, 100)]),
        ("SELECT count(DISTINCT a), approx_count_distinct(a) FROM t", [(4, 4)]),
        ("SELECT a, count(*) FROM t GROUP BY a ORDER BY a", [(1, MANY - 3), (7, 1), (50, 1), (100, 1)]),
        ("SELECT count(*), sum(a) FROM t SEMI JOIN v ON a = k", [(2, 150)]),
        ("SELECT count(*) FROM t ANTI JOIN v ON a = k", [(MANY - 2,)]),
        ("SELECT count(*), count(k) FROM t LEFT JOIN v ON a = k", [(MANY, 2)]),
        ("SELECT count(*), sum(k) FROM t JOIN (VALUES (1), (1), (100)) v(k) ON a = k", [(2 * MANY - 5, 2 * MANY + 94)]),
        ("SELECT count(*) FROM (SELECT a FROM t WHERE a = 1 LIMIT 2147484000)", [(2147484000,)]),
        ("SELECT count(*) FROM (SELECT a FROM t INTERSECT SELECT 50)", [(1,)]),
        ("SELECT count(*) FROM range(65536) a, range(65536) b WHERE a.range <= b.range", [(65536 * 65537 // 2,)]),
        ("SELECT k, count(*) FROM (SELECT 1 k FROM range(70000)) a JOIN (SELECT 1 k FROM range(70000)) b USING (k) GROUP BY k",
         [(1, 70000 * 70000)]),
    ):  # fmt: skip
        assert connection.sql(sql).fetchall() == want, sql


@pytest.mark.cuda
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("rows", [MANY, MORE])
def test_many_rows_on_a_gpu(partitions: int, rows: int) -> None:
    check_range(gquery.connect(device="cuda", partitions=partitions), rows)


@pytest.mark.cuda
@pytest.mark.parametrize("rows", [MANY, MORE])
def test_cupy_columns_of_many_rows(rows: int) -> None:
    import cupy

    values = cupy.ones(rows, cupy.int8)
    values[-1] = 100
    values[2**31] = 50
    connection = gquery.connect(device="cuda")
    connection.sql("SET interpret_limit = 0")
    connection.register("t", {"a": values})
    assert connection.sql("SELECT count(*), sum(a), max(a) FROM t").fetchall() == [(rows, rows + 148, 100)]
    assert connection.sql("SELECT a FROM t WHERE a > 1").fetchall() == [(50,), (100,)]
    assert connection.sql("SELECT a, count(*) FROM t GROUP BY a ORDER BY a").fetchall() == [
        (1, rows - 2),
        (50, 1),
        (100, 1),
    ]
