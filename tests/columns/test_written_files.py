"""Text that lies in files under a memory limit: it is written into them, not through a mapping, whose pages are cleared first."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery import errors
from gquery.device.device import cpu_device
from gquery.device.spill import SpillSpace, is_spilled
from gquery.device.transfer import Upload

ROWS = 300_000
SQL = "SELECT sum(length(t)), count(t), min(t), max(t) FROM 'texts.parquet'"


@pytest.fixture(autouse=True)
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    values = [None if i % 11 == 0 else f"é text of row {i * 7919 % 1_000_003} " * (i % 4) for i in range(ROWS)]
    pq.write_table(pa.table({"t": values}), tmp_path / "texts.parquet", row_group_size=30_000, use_dictionary=False)
    (tmp_path / "files").mkdir()
    monkeypatch.chdir(tmp_path)
    return values


def limited() -> gquery.Connection:
    connection = gquery.connect(device="cpu", threads=2, memory_limit=12_000_000)
    connection.set("spill_directory", "files")
    return connection


def test_text_is_written_into_its_files(texts: list[str | None], monkeypatch: pytest.MonkeyPatch) -> None:
    written = [0]
    real = os.pwrite

    def pwrite(file: int, data: Any, at: int) -> int:
        done = real(file, memoryview(data)[: 1 + len(data) // 2], at)  # the system may take less than it is given
        written[0] += done
        return done

    monkeypatch.setattr(os, "pwrite", pwrite)
    there = [t for t in texts if t is not None]
    with limited() as db:
        assert db.sql(SQL).fetchall() == [(sum(map(len, there)), len(there), min(there), max(there))]
        (column,) = db._cache._columns.values()
        assert column.characters is not None and is_spilled(column.characters.host)
        assert (
            written[0] >= 2 * column.characters.host.nbytes - 2_000_000
        )  # pieces, some of them in memory, and the column


def test_a_file_that_cannot_be_written_is_an_error(texts: list[str | None], monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls, there = os.pwrite, [0], len([t for t in texts if t is not None])
    with limited() as db:
        for refused in (1, 5, 40):  # a piece, and the column

            def pwrite(file: int, data: Any, at: int, refused: int = refused) -> int:
                calls[0] += 1
                if calls[0] >= refused:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return real(file, data, at)

            calls[0] = 0
            with monkeypatch.context() as patched:
                patched.setattr(os, "pwrite", pwrite)
                with pytest.raises(errors.OutOfMemoryError, match="spill_directory"):
                    db.sql(SQL).fetchall()
            assert calls[0] >= refused
        assert db.sql(SQL).fetchall()[0][1] == there


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
def test_an_array_that_is_written_in_pieces(tmp_path: Path, dtype: Any) -> None:
    device = cpu_device().with_limit(1_000_000, SpillSpace(str(tmp_path)))
    values = np.arange(300_000).astype(dtype)
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    transfer = Upload(device).written(len(values), dtype)
    for low in (200_000, 0, 100_000):
        transfer.write(low, values[low : low + 100_000].astype(np.int64))
    host = transfer.buffer().host
    assert is_spilled(host) == (values.nbytes > 500_000)
    assert host.dtype == dtype and np.array_equal(host, values)
    strided = np.arange(400_000).reshape(200_000, 2)[:, 1]
    assert np.array_equal(device.copied_spillable(strided, "a test"), strided)
    if before:  # the mapping's own, if any, and none for writing
        assert len(set(os.listdir("/proc/self/fd")) - before) <= 1
