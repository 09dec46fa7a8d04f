"""On a GPU: columns that lie there, every kind of join, growing tables, skew, errors, and very many rows.

The differential, fuzz, primitive and TPC-H tests have a part marked ``cuda`` of their own; this file has what they do not.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import errors
from tests.support.harness import assert_same, compare

pytestmark = pytest.mark.cuda
MANY = 2**31 + 1000


def connect(partitions: int = 1, **tables: Any) -> gquery.Connection:
    connection = gquery.connect(device="cuda", partitions=partitions)
    connection.sql("SET interpret_limit = 0")
    for name, table in tables.items():
        connection.register(name, table)
    return connection


def one(connection: gquery.Connection, sql: str) -> tuple[Any, ...]:
    (row,) = connection.sql(sql).fetchall()
    return tuple(row)


# ---- errors -----------------------------------------------------------------------------------------------------


def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(errors.DeviceError, match=r"no cuda:77: this machine has .*GPU"):
        gquery.connect(device="cuda:77")


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_query_after_an_error(partitions: int) -> None:
    t = pa.table({"a": [2**62, 2**62, -1], "s": ["x", "1", None]})
    connection = connect(partitions, t=t)
    for sql, error in (
        ("SELECT a * 4 FROM t", errors.OutOfRangeError),
        ("SELECT sum(a + 1) + sum(a) FROM t", errors.OutOfRangeError),
        ("SELECT CAST(s AS INTEGER) FROM t", errors.DataError),
        ("SELECT (SELECT a FROM t)", errors.CardinalityError),
        ("SELECT b FROM t", errors.BindError),
    ):
        with pytest.raises(error):
            connection.sql(sql).fetchall()
        assert one(connection, "SELECT count(*), min(a), max(s) FROM t") == (3, -1, "x")


# ---- columns on the GPU -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
)
def test_cupy_columns(dtype: str, partitions: int) -> None:
    """The ends of each type go in and come out as they are."""
    import cupy

    kind = np.dtype(dtype)
    if dtype == "bool":
        values = np.array([False, True, True])
    elif kind.kind == "f":
        values = np.array([np.finfo(kind).min, -0.5, np.finfo(kind).max], kind)
    else:
        values = np.array([np.iinfo(kind).min, 7, np.iinfo(kind).max], kind)
    connection = connect(partitions, t={"a": cupy.asarray(values), "n": cupy.arange(3)})
    want = values.tolist()
    assert [a for (a,) in connection.sql("SELECT a FROM t ORDER BY n").fetchall()] == want
    assert one(connection, "SELECT min(a), max(a), count(a), count(DISTINCT a) FROM t") == (
        min(want), max(want), 3, len(set(want)),
    )  # fmt: skip
    found = connection.sql("SELECT t.n, u.n FROM t JOIN t AS u ON t.a = u.a ORDER BY 1, 2").fetchall()
    assert found == [(i, j) for i in range(3) for j in range(3) if want[i] == want[j]]


def test_cupy_columns_beside_arrow_tables() -> None:
    import cupy

    connection = connect(t={"k": cupy.arange(1000) % 10, "v": cupy.arange(1000) / 4}, names=_names())
    found = connection.sql("SELECT name, sum(v) FROM t JOIN names USING (k) GROUP BY name ORDER BY name").fetchall()
    assert found == [(f"name {k}", sum(v / 4 for v in range(1000) if v % 10 == k)) for k in range(5)]
    with pytest.raises(errors.InterfaceError, match="one dimension"):
        connection.register("wrong", {"a": cupy.zeros((2, 2))})
    with pytest.raises(errors.Error):
        connection.register("wrong", {"a": cupy.zeros(2), "b": cupy.zeros(3)})


def _names() -> pa.Table:
    return pa.table({"k": range(5), "name": [f"name {k}" for k in range(5)]})


def test_a_strided_column() -> None:
    import cupy

    connection = connect(t={"a": cupy.arange(100)[::3], "b": cupy.arange(34)[::-1]})
    assert one(connection, "SELECT sum(a), sum(a * b) FROM t") == (
        sum(range(0, 100, 3)), sum(3 * i * (33 - i) for i in range(34)),
    )  # fmt: skip


# ---- joins ------------------------------------------------------------------------------------------------------

JOINS = (
    "SELECT count(*), sum(l.v), sum(r.v) FROM l JOIN r ON l.{k} = r.{k}",
    "SELECT count(*), sum(l.v), sum(r.v), count(r.v) FROM l LEFT JOIN r ON l.{k} = r.{k}",
    "SELECT count(*), sum(l.v), sum(r.v), count(l.v) FROM l RIGHT JOIN r ON l.{k} = r.{k} AND l.v < r.v",
    "SELECT count(*), sum(l.v), sum(r.v), count(l.v), count(r.v) FROM l FULL JOIN r ON l.{k} = r.{k}",
    "SELECT count(*), sum(l.v), count(r.v) FROM l FULL JOIN r ON l.{k} = r.{k} AND l.v % 3 = r.v % 3",
    "SELECT count(*), sum(v) FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.{k} = l.{k})",
    "SELECT count(*), sum(v) FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.{k} = l.{k} AND r.v > l.v)",
    "SELECT count(*), sum(v) FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.{k} = l.{k})",
    "SELECT count(*), sum(v) FROM l WHERE {k} NOT IN (SELECT {k} FROM r WHERE {k} IS NOT NULL)",
    "SELECT count(*), sum(v) FROM l WHERE {k} NOT IN (SELECT {k} FROM r)",
    "SELECT {k} IN (SELECT {k} FROM r) AS m, count(*) FROM l GROUP BY 1",
    "SELECT count(*), sum(u) FROM (SELECT (SELECT max(r.v) FROM r WHERE r.{k} = l.{k}) AS u FROM l)",
)


@cache
def sides() -> dict[str, pa.Table]:
    """Keys of each kind: dense integers, sparse ones, text of few values, plain text, wide decimals, doubles; NULL among
    them, most of them several times."""
    r = np.random.default_rng(8)

    def side(rows: int) -> pa.Table:
        k = r.integers(0, 400, rows)
        k[r.random(rows) < 0.1] = -1
        null = k < 0
        columns: dict[str, Any] = {"v": pa.array(r.integers(0, 1000, rows))}
        for name, values in {
            "dense": pa.array(k),
            "sparse": pa.array(k * 10**15 - 10**17),
            "word": pa.array([f"w{x % 7}" for x in k]),
            "text": pa.array([f"text of {x} {'é' * (x % 5)}" for x in k]),
            "wide": pa.array([x * 10**25 for x in k.tolist()], pa.decimal128(38, 0)),
            "real": pa.array(np.where(k == 5, np.nan, k / 3)),
        }.items():
            columns[name] = pa.array(
                [None if n else x for x, n in zip(values.to_pylist(), null, strict=True)], values.type
            )
        return pa.table(columns)

    return {"l": side(900), "r": side(300)}


@pytest.mark.parametrize("key", ["dense", "sparse", "word", "text", "wide", "real"])
def test_joins(key: str) -> None:
    for sql in JOINS:
        assert_same(sql.format(k=key), sides(), targets=("cuda",))


# ---- hash tables, skew ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("key", ["k", "'key ' || k", "k / 7", "k * 12345678901234567890::DECIMAL(38, 0)"])
def test_tables_grow(key: str, partitions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables start far too small for their groups, and are built anew."""
    from gquery.operators.group import GroupRun

    attempts: list[int] = []
    make, grow = GroupRun.__init__, GroupRun.grow

    def small(self: GroupRun, *arguments: Any) -> None:
        make(self, *arguments)
        if self.sink.layout != "direct-address":
            self.capacity = 512

    def counted(self: GroupRun) -> bool:
        attempts.append(self.capacity)
        return grow(self)

    monkeypatch.setattr(GroupRun, "__init__", small)
    monkeypatch.setattr(GroupRun, "grow", counted)
    rows = 60_000
    t = pa.table({"k": (np.arange(rows) * 7919) % 20_000 * 10**12 - 10**15, "v": np.arange(rows)})
    found = connect(partitions, t=t).sql(
        f"SELECT {key} AS g, count(*) AS n, sum(v) AS s, min(v) AS m FROM t GROUP BY g"
    )
    table = found.to_arrow_table()
    assert table.num_rows == 20_000
    assert set(table["n"].to_pylist()) == {3}
    assert sum(table["s"].to_pylist()) == rows * (rows - 1) // 2
    assert sorted(table["m"].to_pylist()) == list(range(20_000))
    assert attempts, "the table was large enough from the start"


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("key", ["5", "10000000000000", "NULL::BIGINT", "'one'", "'one' || 'text'", "1.5::DOUBLE"])
def test_one_key(key: str, partitions: int) -> None:
    """All rows meet in one group, and in one place of a join table."""
    rows = 1_000_000
    t = pa.table({"v": np.arange(rows), "h": np.arange(rows) % 2})
    connection = connect(partitions, t=t)
    connection.sql(f"CREATE TABLE u AS SELECT {key} AS k, v, h FROM t")
    ((k, *found),) = connection.sql("SELECT k, count(*), sum(v), min(v), max(v), avg(v) FROM u GROUP BY k").fetchall()
    assert k == one(connection, f"SELECT {key}")[0]
    assert found == [rows, rows * (rows - 1) // 2, 0, rows - 1, (rows - 1) / 2]
    matches = 0 if k is None else rows * 3
    assert one(connection, "SELECT count(*) FROM u JOIN (SELECT k FROM u LIMIT 3) AS w USING (k)") == (matches,)
    exists = "SELECT count(*) FROM u WHERE k IN (SELECT k FROM u)"
    assert one(connection, exists) == (0 if k is None else rows,)


@pytest.mark.parametrize("partitions", [1, 3])
def test_all_null(partitions: int) -> None:
    rows = 100_000
    empty = [None] * rows
    types = {
        "i": pa.int32(),
        "d": pa.decimal128(38, 2),
        "x": pa.float64(),
        "s": pa.string(),
        "b": pa.bool_(),
        "t": pa.date32(),
    }
    connection = connect(partitions, t=pa.table({n: pa.array(empty, t) for n, t in types.items()}))
    for name in types:
        row = one(
            connection, f"SELECT count(*), count({name}), min({name}), max({name}), count(DISTINCT {name}) FROM t"
        )
        assert row == (rows, 0, None, None, 0)
        assert connection.sql(f"SELECT {name}, count(*) FROM t GROUP BY {name}").fetchall() == [(None, rows)]
    assert one(connection, "SELECT sum(i), sum(d), avg(x) FROM t") == (None, None, None)
    assert one(connection, "SELECT count(*) FROM t JOIN t AS u ON t.i = u.i") == (0,)
    assert connection.sql("SELECT s FROM t ORDER BY s NULLS FIRST LIMIT 2").fetchall() == [(None,), (None,)]


# ---- strings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 3])
def test_strings(partitions: int) -> None:
    """Plain text, too many values for a dictionary, with characters of one to four bytes; against DuckDB."""
    r = np.random.default_rng(6)
    alphabet = list("ab %_é日😀\\")
    texts = ["".join(r.choice(alphabet, r.integers(0, 24))) + str(i) for i in range(5000)]
    tables = {
        "t": pa.table({"s": pa.array([None if i % 50 == 0 else s for i, s in enumerate(texts)]), "i": range(5000)})
    }
    for sql in STRINGS:
        assert_same(sql, tables, targets=("cuda",), ranks=(partitions,))


STRINGS = (
    "SELECT i, substring(s, 2, 3), substring(s, -3), substring(s, 0, 2), length(s) FROM t",
    "SELECT count(*) FROM t WHERE s LIKE '%a%b%'",
    "SELECT count(*) FROM t WHERE s LIKE '_é%'",
    "SELECT count(*) FROM t WHERE s LIKE '%😀__'",
    "SELECT count(*) FROM t WHERE s LIKE '%!%%' ESCAPE '!' AND s NOT LIKE '%!_%' ESCAPE '!'",
    "SELECT count(*) FROM t WHERE s LIKE 'a%' OR s LIKE '%7'",
    "SELECT i, s || '-' || s FROM t WHERE i < 300",
    "SELECT min(s), max(s), count(DISTINCT s) FROM t",
    "SELECT substring(s, 1, 1) AS c, count(*), min(s) FROM t GROUP BY c",
    "SELECT count(*) FROM t JOIN t AS u ON t.s = u.s AND t.i <> u.i + 1",
    "SELECT i FROM t WHERE s > 'b' AND s <= '日' ORDER BY s, i LIMIT 20",
    "SELECT CASE WHEN s LIKE 'a%' THEN s WHEN i % 2 = 0 THEN 'even' END AS c, count(*) FROM t GROUP BY c",
)


# ---- very many rows ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 3])
def test_range_of_5e9_rows(partitions: int) -> None:
    rows = 5_000_000_000
    connection = connect(partitions)
    assert one(connection, f"SELECT count(*), sum(range // 10) FROM range({rows})") == (rows, 1_249_999_997_500_000_000)
    with pytest.raises(errors.OutOfRangeError):  # 1.25e19 is more than a BIGINT: an error, never a wrapped sum
        one(connection, f"SELECT sum(range) FROM range({rows})")


@pytest.mark.parametrize("partitions", [1, 3])
def test_groups_of_more_rows_than_32_bits_count(partitions: int) -> None:
    import cupy

    values = cupy.zeros(MANY, cupy.uint8)
    values[:1000] = cupy.arange(1000).astype(cupy.uint8)
    values[-3:] = 255
    connection = connect(partitions, t={"a": values})
    want = [(a, MANY - 1003 + 4 if a == 0 else 3 + 3 if a == 255 else 4 if a < 1000 - 768 else 3) for a in range(256)]
    assert connection.sql("SELECT a, count(*) FROM t GROUP BY a ORDER BY a").fetchall() == want
    total = sum(a * n for a, n in want)
    assert one(connection, "SELECT count(*), sum(a), max(a) FROM t") == (MANY, total, 255)
    assert one(connection, "SELECT count(*) FROM t WHERE a = 255") == (6,)
    assert one(connection, "SELECT avg(a) FROM t")[0] == pytest.approx(total / MANY, rel=1e-9)


def test_more_rows_than_were_estimated() -> None:
    """A stage reads more than 2^31 rows where the planner expected fewer."""
    part = "SELECT range AS r FROM range(1500000000) WHERE range % 10 <> 3 AND range % 7 <> 3"
    found = one(connect(), f"SELECT count(*), max(r) FROM ({part} UNION ALL {part} UNION ALL {part})")
    kept = sum(1 for r in range(70) if r % 10 != 3 and r % 7 != 3)
    rest = sum(1 for r in range(1500000000 // 70 * 70, 1500000000) if r % 10 != 3 and r % 7 != 3)
    assert found == (3 * (1500000000 // 70 * kept + rest), 1499999999)


def test_results_come_back_exact() -> None:
    """A million rows of each kind, on the host as they were."""
    r = np.random.default_rng(2)
    rows = 1_000_000
    t = pa.table(
        {
            "i": r.integers(-(2**63), 2**63 - 1, rows),
            "x": r.random(rows) * 10.0 ** r.integers(-300, 300, rows),
            "d": pa.array(r.integers(-(2**62), 2**62, rows)).cast(pa.decimal128(20, 0)),
            "s": [f"row {i}" for i in range(rows)],
            "b": r.random(rows) < 0.5,
        }
    )
    found = connect(3, t=t).sql("SELECT i, x, d, s, b FROM t WHERE i <> 0").to_arrow_table()
    for name in t.column_names:
        assert found[name].cast(t[name].type).equals(t[name]), name


def test_the_cpu_gives_the_same() -> None:
    """Both compiled targets on one query of many stages."""
    rows = 200_000
    t = pa.table(
        {"k": np.arange(rows) % 997, "v": np.arange(rows) * 37 % 1009, "s": [f"n{i % 50}" for i in range(rows)]}
    )
    sql = """
        WITH totals AS (SELECT k, sum(v) AS total, min(s) AS least FROM t GROUP BY k)
        SELECT t.s, count(*), sum(total), max(least) FROM t JOIN totals USING (k)
        WHERE v > (SELECT avg(v) FROM t) GROUP BY t.s ORDER BY 3 DESC, 1
    """
    cpu = gquery.connect(device="cpu").register("t", t).sql(sql)
    found = connect(3, t=t).sql(sql)
    assert compare(found.fetchall(), cpu.fetchall(), True, [str(c) for c in cpu.types]) is None
