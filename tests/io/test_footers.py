"""What kernels read in footers is what PyArrow's objects tell, whoever wrote the file; of damaged footers they take nothing that
lies elsewhere, and what is found of many row groups at once is what each of them says."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery.columns import page_values
from gquery.columns.domain import Domain, Interval
from gquery.columns.page_values import PageKernels
from gquery.device.array import Array
from gquery.expression.types import BIGINT, INT64, DType, Kind
from gquery.io import parquet_files
from gquery.io.column_cache import ColumnCache
from gquery.io.extents import Ends, Extent, Extents
from gquery.io.parquet import ParquetSource
from gquery.io.parquet_files import ParquetFiles
from gquery.kernels.builtin import parquet_pages
from gquery.kernels.primitives import footers
from gquery.kernels.targets import get_target
from tests.io.test_pages import Interpreted
from tests.io.test_row_groups import GROUP, TABLE, WRITERS
from tests.mutations.files import file_of

COUNT = int(os.environ.get("GQUERY_MUTATIONS", "24"))


@pytest.fixture(autouse=True)
def ready() -> None:
    for kernel in parquet_pages.KERNELS:
        get_target("cpu").compile(kernel.kernel)


def told(files: ParquetFiles) -> dict[str, Any]:
    """All that there is of each column."""
    found: dict[str, Any] = {}
    for field, name in enumerate(files.schema.names):
        count = 7 if files.schema.fields[field].dtype.is_opaque else 8  # NULLs of leaves are nobody's
        words = [chunks.words[:, :count].copy() for chunks in files.chunks(field, files.groups)]
        for each in words:
            each[:, 1] = 0  # the codec, of which PyArrow is not asked
        chunks = [each.tolist() for each in words]
        found[name] = chunks, list(files.extents(field, files.groups))
    return found


@pytest.mark.parametrize("options", WRITERS)
@pytest.mark.parametrize("kernels", [None, Interpreted()], ids=["compiled", "interpreted"])
def test_footers_are_those_of_pyarrow(
    options: str, kernels: PageKernels | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nested = [None if i % 5 == 0 else [{"x": i, "y": str(i)}] * (i % 3) for i in range(len(TABLE))]
    table = TABLE.append_column("nested", pa.array(nested)).append_column("dic", TABLE["short"].dictionary_encode())
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=GROUP, **WRITERS[options])
    monkeypatch.setattr(parquet_files, "words_of_objects", lambda *a: pytest.fail("nobody asks PyArrow for chunks"))
    if kernels is not None:
        monkeypatch.setattr(page_values, "_find", lambda: kernels)
    by_kernels = told(ParquetSource(tmp_path / "f.parquet")._contents)
    monkeypatch.undo()
    monkeypatch.setattr(page_values, "_find", lambda: None)
    by_objects = told(ParquetSource(tmp_path / "f.parquet")._contents)
    assert by_kernels == by_objects


def raw_of(made: bytes) -> Array:
    size = int.from_bytes(made[-8:-4], "little")
    return np.frombuffer(made[-8 - size : -8], np.uint8).copy()


def read(raw: Array, groups: int, columns: int, behind: int) -> Array | None:
    """A footer that has some bytes behind it, read into an array between guards."""
    whole = np.full(len(raw) + 64, behind, np.uint8)
    whole[: len(raw)] = raw
    state, made = parquet_pages.footer_state(whole[: len(raw)], groups, columns)
    guarded = np.full(made.size + 128, -77, np.int64)
    guarded[64:-64] = -1
    state[footers.MADE] = guarded.ctypes.data + 8 * 64
    kernel, found = parquet_pages.FOOTER.kernel, np.zeros(1, np.int64)
    parquet_pages._run(get_target("cpu").compile(kernel), state, found)
    assert (guarded[:64] == -77).all() and (guarded[-64:] == -77).all()
    return parquet_pages.footer_words(state, guarded[64:-64].reshape(made.shape)) if found[0] else None


def test_damaged_footers() -> None:
    """Nothing is written beside what there is room for, no byte behind the end counts, and an interpreter finds the same."""
    taken = 0
    for number in range(8 * COUNT):
        chance = random.Random(number)
        made = file_of(chance, "parquet")
        raw = raw_of(made)
        metadata = pq.read_metadata(pa.BufferReader(made))
        groups, columns = metadata.num_row_groups, metadata.num_columns
        assert len(raw) == 0 or read(raw, groups, columns, 0) is not None
        for _ in range(chance.choice((1, 1, 2, 6))):
            raw[chance.randrange(len(raw))] = chance.choice((0, 1, 0x1C, 0x7F, 0xFC, 0xFF, chance.randrange(256)))
        raw = raw[: chance.choice((len(raw), len(raw), chance.randrange(len(raw))))]
        rows = groups + chance.choice((0, 0, -1, 1))
        found = [read(raw, max(rows, 0), columns, behind) for behind in (0, 0x19, 0xFF)]
        first = found[0]
        if number % 8 == 0:
            found.append(Interpreted().footer(raw, max(rows, 0), columns))
        assert len({None if each is None else each.tobytes() for each in found}) == 1
        taken += first is not None
    assert COUNT // 2 < taken < 8 * COUNT


def test_what_kernels_do_not_take() -> None:
    """Minima of a footer that does not tell the orders of columns, which may be of another; row groups and columns of other
    numbers than PyArrow finds."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": range(30)}), sink, row_group_size=10)
    raw = raw_of(sink.getvalue().to_pybytes())
    kernels = parquet_pages.find_kernels()
    assert kernels is not None and kernels.footer(raw, 3, 1) is not None
    assert kernels.footer(raw, 2, 1) is None and kernels.footer(raw, 4, 1) is None and kernels.footer(raw, 1, 3) is None
    orders = bytes(raw).rindex(b"\x19\x1c\x1c\x00\x00\x00")  # a list of one union, whose first field is an empty struct
    other = raw.copy()
    other[orders + 2] = 0x2C  # its second field
    told, without = kernels.footer(raw, 3, 1), kernels.footer(other, 3, 1)
    assert told is not None and without is not None
    assert (told[:, :, :7] == without[:, :, :7]).all() and (told[:, :, 7:12] >= 0).all() and (without[:, :, 7:] == -1).all()


def test_intervals_and_extents() -> None:
    """Of integers at once what each of them says alone."""
    chance = random.Random(5)
    edges = [INT64.low, INT64.low + 1, -3, 0, 3, INT64.high - 1, INT64.high]
    ends = [*edges, *range(-12, 13), -(2**70), 2**70]
    kinds = [BIGINT, DType(Kind.TIMESTAMP), DType(Kind.DATE)]
    for number in range(300):
        groups = []
        for _ in range(20):
            low, high = sorted(chance.choice((chance.randrange(-10, 10), chance.choice(edges))) for _ in range(2))
            groups.append((chance.choice((0, 5)), chance.choice((-1, 0, 2, 5)), low, high, chance.random() < 0.9))
        extents = Extents(*(np.array(each) for each in zip(*groups, strict=True)))
        intervals = []
        for _ in range(chance.randrange(5)):
            first, last = sorted(chance.choice(ends) for _ in range(2))
            intervals.append(Interval(chance.choice((None, first, first, first)), chance.choice((None, last, last, last))))
        if number % 10 == 0:
            intervals.append(Interval(0.5, 2.5))
        domain, dtype = Domain.of(intervals, chance.random() < 0.3), chance.choice(kinds)
        assert extents.may_hold(domain, dtype).tolist() == [e.may_hold(domain, dtype) for e in extents], (domain, groups)


def test_ends_of_parts_that_come_later() -> None:
    """What is wide, unknown or the wrong way round is not known; parts that nobody asked about are not there."""
    ends, wide = Ends.of(5, BIGINT), Ends.of(2, DType(Kind.DECIMAL, 38, 0))
    ends.put(np.array([3, 1]), [Extent(5, 1, 2), Extent(5, 3, None)])
    ends.put_words(slice(4, 5), np.array([-7]), np.array([7]), np.array([True]))
    assert ends.are_there.tolist() == [False, True, False, True, True]
    assert ends.known.tolist() == [False, False, False, True, True] and ends.low.dtype == np.int64
    assert (ends.low[3:].tolist(), ends.high[3:].tolist()) == ([1, -7], [2, 7])
    wide.put(np.array([0, 1]), [Extent(5, 1, 2**90), Extent(5, 4, -4)])
    assert wide.known.tolist() == [True, False] and wide.high[0] == 2**90


def test_row_groups_are_asked_about_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many files those that a query wants; what was asked before is not asked again."""
    for k in range(8):
        pq.write_table(pa.table({"a": [k, k + 10], "s": [str(k), "x"]}), tmp_path / f"{k}.parquet", row_group_size=1)
    monkeypatch.setattr(parquet_files, "page_kernels", lambda: None)
    asked: list[tuple[int, int]] = []
    check = ParquetFiles._check

    def noted(self: ParquetFiles, file: int, leaf: int, numbers: Array) -> None:
        asked.append((file, leaf))
        check(self, file, leaf, numbers)

    monkeypatch.setattr(ParquetFiles, "_check", noted)
    files = ParquetSource(str(tmp_path / "*.parquet"), ColumnCache(None, None, 1))._contents
    some = [files.groups[n] for n in (3, 4, 13)]
    for _ in range(2):
        assert [(e.low, e.high) for e in files.extents(0, some)] == [(11, 11), (2, 2), (16, 16)]
    assert {file for file, _ in asked} == {1, 2, 6} and len(asked) == 6  # counts and extremes
    assert [e.low for e in files.extents(1, files.groups)] == [text for k in range(8) for text in (str(k), "x")]


def test_files_that_change_keep_their_keys(tmp_path: Path) -> None:
    """A column that the paths give has as many rows as the files have now."""
    (tmp_path / "k=1").mkdir()
    (tmp_path / "k=2").mkdir()
    for rows in (3, 7, 2):
        pq.write_table(pa.table({"a": range(rows)}), tmp_path / "k=1" / "f.parquet")
        pq.write_table(pa.table({"a": range(2 * rows)}), tmp_path / "k=2" / "f.parquet")
        if rows == 3:
            db = gquery.connect(device="python")
            db.sql(f"CREATE VIEW t AS FROM '{tmp_path}/*/*.parquet'")
        got = db.sql("SELECT k, count(*), sum(a) FROM t GROUP BY k ORDER BY k").fetchall()
        assert got == [(1, rows, sum(range(rows))), (2, 2 * rows, sum(range(2 * rows)))]
