"""Row numbers beyond 32 bits, and edges of sums over very many rows: a right answer or a clear error."""

from __future__ import annotations

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
