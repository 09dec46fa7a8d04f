"""Texts of Parquet that a GPU decodes as they are, are those that a CPU reads; files that are damaged are told of. The GPU is
played by the host, as in `test_held_chunks`."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gquery import tuning
from gquery.columns import held_pages as columns_held_pages
from gquery.columns.held_pages import FOUND
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device, cpu_device, cuda_device
from gquery.errors import OutOfMemoryError
from gquery.kernels.builtin import held_pages
from gquery.kernels.builtin import held_texts as kernels_of_gpu
from gquery.kernels.builtin.held_texts import TextKernels
from gquery.kernels.targets import get_target
from tests.io.test_device_alone import read, ready
from tests.io.test_held_chunks import gpu, told
from tests.io.test_pages import facts
from tests.support.played_gpu import Gpu
from tests.support.tuned import Tune

assert ready and gpu
KINDS = ("short", "long", "empty", "letters", "few", "alike", "words")
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {"use_dictionary": False}, {"compression": "none"}, {"data_page_version": "2.0"}, {"data_page_size": 100},
    {"dictionary_pagesize_limit": 300, "data_page_size": 200}, {"max_rows_per_page": 20},
    {"compression": "none", "data_page_version": "2.0"},
)  # fmt: skip


class Played(TextKernels):
    """The kernels of a GPU, on the host, and how many columns they have decoded."""

    def __init__(self) -> None:
        super().__init__("cpu", lanes=1)
        self.decoded = 0

    def decompress_texts(self, device: Device, pages: Array) -> Array:
        return super().decompress_texts(cpu_device(), pages)

    def place_texts(self, device: Device, pages: Array, found: Array) -> bool:
        is_text = super().place_texts(cpu_device(), pages, found)
        self.decoded += is_text
        return is_text


@pytest.fixture
def played(gpu: Gpu, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> Played:
    made = Played()
    tune(tuning.reading, coded_rows=1 << 40)  # none is read as codes
    monkeypatch.setattr(columns_held_pages, "_find_for_texts", lambda device: made)
    return made


def texts(kind: str, rows: int, r: random.Random) -> pa.Array:
    """Texts of a kind, none NULL."""
    match kind:
        case "short":
            return pa.array([str(r.randrange(10**6)) for _ in range(rows)])
        case "long":
            return pa.array([f"{r.random()} " * r.choice((0, 1, 9, 40)) for _ in range(rows)])
        case "empty":
            return pa.array([""] * rows)
        case "letters":
            return pa.array(["".join(r.choices("aé߿ࠀ퟿\ue000￿𐀀\U0010ffff", k=r.randrange(5))) for _ in range(rows)])
        case "few":
            return pa.array(r.choices(["tea", "jam", "", "é", "the " * 9], k=rows))
        case "alike":
            return pa.array(["the same text"] * rows)
        case _:
            return pa.array([" ".join(r.choices(("slyly", "final", "deposits", "are", "a"), k=9)) for _ in range(rows)])


def both(path: Path, gpu: Gpu, r: random.Random) -> list[tuple[ColumnData, ColumnData]]:
    ours, theirs = (read(path, device, r.choice((1, 3))) for device in (gpu, cpu_device()))
    assert not gpu.played.pending
    return list(zip(ours, theirs, strict=True))


def write(path: Path, table: pa.Table, **options: Any) -> None:
    pq.write_table(table, path, **options)


@pytest.mark.parametrize("seed", range(24))
def test_texts_that_a_gpu_decodes_are_those_of_a_cpu(
    seed: int, gpu: Gpu, played: Played, tmp_path: Path, tune: Tune
) -> None:
    r = random.Random(seed)
    rows = r.choice((1, 64, 700, 2000))
    tune(tuning.encoding, sample=r.choice((100, 65_536)))
    tune(tuning.encoding, narrow_offsets=r.choice((100, 2**31)))
    tune(tuning.reading, run_rows=r.choice((0, 250)))
    tune(tuning.reading, uploaded_bytes=r.choice((1, 2000, 1 << 20)))
    fields = [
        pa.field(k, r.choice((pa.string(), pa.large_string(), pa.string_view())), nullable=r.random() < 0.5)
        for k in KINDS
    ]
    table = pa.table([texts(k, rows, r).cast(f.type) for k, f in zip(KINDS, fields, strict=True)], pa.schema(fields))
    write(tmp_path / "a.parquet", table, row_group_size=r.choice((30, 100, 5000)), **r.choice(OPTIONS))
    for kind, (one, other) in zip(KINDS, both(tmp_path / "a.parquet", gpu, r), strict=True):
        assert one.data.is_on(gpu) or kind == "empty", kind
        assert facts(one) == facts(other), kind
    assert played.decoded >= len(KINDS) - 1


def test_tpch_pages(gpu: Gpu, played: Played, tmp_path: Path) -> None:
    """A dictionary that is given up: codes first, then texts, in one chunk of several."""
    r = random.Random(1)
    table = pa.table({"c": texts("words", 3000, r)})
    write(
        tmp_path / "a.parquet",
        table,
        row_group_size=1000,
        dictionary_pagesize_limit=5000,
        data_page_size=5000,
        write_batch_size=50,
    )
    chunk = pq.read_metadata(tmp_path / "a.parquet").row_group(0).column(0)
    assert {"PLAIN", "RLE_DICTIONARY"} <= set(chunk.encodings)
    ((one, other),) = both(tmp_path / "a.parquet", gpu, r)
    assert facts(one) == facts(other) and played.decoded == 1 and one.data.is_on(gpu)


OTHERS: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "NULLs": (pa.array(["a", None] * 50), {}),
    "bytes that are no text": (pa.array([b"\xff", b"a"] * 50).view(pa.string()), {}),
    "a text that is cut off": (pa.array([b"\xc3", b"\xa9"] * 50).view(pa.string()), {}),
    "another codec": (pa.array([str(n) for n in range(100)]), {"compression": "zstd"}),
    "another encoding": (
        pa.array([str(n) for n in range(100)]),
        {"use_dictionary": False, "column_encoding": {"c": "DELTA_BYTE_ARRAY"}},
    ),
    "no statistics": (pa.array([str(n) for n in range(100)]), {"write_statistics": False}),
}


@pytest.mark.parametrize("what", OTHERS)
def test_the_host_reads_the_others(what: str, gpu: Gpu, played: Played, tmp_path: Path) -> None:
    array, options = OTHERS[what]
    pq.write_table(pa.table({"c": array}), tmp_path / "a.parquet", row_group_size=40, **options)
    assert told(tmp_path / "a.parquet", gpu) == told(tmp_path / "a.parquet", cpu_device())
    assert not played.decoded


@pytest.mark.parametrize("limit", ["decoded_bytes", "decoding_share", "upload", "list", "unpacked", "memory"])
def test_the_host_reads_what_is_too_much(
    limit: str, gpu: Gpu, played: Played, tmp_path: Path, tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks(device: Device, pages: Array) -> Array:
        raise OutOfMemoryError(limit)

    if limit == "upload":
        monkeypatch.setattr(played, "upload", lambda job: 0)
    elif limit == "list":
        monkeypatch.setattr(played, "list_pages", lambda *about: None)
    elif limit == "unpacked":
        monkeypatch.setattr(played, "decompress_texts", lambda device, pages: np.zeros((len(pages), FOUND), np.int64))
    elif limit == "memory":
        monkeypatch.setattr(played, "decompress_texts", lacks)
    else:
        tune(tuning.reading, **{limit: 1 << 60 if limit == "decoding_share" else 20})
    pq.write_table(pa.table({"c": texts("long", 1000, random.Random(0))}), tmp_path / "a.parquet", row_group_size=400)
    ((one, other),) = both(tmp_path / "a.parquet", gpu, random.Random(0))
    assert facts(one) == facts(other) and not played.decoded


def damaged(path: Path, r: random.Random) -> None:
    """Write a file of one column of texts, some bytes of whose pages are others."""
    pq.write_table(pa.table({"c": texts(r.choice(KINDS), 400, r)}), path, row_group_size=150, **r.choice(OPTIONS))
    raw = bytearray(path.read_bytes())
    end = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    for _ in range(r.randint(1, 3)):
        raw[r.randrange(4, end)] = r.randrange(256)
    path.write_bytes(raw)


@pytest.mark.parametrize("seed", range(60))
def test_bytes_that_are_damaged(seed: int, gpu: Gpu, played: Played, tmp_path: Path) -> None:
    """What a GPU decodes, or the error, is what a CPU has."""
    damaged(tmp_path / "a.parquet", random.Random(seed))
    assert told(tmp_path / "a.parquet", gpu) == told(tmp_path / "a.parquet", cpu_device())


@pytest.fixture
def device(tune: Tune) -> Device:
    """A GPU that decodes."""
    made = cuda_device(0)
    with made.activate():
        for builtin in (held_pages.DECODE, held_pages.PICK, *kernels_of_gpu.ON_GPU):
            get_target("cuda").compile(builtin.kernel)
    for builtin in held_pages.ON_HOST:
        get_target("cpu").compile(builtin.kernel)
    assert kernels_of_gpu.find_text_kernels(made) is not None
    tune(tuning.transfers, kept_on_host=0)
    tune(tuning.encoding, compiled_rows=1)
    tune(tuning.reading, one_thread=0)
    tune(tuning.reading, coded_rows=1 << 40)
    return made


@pytest.mark.cuda
@pytest.mark.parametrize("seed", range(6))
def test_on_a_gpu(seed: int, device: Device, tmp_path: Path) -> None:
    r = random.Random(seed)
    rows = r.choice((1, 5000, 300_000))
    columns = {k: texts(k, rows, r) for k in KINDS}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=40_000, **r.choice(OPTIONS[:6]))
    ours, theirs = (read(tmp_path / "a.parquet", each, 8) for each in (device, cpu_device()))
    for kind, one, other in zip(columns, ours, theirs, strict=True):
        assert one.data.is_on(device) or kind == "empty", kind
        assert facts(one) == facts(other), kind


@pytest.mark.cuda
@pytest.mark.parametrize("seed", range(40))
def test_damage_on_a_gpu(seed: int, device: Device, tmp_path: Path) -> None:
    damaged(tmp_path / "a.parquet", random.Random(seed))
    assert told(tmp_path / "a.parquet", device) == told(tmp_path / "a.parquet", cpu_device())
