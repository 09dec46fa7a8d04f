"""What others read in a file: PyArrow, and DuckDB for the formats that have no schema."""

from __future__ import annotations

import contextlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.json as arrow_json
import pyarrow.parquet as pq

from gquery.io.csv_dialect import sniff


def readings(path: str, kind: str) -> list[Any]:
    """The tables that others read, or the errors that they raise."""
    readers = {"parquet": [_parquet], "ipc": [_ipc], "csv": [_csv, _duckdb_csv], "json": [_json, _rows, _duckdb_json]}[
        kind
    ]
    made = []
    for reader in readers:
        try:
            table = reader(path)
            table.validate(full=True)
            made.append(table)
        except Exception as error:  # whatever others raise
            made.append(error)
    return made


def _parquet(path: str) -> pa.Table:
    with pq.ParquetFile(path) as file:
        with contextlib.suppress(Exception):  # footers are no part of reading a table, and gquery looks at them
            file.metadata.to_dict()
        return file.read(use_threads=False)


def _ipc(path: str) -> pa.Table:
    with pa.OSFile(path) as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(file).read_all()


def _csv(path: str) -> pa.Table:
    dialect = sniff(Path(path).read_bytes()[: 1 << 16])
    names = dialect.names
    read = csv.ReadOptions(column_names=names, skip_rows_after_names=int(dialect.has_header))
    parse = csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True, ignore_empty_lines=len(names) > 1)
    truths = {"true_values": _cases("true", "t", "yes"), "false_values": _cases("false", "f", "no")}
    texts = {names[n]: pa.string() for n in dialect.texts}
    convert = csv.ConvertOptions(null_values=[""], strings_can_be_null=True, column_types=texts, **truths)
    return csv.read_csv(path, read, parse, convert)


def _duckdb_csv(path: str) -> pa.Table:
    return _oracle().execute("FROM read_csv(?)", [path]).to_arrow_table()


def _duckdb_json(path: str) -> pa.Table:
    return _oracle().execute("FROM read_json(?)", [path]).to_arrow_table()


def _cases(*words: str) -> list[str]:
    return [form for w in words for form in (w, w.title(), w.upper())]


@cache
def _oracle() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def _json(path: str) -> pa.Table:
    return arrow_json.read_json(path, parse_options=arrow_json.ParseOptions(newlines_in_values=True))


def _rows(path: str) -> pa.Table:
    """One array of objects, by Python."""
    rows = json.loads(Path(path).read_bytes())
    assert isinstance(rows, list)
    return pa.Table.from_pylist(rows)
