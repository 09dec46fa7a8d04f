"""The tables as Parquet files of few rows a row group, one of them in folders by the values of a column, so that filters skip
row groups and files. Views over them have the columns of the tables; intervals lie there as text.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import gquery
from tests.fuzzing.data import COLUMNS, TABLES, tables
from tests.support.harness import connect, oracle

_ROWS = {"r": 7, "s": 4, "t": 16, "u": 5}  # of a row group
_FOLDERS = "u", "i8"  # a table whose rows stand in folders by a column, and the column


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="gquery-fuzzing-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@cache
def _views(number: int) -> tuple[str, ...]:
    """The statements that make the views of a set; writes the files first."""
    out = []
    for name in TABLES:
        texts = ", ".join(f"{c}::VARCHAR AS {c}" for c in ("span", "dur"))
        table = oracle(tables(number)).execute(f"SELECT * REPLACE ({texts}) FROM {name}").to_arrow_table()
        place = _folder() / f"{number}-{name}"
        is_in_folders = name == _FOLDERS[0] and table.num_rows > 0
        if is_in_folders:
            hive = ds.partitioning(pa.schema([(_FOLDERS[1], table.schema.field(_FOLDERS[1]).type)]), flavor="hive")
            ds.write_dataset(
                table, place, format="parquet", partitioning=hive, max_rows_per_group=_ROWS[name], min_rows_per_group=1
            )
        else:
            pq.write_table(table, place, row_group_size=_ROWS[name])
        types = {"span": "INTERVAL", "dur": "INTERVAL", **({_FOLDERS[1]: "TINYINT"} if is_in_folders else {})}
        listed = ", ".join(f"{c}::{types[c]} AS {c}" if c in types else c for c in COLUMNS)
        files = f"'{place}/**/*.parquet', hive_partitioning = true" if is_in_folders else f"'{place}'"
        out.append(f"CREATE OR REPLACE VIEW {name} AS SELECT {listed} FROM read_parquet({files})")
    return tuple(out)


@cache
def _nothing(number: int) -> Mapping[str, pa.Table]:
    """No tables: one object for each set, by which a connection is kept."""
    return {}


def stored(target: str, ranks: int, number: int, settings: Mapping[str, str]) -> gquery.Connection:
    """A connection with the views of a set."""
    db = connect(target, ranks, _nothing(number), settings)
    if not db.sql("SHOW TABLES").fetchall():
        for text in _views(number):
            db.sql(text)
    return db
