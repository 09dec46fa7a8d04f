"""A cluster of Dask whose two workers are threads of this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import gquery


@contextmanager
def two_workers() -> Iterator[Any]:
    """A client of one."""
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


def with_files(db: gquery.Connection, tables: Mapping[str, pa.Table], folder: Path, rows: int) -> None:
    """Have a connection know tables as files with row groups of so many rows."""
    for name, table in tables.items():
        path = folder / f"{name}.parquet"
        if not path.exists():
            pq.write_table(table, path, row_group_size=rows)
        db.sql(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")
