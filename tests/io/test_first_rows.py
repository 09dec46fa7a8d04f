"""LIMIT over a table in memory that is not encoded yet: the first rows alone are, and nothing is taken for the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gquery
from gquery.errors import DataError
from gquery.io.memory import ArrowSource

ROWS = 1000
TABLE = pa.table(
    {
        "i": pa.array(range(ROWS)),
        "n": pa.array([None if i % 3 else i * 10**12 for i in range(ROWS)]),
        "s": pa.chunked_array([[f"v{i}" for i in range(k, k + 100)] for k in range(0, ROWS, 100)]),
        "d": pa.array([f"c{i % 7}" if i > 2 else None for i in range(ROWS)]).dictionary_encode(),
    }
)


@pytest.fixture
def db() -> gquery.Connection:
    return gquery.connect("python").register("t", TABLE)


def _source(db: gquery.Connection) -> ArrowSource:
    prepared = db.sql("SELECT * FROM t").prepared
    assert prepared is not None
    (source,) = prepared.sources
    assert isinstance(source, ArrowSource)
    return source


@pytest.mark.parametrize("limit", [0, 1, 99, 101, 500, 501, 1000, 2000])
def test_the_rows_are_the_first(db: gquery.Connection, limit: int) -> None:
    for offset in (0, 1, 450, 999, 1500):
        got = db.sql(f"SELECT * FROM t LIMIT {limit} OFFSET {offset}").arrow().to_pydict()
        assert got == TABLE.slice(offset, limit).to_pydict()
    assert db.sql("SELECT count(n), max(i), max(s), max(d) FROM t").fetchall() == [(334, 999, "v999", "c6")]


def test_what_is_encoded(db: gquery.Connection) -> None:
    source = _source(db)
    assert db.sql("SELECT * FROM t LIMIT 3").fetchall()[2] == (2, None, "v2", None)
    assert not source.held()
    assert db.sql("SELECT sum(i) FROM t").fetchall() == [(ROWS * (ROWS - 1) // 2,)]
    assert [f for f, _ in source.held()] == [0]
    assert db.sql("SELECT i, s FROM t LIMIT 2").fetchall() == [(0, "v0"), (1, "v1")]
    assert [f for f, _ in source.held()] == [0]
    assert db.sql("SELECT i FROM t LIMIT 2").fetchall() == [(0,), (1,)]
    assert db.sql("SELECT max(s) FROM t WHERE i IN (SELECT i FROM t LIMIT 5)").fetchall() == [("v4",)]
    assert db.sql("SELECT a.i FROM t a JOIN (SELECT i FROM t LIMIT 2) b ON a.i = b.i + 998").fetchall() == [
        (998,),
        (999,),
    ]


def test_a_filter_needs_all(db: gquery.Connection) -> None:
    assert db.sql("SELECT i FROM t WHERE i > 990 LIMIT 2").fetchall() == [(991,), (992,)]
    assert db.sql("SELECT n FROM t ORDER BY i DESC LIMIT 1").fetchall() == [(999 * 10**12,)]


def test_files_that_are_read_when_opened(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n" + "".join(f"{i},x{i}\n" for i in range(100)))
    db = gquery.connect("python")
    assert db.sql(f"SELECT * FROM '{tmp_path}/a.csv' LIMIT 2").fetchall() == [(0, "x0"), (1, "x1")]
    assert db.sql(f"SELECT count(*), max(a) FROM '{tmp_path}/a.csv'").fetchall() == [(100, 99)]


def test_variables_are_read_as_they_are(db: gquery.Connection) -> None:
    values = np.arange(100)
    shared = pa.table({"a": values})  # noqa: F841  (named in SQL)
    first: Any = db.sql("SELECT a FROM shared LIMIT 2")
    values[:] = 7
    assert first.fetchall() == [(0,), (1,)]
    assert db.sql("SELECT min(a), max(a) FROM shared").fetchall() == [(7, 7)]


def test_a_null_that_came_later_is_an_error() -> None:
    bits = np.full(16, 255, np.uint8)
    column = pa.Array.from_buffers(pa.int64(), 100, [pa.py_buffer(bits), pa.array(range(100)).buffers()[1]])
    source = ArrowSource("t", ["a"], [pa.chunked_array([column])], 100)
    bits[:] = 0
    fresh = pa.Array.from_buffers(pa.int64(), 100, [pa.py_buffer(bits), pa.array(range(100)).buffers()[1]])
    source._arrays[0] = pa.chunked_array([fresh])
    with pytest.raises(DataError, match="has changed"):
        source.first([0], 3)
