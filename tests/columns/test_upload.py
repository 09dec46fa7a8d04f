"""Copies to a GPU, with a GPU that is played by the host: pieces, their places, what stays on the host, waiting."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gquery import tuning
from gquery.columns.arrow import export_table
from gquery.columns.import_arrow import import_table
from gquery.device import staging, transfer
from gquery.device.addresses import staying
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.errors import OutOfMemoryError
from gquery.io.column_cache import ColumnCache
from gquery.io.parquet import ParquetSource
from tests.support.played_gpu import Array, Gpu
from tests.support.tuned import Tune


def _array(values: Any) -> Any:
    return Array(values)


def _values(buffer: Buffer, gpu: Gpu) -> Any:
    array: Any = buffer.on(gpu)
    return array.values


@pytest.fixture
def gpu(tune: Tune) -> Iterator[Gpu]:
    tune(tuning.transfers, buffer_bytes=4096)
    tune(tuning.transfers, buffers=3)
    tune(tuning.transfers, mover_bytes=10_000)
    tune(tuning.transfers, kept_on_host=100)
    staging._staging.cache_clear()
    yield Gpu()
    staging._staging.cache_clear()


@pytest.mark.parametrize("dtype", ["u1", "i2", "i8", "f4"])
def test_pieces_arrive_at_their_places(gpu: Gpu, dtype: str) -> None:
    host = np.zeros(50_001, dtype)
    sending = transfer.Upload(gpu)
    one = sending.start(host)
    for low, high in ((20_000, 50_001), (0, 1), (1, 20_000), (7, 7)):
        host[low:high] = np.arange(low, high) % 251
        one.send(low, host[low:high])
    sending.wait()
    buffer = one.buffer()
    assert set(buffer.devices) == {Device("cpu"), gpu}
    assert np.array_equal(_values(buffer, gpu), host)
    assert gpu.played.drained == 1 and not gpu.played.pending
    assert len(sending.seconds) == 3


def test_nobody_waits_for_the_copies_but_wait(gpu: Gpu) -> None:
    host = np.arange(100, dtype=np.int64)
    sending = transfer.Upload(gpu)
    one = sending.start(host)
    one.send(0, host)
    assert gpu.played.pending
    sending.wait()
    assert not gpu.played.pending


def test_what_stays_on_the_host(gpu: Gpu) -> None:
    small, large = np.arange(5), np.arange(5000)
    assert transfer.Upload(gpu).start(small).buffer().devices == (Device("cpu"),)
    assert transfer.Upload(None).start(large).buffer().devices == (Device("cpu"),)
    assert transfer.Upload(Device("cpu")).start(large).buffer().devices == (Device("cpu"),)
    gpu.room = large.nbytes
    assert transfer.Upload(gpu).start(large).buffer().devices == (Device("cpu"),)


def test_a_whole_array(gpu: Gpu) -> None:
    host = np.arange(123_457, dtype=np.int32)
    sent: Any = transfer.send_whole(gpu, host, "")
    assert np.array_equal(sent.values, host)
    with pytest.raises(OutOfMemoryError, match="a scan"):
        gpu.room = 0
        transfer.send_whole(gpu, host, "a scan")


def test_bytes_have_room_behind_them(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def empty(size: int, dtype: Any, context: str) -> Array:
        asked.append(size)
        return Array(np.empty(size, dtype))

    monkeypatch.setattr(gpu, "empty", empty)
    array = transfer.device_array(gpu, 1000, np.uint8)
    assert (asked, array.size) == ([1016], 1000)


def test_a_file_arrives_on_the_device(gpu: Gpu, tmp_path: Any) -> None:
    rows = 20_000
    table = pa.table(
        {
            "n": pa.array([None if i % 7 == 0 else i for i in range(rows)]),
            "code": pa.array([("a", "b", "c")[i % 3] for i in range(rows)]),
            "text": pa.array([f"number {i}" if i % 5 else None for i in range(rows)]),
            "x": pa.array([i / 3 for i in range(rows)]),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3_000)
    source = ParquetSource(tmp_path / "a.parquet", cache=ColumnCache(device=gpu, workers=4))
    loaded = source.load(range(4))
    assert export_table(loaded).equals(table)
    for column in loaded.columns:
        for buffer in column.buffers:
            assert buffer.is_on(gpu)
            assert np.array_equal(_values(buffer, gpu), buffer.host)
    assert source.spent.copy > 0


def test_copies_that_were_not_used_give_way_first(gpu: Gpu) -> None:
    cache = ColumnCache(device=gpu)
    source = pa.table({"a": range(10), "b": range(10)})

    loaded = import_table(source)
    cache.put(1, dict(enumerate(loaded.columns)), "t")
    old, new = (c.data for c in loaded.columns)
    for buffer in (new, old, new):
        buffer.place(gpu, _array(buffer.host.copy()))
        buffer.on(gpu)
    cache.evict_bytes(gpu, 1)
    assert (old.is_on(gpu), new.is_on(gpu)) == (False, True)


def test_what_a_kernel_reads_stays_where_others_want_memory(gpu: Gpu) -> None:
    """Nobody else holds the copy on the GPU: a launch has been told its address."""
    cache = ColumnCache(device=gpu)
    cache.put(1, dict(enumerate(import_table(pa.table({"a": range(10)})).columns)), "t")
    column = cache.get(1, 0)
    assert column is not None
    with staying(gpu):
        column.data.place(gpu, _array(column.data.host.copy()))
        told = weakref.ref(column.data.on(gpu))
        cache.evict_bytes(gpu, 1 << 60)
        assert not column.data.is_on(gpu)
        gc.collect()
        assert told() is not None
    gc.collect()
    assert told() is None


def test_a_buffer_keeps_the_copy_that_it_has(gpu: Gpu) -> None:
    buffer = Buffer(np.arange(3))
    first = _array(np.arange(3))
    buffer.place(gpu, first)
    buffer.place(gpu, _array(np.zeros(3, np.int64)))
    assert buffer.on(gpu) is first


def test_a_slice_lies_where_its_buffer_does(gpu: Gpu) -> None:
    buffer = Buffer(np.arange(10))
    buffer.place(gpu, _array(np.arange(10)))
    part = buffer.slice(2, 5)
    assert set(part.devices) == {Device("cpu"), gpu}
    assert _values(part, gpu).tolist() == part.host.tolist() == [2, 3, 4]


@pytest.mark.cuda
def test_a_file_arrives_on_a_real_device(tmp_path: Any) -> None:
    import cupy

    rows = 3_000_000
    numbers = np.arange(rows)
    table = pa.table(
        {
            "n": numbers * 7919 % 1_000_003,
            "null": pa.array(numbers, mask=numbers % 5 == 0),
            "code": pa.DictionaryArray.from_arrays(pa.array(numbers % 3, pa.int8()), ["a", "b", "c"]),
            "text": pa.array(numbers).cast(pa.string()),
            "x": numbers / 3,
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=200_000)
    device = Device("cuda")
    for _ in range(3):  # memory that was freed before is given out again
        source = ParquetSource(tmp_path / "a.parquet", cache=ColumnCache(device=device))
        for column in source.load(range(table.num_columns)).columns:
            for buffer in column.buffers:
                assert buffer.is_on(device)
                assert np.array_equal(cupy.asnumpy(buffer.on(device)), buffer.host)
    buffer = Buffer(np.arange(20_000_000))
    assert np.array_equal(cupy.asnumpy(buffer.on(device)), buffer.host)
