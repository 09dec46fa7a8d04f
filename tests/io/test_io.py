"""Sources: Parquet files of every kind, damaged ones, footers, caching; data in memory."""

from __future__ import annotations

import datetime
import itertools
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery.columns.arrow import export_table
from gquery.columns.assemble import Fixed
from gquery.columns.import_arrow import import_table
from gquery.columns.store import TableStore
from gquery.errors import FileError, InterfaceError, OutOfMemoryError
from gquery.expression.types import BIGINT, Bounds
from gquery.io.column_cache import ColumnCache
from gquery.io.memory import ArrowSource, import_device_array, source_of
from gquery.io.parquet import ParquetSource

TABLE = pa.table(
    {
        "n": pa.array([3, 1, None, 2]),
        "d": pa.array([Decimal("1.50"), Decimal("-2.25"), None, Decimal(0)], pa.decimal128(15, 2)),
        "day": pa.array([datetime.date(1969, 12, 31), datetime.date(2020, 1, 1), None, None]),
        "at": pa.array([datetime.datetime(1969, 12, 31, 23), datetime.datetime(2020, 1, 1), None, None]),
        "s": pa.array(["x", "y", None, "x"]),
        "id": pa.array([1, 2, 3, 4], pa.int32()),
    }
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    name = tmp_path / "data.parquet"
    pq.write_table(TABLE, name, row_group_size=2)
    return str(name)


def everything(source: Any) -> Any:
    return export_table(source.load(range(len(source.schema))))


def test_parquet(path: str) -> None:
    source = ParquetSource(path)
    assert (source.name, source.rows) == ("data", 4)
    assert source.schema.names == tuple(TABLE.column_names)
    assert everything(source).to_pydict() == TABLE.to_pydict()
    some = source.load([4, 0])
    assert some.schema.names == ("s", "n")
    assert source.load([]).rows == 4


def test_footers_give_bounds_before_loading(path: str) -> None:
    source = ParquetSource(path)
    day = datetime.date(2020, 1, 1).toordinal() - datetime.date(1970, 1, 1).toordinal()
    expected = [
        Bounds(0, 3),
        Bounds(-225, 150),
        Bounds(-1, day),
        Bounds(-3_600_000_000, day * 86_400_000_000),
        None,
        Bounds(1, 4),
    ]
    assert [source.statistics(i).bounds for i in range(6)] == expected
    assert [source.statistics(i).null_count for i in range(6)] == [1, 1, 2, 2, 1, 0]
    assert not source.statistics(5).is_unique
    source.load(range(6))
    assert [source.statistics(i).bounds for i in range(6) if i != 4] == [b for i, b in enumerate(expected) if i != 4]
    assert source.statistics(5).is_unique


def test_footers_without_statistics(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet", write_statistics=False)
    source = ParquetSource(tmp_path / "a.parquet")
    assert source.statistics(0).bounds is None
    assert source.statistics(0).null_count is None
    source.load([0])
    assert source.statistics(0).bounds == Bounds(0, 3)


def test_many_files(tmp_path: Path) -> None:
    for i in range(3):
        pq.write_table(TABLE.slice(i), tmp_path / f"part{i}.parquet")
    whole = pa.concat_tables([TABLE, TABLE.slice(1), TABLE.slice(2)])
    names = [tmp_path / f"part{i}.parquet" for i in range(3)]
    for paths in (names, str(tmp_path / "*.parquet"), str(tmp_path), tmp_path):
        assert everything(ParquetSource(paths)).to_pydict() == whole.to_pydict()
    assert ParquetSource(str(tmp_path)).statistics(0).bounds == Bounds(0, 3)
    pq.write_table(TABLE.select(["n", "s"]), tmp_path / "part9.parquet")
    with pytest.raises(FileError, match=r"part9.parquet.*other columns"):
        ParquetSource(tmp_path)


def test_empty_file(tmp_path: Path) -> None:
    pq.write_table(TABLE.slice(0, 0), tmp_path / "a.parquet")
    source = ParquetSource(tmp_path / "a.parquet")
    assert source.rows == 0
    assert everything(source).to_pydict() == {n: [] for n in TABLE.column_names}


def test_low_cardinality_strings_are_read_with_their_dictionary(tmp_path: Path) -> None:
    few = [("red", "green", None)[i % 3] for i in range(30_000)]
    many = [f"unique {i}" for i in range(30_000)]
    table = pa.table({"few": pa.array(few, pa.string_view()), "many": pa.array(many, pa.string_view())})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=7_000)
    source = ParquetSource(tmp_path / "a.parquet")
    loaded = source.load([0, 1])
    assert [source._wanted(f).as_codes for f in (0, 1)] == [True, False]
    assert loaded.columns[0].dictionary is not None and len(loaded.columns[0].dictionary) == 2
    assert loaded.columns[1].dictionary is None
    assert export_table(loaded).to_pydict() == {"few": few, "many": many}


def test_missing_and_damaged_files(tmp_path: Path, path: str) -> None:
    with pytest.raises(FileError, match=r'no file ".*nowhere.parquet"'):
        ParquetSource(tmp_path / "nowhere.parquet")
    with pytest.raises(FileError, match="No file matches"):
        ParquetSource(str(tmp_path / "x*.parquet"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="directory"):
        ParquetSource(tmp_path / "empty")
    with pytest.raises(FileError, match="No file was named"):
        ParquetSource([])
    (tmp_path / "text.parquet").write_text("no parquet at all, but long enough")
    with pytest.raises(FileError, match=r"text.parquet"):
        ParquetSource(tmp_path / "text.parquet")
    (tmp_path / "short.parquet").write_bytes(b"")
    with pytest.raises(FileError, match=r"short.parquet"):
        ParquetSource(tmp_path / "short.parquet")
    content = bytearray(Path(path).read_bytes())
    content[4:200] = b"\xff" * 196  # pages, not the footer
    (tmp_path / "pages.parquet").write_bytes(content)
    source = ParquetSource(tmp_path / "pages.parquet")
    with pytest.raises(FileError, match=r"pages.parquet"):
        source.load([0])


def test_changed_files_are_noticed(path: str) -> None:
    source = ParquetSource(path)
    before = source.version
    assert source.load([5]).rows == 4
    assert source.version == before
    pq.write_table(TABLE.slice(0, 1), path)
    assert source.version != before
    assert source.rows == 1
    assert everything(source).to_pydict() == TABLE.slice(0, 1).to_pydict()
    os.remove(path)
    with pytest.raises(FileError):
        _ = source.version


def test_files_that_change_while_they_are_read(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ParquetSource(path)
    add = Fixed.add

    def slowly(self: Fixed, *arguments: Any) -> int:
        os.utime(path, (1, 1))
        return add(self, *arguments)

    monkeypatch.setattr(Fixed, "add", slowly)
    with pytest.raises(FileError, match="files of data have changed"):
        source.load([0])
    monkeypatch.undo()
    _ = source.version
    assert source.load([0]).rows == 4


def test_column_cache(path: str) -> None:
    cache = ColumnCache()
    source = ParquetSource(path, cache=cache)
    first = source.load([0]).columns[0]
    assert source.load([0, 1]).columns[0] is first
    cache.limit = cache.nbytes + 1
    assert source.load([5]).columns[0].length == 4
    assert source.load([0]).columns[0] is not first  # made room for another
    cache.limit = 1
    with pytest.raises(OutOfMemoryError, match=r"scan of data.*Remedies"):
        source.load([1])
    cache.limit = None
    assert source.load([1]).rows == 4
    del source
    assert cache.nbytes == 0


def test_columns_that_are_carried(tmp_path: Path) -> None:
    table = pa.table({"a": [1], "list": [[1]], "raw": [b"x"], "s": pa.StructArray.from_arrays([[1]], ["z"])})
    pq.write_table(table, tmp_path / "a.parquet")
    sources: list[Any] = [ParquetSource(tmp_path / "a.parquet"), source_of("t", table)]
    for source in sources:
        assert [str(f.dtype) for f in source.schema] == ["BIGINT", "BIGINT[]", "BLOB", "STRUCT(z BIGINT)"]
        assert export_table(source.load([0, 3])).to_pydict() == {"a": [1], "s": [{"z": 1}]}
        assert everything(source).to_pydict() == table.to_pydict()
        assert everything(source).schema.types == table.schema.types


def test_sources_in_memory() -> None:
    import pandas
    import polars

    values = {"a": [1, 2, None], "s": ["x", None, "z"]}
    table = pa.table(values)
    for data in (table, table.to_batches()[0], polars.DataFrame(values), table.to_reader()):
        source = source_of("t", data)
        assert source.rows == 3
        assert everything(source).to_pydict() == values
    frame = pandas.DataFrame({"a": [1, 2], "when": pandas.to_datetime(["2020-01-01", "1960-01-01"]), "s": ["x", None]})
    assert everything(source_of("t", frame)).to_pylist() == [
        {"a": 1, "when": datetime.datetime(2020, 1, 1), "s": "x"},
        {"a": 2, "when": datetime.datetime(1960, 1, 1), "s": None},
    ]
    store = source_of("t", import_table(table))
    assert isinstance(store, TableStore)
    assert everything(store).to_pydict() == values
    assert store.load([1]).schema.names == ("s",)
    assert source_of("t", table).version != source_of("t", table).version


def test_dict_of_arrays() -> None:
    arrays = {
        "i": np.arange(6)[::2],
        "f": np.array([1.5, np.nan, 2], np.float32),
        "b": np.array([True, False, True]),
        "big": np.array([1, 2, 3], ">i4"),
        "m": np.ma.masked_array([1, 2, 3], [False, True, False]),
        "t": np.array(["2020-01-01", "NaT", "1960-01-01"], "datetime64[s]"),
        "o": np.array(["x", None, "z"], object),
        "l": [1, None, 3],
    }
    got = everything(source_of("t", arrays)).to_pydict()
    assert got["i"] == [0, 2, 4]
    assert str(got["f"]) == "[1.5, nan, 2.0]"
    assert (got["b"], got["big"], got["m"]) == ([True, False, True], [1, 2, 3], [1, None, 3])
    assert got["t"] == [datetime.datetime(2020, 1, 1), None, datetime.datetime(1960, 1, 1)]
    assert (got["o"], got["l"]) == (["x", None, "z"], [1, None, 3])
    assert source_of("t", {}).rows == 0


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (5, "no __arrow_c_stream__"),
        ({"a": [1], "b": [1, 2]}, "differ in length"),
        ({"a": np.zeros((2, 2))}, "dimensions"),
        ({"a": [1, "x"]}, '"a"'),
        ({"a": [1], "A": [1]}, "cannot tell apart"),
    ],
)
def test_what_cannot_be_registered(data: Any, match: str) -> None:
    with pytest.raises(InterfaceError, match=match):
        source_of("t", data)


def test_arrow_statistics_after_load() -> None:
    source = source_of("t", pa.table({"a": [1, 2, 3], "b": [1, None, 2]}))
    assert isinstance(source, ArrowSource)
    assert [f.nullable for f in source.schema] == [False, True]
    assert (source.statistics(0).null_count, source.statistics(0).is_unique) == (0, False)
    source.load([0])
    assert source.statistics(0).is_unique


def device_array(xp: Any) -> None:
    from gquery.columns.arrow import dtype_of, export_column

    for values, type_ in (
        ([5, -7, 9], pa.int64()), ([0, 2**64 - 1], pa.uint64()), ([0, 5, 6], pa.uint64()), ([True, False], pa.bool_()),
        ([1.5, float("inf")], pa.float64()), ([1, 2], pa.uint8()), ([], pa.int32()),
    ):  # fmt: skip
        array = xp.asarray(np.array(values, np.dtype(type_.to_pandas_dtype())))
        dtype = dtype_of(type_)
        assert dtype is not None
        column = import_device_array(array, dtype)
        assert export_column(column).to_pylist() == values
        if dtype.is_exact and values:
            assert column.statistics.bounds == Bounds(int(min(values)), int(max(values)))
            assert column.statistics.is_unique == (values == sorted(values))
    assert import_device_array(xp.asarray(np.arange(10)[::3]), BIGINT).length == 4


def test_arrays_of_a_device_as_columns() -> None:
    device_array(np)


@pytest.mark.cuda
def test_gpu_arrays_stay_where_they_are() -> None:
    from gquery.device.device import cpu_device, cuda_device

    device = cuda_device(0)
    device_array(device.xp)
    array = device.xp.arange(100)
    source = source_of("t", {"a": array, "b": np.arange(100)})
    column = source.load([0]).columns[0]
    copy: Any = column.data.on(device)
    assert copy.data.ptr != array.data.ptr  # a copy, which its owner cannot change
    assert not column.data.is_on(cpu_device())
    assert everything(source).to_pydict() == {"a": list(range(100)), "b": list(range(100))}
    with pytest.raises(InterfaceError, match="one dimension"):
        source_of("t", {"a": device.xp.zeros((2, 2))})


def test_a_query_over_files_imports_no_strangers(path: str) -> None:
    """Arrow's ways from and to Python and NumPy import pandas where it is installed, which takes half a second, and its
    `parquet` module the clients of object stores and TLS."""
    code = (
        "import sys, gquery; c = gquery.connect(device='python');"
        f"c.sql(\"CREATE VIEW v AS SELECT * FROM '{path}'\");"
        "print(c.sql('SELECT s, upper(s), sum(n) FROM v GROUP BY s ORDER BY s').fetchall());"
        "print([m for m in ('pandas', 'pyarrow.parquet', 'pyarrow.fs', 'ssl', 'gquery.io.text') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["[('x', 'X', 5), ('y', 'Y', 1), (None, None, None)]", "[]"], done.stderr


def test_files_with_dictionaries_and_without_are_one_table(tmp_path: Path) -> None:
    """Categories of pandas are dictionaries in the schema that Arrow leaves in a file, texts in the next one."""
    days = [datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 2)]
    for values in (["a", None, "b"], pa.array(["a", None, "b"], pa.large_string()), [1, None, 2], [1.5, None, 2.5], days):
        plain = pa.array(values) if isinstance(values, list) else values
        forms = {"plain": plain, "coded": plain.dictionary_encode(), "none": plain.slice(0, 0), "null": plain.slice(1, 1)}
        for name, array in forms.items():
            pq.write_table(pa.table({"x": array}), tmp_path / f"{name}.parquet")
        for names in itertools.permutations(forms, 2):
            paths = [f"{tmp_path}/{n}.parquet" for n in names]
            with gquery.connect(device="python") as db:
                got = db.read_parquet(paths).fetchall()
            assert got == [(v,) for n in names for v in forms[n].to_pylist()], names


@pytest.mark.parametrize("type_", [pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(12, 2)], ids=str)
@pytest.mark.parametrize("as_integers", [False, True])
def test_decimals_of_few_bytes(type_: pa.DataType, as_integers: bool, tmp_path: Path) -> None:
    """Arrow has decimals of 4 and 8 bytes, too, which its schema in a file names."""
    values = [None if n % 7 == 0 else Decimal(n - 300) / 100 for n in range(700)]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": pa.array(values, type_)}), path, row_group_size=200, store_decimal_as_integer=as_integers)
    with gquery.connect(device="python") as db:
        assert db.read_parquet(path).fetchall() == [(v,) for v in values]


def test_integers_of_python_beyond_64_bits_are_refused_by_name() -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(InterfaceError, match='"big" cannot be registered as Arrow data: Python int too large'):
        source_of("big", pd.DataFrame({"a": [2**70, None]}, dtype=object))
