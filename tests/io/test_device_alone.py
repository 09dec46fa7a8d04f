"""Columns of Parquet that a GPU has alone are those that a CPU reads, with what is known of them; a GPU that is played by the
host brings them to it when somebody asks, and before its memory is given to others."""

from __future__ import annotations

import random
import weakref
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gquery import tuning
from gquery.columns import held_pages
from gquery.columns.loops import use_loops
from gquery.columns.table import ColumnData
from gquery.device import staging
from gquery.device.device import Device, cpu_device
from gquery.device.transfer import Upload
from gquery.execution.streamed import StreamedPart
from gquery.io.column_cache import ColumnCache
from gquery.io.parquet import ParquetSource
from gquery.kernels.bindings import ColumnPart
from gquery.kernels.builtin import column_loops, narrowing, parquet_pages
from gquery.kernels.targets import get_target
from tests.io.test_pages import facts
from tests.support.played_gpu import Gpu
from tests.support.tuned import Tune

KINDS = (
    "sorted", "runs", "runs across", "unique", "far", "few", "floats", "flags", "days", "money", "texts", "codes", "one text",
)  # fmt: skip


@pytest.fixture(autouse=True)
def ready() -> None:
    use_loops(column_loops._Loops())  # as an engine does when it is loaded
    for kernel in (*narrowing.LOOPS.values(), *parquet_pages.KERNELS):
        get_target("cpu").compile(kernel.kernel)


@pytest.fixture
def gpu(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpu]:
    for find in ("_find", "_find_for_texts"):  # it decodes nothing itself (`test_held_chunks`)
        monkeypatch.setattr(held_pages, find, None)
    tune(tuning.transfers, buffer_bytes=512)
    tune(tuning.transfers, buffers=3)
    tune(tuning.transfers, kept_on_host=0)
    staging._staging.cache_clear()
    yield Gpu()
    staging._staging.cache_clear()


def column(kind: str, rows: int, r: random.Random) -> pa.Array:
    """Values of a kind."""
    match kind:
        case "sorted":
            return pa.array(np.cumsum([r.randint(1, 3) for _ in range(rows)]), pa.int64())
        case "runs":
            return pa.array(np.repeat(np.arange(rows), 5)[:rows], pa.int32())
        case "runs across":  # of one value, more than a row group has
            return pa.array(np.arange(rows) // 150, pa.int32())
        case "unique":
            return pa.array(r.sample(range(-5, 3 * rows), rows), pa.int64())
        case "far":
            return pa.array([r.randint(-(2**62), 2**62) for _ in range(rows)], pa.int64())
        case "few":
            return pa.array([r.randint(-3, 300) for _ in range(rows)], pa.int16())
        case "floats":
            return pa.array([r.choice((r.random(), 0.0, float("nan"))) for _ in range(rows)], pa.float64())
        case "flags":
            return pa.array([r.random() < 0.5 for _ in range(rows)])
        case "days":
            return pa.array([r.randint(-9000, 9000) for _ in range(rows)], pa.int32()).cast(pa.date32())
        case "money":
            return pa.array([Decimal(r.randint(-(10**9), 10**9)) / 100 for _ in range(rows)], pa.decimal128(15, 2))
        case "texts":
            return pa.array([f"{'é' * r.randrange(2)}{r.random()}"[: r.randrange(20)] for _ in range(rows)])
        case "codes":
            return pa.array([r.choice(("tea", "jam", "", "é")) for _ in range(rows)])
        case _:
            return pa.array(["always"] * rows)


def read(path: Path, device: Device, workers: int) -> list[ColumnData]:
    """All columns of a file."""
    source = ParquetSource(path, cache=ColumnCache(device=device, workers=workers))
    return list(source.load(range(len(source.schema.fields))).columns)


@pytest.mark.parametrize("seed", range(24))
def test_columns_of_a_gpu_are_those_of_a_cpu(seed: int, gpu: Gpu, tmp_path: Path, tune: Tune) -> None:
    r = random.Random(seed)
    rows = r.choice((1, 90, 700, 2000))
    tune(tuning.encoding, longest_run=r.choice((4, 64)))
    tune(tuning.encoding, zone_rows=64)
    tune(tuning.encoding, sample=r.choice((100, 65_536)))
    tune(tuning.encoding, compiled_rows=r.choice((1, 1 << 20)))
    tune(tuning.encoding, narrow_offsets=r.choice((100, 2**31)))
    tune(tuning.reading, run_rows=r.choice((0, 250)))
    tune(tuning.reading, one_thread=0)
    arrays = {}
    for kind in KINDS:
        array = column(kind, rows, r)
        if r.random() < 0.3:
            array = pa.array([None if r.random() < 0.2 else value for value in array.to_pylist()], array.type)
        arrays[kind] = array
    options: dict[str, Any] = r.choice(({}, {"use_dictionary": False}, {"compression": "none"}, {"write_statistics": False}))
    pq.write_table(pa.table(arrays), tmp_path / "a.parquet", row_group_size=r.choice((30, 100, 5000)), **options)
    ours, theirs = (read(tmp_path / "a.parquet", device, r.choice((1, 3))) for device in (gpu, cpu_device()))
    assert not gpu.played.pending
    for kind, one, other in zip(KINDS, ours, theirs, strict=True):
        assert one.data.is_on(gpu) or one.statistics.null_count == rows, kind
        assert facts(one) == facts(other), kind


def test_the_host_has_no_copy_until_somebody_asks(gpu: Gpu, tmp_path: Path, tune: Tune) -> None:
    tune(tuning.reading, run_rows=0)
    table = pa.table({"n": range(3000), "code": ["a", "b", "c"] * 1000, "x": [n / 7 for n in range(3000)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=400)
    loaded = read(tmp_path / "a.parquet", gpu, 2)
    assert [c.data.devices for c in loaded] == [(gpu,)] * 3
    assert loaded[0].data.host.tolist() == list(range(3000))
    assert set(loaded[0].data.devices) == {gpu, cpu_device()}


@pytest.mark.parametrize("share", [0.0, 2.0])
def test_a_gpu_with_little_room_has_them_beside_the_host(share: float, gpu: Gpu, tmp_path: Path, tune: Tune) -> None:
    tune(tuning.transfers, device_alone=share)
    pq.write_table(pa.table({"n": range(3000)}), tmp_path / "a.parquet", row_group_size=400)
    (loaded,) = read(tmp_path / "a.parquet", gpu, 2)
    assert len(loaded.data.devices) == (2 if share else 1)
    assert gpu.to_host(loaded.data.on(gpu)).tolist() == loaded.data.host.tolist() == list(range(3000))


def test_what_a_gpu_has_alone_is_the_last_to_give_way(gpu: Gpu, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": range(3000), "b": range(3000), "c": range(3000)}), tmp_path / "a.parquet")
    cache = ColumnCache(device=gpu, workers=1)
    source = ParquetSource(tmp_path / "a.parquet", cache=cache)
    a, b, c = (column.data for column in source.load([0, 1, 2]).columns)
    assert b.host.tolist() == list(range(3000))
    c.on(gpu)
    cache.evict_bytes(gpu, 1)
    assert [x.is_on(gpu) for x in (a, b, c)] == [True, False, True]
    cache.evict_bytes(gpu, 1)
    assert [x.is_on(gpu) for x in (a, b, c)] == [False, False, True]
    assert a.devices == (cpu_device(),) and a.host.tolist() == list(range(3000))
    cache.evict_bytes(gpu, 1 << 62)
    assert c.devices == (cpu_device(),) and c.host.tolist() == list(range(3000))


def test_characters_are_streamed_whose_offsets_a_gpu_has_alone(gpu: Gpu, tmp_path: Path) -> None:
    texts = [f"text {n * 7919 % 3000}" for n in range(3000)]
    pq.write_table(pa.table({"t": texts}), tmp_path / "a.parquet")
    (loaded,) = read(tmp_path / "a.parquet", gpu, 1)
    loaded.data.drop(cpu_device())
    assert loaded.data.devices == (gpu,) and loaded.characters is not None
    part = StreamedPart(ColumnPart(None, 0, "characters"), loaded.characters.host, loaded)
    assert bytes(part.section(5, 8)) == "".join(texts[5:8]).encode()


def test_what_is_given_up_stays_until_all_has_arrived(gpu: Gpu) -> None:
    """Memory that was let go of before is another's, and a copy that is on its way would arrive there."""
    upload = Upload(gpu)
    sent, waited = (upload.make(1000, np.int64) for _ in range(2))
    for each in (sent, waited):
        each.write(0, np.arange(1000))
    upload.wait()
    sent.write(0, np.arange(1000))
    arrays = [weakref.ref(each.target.array) for each in (sent, waited) if each.target is not None]
    upload.release(waited)
    del sent, waited, each
    assert [array() is None for array in arrays] == [False, True]
    upload.close()
    assert not gpu.played.pending and arrays[0]() is None
