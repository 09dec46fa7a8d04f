"""Late fetch: a top-k gives the same rows whether columns are fetched by row number or read as a whole."""

import decimal
import weakref
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery import tuning
from gquery.columns.pick import Picker, Places
from gquery.columns.store import TableStore
from tests.support.tuned import Tune

ROWS = 3_000


@pytest.fixture(autouse=True)
def small(tune: Tune) -> None:
    tune(tuning.late_fetch, least_rows=10)


def made(chunks: int) -> pa.Table:
    rng = np.random.default_rng(5)
    texts = [None if n % 7 == 0 else f"text {n % 500}é" for n in range(ROWS)]
    whole = pa.table(
        {
            "k": pa.array(rng.integers(0, 100, ROWS)),
            "f": pa.array(rng.permutation(ROWS) / 7),
            "s": pa.array(texts),
            "large": pa.array([t or "" for t in texts], pa.large_string()),
            "b": pa.array([None if n % 3 == 0 else n % 2 == 0 for n in range(ROWS)]),
            "i16": pa.array([None if n % 4 == 1 else n - 99 for n in range(ROWS)], pa.int16()),
            "u8": pa.array([n % 200 for n in range(ROWS)], pa.uint8()),
            "us": pa.array([None if n % 6 == 1 else n * 10**9 for n in range(ROWS)], pa.timestamp("us")),
            "i8": pa.array([n % 100 - 50 for n in range(ROWS)], pa.int8()),
            "u64": pa.array([2**63 + n for n in range(ROWS)], pa.uint64()),
            "day": pa.array(rng.integers(0, 9_999, ROWS).astype("datetime64[D]")),
            "moment": pa.array(rng.integers(0, 10**9, ROWS).astype("datetime64[s]")),
            "dec": pa.array([decimal.Decimal(n).scaleb(-2) for n in range(ROWS)], pa.decimal128(12, 2)),
            "real": pa.array([None if n % 5 == 0 else n / 4 for n in range(ROWS)], pa.float32()),
            "nothing": pa.array([None] * ROWS, pa.string()),
            "list": pa.array([[n] for n in range(ROWS)]),
            "coded": pa.array([f"c{n % 9}" for n in range(ROWS)]).dictionary_encode(),
        }
    )
    cuts = sorted({0, ROWS, *rng.integers(0, ROWS, chunks - 1).tolist()})
    return pa.concat_tables([whole.slice(a, b - a) for a, b in pairwise(cuts)])


def fetches(connection: gquery.Connection, sql: str) -> bool:
    return "by row number" in connection.explain(sql, level="physical")


QUERIES = [
    "SELECT * FROM t WHERE k % 10 = 3 ORDER BY f LIMIT 12",
    "SELECT * FROM t ORDER BY k DESC, f LIMIT 5 OFFSET 20",
    "SELECT row_number() OVER () AS n, * FROM t ORDER BY f LIMIT 9",
    "SELECT *, n + 1 AS m FROM (SELECT row_number() OVER () AS n, * FROM t) WHERE n % 3 = 1 ORDER BY k, f DESC LIMIT 9",
    "SELECT s, s AS again, f + 1, b, large FROM t ORDER BY f DESC LIMIT 30",
    "SELECT day AS x, moment, dec FROM t WHERE s LIKE '%99%' ORDER BY f LIMIT 1000",
    "SELECT x, f FROM (SELECT s AS x, f, k FROM t WHERE k > 5) WHERE k < 50 ORDER BY f LIMIT 40",
    "SELECT * FROM t WHERE k < 0 ORDER BY f LIMIT 3",
    "SELECT s, u64, nothing FROM t ORDER BY f LIMIT 0",
]


@pytest.mark.parametrize("chunks", [1, 9])
@pytest.mark.parametrize("sql", QUERIES)
def test_rows_are_duckdbs(sql: str, chunks: int) -> None:
    table = made(chunks)
    connection = gquery.connect("cpu").register("t", table)
    oracle = duckdb.connect().register("t", table)
    expected = oracle.execute(sql).fetchall()
    for _ in range(3):
        assert connection.sql(sql).fetchall() == expected
    plain = gquery.connect("cpu").register("t", table)
    plain.sql("SELECT count(*) FROM t WHERE " + " OR ".join(f'"{n}" IS NULL' for n in table.column_names)).fetchall()
    late, whole = connection.sql(sql).to_arrow_table(), plain.sql(sql).to_arrow_table()
    assert late.schema == whole.schema
    assert late.equals(whole)


@pytest.mark.parametrize("sql", QUERIES)
@pytest.mark.parametrize("created", [False, True])
def test_columns_that_are_loaded_are_fetched_where_many_rows_are_sorted(sql: str, created: bool, tune: Tune) -> None:
    tune(tuning.late_fetch, sorted_rows=10)
    table = made(3)
    expected = duckdb.connect().register("t", table).execute(sql).fetchall()
    connection = gquery.connect("cpu").register("given", table)
    connection.sql("CREATE TABLE t AS SELECT * FROM given").fetchall()
    if not created:
        connection = gquery.connect("cpu").register("t", table)
        connection.table("t").to_arrow_table()
    one_column, no_rows = (
        "SELECT x, f" in sql,
        "k < 0" in sql or "LIMIT 0" in sql,
    )  # a row's number in its place; none is expected to be sorted
    assert fetches(connection, sql) == (not one_column and not no_rows)
    for _ in range(3):
        assert connection.sql(sql).fetchall() == expected


def test_which_queries_fetch() -> None:
    connection = gquery.connect("cpu").register("t", made(1))
    assert fetches(connection, QUERIES[0])
    assert not fetches(connection, "SELECT k, f FROM t WHERE k > 3 ORDER BY f LIMIT 3")  # both are used
    assert not fetches(connection, "SELECT b, sum(k) FROM t GROUP BY b ORDER BY b LIMIT 3")
    assert not fetches(connection, "SELECT t.b, u.b FROM t, t AS u WHERE t.f = u.f ORDER BY t.f LIMIT 3")
    sql = "SELECT s, f FROM t ORDER BY f LIMIT 4"
    for explain in ("EXPLAIN", "EXPLAIN ANALYZE"):
        told = connection.sql(f"{explain} {sql}").fetchall()[0][-1]
        assert told.startswith("Query s, f\n") and "then fetch 1 column of t by row number" in told
    assert fetches(connection, sql)
    connection.sql("SELECT max(s) FROM t").fetchall()  # encodes it
    assert not fetches(connection, "SELECT s AS other, f FROM t ORDER BY f LIMIT 4")
    assert not fetches(connection, "SELECT * FROM t ORDER BY f LIMIT 2000")
    connection = gquery.connect("cpu").register("t", made(1))
    assert not fetches(connection, "SELECT * FROM t ORDER BY f")


def test_a_table_does_not_keep_its_numbered_rows() -> None:
    connection = gquery.connect("cpu").register("given", made(1))
    connection.sql("CREATE TABLE t AS SELECT * FROM given").fetchall()
    store = connection._catalog.lookup("t")
    assert isinstance(store, TableStore)
    numbered = store.numbered()
    assert store.numbered() is numbered
    known = weakref.ref(numbered)
    del numbered
    assert known() is None


def test_a_column_that_another_query_loads_meanwhile() -> None:
    table = made(2)
    connection = gquery.connect("cpu").register("t", table)
    sql = "SELECT s, dec, large, f FROM t ORDER BY f LIMIT 25"
    first = connection.sql(sql).fetchall()
    connection.sql("SELECT max(s), sum(dec) FROM t").fetchall()
    assert connection.sql(sql).fetchall() == first  # by the plan that is kept


def test_other_constants_by_the_template() -> None:
    table = made(1)
    connection = gquery.connect("cpu").register("t", table)
    oracle = duckdb.connect().register("t", table)
    for least in range(0, 100, 7):
        sql = f"SELECT * FROM t WHERE k >= {least} ORDER BY f LIMIT 6"
        assert connection.sql(sql).fetchall() == oracle.execute(sql).fetchall()


def test_variables_are_taken_as_they_are() -> None:
    values = np.arange(1_000)
    data = {"f": np.arange(1_000.0), "x": values}
    relation = gquery.connect("cpu").sql("SELECT x, f FROM data ORDER BY f LIMIT 3")
    values[:] = -1
    assert relation.fetchall() == [(0, 0.0), (1, 1.0), (2, 2.0)]
    assert data["x"][0] == -1, "the caller's own has changed"


def broken_text(offsets: list[int], characters: bytes) -> pa.ChunkedArray:
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(characters)]
    return pa.chunked_array([pa.Array.from_buffers(pa.string(), len(offsets) - 1, buffers)])


@pytest.mark.parametrize(
    "offsets", [[0, 2, 100_000, 3], [0, -5, 2, 3], [0, 3, 1, 3]], ids=["beyond", "before", "falling"]
)
def test_text_outside_of_its_bytes_is_an_error(offsets: list[int]) -> None:
    with pytest.raises(pa.ArrowInvalid):
        picker = Picker(broken_text(offsets, b"abc"))
        picker.texts(Places(picker.starts, np.arange(3)))


@pytest.mark.parametrize("chunks", [1, 40])
def test_texts_that_are_all_empty_and_rows_of_far_chunks(chunks: int) -> None:
    n = 4_000
    whole = pa.table({"f": np.arange(float(n))[::-1], "s": [""] * n, "x": [None if k % 3 else k for k in range(n)]})
    table = pa.concat_tables([whole.slice(a, n // chunks) for a in range(0, n, n // chunks)])
    connection = gquery.connect("cpu").register("t", table)
    for offset in (0, 37, 940):
        sql = f"SELECT s, x, f FROM t WHERE f % 2 = 1 ORDER BY f LIMIT 50 OFFSET {offset}"
        assert fetches(connection, sql)
        rows = [("", None if k % 3 else k, float(n - 1 - k)) for k in range(n - 2, -1, -2)]
        assert connection.sql(sql).fetchall() == rows[offset : offset + 50]


def test_text_that_is_not_utf8_is_an_error() -> None:
    n = 20
    table = pa.table({"f": np.arange(float(n)), "s": broken_text(list(range(n + 1)), b"\xff" * n)})
    connection = gquery.connect("cpu").register("t", table)
    with pytest.raises(gquery.DataError, match='Column "s" of t is not valid'):
        connection.sql("SELECT s FROM t ORDER BY f LIMIT 2").fetchall()
    assert connection.sql("SELECT f FROM t ORDER BY f LIMIT 1").fetchall() == [(0.0,)]


def test_a_result_with_fetched_columns_is_a_table_like_others() -> None:
    table = made(3)
    connection = gquery.connect("cpu").register("t", table)
    oracle = duckdb.connect().register("t", table)
    sql = "SELECT * EXCLUDE (list, coded) FROM t ORDER BY f LIMIT 50"
    connection.sql(f"CREATE TABLE few AS {sql}")
    oracle.execute(f"CREATE TABLE few AS {sql}")
    connection.register("again", connection.sql(sql))
    for name in ("few", "again"):
        asked = (
            f"SELECT s, sum(i16), max(u64), min(day), max(large), count(us), sum(dec) FROM {name} GROUP BY s ORDER BY s"
        )
        expected = oracle.execute(asked.replace("again", "few")).fetchall()
        assert connection.sql(asked).fetchall() == expected
