"""Texts whose bytes footers tell are written to their place: those of Arrow, whoever comes first and wherever kernels stop, and
where a footer lies about them as well."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gquery import tuning
from gquery.columns import assemble_texts
from gquery.columns.assemble_texts import CountedStrings
from gquery.columns.table import ColumnData
from gquery.errors import FileError
from gquery.io import parquet_reader
from gquery.io.column_cache import ColumnCache
from gquery.io.parquet import ParquetSource
from gquery.kernels.builtin import parquet_pages
from gquery.kernels.targets import get_target
from tests.io.test_pages import column_of, facts
from tests.support.tuned import Tune


@pytest.fixture(autouse=True)
def ready() -> None:
    for kernel in parquet_pages.KERNELS:
        get_target("cpu").compile(kernel.kernel)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[CountedStrings]:
    """What assemblies there were."""
    found: list[CountedStrings] = []

    class Noted(CountedStrings):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            found.append(self)

    monkeypatch.setattr(assemble_texts, "CountedStrings", Noted)
    return found


def texts(r: random.Random, rows: int, null: float, longest: int, few: int | None = None) -> pa.Array:
    """Texts without an order, of any length, few different ones or many."""
    some = [f"{'é' * r.randrange(2)}{n}{'a' * r.randrange(longest)}"[r.choice((0, 0, 99)) :] for n in range(few or rows)]
    return pa.array([None if r.random() < null else r.choice(some) for _ in range(rows)], pa.string())


WRITERS: list[dict[str, Any]] = [
    {},
    {"use_dictionary": False},
    {"compression": "none", "data_page_version": "2.0"},
    {"dictionary_pagesize_limit": 400, "data_page_size": 300, "write_batch_size": 16},
    {"use_dictionary": False, "column_encoding": "DELTA_LENGTH_BYTE_ARRAY"},  # which kernels leave to Arrow
    {"compression": "zstd"},
]


@pytest.fixture(autouse=True)
def backwards(monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    """Short runs, of which the last begin: what one writes behind its own bytes is seen in the next."""
    whole = parquet_reader.ParquetReader._column

    def column(self: Any, wanted: Any) -> Any:
        phases = whole(self, wanted)
        while True:
            try:
                tasks = next(phases)
            except StopIteration as end:
                return end.value
            yield tasks[::-1]

    tune(tuning.reading, run_rows=70)
    monkeypatch.setattr(parquet_reader.ParquetReader, "_column", column)


def by_pieces(path: Path) -> ColumnData:
    """The column as it comes where footers do not tell bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_reader.ParquetReader, "_text_bytes", lambda self, wanted: None)
        return column_of(path, parquet_pages.find_kernels())[0]


@pytest.mark.parametrize("is_narrow", [True, False], ids=["int32", "int64"])
@pytest.mark.parametrize("options", WRITERS, ids=str)
def test_texts_are_those_of_arrow(
    options: dict[str, Any], is_narrow: bool, tmp_path: Path, tune: Tune, made: list[CountedStrings]
) -> None:
    r, path = random.Random(str(options)), tmp_path / "x.parquet"
    if not is_narrow:
        tune(tuning.encoding, narrow_offsets=0)
    for null in (0, 0.3, 1):
        for longest, few in ((60, None), (3, None), (40, 9)):
            table = pa.table({"x": texts(r, 400, null, longest, few)})
            pq.write_table(table, path, row_group_size=r.choice((30, 7, 400)), **options)
            got, _ = column_of(path, parquet_pages.find_kernels())
            assert facts(got) == facts(by_pieces(path)) == facts(column_of(path, None)[0])
    assert len(made) >= 6 and made[0]._offsets.itemsize == (4 if is_narrow else 8)


@pytest.mark.parametrize("lie", ["more", "less", "moved", "none", "all"])
@pytest.mark.parametrize("options", WRITERS[1:5:3], ids=["kernels", "Arrow"])
def test_footers_that_lie_about_bytes(
    lie: str, options: dict[str, Any], tmp_path: Path, made: list[CountedStrings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The column is read again, in pieces."""
    path, whole = tmp_path / "x.parquet", parquet_reader.ParquetReader._text_bytes

    def told(self: Any, wanted: Any) -> Any:
        sizes = whole(self, wanted)
        assert sizes is not None and len(sizes) > 3
        match lie:
            case "more" | "less":
                sizes[1] += 9 if lie == "more" else -9
            case "moved":
                sizes[1], sizes[2] = sizes[1] + 5, sizes[2] - 5
            case "none":
                sizes = [0] * len(sizes)
            case "all":
                sizes[2] = 2**58
        return sizes

    pq.write_table(pa.table({"x": texts(random.Random(lie), 400, 0.2, 50)}), path, row_group_size=30, **options)
    monkeypatch.setattr(parquet_reader.ParquetReader, "_text_bytes", told)
    got, _ = column_of(path, parquet_pages.find_kernels())
    assert len(made) == (0 if lie == "all" else 1)
    assert facts(got) == facts(by_pieces(path))


def test_texts_that_are_no_utf8(tmp_path: Path, made: list[CountedStrings]) -> None:
    """In the first text of a run, in its last one, and a code point that two texts share."""
    good = [f"text {n}" for n in range(200)]
    for broken in ([70], [139], [0], [75, 76]):
        raw: list[bytes] = [text.encode() for text in good]
        for n, part in zip(broken, (b"a\xc3", b"\xa9b"), strict=False):
            raw[n] = part
        array = pa.array(raw, pa.binary())
        text = pa.Array.from_buffers(pa.string(), 200, array.buffers())
        path = tmp_path / "x.parquet"
        pq.write_table(pa.table({"x": text}), path, row_group_size=35, use_dictionary=False, write_statistics=False)
        with pytest.raises(FileError, match="UTF"):
            column_of(path, parquet_pages.find_kernels())
    assert len(made) == 4


def test_bytes_are_told(tmp_path: Path) -> None:
    """By footers of PyArrow: those of values, without NULLs and lengths."""
    path, array = tmp_path / "x.parquet", texts(random.Random(2), 90, 0.2, 20)
    pq.write_table(pa.table({"x": array, "y": range(90)}), path, row_group_size=30)
    source = ParquetSource(path, ColumnCache(None, None, 1))
    files = source._contents
    (found,), (numbers,) = files.chunks(0, files.groups), files.chunks(1, files.groups)
    want = [sum(len(t.encode()) for t in array[n : n + 30].to_pylist() if t is not None) for n in (0, 30, 60)]
    assert found.text_bytes.tolist() == want and numbers.text_bytes.tolist() == [-1] * 3
