"""Pages of Parquet that kernels read: the columns that Arrow's reader makes, whoever wrote the file and whatever is damaged."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gquery import tuning
from gquery.columns import page_values
from gquery.columns.arrow import export_table
from gquery.columns.loops import use_loops
from gquery.columns.page_values import PageKernels, Placed, Room, TextRoom, Words
from gquery.columns.table import ColumnData, Dictionary
from gquery.device.array import Array
from gquery.device.host import address_of
from gquery.errors import FileError
from gquery.io import page_texts, pages, parquet_reader
from gquery.io.column_cache import ColumnCache
from gquery.io.parquet import ParquetSource
from gquery.io.parquet_files import RowGroup
from gquery.kernels.builtin import column_loops, narrowing, parquet_pages
from gquery.kernels.primitives import packed
from gquery.kernels.primitives import page_texts as page_texts_of_kernels
from gquery.kernels.targets import get_target
from gquery.kernels.targets.base import arguments_of
from tests.support.tuned import Tune

GUARD = 0xA5
COUNT = int(os.environ.get("GQUERY_MUTATIONS", "24"))


@pytest.fixture(autouse=True)
def ready(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Array]]:
    """Every kernel at once, for columns of any size; behind each buffer that kernels write lies a guard."""
    tune(tuning.encoding, compiled_rows=0)
    target = get_target("cpu")
    use_loops(column_loops._Loops())  # as an engine does when it is loaded
    for kernel in (*narrowing.LOOPS.values(), *parquet_pages.KERNELS):
        target.compile(kernel.kernel)
    guarded: list[Array] = []

    def room(size: int, slack: int) -> Array:
        whole = np.full(size + slack + 64, GUARD, np.uint8)
        guarded.append(whole)
        return whole[: size + slack]

    for module in (pages, page_texts):
        monkeypatch.setattr(module, "made_bytes", lambda size: room(size, pages.SLACK))
    monkeypatch.setattr(pages, "made_words", lambda count: room(8 * count, 0).view(np.int64))
    yield guarded
    assert all((whole[-64:] == GUARD).all() for whole in guarded)


class Interpreted:
    """The kernels' bodies as Python."""

    def read_chunks(self, state: Array, words: Array, room: Room | TextRoom | None) -> int:
        target, kernel, outcome = get_target("python"), parquet_pages.READ.kernel, np.zeros(1, np.int64)
        values = parquet_pages.read_arguments(state, words, room, outcome)
        target.run(target.compile(kernel), 0, 1, arguments_of(target, kernel, values))
        return int(outcome[0])

    def texts(self, source: Array, size: int, offsets: Array, characters: Array) -> bool:
        to = address_of(offsets), address_of(characters)
        return page_texts_of_kernels.text_entries(address_of(source), size, len(offsets) - 1, *to, 0)

    def pick(self, words: Array, bits: Array, first: int) -> int:
        return packed.pick_words(address_of(words), len(words), address_of(bits), first)

    def footer(self, raw: Array, groups: int, columns: int) -> Array | None:
        target, kernel, found = get_target("python"), parquet_pages.FOOTER.kernel, np.zeros(1, np.int64)
        state, made = parquet_pages.footer_state(raw, groups, columns)
        target.run(target.compile(kernel), 0, 1, arguments_of(target, kernel, (state, found)))
        return parquet_pages.footer_words(state, made) if found[0] else None


def column_of(path: Path, kernels: PageKernels | None, field: int = 0) -> tuple[ColumnData, int]:
    """A column of a file, and how many rows kernels have read."""
    seen = [0]

    def counting(whole: Any) -> Any:
        def counted(self: pages.ChunkReader) -> Iterator[Words | Placed | pa.Array]:
            for piece in whole(self):
                seen[0] += len(piece)
                yield piece

        return counted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_values, "_find", lambda: kernels)
        for reader in (pages.ChunkReader, page_texts.TextReader):
            patch.setattr(reader, "pieces", counting(reader.pieces))
        source = ParquetSource(str(path), ColumnCache(None, None, 1))
        return source.load([field]).columns[0], seen[0]


def facts(column: ColumnData) -> Any:
    """What is known of a column, as can be compared."""
    texts = column.dictionary.values.to_pylist() if isinstance(column.dictionary, Dictionary) else None
    zones, known = column.statistics.zones, column.statistics
    return (
        column.physical_type, column.data.host.tobytes(), column.characters and column.characters.host.tobytes(),
        None if column.validity is None else column.validity.host.tolist(),
        texts, (known.bounds, known.null_count, known.is_sorted, known.is_unique, known.distinct, known.longest_run),
        zones and (zones.low.tolist(), zones.high.tolist()),
    )  # fmt: skip


def values(kind: str, rows: int, r: random.Random) -> pa.Array:
    def some(low: int, high: int) -> list[int]:
        return [r.randint(low, high) for _ in range(rows)]

    match kind:
        case "few":
            return pa.array(some(-3, 9), pa.int64())
        case "runs":
            return pa.array([n // 37 for n in range(rows)], pa.int32())
        case "one":
            return pa.array([5] * rows, pa.int64())
        case "wide":
            return pa.array(some(-(2**62), 2**62), pa.int64())
        case "narrow":
            return pa.array(some(-128, 127), pa.int8())
        case "date":
            return pa.array(some(8000, 11000), pa.int32()).cast(pa.date32())
        case "time":
            return pa.array(some(0, 2**50), pa.int64()).cast(pa.timestamp("us"))
        case "text":
            return pa.array([f"t{n}" * (n % 4) + "é" * (n == 3) for n in some(0, 40)])
        case "label":
            return pa.array([("", "a", "bé", "ccc", f"d{rows}")[n] for n in some(0, 4)])
        case "real":
            return pa.array([r.choice((0.0, -0.0, float("inf"), float("nan"), n / 8)) for n in some(-9, 9)], pa.float32())
        case "double":
            return pa.array([None if n == 4 else r.choice((-0.0, float("nan"), n / 7)) for n in some(-9, 9)], pa.float64())
        case "decimal":
            digits = r.choice((2, 3, 9, 12, 18))
            numbers = [None if n % 9 == 5 else n % (10**digits) * (-1) ** n for n in some(0, 10**18 - 1)]
            return pa.array(numbers, pa.int64()).cast(pa.decimal128(38, 0)).cast(pa.decimal128(digits, 0))
        case "words":
            return pa.array(["é" * (n % 3) + "word " * r.choice((0, 1, 2, 30)) + str(n) * (n % 9 > 0) for n in range(rows)])
        case "null words":
            return pa.array([None if n % 3 else "é" * (n % 2) + str(n) * r.choice((0, 1, 9)) for n in range(rows)])
        case "null text":
            return pa.array([None if n % 5 else f"t{n}" for n in some(0, 40)])
        case "long nulls":
            return pa.array([None if n // 70 % 2 else n for n in range(rows)], pa.int32())
        case "no value":
            return pa.nulls(rows, r.choice((pa.int64(), pa.string())))
        case _:
            return pa.array([None if n % 7 == 3 else n for n in some(-50, 50)], pa.int64())


NULLABLE = ("null", "null text", "null words", "long nulls", "no value", "double", "decimal")
KINDS = ("real", "few", "runs", "one", "wide", "narrow", "date", "time", "text", "words", *NULLABLE)
WRITERS: list[dict[str, Any]] = [
    {},
    {"compression": "none"},
    {"use_dictionary": False},
    {"data_page_version": "2.0"},
    {"data_page_version": "2.0", "compression": "none", "use_dictionary": False},
    {"data_page_size": 200, "write_batch_size": 16},
    {"dictionary_pagesize_limit": 64, "data_page_size": 300, "write_batch_size": 32},
    {"row_group_size": 90},
    {"row_group_size": 50, "dictionary_pagesize_limit": 64, "data_page_size": 300, "write_batch_size": 32},
    {"compression": "zstd"},
    {"row_group_size": 333},
    {"store_decimal_as_integer": True},
    {"write_page_checksum": True, "write_statistics": False},
]


def table_of(array: pa.Array, nullable: bool) -> pa.Table:
    return pa.Table.from_arrays([array], schema=pa.schema([pa.field("x", array.type, nullable)]))


@pytest.mark.parametrize("options", WRITERS, ids=str)
def test_columns_are_those_of_arrow(options: dict[str, Any], tmp_path: Path) -> None:
    r, path, compiled = random.Random(str(options)), tmp_path / "x.parquet", parquet_pages.find_kernels()
    assert compiled is not None
    read = 0
    for kind in KINDS:
        for rows in (1, 700):
            for nullable in (True, False)[: 1 if kind in NULLABLE or rows == 1 else 2]:
                pq.write_table(table_of(values(kind, rows, r), nullable), path, **options)
                want, none = column_of(path, None)
                got, seen = column_of(path, compiled)
                assert facts(got) == facts(want) and none == 0, (kind, rows)
                read += seen
    assert (read > 14000) is (options.get("compression") != "zstd")


def test_decimals_that_are_integers(tmp_path: Path) -> None:
    """Of up to 18 digits; one with more than it may have is refused, as Arrow refuses it."""
    path, compiled = tmp_path / "x.parquet", parquet_pages.find_kernels()
    for digits in (3, 9, 10, 18):
        numbers = [(-1) ** n * (10**digits - 1 - n) for n in range(500)]
        array = pa.array(numbers, pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(digits, 0))
        pq.write_table(table_of(array, False), path, store_decimal_as_integer=True)
        got, seen = column_of(path, compiled)
        assert seen == 500 and facts(got) == facts(column_of(path, None)[0])


@pytest.mark.parametrize("options", WRITERS[:9], ids=str)
def test_the_interpreter_reads_alike(options: dict[str, Any], tmp_path: Path) -> None:
    path, compiled = tmp_path / "x.parquet", parquet_pages.find_kernels()
    for kind in KINDS:
        pq.write_table(table_of(values(kind, 60, random.Random(kind)), True), path, **options)
        by_kernel, by_python = column_of(path, compiled), column_of(path, Interpreted())
        assert by_python[1] == by_kernel[1] and facts(by_python[0]) == facts(by_kernel[0])


def test_small_windows(tmp_path: Path, tune: Tune) -> None:
    """A page that a window does not hold, more values than there is room for, and pages that are too large for kernels."""
    path, compiled = tmp_path / "x.parquet", parquet_pages.find_kernels()
    for kind in ("few", "wide", "text", "words", "null words"):
        pq.write_table(
            table_of(values(kind, 3000, random.Random(1)), True), path, data_page_size=500, write_batch_size=32
        )
        want = facts(column_of(path, None)[0])
        for window, largest in ((64, 1 << 20), (8000, 1 << 20), (64, 300), (1 << 20, 1 << 20)):
            tune(tuning.reading, window_bytes=window, largest_page=largest)
            assert facts(column_of(path, compiled)[0]) == want, (kind, window, largest)


@pytest.mark.parametrize("kind", ["few", "wide", "label", "words"])
def test_many_row_groups(kind: str, tmp_path: Path, tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups side by side are read together, also where one of them has NULLs, a window does not hold all of them, or there
    is no room for their dictionaries; a file's rows that are wanted end anywhere."""
    r, compiled, starts = random.Random(kind), parquet_pages.find_kernels(), list[int]()
    tables = [table_of(values(kind, rows, r), True) for rows in (80, 80, 9, 80, 500, 80, 80)]
    tables[2] = table_of(pa.array([None, *tables[2].column(0).to_pylist()], tables[2].column(0).type), True)
    whole = pages.ChunkReader.__init__

    def counted(self: pages.ChunkReader, *arguments: Any) -> None:
        starts.append(len(arguments[1].chunks))
        whole(self, *arguments)

    monkeypatch.setattr(pages.ChunkReader, "__init__", counted)
    tune(tuning.reading, thread_tasks=2)
    path = tmp_path / "x.parquet"
    with pq.ParquetWriter(path, tables[0].schema, data_page_size=200, write_batch_size=40) as writer:
        for table in tables:
            writer.write_table(table)
    want = facts(column_of(path, None)[0])
    for window, words, entries in ((1 << 16, 1 << 12, 1 << 10), (900, 64, 1 << 10), (900, 64, 3), (64, 8, 1)):
        tune(tuning.reading, window_bytes=window)
        monkeypatch.setattr(
            parquet_reader,
            "page_buffers",
            lambda is_limited, w=window, n=words, e=entries: pages.PageBuffers(w, n, 1 << 20, e, w, n),
        )
        starts.clear()
        got, seen = column_of(path, compiled)
        by_arrow = 90 if kind == "label" and entries < 10 else 0  # NULLs, and what follows, behind texts without room
        assert facts(got) == want and seen == 910 - by_arrow, (window, words, entries)
        assert starts == [4, 1, 2]  # 80 + 80 + 10 + 80; 500; 80 + 80


def test_runs() -> None:
    groups = [RowGroup(i, i // 4, i % 4, 10 + i) for i in range(8)]
    partial = groups[5]._replace(whole=False)
    cut = parquet_reader.cut_groups([*groups[:5], partial, *groups[6:]], 25)
    assert [tuple(g.position for g in run) for run in cut.runs] == [(0, 1), (2, 3), (4,), (5,), (6,), (7,)]
    assert cut.starts == [0, 21, 46, 60, 75, 91, 108]
    assert parquet_reader.cut_groups(groups[::2], 10**9).runs == [(g,) for g in groups[::2]]
    assert parquet_reader.cut_groups(groups, 0).runs == [(g,) for g in groups]
    assert parquet_reader.cut_groups([], 5) == ([], [0])


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_columns_that_are_read_together_make_few_tasks(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tune: Tune
) -> None:
    """As many for each thread as is wanted, most of them of the column that takes longest; one at least of each column, and of a
    row group, where that has more rows than a task should."""
    tune(tuning.reading, one_thread=0)
    columns = {f"few {n}": pa.array([n, n + 1] * 1500) for n in range(9)}
    table = pa.table({"text": [f"{n * 7919 % 3000:050}" for n in range(3000)], **columns})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=10)
    seen = list[str]()
    whole = parquet_reader.ParquetReader._decode

    def noted(self: Any, wanted: parquet_reader.Wanted, *arguments: Any) -> None:
        seen.append(wanted.field.name)
        whole(self, wanted, *arguments)

    monkeypatch.setattr(parquet_reader.ParquetReader, "_decode", noted)
    source = ParquetSource(tmp_path / "x.parquet", cache=ColumnCache(workers=workers))
    assert export_table(source.load(range(10))).equals(table)
    tasks = tuning.reading.thread_tasks * workers
    assert 0.4 * tasks <= len(seen) <= 1.2 * tasks + 10 and set(seen) == set(table.column_names)
    assert seen.count("text") >= 2 * max(seen.count(name) for name in columns)


def changed(whole: bytes, start: int, end: int, r: random.Random) -> bytes:
    made = bytearray(whole)
    for _ in range(r.choice((1, 1, 1, 3))):
        at = r.randrange(start, min(end, start + r.choice((20, 200, 10**6))))
        made[at] = r.choice((made[at] ^ (1 << r.randrange(8)), 0, 255, r.randrange(256)))
    return bytes(made)


@pytest.mark.parametrize("kind", ["few", "runs", "wide", "text", "words", *NULLABLE[:3], "double", "decimal"])
def test_damaged_pages(kind: str, tmp_path: Path) -> None:
    """What kernels read of them is what Arrow reads; where Arrow refuses, so may kernels, and they write nowhere else."""
    r, path, compiled = random.Random(kind), tmp_path / "x.parquet", parquet_pages.find_kernels()
    same = 0
    for _ in range(COUNT):
        options = r.choice(WRITERS[:9])
        pq.write_table(table_of(values(kind, 400, r), kind in NULLABLE or r.random() < 0.5), path, **options)
        footer = pq.ParquetFile(path).metadata
        chunk = footer.row_group(r.randrange(footer.num_row_groups)).column(0)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        path.write_bytes(changed(path.read_bytes(), start, start + chunk.total_compressed_size, r))
        outcomes: list[Any] = []
        for kernels in (None, compiled):
            try:
                outcomes.append(facts(column_of(path, kernels)[0]))
            except FileError:
                outcomes.append(None)
        assert outcomes[0] is None or outcomes[0] == outcomes[1], options
        same += outcomes[0] is not None
    assert same > COUNT // 20


@pytest.mark.parametrize("of", ["zeros", "noise", "steps", "words", "nothing"])
def test_snappy(of: str) -> None:
    r = random.Random(of)
    for size in (0, 1, 7, 60, 61, 300, 5000, 70_000):
        plain = {
            "zeros": bytes(size), "noise": r.randbytes(size), "steps": bytes(n // 9 % 256 for n in range(size)),
            "words": (b"".join(r.choice((b"alpha ", b"b", b"gamma-delta ")) for _ in range(size)))[:size], "nothing": b"",
        }[of]  # fmt: skip
        stream = np.frombuffer(pa.compress(plain, "snappy", asbytes=True) + bytes(64), np.uint8)
        for decompress in (packed.snappy_decompress, packed.snappy_texts):
            target = np.full(len(plain) + 128, GUARD, np.uint8)
            made = decompress(address_of(stream), len(stream) - 64, address_of(target), len(plain))
            assert made == len(plain) and target[:made].tobytes() == plain and (target[made + 64 :] == GUARD).all()
            if plain:
                assert decompress(address_of(stream), len(stream) - 64, address_of(target), len(plain) - 1) == -1


def test_damaged_snappy() -> None:
    """What is made of a damaged stream, if anything, is the same of numbers and of texts, and nothing is written behind it."""
    r, outcomes = random.Random(3), set[bool]()
    for _ in range(40 * COUNT):
        words = (b"alpha ", b"b", b"gamma-delta " * 9, bytes(r.randrange(20)))
        plain = b"".join(r.choice(words) for _ in range(r.randrange(1, 40)))
        stream = bytearray(pa.compress(plain, "snappy", asbytes=True))
        for _ in range(r.choice((0, 1, 1, 3))):
            stream[r.randrange(len(stream))] = r.choice((0, 1, 2, 3, 0xF0, 0xF4, 0xFC, r.randrange(256)))
        given = np.frombuffer(bytes(stream[: r.choice((len(stream), r.randrange(len(stream) + 1)))]) + bytes(64), np.uint8)
        room, made = len(plain) + r.choice((0, 0, 9)), list[Any]()
        for decompress in (packed.snappy_decompress, packed.snappy_texts):
            target = np.full(room + 128, GUARD, np.uint8)
            size = decompress(address_of(given), len(given) - 64, address_of(target), room)
            assert size <= room and (target[room + 64 :] == GUARD).all()
            made.append((size, target[: max(size, 0)].tobytes()))
        assert made[0] == made[1]
        outcomes.add(made[0][0] >= 0)
    assert outcomes == {True, False}
