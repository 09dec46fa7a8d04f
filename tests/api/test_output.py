"""How results leave: round trips through pandas, Polars, PyArrow and DuckDB, memory that is shared, arrays, files, and how
much is run for a look at a result."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import gquery
from gquery import errors
from gquery.execution import run_with_report

polars = pytest.importorskip("polars")

D, T = datetime.date(1960, 2, 29), datetime.datetime(1999, 12, 31, 23, 59, 59, 123456)
COLUMNS = {
    "bool": pa.array([True, None, False]),
    "i8": pa.array([-128, None, 127], pa.int8()),
    "i16": pa.array([-(2**15), None, 2**15 - 1], pa.int16()),
    "i32": pa.array([-(2**31), None, 2**31 - 1], pa.int32()),
    "i64": pa.array([-(2**63), None, 2**63 - 1], pa.int64()),
    "u8": pa.array([0, None, 255], pa.uint8()),
    "u16": pa.array([0, None, 2**16 - 1], pa.uint16()),
    "u32": pa.array([0, None, 2**32 - 1], pa.uint32()),
    "u64": pa.array([0, None, 2**64 - 1], pa.uint64()),
    "f32": pa.array([1.5, None, float("inf")], pa.float32()),
    "f64": pa.array([-1.25, None, 1e300], pa.float64()),
    "d9": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(9, 2)),
    "d38": pa.array([Decimal(10) ** 35, None, -(Decimal(10) ** 35)], pa.decimal128(38, 2)),
    "day": pa.array([D, None, datetime.date(2100, 1, 1)]),
    "at": pa.array([T, None, datetime.datetime(1969, 12, 31)], pa.timestamp("us")),
    "s": pa.array(["", None, "日本 \" ',\n"]),
}
FILLED = {n: c.fill_null(c[0]) for n, c in COLUMNS.items()}


@pytest.fixture
def db() -> Iterator[gquery.Connection]:
    with gquery.connect(device="cpu", threads=2) as connection:
        yield connection


def same(a: pa.Table, b: pa.Table) -> None:
    """Equal types (of text: any layout) and values."""
    for name in b.column_names:
        x, y = a.column(name), b.column(name)
        if pa.types.is_large_string(x.type) or pa.types.is_string_view(x.type):
            x = x.cast(pa.string())
        assert x.type == y.type, name
        assert x.to_pylist() == y.to_pylist(), name


@pytest.mark.parametrize("columns", [COLUMNS, FILLED], ids=["nulls", "no nulls"])
def test_round_trips(db: gquery.Connection, columns: dict[str, Any]) -> None:
    """Every type, in and out through each library, by a plain scan and by a kernel that copies."""
    table = original = pa.table(columns)
    assert original.num_rows == 3
    forms: list[Any] = [
        table,
        table.to_reader(),
        table.to_batches()[0],
        table.to_pandas(types_mapper=pd.ArrowDtype),
        polars.from_arrow(table),
        duckdb.sql("FROM original"),
    ]
    for form in forms:
        db.register("t", form)
        for query in ("SELECT * FROM t", "SELECT * FROM t WHERE i8 = i8 OR i8 IS NULL"):
            result = db.sql(query)
            same(result.to_arrow_table(), table)
            same(pa.table(result), table)
            same(result.to_arrow_reader(2).read_all(), table)
            same(result.pl().to_arrow(), table)
            same(pa.Table.from_pandas(result.df(dtype_backend="pyarrow")), table)
            same(duckdb.sql("FROM result").to_arrow_table(), table)
            assert result.fetchall() == list(zip(*table.to_pydict().values(), strict=True))


def test_pandas_of_its_own_types(db: gquery.Connection) -> None:
    frame = db.sql("SELECT 1 AS a, DATE '2020-01-01' AS d, NULL::INTEGER AS n, 'x' AS s, 1.5 AS m").df()
    assert frame["d"].dtype.kind == "M"
    assert frame["a"].dtype == np.int32
    assert frame["n"].isna().all()
    assert frame["m"][0] == Decimal("1.5")
    frame.loc[0, "a"] = 2  # a copy of its own
    numbers = pd.DataFrame({"x": [1.5, 2.5], "k": ["a", None], "at": pd.to_datetime(["2020-01-01", None])})
    db.register("numbers", numbers)
    back = db.sql("FROM numbers").df()
    assert back["x"].tolist() == [1.5, 2.5]
    assert back["k"].isna().tolist() == [False, True]
    assert back["at"].dtype.kind == "M"
    with pytest.raises(errors.InterfaceError, match="dtype_backend"):
        db.sql("FROM numbers").df(dtype_backend="x")


def address(array: Any) -> int:
    chunk = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    return int(chunk.buffers()[1].address)


def test_memory_is_shared_where_the_layout_allows(db: gquery.Connection) -> None:
    """Doubles, and integers that need their width, are copied once, when they come in, and go out as they lie: in every
    library."""
    rows = 10_000
    x = pa.array(np.linspace(0, 1, rows))
    n = pa.array(np.arange(rows, dtype=np.int64) << 40)
    table = pa.table({"x": x, "n": n})
    frame = polars.from_arrow(table)
    assert isinstance(frame, polars.DataFrame)
    pandas_frame = table.to_pandas(split_blocks=True)
    for form in (table, frame, pandas_frame):
        db.register("t", form)
        out = db.sql("FROM t").to_arrow_table()
        at = {c: address(out.column(c)) for c in ("x", "n")}
        assert at.keys() == {"x", "n"} and not set(at.values()) & {
            address(pa.table(form).column(c)) for c in ("x", "n")
        }
        result = db.sql("SELECT n, x FROM t")
        assert {c: address(result.to_arrow_table().column(c)) for c in ("x", "n")} == at
        assert {c: address(result.pl()[c].to_arrow()) for c in ("x", "n")} == at
        assert {c: result.df(copy=False)[c].to_numpy().ctypes.data for c in ("x", "n")} == at
        assert {c: result.fetchnumpy()[c].ctypes.data for c in ("x", "n")} == at
        assert {c: np.from_dlpack(result.column(c)).ctypes.data for c in ("x", "n")} == at
        assert not result.fetchnumpy()["x"].flags.writeable
    assert address(pc.add(x, 0.0)) != address(x)


def test_arrays(db: gquery.Connection) -> None:
    db.register("t", pa.table(COLUMNS))
    arrays = db.sql("SELECT *, i8 AS i8 FROM t").fetchnumpy()
    assert list(arrays) == [*COLUMNS, "i8_1"]
    assert arrays["i64"].tolist() == [-(2**63), None, 2**63 - 1]
    assert arrays["u64"].tolist() == [0, None, 2**64 - 1]
    assert arrays["d9"].tolist() == [1.5, None, -2.25]
    assert arrays["d38"].tolist() == [1e35, None, -1e35]
    assert arrays["bool"].tolist() == [True, None, False]
    assert arrays["day"].dtype == "datetime64[D]" and arrays["day"].tolist()[0] == D
    assert arrays["at"].tolist()[0] == T
    assert arrays["s"].tolist() == ["", None, "日本 \" ',\n"]
    column = db.sql("SELECT i8 FROM t WHERE i8 > 0").column("I8")
    assert (column.name, len(column), str(column.dtype), column.device.name) == ("i8", 1, "TINYINT", "cpu")
    assert np.asarray(column).tolist() == [127]
    assert not hasattr(column, "__cuda_array_interface__")
    for wrong in ("i8", "s"):
        with pytest.raises(errors.InterfaceError, match="NULLs|no array"):
            np.from_dlpack(db.sql("FROM t").column(wrong))
    with pytest.raises(errors.InterfaceError, match="Did you mean"):
        db.sql("FROM t").column("i")


class Tensor:
    """An array of another library: DLPack and nothing else."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


def test_tensors_are_columns(db: gquery.Connection) -> None:
    values = np.linspace(0, 1, 100)
    db.register("t", {"x": Tensor(values), "n": Tensor(np.arange(100))})
    result = db.sql("SELECT x FROM t")
    assert address(result.to_arrow_table().column("x")) != values.ctypes.data
    assert result.to_arrow_table().column("x").to_pylist() == values.tolist()
    assert db.sql("SELECT sum(n) FROM t").fetchall() == [(4950,)]


def test_arrow_device_arrays(db: gquery.Connection) -> None:
    schema, array = db.sql("SELECT 1 AS a UNION ALL SELECT 2").__arrow_c_device_array__()
    assert pa.RecordBatch._import_from_c_device_capsule(schema, array).to_pydict() == {"a": [1, 2]}


def test_files(db: gquery.Connection, tmp_path: Path) -> None:
    columns = {n: c for n, c in COLUMNS.items() if n != "d38"}
    table = pa.table(columns)
    db.register("t", table)
    db.sql("FROM t").to_parquet(tmp_path / "a.parquet", compression="snappy", row_group_size=2)
    assert pq.ParquetFile(tmp_path / "a.parquet").metadata.num_row_groups == 2
    same(pq.read_table(tmp_path / "a.parquet"), table)
    db.sql("FROM t").to_parquet(f"file://{tmp_path}/b.parquet")
    assert db.read_parquet(tmp_path / "b.parquet").fetchall() == db.sql("FROM t").fetchall()
    types = {f.name: str(t) for f, t in zip(table.schema, db.sql("FROM t").types, strict=True)}
    db.sql("FROM t").to_csv(tmp_path / "a.csv", sep="|")
    back = db.read_csv(tmp_path / "a.csv", columns=types, allow_quoted_nulls=False)
    same(back.to_arrow_table(), table)
    db.sql("SELECT 1 AS a").to_csv(tmp_path / "b.csv", header=False)
    assert (tmp_path / "b.csv").read_text() == "1\n"
    db.sql("SELECT 1 AS a WHERE false").to_parquet(tmp_path / "none.parquet")
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0
    for write in (db.sql("FROM t").to_parquet, db.sql("FROM t").to_csv):
        with pytest.raises(errors.FileError, match="Cannot write"):
            write(tmp_path / "no" / "folder" / "x")


def test_batches_are_made_when_they_are_read(db: gquery.Connection) -> None:
    reader = db.sql("SELECT i, i::VARCHAR AS s FROM range(10) t(i)").to_arrow_reader(4)
    assert [b.num_rows for b in reader] == [4, 4, 2]
    assert db.sql("SELECT 1 WHERE false").to_arrow_reader().read_all().num_rows == 0
    with pytest.raises(errors.InterfaceError):
        db.sql("SELECT 1").to_arrow_reader(0)


# ---- a look at a result runs little ----------------------------------------------------------------------------------


def rows_run(db: gquery.Connection, query: str) -> int:
    """Rows that the longest stage of a query read."""
    prepared = db.sql(query)._prepared
    assert prepared is not None
    return max(r.rows for r in run_with_report(db._program(prepared), db._context())[1])


def test_a_limit_stops_early(db: gquery.Connection) -> None:
    big = "range(600000000) t(i)"
    assert rows_run(db, f"SELECT i FROM {big} LIMIT 10") <= 1000
    assert rows_run(db, f"SELECT i * 2 FROM {big} WHERE i % 7 = 1 LIMIT 10 OFFSET 5") <= 1_000_000
    assert db.sql(f"SELECT i * 2 FROM {big} WHERE i % 7 = 1 LIMIT 3 OFFSET 5").fetchall() == [(72,), (86,), (100,)]
    assert rows_run(db, f"SELECT i FROM {big} WHERE i > 3000000 LIMIT 1") < 100_000_000
    assert db.sql(f"SELECT i FROM {big} WHERE i > 3000000 LIMIT 1").fetchall() == [(3_000_001,)]
    assert rows_run(db, f"SELECT i FROM {big} UNION ALL SELECT i FROM {big} LIMIT 10") <= 1000
    assert db.sql(f"SELECT i FROM {big} LIMIT 0").fetchall() == []
    join = f"SELECT i, k FROM {big} JOIN range(5) u(k) ON i % 1000 = k"
    assert rows_run(db, f"{join} LIMIT 8") <= 1_000_000
    assert db.sql(f"{join} LIMIT 8").fetchall() == [(i, i % 1000) for i in [*range(5), 1000, 1001, 1002]]


def test_a_limit_gives_what_the_whole_gives(db: gquery.Connection) -> None:
    rng = np.random.default_rng(1)
    rows = 300_000
    words = pa.array([None if k == 0 else f"word {k}" for k in rng.integers(0, 50_000, rows)])
    values = np.where(np.arange(rows) < 200_000, 5, rng.integers(0, 100, rows))
    db.register("t", pa.table({"v": values, "s": words, "x": rng.random(rows)}))
    for query in (
        "SELECT s, v FROM t WHERE v < 3",
        "SELECT s, x FROM t WHERE s LIKE '%77%'",
        "SELECT a.s, b.v FROM t a LEFT JOIN (SELECT DISTINCT v FROM t WHERE v < 5) b ON a.v = b.v WHERE a.x < 0.001",
        "SELECT s FROM t FULL JOIN (SELECT 3 AS v) u ON t.v = u.v",
    ):
        whole = db.sql(query).fetchall()
        for n, skip in ((1, 0), (10, 3), (5000, 100)):
            assert db.sql(f"{query} LIMIT {n} OFFSET {skip}").fetchall() == whole[skip : skip + n]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT i FROM range(600000000) t(i)",
        "SELECT i, i * 2 AS b FROM range(600000000) t(i) WHERE i % 10 = 3",
        "SELECT i, k FROM range(600000000) t(i) JOIN range(100) u(k) ON i % 1000 = k",
        "FROM range(600000000) t(i) UNION ALL SELECT 1",
    ],
)
def test_repr_of_much_is_quick(db: gquery.Connection, query: str) -> None:
    repr(db.sql(query))
    start = time.perf_counter()
    text = repr(db.sql(query))
    db.sql(query)._repr_html_()
    assert time.perf_counter() - start < 1
    assert "? rows" in text


def test_repr_shows_small_results_whole(db: gquery.Connection) -> None:
    assert "300 rows" in repr(db.sql("SELECT i FROM range(300) t(i)"))
    assert "7 rows" in repr(db.sql("SELECT i % 7, count(*) FROM range(2000000) t(i) GROUP BY 1"))


def test_html_is_escaped(db: gquery.Connection) -> None:
    html = db.sql("SELECT '<script>alert(1)</script>' AS \"<b>\"")._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert "<b>" not in html
