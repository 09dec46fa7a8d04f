"""Long chunks of Parquet that are cut at pages for a GPU have the values that a CPU reads. The GPU is played by the host, as in
`test_held_chunks`, whose files are cut at random, too."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gquery import tuning
from gquery.columns.held_pages import CODES, DICTIONARY, PLAIN, HeldChunks
from gquery.columns.page_values import ROWS
from gquery.device.array import Array
from gquery.device.device import Device, cpu_device
from gquery.errors import FileError
from gquery.io import pages
from gquery.io.held_cuts import cut
from tests.io.test_device_alone import read, ready
from tests.io.test_held_chunks import GIVEN_UP, KINDS, Played, both, gpu, played, told, values
from tests.io.test_pages import facts
from tests.support.played_gpu import Gpu
from tests.support.tuned import Tune

assert ready and gpu and played


@pytest.mark.parametrize(
    "options", [{}, {"data_page_version": "2.0"}, {"use_dictionary": False}, {"compression": "none"}, GIVEN_UP]
)
@pytest.mark.parametrize("kind", KINDS)
def test_long_chunks_are_cut_at_pages(
    kind: str, options: dict[str, Any], gpu: Gpu, played: Played, tmp_path: Path, tune: Tune
) -> None:
    """At each page, into a few parts, and not at all, with the same values: a dictionary that is given up amid a chunk is that of
    the pages before."""
    r = random.Random(kind)
    tune(tuning.reading, cut_rows=150)
    array, parts = values(kind, 1000, r), list[int]()
    pq.write_table(pa.table({"c": array}), tmp_path / "a.parquet", row_group_size=400, **{"max_rows_per_page": 30} | options)
    for cuts in (1 << 12, 10, 1):
        tune(tuning.reading, cuts=cuts)
        ((one, other),) = both(tmp_path / "a.parquet", gpu, r)
        assert facts(one) == facts(other)
        parts.append(played.parts)
    assert played.decoded == 3
    assert parts[0] >= 32 and 3 < parts[1] <= 13 and parts[2] == 3  # of 1,000 rows, in row groups of 400, 400 and 200


def test_short_chunks_are_not_listed(gpu: Gpu, played: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(played, "list_pages", None)
    pq.write_table(pa.table({"c": range(1000)}), tmp_path / "a.parquet", row_group_size=100, max_rows_per_page=10)
    assert read(tmp_path / "a.parquet", gpu, 3)[0].data.host.tolist() == list(range(1000))
    assert (played.decoded, played.parts) == (1, 10)


def test_a_dictionary_of_more_entries_than_a_page_has_rows(gpu: Gpu, played: Played, tmp_path: Path, tune: Tune) -> None:
    """Of a row group of a million rows that writers give up at a megabyte: 131,072 entries and some more, of 8 bytes."""
    tune(tuning.reading, decoded_rows=100)
    tune(tuning.reading, cut_rows=100)
    pq.write_table(pa.table({"c": range(1000)}), tmp_path / "a.parquet", max_rows_per_page=50)
    assert read(tmp_path / "a.parquet", gpu, 1)[0].data.host.tolist() == list(range(1000))
    assert (played.decoded, played.parts) == (1, 20)


def test_texts_among_codes_are_found_before_anything_is_sent(
    gpu: Gpu, played: Played, tmp_path: Path, tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    tune(tuning.reading, cut_rows=10)
    tune(tuning.reading, coded_rows=1)
    array = pa.array([f"{n // 2} {n % 2}" for n in range(200)] + ["a"] * 9000)
    pq.write_table(pa.table({"c": array}), tmp_path / "a.parquet", **GIVEN_UP)
    monkeypatch.setattr(played, "upload", None)
    assert told(tmp_path / "a.parquet", gpu) == told(tmp_path / "a.parquet", cpu_device())
    assert not played.decoded


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}])
def test_bytes_that_are_others_once_pages_are_listed(
    options: dict[str, Any], gpu: Gpu, played: Played, tmp_path: Path, tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a dictionary and the page behind it: what a GPU decodes has no more values than were listed, or the host reads."""
    tune(tuning.reading, cut_rows=10)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"c": range(300)}), path, max_rows_per_page=40, **options)
    raw, when, change = path.read_bytes(), path.stat().st_mtime_ns, [0]
    list_pages, decode, found = played.list_pages, played.decode, list[bool]()

    def write(raw: bytes) -> None:
        path.write_bytes(raw)
        os.utime(path, ns=(when, when))

    def list_then_change(*about: Any) -> Array | None:
        made = list_pages(*about)
        write(raw[: change[0]] + bytes([raw[change[0]] ^ 0x15]) + raw[change[0] + 1 :])
        return made

    def decode_and_look(device: Device, chunks: HeldChunks) -> Array:
        made = decode(device, chunks)
        found.append(bool((made[:, ROWS] <= chunks.states[:, pages.VALUES]).all()))
        write(raw)  # for the host
        return made

    monkeypatch.setattr(played, "list_pages", list_then_change)
    monkeypatch.setattr(played, "decode", decode_and_look)
    first = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    for change[0] in range(max(first - 20, 4), first + 100, 2):
        with suppress(FileError):
            assert len(read(path, gpu, 1)[0].data.host) == 300
        write(raw)
    assert len(found) > 15 and all(found) and played.decoded < len(found)


def test_parts_of_pages() -> None:
    """Pages without values are of the part of the next one that has some; dictionaries of none."""
    listed = np.array([
        [0, 10, 0, 5, 40, 1, DICTIONARY, 7, 0],
        [0, 20, 0, 5, 4, 1, PLAIN, 0, 0],
        [0, 30, 3, 5, 50, 1, CODES, 20, 2],
        [0, 45, 0, 5, 70, 1, PLAIN, 20, 1],
        [0, 60, 0, 5, 8, 1, PLAIN, 0, 1],
        [0, 70, 0, 9, 30, 1, PLAIN, 1, 1],
        [2, 12, 0, 5, 99, 0, PLAIN, 1, 0],
    ])  # fmt: skip
    each = cut(listed, 1)
    assert [a.tolist() for a in each] == [
        [0, 0, 0, 2], [15, 38, 50, 0], [38, 50, 79, 17], [20, 20, 1, 1], [20, 20, 1, 1], [53, 70, 30, 99],
    ]  # fmt: skip
    some = cut(listed, 30)
    assert [a.tolist() for a in some] == [[0, 0, 2], [15, 50, 0], [50, 79, 17], [40, 1, 1], [20, 1, 1], [70, 30, 99]]
