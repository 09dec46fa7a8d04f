"""Integers and codes of texts of Parquet that a GPU decodes are those that a CPU reads; files that are damaged are told of. The
GPU is played by the host, whose kernels do what a GPU's would."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gquery import tuning
from gquery.columns import held_pages
from gquery.columns.held_pages import HeldChunks
from gquery.columns.page_values import FOUND, OUTCOME
from gquery.columns.table import ColumnData
from gquery.device import staging
from gquery.device.array import Array
from gquery.device.device import Device, cpu_device, cuda_device
from gquery.errors import FileError, OutOfMemoryError
from gquery.io.column_cache import ColumnCache
from gquery.io.parquet import ParquetSource
from gquery.kernels.builtin import held_pages as held_kernels_of_gpu
from gquery.kernels.builtin.held_pages import Kernels
from gquery.kernels.targets import get_target
from tests.io.test_device_alone import column, read, ready
from tests.io.test_pages import facts
from tests.support.played_gpu import DriverError, Gpu
from tests.support.tuned import Tune

assert ready
KINDS = ("sorted", "runs", "runs across", "unique", "far", "few", "days", "money", "one", "repeated", "ends")

DAMAGED = ("sorted", "few", "far", "days", "money")
TEXTS = ("few", "sorted", "in runs", "one", "many")
GIVEN_UP: dict[str, Any] = {"dictionary_pagesize_limit": 100, "data_page_size": 60, "write_batch_size": 16}  # amid a chunk


class Played:
    """The kernels of a GPU, on the host, how many columns they have decoded, and of how many parts the last one was."""

    def __init__(self) -> None:
        self.kernels, self.decoded, self.outcome, self.parts = Kernels("cpu", lanes=1), 0, 0, 0
        self.lock = Lock()

    def fetch(self, file: int, chunks: Array) -> bool:
        return self.kernels.fetch(file, chunks)

    def upload(self, job: Array) -> int:
        return self.kernels.upload(job)

    def dictionaries(self, states: Array) -> bool:
        return self.kernels.dictionaries(states)

    def list_pages(self, *about: Any) -> Array | None:
        return self.kernels.list_pages(*about)

    def decode(self, device: Device, chunks: HeldChunks) -> Array:
        self.parts = len(chunks.states)
        found = self.kernels.decode(cpu_device(), chunks)
        assert found.shape == (len(chunks.states), FOUND)
        with self.lock:  # columns are read by several threads
            self.decoded += int((found[:, OUTCOME] == 0).all())
        if self.outcome:
            found[-1, OUTCOME] = self.outcome
        return found

    def pick(self, device: Device, address: int, size: int, places: Array) -> Array:
        return self.kernels.pick(cpu_device(), address, size, places)


@pytest.fixture
def gpu(tune: Tune) -> Iterator[Gpu]:
    tune(tuning.transfers, kept_on_host=0)
    tune(tuning.transfers, buffer_bytes=512)
    tune(tuning.transfers, buffers=3)
    tune(tuning.encoding, compiled_rows=1)
    tune(tuning.reading, one_thread=0)
    staging._staging.cache_clear()
    yield Gpu()
    staging._staging.cache_clear()


@pytest.fixture
def played(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> Played:
    made = Played()
    monkeypatch.setattr(held_pages, "_find", lambda device: made)
    monkeypatch.setattr(held_pages, "_find_for_texts", None)
    return made


def values(kind: str, rows: int, r: random.Random) -> pa.Array:
    """Values of a kind, none NULL."""
    match kind:
        case "one":
            return pa.array([7] * rows, pa.int32())
        case "repeated":
            return pa.array(np.sort(np.repeat(np.arange(rows), r.choice((1, 3, 70)))[:rows]), pa.int64())
        case "ends":
            return pa.array([r.choice((-(2**63), 2**63 - 1, 0)) for _ in range(rows)], pa.int64())
        case _:
            return column(kind, rows, r)


def texts(kind: str, rows: int, r: random.Random) -> pa.Array:
    """Texts of a kind, none NULL, of which few differ."""
    some = ["tea", "jam", "", "é", "the " * 9]
    match kind:
        case "few":
            return pa.array(r.choices(some, k=rows))
        case "sorted":
            return pa.array(sorted(r.choices(some, k=rows)))
        case "in runs":  # of which row groups have some each
            return pa.array([str(n // 70) for n in range(rows)])
        case "one":
            return pa.array(["tea"] * rows)
        case _:
            return pa.array([str(r.randrange(max(rows // 10, 1))) for _ in range(rows)])


def both(path: Path, gpu: Gpu, r: random.Random) -> list[tuple[ColumnData, ColumnData]]:
    """The columns of a file, read for a GPU and for a CPU."""
    ours, theirs = (read(path, device, r.choice((1, 3))) for device in (gpu, cpu_device()))
    assert not gpu.played.pending
    return list(zip(ours, theirs, strict=True))


def cut_somehow(tune: Tune, r: random.Random) -> None:
    """Have chunks cut, or not: at each page, or into a few parts."""
    tune(tuning.reading, cut_rows=r.choice((1, 50, 1 << 17)))
    tune(tuning.reading, cuts=r.choice((1, 5, 1 << 12)))
    tune(tuning.reading, listed_pages=r.choice((1, 16)))


@pytest.mark.parametrize("seed", range(32))
def test_columns_that_a_gpu_decodes_are_those_of_a_cpu(
    seed: int, gpu: Gpu, played: Played, tmp_path: Path, tune: Tune
) -> None:
    r = random.Random(seed)
    rows = r.choice((1, 64, 90, 700, 2000))
    tune(tuning.encoding, longest_run=r.choice((4, 64)))
    tune(tuning.encoding, zone_rows=64)
    tune(tuning.encoding, sample=r.choice((100, 65_536)))
    tune(tuning.reading, run_rows=r.choice((0, 250)))
    tune(tuning.reading, uploaded_bytes=r.choice((1, 2000, 1 << 20)))
    cut_somehow(tune, r)
    options: dict[str, Any] = r.choice(
        ({}, {"use_dictionary": False}, {"compression": "none"}, {"data_page_version": "2.0"}, {"data_page_size": 100},
         {"store_decimal_as_integer": True}, GIVEN_UP)
    )  # fmt: skip
    fields = [pa.field(k, values(k, 1, r).type, nullable=r.random() < 0.5) for k in KINDS]
    table = pa.table([values(k, rows, r) for k in KINDS], pa.schema(fields))
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=r.choice((30, 100, 5000)), **options)
    for kind, (one, other) in zip(KINDS, both(tmp_path / "a.parquet", gpu, r), strict=True):
        assert one.data.is_on(gpu), kind
        assert facts(one) == facts(other), kind
    assert played.decoded == len(KINDS)


@pytest.mark.parametrize("seed", range(24))
def test_codes_that_a_gpu_decodes_are_those_of_a_cpu(
    seed: int, gpu: Gpu, played: Played, tmp_path: Path, tune: Tune
) -> None:
    r = random.Random(seed)
    rows = r.choice((700, 2000))
    tune(tuning.encoding, longest_run=r.choice((4, 64)))
    tune(tuning.encoding, union_part=r.choice((2, 65_536)))
    tune(tuning.reading, run_rows=r.choice((0, 250)))
    tune(tuning.reading, uploaded_bytes=r.choice((1, 2000, 1 << 20)))
    tune(tuning.reading, coded_rows=1)
    cut_somehow(tune, r)
    options: dict[str, Any] = r.choice(({}, {"compression": "none"}, {"data_page_version": "2.0"}, {"data_page_size": 100}))
    fields = [pa.field(k, r.choice((pa.string(), pa.large_string())), nullable=r.random() < 0.5) for k in TEXTS]
    table = pa.table([texts(k, rows, r).cast(f.type) for k, f in zip(TEXTS, fields, strict=True)], pa.schema(fields))
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=r.choice((300, 5000)), **options)
    columns = both(tmp_path / "a.parquet", gpu, r)
    for kind, (one, other) in zip(TEXTS, columns, strict=True):
        assert one.data.is_on(gpu), kind
        assert facts(one) == facts(other), kind
    assert played.decoded >= 3  # others do not look like codes in their footers


def test_several_files(gpu: Gpu, played: Played, tmp_path: Path, tune: Tune) -> None:
    tune(tuning.reading, run_rows=50)
    for n in range(3):
        pq.write_table(pa.table({"n": range(100 * n, 100 * n + 100)}), tmp_path / f"{n}.parquet", row_group_size=40)
    source = ParquetSource(tmp_path / "*.parquet", cache=ColumnCache(device=gpu, workers=3))
    (column,) = source.load([0]).columns
    assert column.data.host.tolist() == list(range(300))
    assert column.statistics.is_sorted and column.statistics.is_unique and played.decoded == 1


OTHERS: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "NULLs": (pa.array([1, None] * 50), {}),
    "floats": (pa.array([0.5] * 100), {}),
    "texts as they are": (pa.array([str(n) for n in range(100)]), {"use_dictionary": False}),
    "NULL among codes": (pa.array(["a", None] * 50), {}),
    "codes, then texts": (pa.array([str(n // 2) for n in range(100)]), {"dictionary_pagesize_limit": 20, "data_page_size": 20}),
    "bytes that are no text": (pa.array([b"\xff"] * 100).view(pa.string()), {}),
    "another codec": (pa.array(range(100)), {"compression": "zstd"}),
    "another encoding": (pa.array(range(100)), {"use_dictionary": False, "column_encoding": {"c": "DELTA_BINARY_PACKED"}}),
    "no statistics": (pa.array(range(100)), {"write_statistics": False}),
    "digits": (pa.array([Decimal(10) ** 20] * 100), {}),
}


@pytest.mark.parametrize("what", OTHERS)
def test_the_host_reads_the_others(what: str, gpu: Gpu, played: Played, tmp_path: Path) -> None:
    array, options = OTHERS[what]
    pq.write_table(pa.table({"c": array}), tmp_path / "a.parquet", row_group_size=40, **options)
    assert told(tmp_path / "a.parquet", gpu) == told(tmp_path / "a.parquet", cpu_device())
    assert not played.decoded


def test_a_dictionary_that_is_too_large(gpu: Gpu, played: Played, tmp_path: Path, tune: Tune) -> None:
    tune(tuning.encoding, largest_dictionary=20)
    tune(tuning.reading, coded_rows=1)
    array = pa.array([str(n // 10) for n in range(1000)])
    pq.write_table(pa.table({"c": array}), tmp_path / "a.parquet", row_group_size=400)
    assert told(tmp_path / "a.parquet", gpu) == told(tmp_path / "a.parquet", cpu_device())
    assert not played.decoded


@pytest.mark.parametrize("cut_rows", [1, 1 << 17])
@pytest.mark.parametrize("limit", ["decoded_rows", "decoded_bytes", "decoding_share", "outcome", "upload", "memory"])
def test_the_host_reads_what_is_too_much(
    limit: str, cut_rows: int, gpu: Gpu, played: Played, tmp_path: Path, tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(tuning.reading, cut_rows=cut_rows)
    if limit == "outcome":
        played.outcome = 5
    elif limit == "upload":
        monkeypatch.setattr(played, "upload", lambda job: 0)
    elif limit == "memory":

        def decode(device: Device, chunks: HeldChunks) -> Array:
            raise OutOfMemoryError

        monkeypatch.setattr(played, "decode", decode)
    else:
        tune(tuning.reading, **{limit: 1 << 60 if limit == "decoding_share" else 20})
        if cut_rows == 1:  # pages are listed before anything is sent
            monkeypatch.setattr(played, "upload", None)
    pq.write_table(pa.table({"c": range(1000)}), tmp_path / "a.parquet", row_group_size=400, use_dictionary=False)
    ((one, other),) = both(tmp_path / "a.parquet", gpu, random.Random(0))
    assert facts(one) == facts(other)
    assert played.decoded == (limit == "outcome")


def test_a_copy_that_the_driver_refuses(gpu: Gpu, played: Played, tmp_path: Path) -> None:
    pq.write_table(pa.table({"c": range(1000)}), tmp_path / "a.parquet", row_group_size=400)
    gpu.played.failing = 719
    with pytest.raises(DriverError) as told:
        read(tmp_path / "a.parquet", gpu, 1)
    assert told.value.args == (719,) and not played.decoded
    gpu.played.failing = 0
    assert read(tmp_path / "a.parquet", gpu, 1)[0].data.host.tolist() == list(range(1000))


def damaged(path: Path, r: random.Random) -> None:
    """Write a file of one column of integers or texts, some bytes of whose pages are others."""
    options: dict[str, Any] = r.choice(
        ({}, {"use_dictionary": False}, {"compression": "none"}, {"data_page_version": "2.0"}, GIVEN_UP)
    )
    column = texts(r.choice(TEXTS), 400, r) if r.random() < 0.4 else values(r.choice(DAMAGED), 400, r)
    pq.write_table(pa.table({"c": column}), path, 150, **options)
    raw = bytearray(path.read_bytes())
    end = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    for _ in range(r.randint(1, 3)):
        raw[r.randrange(4, end)] = r.randrange(256)
    path.write_bytes(raw)


def told(path: Path, device: Device) -> Any:
    """The columns of a file, or the error."""
    try:
        return [facts(c) for c in read(path, device, 1)]
    except FileError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(48))
def test_bytes_that_are_damaged(seed: int, gpu: Gpu, played: Played, tmp_path: Path, tune: Tune) -> None:
    """What a GPU decodes, or the error, is what a CPU has."""
    tune(tuning.reading, cut_rows=(1, 1 << 17)[seed % 2])
    damaged(tmp_path / "a.parquet", random.Random(seed))
    assert told(tmp_path / "a.parquet", gpu) == told(tmp_path / "a.parquet", cpu_device())


def test_a_file_that_became_shorter(gpu: Gpu, played: Played, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"c": range(1000)}), path, row_group_size=400)
    source = ParquetSource(path, cache=ColumnCache(device=gpu, workers=1))
    assert len(source.schema.fields) == 1
    os.truncate(path, 600)
    with pytest.raises(FileError):
        source.load([0])
    assert not played.decoded


@pytest.fixture
def device(tune: Tune) -> Device:
    """A GPU that decodes."""
    made = cuda_device(0)
    with made.activate():
        for builtin in (held_kernels_of_gpu.DECODE, held_kernels_of_gpu.PICK):
            get_target("cuda").compile(builtin.kernel)
    for builtin in held_kernels_of_gpu.ON_HOST:
        get_target("cpu").compile(builtin.kernel)
    assert held_kernels_of_gpu.find_kernels(made) is not None
    tune(tuning.transfers, kept_on_host=0)
    tune(tuning.encoding, compiled_rows=1)
    tune(tuning.reading, one_thread=0)
    tune(tuning.reading, coded_rows=1)
    return made


@pytest.mark.cuda
@pytest.mark.parametrize("seed", range(12))
def test_on_a_gpu(seed: int, device: Device, tmp_path: Path, tune: Tune) -> None:
    r = random.Random(seed)
    cut_somehow(tune, r)
    rows = r.choice((1, 5000, 300_000))
    options: dict[str, Any] = r.choice(({}, {"use_dictionary": False}, {"compression": "none"}, {"data_page_version": "2.0"}))
    columns = {k: values(k, rows, r) for k in KINDS} | {f"{k} texts": texts(k, rows, r) for k in TEXTS}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=40_000, **options)
    ours, theirs = (read(tmp_path / "a.parquet", each, 8) for each in (device, cpu_device()))
    for kind, one, other in zip(columns, ours, theirs, strict=True):
        assert one.data.is_on(device) or (one.dtype.is_string and rows == 1), kind
        assert facts(one) == facts(other), kind


@pytest.mark.cuda
@pytest.mark.parametrize("seed", range(60))
def test_damage_on_a_gpu(seed: int, device: Device, tmp_path: Path, tune: Tune) -> None:
    tune(tuning.reading, cut_rows=(1, 1 << 17)[seed % 2])
    damaged(tmp_path / "a.parquet", random.Random(seed))
    assert told(tmp_path / "a.parquet", device) == told(tmp_path / "a.parquet", cpu_device())
