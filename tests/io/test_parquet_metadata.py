"""What Parquet files say of themselves, beside DuckDB's tables of it."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery.errors import FileError

_UNLIKE = ("stats_min", "stats_max")  # DuckDB shows what writers had before Parquet 2: nothing for texts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("metadata")
    day, moment = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 1, 2, 3)
    table = pa.table(
        {
            "whole": [1, 2, None], "real": [1.5, float("nan"), 2.5], "word": ["a", "b\\c", "ü"], "bytes": [b"\x00a", b"z", None],
            "moment": [moment, None, None], "zoned": pa.array([moment] * 3, pa.timestamp("us", "UTC")), "day": [day] * 3,
            "price": pa.array([decimal.Decimal("1.50")] * 3, pa.decimal128(9, 2)), "xs": [[1, 2], [], None],
            "row": [{"x": 1, "y": "q"}] * 3, "flag": [True, False, None], "nothing": pa.array([None] * 3, pa.int32()),
            "time": [datetime.time(1, 2, 3)] * 3, "narrow": pa.array([1.0, 2.0, 3.0], pa.float32()),
            "a.b": [1, 2, 3], "a.c.": [{"x": 1}] * 3, "a": [[1], [2], []],
        }
    )  # fmt: skip
    pq.write_table(table, made / "groups.parquet", row_group_size=2)
    pq.write_table(table.slice(0, 0), made / "empty.parquet")
    pq.write_table(table, made / "plain.parquet", compression="zstd", use_dictionary=False, write_statistics=False)
    duckdb.sql(f"COPY (SELECT range AS i, 'a' || range AS s FROM range(1000)) TO '{made / 'duck.parquet'}'")
    return made


@pytest.mark.parametrize("function", ["parquet_metadata", "parquet_file_metadata", "parquet_kv_metadata"])
@pytest.mark.parametrize("files", ["groups", "empty", "plain", "duck", "*"])
def test_beside_duckdb(folder: Path, function: str, files: str) -> None:
    connection = gquery.connect(device="cpu")
    called = f"{function}('{folder}/{files}.parquet')"
    names = [n for n in connection.sql(f"SELECT * FROM {called}").columns if n not in _UNLIKE]
    asked = f"SELECT {', '.join(names)} FROM {called}"
    assert connection.sql(asked).fetchall() == duckdb.sql(asked).fetchall()


def test_several_files_and_bounds(folder: Path) -> None:
    connection = gquery.connect(device="cpu")
    listed = f"['{folder}/groups.parquet', '{folder}/duck.parquet']"
    asked = f"SELECT count(DISTINCT file_name), sum(num_rows) FROM parquet_file_metadata({listed})"
    assert connection.sql(asked).fetchall() == [(2, 1003)]
    bounds = f"SELECT stats_min, stats_max_value FROM parquet_metadata('{folder}/groups.parquet') WHERE path_in_schema = 'word'"
    assert connection.sql(bounds).fetchall() == [("a", "b\\c"), ("ü", "ü")]


def test_files_are_read_anew(tmp_path: Path) -> None:
    connection, path = gquery.connect(device="cpu"), tmp_path / "f.parquet"
    asked = f"SELECT num_rows FROM parquet_file_metadata('{path}')"
    for rows in (1, 5):
        pq.write_table(pa.table({"a": range(rows)}), path)
        assert connection.sql(asked).fetchall() == [(rows,)]


def test_errors(tmp_path: Path) -> None:
    connection = gquery.connect(device="cpu")
    (tmp_path / "none.parquet").write_bytes(b"PAR1 no file PAR1")
    for name in ("none.parquet", "missing.parquet", "*.nothing"):
        with pytest.raises(FileError):
            connection.sql(f"SELECT * FROM parquet_metadata('{tmp_path}/{name}')").fetchall()
    with pytest.raises(gquery.BindError, match="takes no option"):
        connection.sql("SELECT * FROM parquet_metadata('a.parquet', filename = true)")
    with pytest.raises(gquery.BindError, match="'t'"):  # no column names them
        connection.sql("SELECT p.* FROM (SELECT 'a' AS f) t, parquet_metadata(t.f) p")
