"""The benchmark of sorted files: what it asks has one answer in both engines."""

from __future__ import annotations

from pathlib import Path

import duckdb

import gquery
from benchmarks.files import queries, write
from tests.support.harness import compare


def test_engines_agree(tmp_path: Path) -> None:
    path = tmp_path / "sorted.parquet"
    write(path, 20_000, 1_000)
    for name, sql in queries(path, 20_000):
        oracle = duckdb.execute(sql)
        types = [str(d[1]) for d in oracle.description or ()]
        assert compare(gquery.connect("python").sql(sql).fetchall(), oracle.fetchall(), True, types) is None, name
