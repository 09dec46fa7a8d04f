"""Columns that are put together from row groups on threads: the same as those that are encoded as a whole."""

from __future__ import annotations

import datetime
import threading
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gquery import tuning
from gquery.columns import assemble_strings
from gquery.columns.arrow import export_table, import_schema
from gquery.columns.import_arrow import import_columns, import_table
from gquery.columns.ownership import caller_origin
from gquery.columns.statistics import Order, OrderOfParts, order_of
from gquery.columns.table import Table
from gquery.errors import FileError, InterruptError
from gquery.expression.types import BIGINT, Bounds, Field, PhysicalType
from gquery.io import parquet_reader
from gquery.io.column_cache import ColumnCache
from gquery.io.parquet import ParquetSource
from gquery.runtime.interrupt import Running
from gquery.runtime.threads import run_all, run_phases
from tests.support.tuned import Tune

ROWS = 10_000
DAY = datetime.date(2020, 1, 1)
MOMENT = datetime.datetime(2020, 1, 1, 12)


def holes(values: list[Any]) -> list[Any]:
    """Every seventh value is NULL."""
    return [None if i % 7 == 3 else v for i, v in enumerate(values)]


def table_of_everything() -> pa.Table:
    numbers = [(i * 7919) % 30_000 - 15_000 for i in range(ROWS)]
    columns: dict[str, Any] = {
        "sorted": pa.array(range(ROWS)),
        "runs": pa.array([i // 4 for i in range(ROWS)], pa.int32()),
        "falls_at_a_border": pa.array([i % 3_000 for i in range(ROWS)]),
        "permuted": pa.array([(i * 7919) % ROWS for i in range(ROWS)]),
        "numbers": pa.array(numbers),
        "numbers_null": pa.array(holes(numbers)),
        "tiny": pa.array([i % 5 for i in range(ROWS)], pa.int8()),
        "u32": pa.array([i * 400_000 for i in range(ROWS)], pa.uint32()),
        "u64": pa.array([2**64 - 1 - i for i in range(ROWS)], pa.uint64()),
        "money": pa.array([Decimal(n) / 100 for n in numbers], pa.decimal128(15, 2)),
        "money_null": pa.array(holes([Decimal(n) / 100 for n in numbers]), pa.decimal128(9, 2)),
        "huge": pa.array([Decimal(n) * 10**24 for n in numbers], pa.decimal128(38, 2)),
        "flag": pa.array([i % 3 == 0 for i in range(ROWS)]),
        "flag_null": pa.array(holes([i % 3 == 0 for i in range(ROWS)])),
        "hash": pa.array(np.random.default_rng(5).integers(-(2**63), 2**63 - 1, ROWS)),
        "real": pa.array(np.arange(ROWS, dtype=np.float32)),
        "double_null": pa.array(holes([i / 3 for i in range(ROWS)])),
        "day": pa.array([DAY + datetime.timedelta(i % 900) for i in range(ROWS)]),
        "second": pa.array([MOMENT + datetime.timedelta(0, i * 7919 % ROWS) for i in range(ROWS)], pa.timestamp("s")),
        "moment": pa.array([MOMENT + datetime.timedelta(0, i) for i in range(ROWS)], pa.timestamp("ms")),
        "nothing": pa.nulls(ROWS, pa.int64()),
        "no_text": pa.nulls(ROWS, pa.string()),
        "color": pa.array([("red", "green", "blue")[i % 3] for i in range(ROWS)]),
        "color_null": pa.array(holes([("red", "green", "")[i % 3] for i in range(ROWS)])),
        "grows": pa.array([f"word {i // 100:04}" for i in range(ROWS)]),
        "text": pa.array([f"text {(i * 7919) % ROWS} é" for i in range(ROWS)]),
        "text_null": pa.array(holes([f"text {i}" * (i % 4) for i in range(ROWS)]), pa.large_string()),
        "view": pa.array([f"some longer text {i}" for i in range(ROWS)], pa.string_view()),
        "coded": pa.array([f"c{i % 40}" for i in range(ROWS)]).dictionary_encode(),
    }
    return pa.table(columns)


def facts(column: Any) -> tuple[Any, ...]:
    s = column.statistics
    physical_type = (
        "string" if column.physical_type.is_string else column.physical_type
    )  # large strings stay so where they are viewed
    return physical_type, s.bounds, s.null_count, s.is_sorted, s.is_unique, column.dictionary is None


@pytest.mark.parametrize(
    ("workers", "narrow", "statistics"), [(1, True, True), (1, False, False), (3, True, False), (3, False, True)]
)
def test_the_same_as_encoded_as_a_whole(
    tmp_path: Path, tune: Tune, statistics: bool, narrow: bool, workers: int
) -> None:
    tune(tuning.reading, batch_bytes=5_600)
    table = table_of_everything()
    for part in range(2):
        pq.write_table(
            table.slice(part * 6_000, 6_000),
            tmp_path / f"{part}.parquet",
            row_group_size=1_500,
            write_statistics=statistics,
        )
    source = ParquetSource(tmp_path, cache=ColumnCache(workers=workers), narrow=narrow)
    loaded = source.load(range(table.num_columns))
    assert export_table(loaded).to_pydict() == table.to_pydict()
    whole = import_table(table.combine_chunks(), narrow)
    for name, column, other in zip(table.column_names, loaded.columns, whole.columns, strict=True):
        assert facts(column) == facts(other), name
        if column.statistics.is_sorted or column.dictionary is not None:
            assert column.statistics.distinct == other.statistics.distinct, name


@pytest.mark.parametrize("narrow", [True, False])
@pytest.mark.parametrize("chunks", [[ROWS], [3_001, 0, 4_000, ROWS - 7_001]])
def test_arrow_in_pieces(tune: Tune, narrow: bool, chunks: list[int]) -> None:
    table = table_of_everything()
    ends = np.cumsum([0, *chunks])
    table = pa.concat_tables([table.slice(low, high - low) for low, high in pairwise(ends.tolist())])
    whole = import_table(table, narrow)
    tune(tuning.encoding, one_thread=0)
    tune(tuning.encoding, piece=900)
    cut = import_table(table, narrow)
    assert export_table(cut).to_pydict() == table.to_pydict()
    for name, column, other in zip(table.column_names, cut.columns, whole.columns, strict=True):
        assert facts(column) == facts(other), name
        assert column.statistics.distinct == other.statistics.distinct or column.dictionary is None, name


@pytest.mark.parametrize("workers", [1, 3, 40])
def test_cores_take_pieces_of_what_others_hold(tune: Tune, workers: int) -> None:
    """A piece each, or more."""
    table = table_of_everything()
    fields, arrays = import_schema(table.schema).fields, table.columns
    tune(tuning.encoding, zone_rows=130)
    whole = import_table(table)
    tune(tuning.encoding, one_thread=0, piece=5_000, least_piece=200, least_numbers=200, compiled_rows=ROWS)
    columns = import_columns(arrays, fields, workers=workers, origin=caller_origin("t"))
    assert export_table(Table(whole.schema, tuple(columns), ROWS)).to_pydict() == table.to_pydict()
    for field, array, column, other in zip(fields, arrays, columns, whole.columns, strict=True):
        given = array.chunk(0).buffers()[1]
        if given is not None and not column.dtype.is_opaque:
            assert not np.shares_memory(np.frombuffer(given, np.uint8), column.data.host), field.name
        assert facts(column) == facts(other), field.name
        zones, others = column.statistics.zones, other.statistics.zones
        assert (zones is None) == (others is None), field.name
        if zones is not None and others is not None:
            assert np.array_equal(zones.low, others.low) and np.array_equal(zones.high, others.high), field.name


def test_views_stay_views(tune: Tune) -> None:
    tune(tuning.encoding, one_thread=0)
    tune(tuning.encoding, piece=100)
    table = pa.table(
        {
            "wide": pa.array([2**40 + i for i in range(1_000)]),
            "float": pa.array([i / 7 for i in range(1_000)]),
            "day": pa.array([2**20 + i for i in range(1_000)], pa.int32()).cast(pa.date32()),
        }
    )
    for array, column in zip(table.columns, import_table(table).columns, strict=True):
        assert column.data.host.ctypes.data == array.chunk(0).buffers()[1].address


def test_a_footer_that_tells_too_narrow_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"a": range(1_000), "b": range(1_000)}), tmp_path / "a.parquet", row_group_size=300)
    source = ParquetSource(tmp_path / "a.parquet")
    told = source._footer_statistics(0)
    monkeypatch.setattr(source, "_footer_statistics", lambda field: type(told)(Bounds(0, 9), 0))
    loaded = source.load([0, 1])
    assert export_table(loaded).to_pydict() == {"a": list(range(1_000)), "b": list(range(1_000))}
    assert source.statistics(0).bounds == Bounds(0, 999)


def test_a_footer_that_tells_other_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": range(10)}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": range(12)}), tmp_path / "b.parquet")
    source = ParquetSource(tmp_path / "a.parquet")
    files = replace(source._contents, footers=(pq.read_metadata(tmp_path / "b.parquet"),))
    reader, cut = parquet_reader.ParquetReader(files, None, True, []), parquet_reader.cut_groups(files.groups, 0)
    with pytest.raises(FileError, match=r"a\.parquet"):
        run_phases([reader.column(parquet_reader.Wanted(Field("a", BIGINT), range(1), pa.int64(), False, None, 1, cut))], 1)
    reader.close()


def test_a_dictionary_that_becomes_too_large(tmp_path: Path, tune: Tune) -> None:
    tune(tuning.encoding, largest_dictionary=50)
    values = [None if i % 11 == 0 else f"v{i % 100}" for i in range(4_000)]
    pq.write_table(pa.table({"s": values}), tmp_path / "a.parquet", row_group_size=900)
    source = ParquetSource(tmp_path / "a.parquet")
    assert source._wanted(0).as_codes
    column = source.load([0]).columns[0]
    assert (column.dictionary, column.physical_type) == (None, PhysicalType.STRING32)
    assert export_table(source.load([0])).column(0).to_pylist() == values


def test_a_sample_that_is_wrong_about_repetition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble_strings, "estimate_strings", lambda array, nulls: 3)
    values = [f"v{i}" for i in range(4_000)]
    pq.write_table(pa.table({"s": values}), tmp_path / "a.parquet", row_group_size=900)
    source = ParquetSource(tmp_path / "a.parquet")
    assert source.load([0]).columns[0].dictionary is None
    assert export_table(source.load([0])).column(0).to_pylist() == values


def test_offsets_beyond_32_bits(tmp_path: Path, tune: Tune) -> None:
    tune(tuning.encoding, narrow_offsets=1_000)
    values = [f"a longer text {i}" for i in range(4_000)]
    pq.write_table(pa.table({"s": values}), tmp_path / "a.parquet", row_group_size=900)
    loaded = ParquetSource(tmp_path / "a.parquet").load([0])
    assert loaded.columns[0].physical_type is PhysicalType.STRING64
    assert export_table(loaded).column(0).to_pylist() == values


# ---- order ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ([], Order(True, 0, 1)),
        ([5], Order(True, 1, 1)),
        ([1, 2, 3, 7], Order(True, 4, 1)),
        ([1, 1, 2, 2, 3, 3, 9], Order(True, 4, 2)),
        ([1, 1, 2, 3, 3, 3, 9], Order(True, 4, 4)),
        ([4, 4, 4, 4, 4, 4, 4], Order(True, 1, 8)),
        ([1, 2, 3, 2], Order(False)),
        ([2, 1, 3, 4], Order(False)),
        ([1, 3, 2, 4], Order(False)),
    ],
)
@pytest.mark.parametrize("starts", [[0, 7], [0, 2, 2, 4, 7], [0, 1, 7]])
def test_order_of_parts(values: list[int], order: Order, starts: list[int]) -> None:
    array = np.array(values, np.uint8)
    parts = OrderOfParts()
    for low, high in pairwise(starts):
        parts.see(array[low:high])
        parts.end(low, array[low:high])
    assert parts.order() == order_of(array, 0) == order


@pytest.mark.parametrize("seed", range(40))
def test_longest_runs(seed: int, tune: Tune) -> None:
    """The same length is found in whatever pieces and groups the column comes, and none is exceeded."""
    tune(tuning.encoding, longest_run=8, step=16)
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, rng.integers(2, 12), rng.integers(1, 40))
    values = np.repeat(np.arange(len(lengths)), lengths)
    cuts = np.sort(rng.integers(0, len(values) + 1, rng.integers(0, 9))).tolist()
    cuts = [0, *cuts, len(values)]
    starts = [c for n, c in enumerate(cuts) if n in (0, len(cuts) - 1) or rng.random() < 0.5]
    parts, start = OrderOfParts(), 0
    for low, high in pairwise(cuts):
        start = low if low in starts else start
        seen = min(low - start, 8)
        parts.see(values[low - seen : high], seen)
    for low, high in pairwise(starts):
        parts.end(low, values[low:high])
    longest = int(lengths.max())
    wanted = None if longest > 8 else 1 << (longest - 1).bit_length()
    assert parts.order() == order_of(values, 0) == Order(True, len(lengths), wanted)


# ---- threads -------------------------------------------------------------------------------------------------------


def test_tasks_run_on_threads_and_their_errors_are_raised() -> None:
    seen: set[int] = set()
    together = threading.Barrier(3, timeout=10)

    def meet() -> None:
        together.wait()
        seen.add(threading.get_ident())

    run_all([meet] * 3, 3)
    assert len(seen) == 3

    done: list[int] = []

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_all([fail, *[lambda: done.append(1)] * 1000], 2)
    with pytest.raises(ValueError, match="no"):
        run_all([fail], 1)


def test_phases_follow_one_another() -> None:
    done: list[str] = []

    def work(name: str, phases: int) -> Any:
        for phase in range(phases):
            before = len([d for d in done if d.startswith(name)])
            assert before == 2 * phase
            yield [lambda p=phase: done.append(f"{name}{p}")] * 2
        return name

    assert run_phases([work("a", 3), work("b", 0), work("c", 1)], 2) == ["a", "b", "c"]
    assert len(done) == 8


def test_threads_have_started_before_one_computes() -> None:
    seen: list[int] = []

    def work() -> Any:
        yield [lambda: seen.append(sum(t.name == "gquery-work" for t in threading.enumerate()))]

    for workers in (2, 16):
        run_phases([work()], workers)
    assert seen == [2, 16]


def test_an_interrupt_ends_the_tasks() -> None:
    running = Running()
    count = [0]

    def step() -> None:
        count[0] += 1
        if count[0] == 5:
            running.stop()
        threading.Event().wait(0.005)

    with running.one(), pytest.raises(InterruptError):
        run_all([step] * 100_000, 2)
    assert count[0] < 1000


def test_zones_of_row_groups(tmp_path: Path, tune: Tune) -> None:
    """Blocks that lie across row groups and batches, with NULLs: the zones of a file are those of the same rows in memory."""
    tune(tuning.encoding, zone_rows=64)
    tune(tuning.reading, batch_bytes=8 * 50)
    days = [None if n % 11 == 3 or 700 <= n < 900 else n // 3 for n in range(3000)]
    table = pa.table(
        {"a": pa.array(days, pa.int64()), "b": pa.array(days, pa.int32()).cast(pa.date32()), "c": range(3000)}
    )
    pq.write_table(table, tmp_path / "zones.parquet", row_group_size=230)
    columns = ParquetSource(tmp_path / "zones.parquet").load([0, 1, 2]).columns
    for column, other in zip(columns, import_table(table).columns, strict=True):
        found, want = column.statistics, other.statistics
        assert found.values == want.values and found.zones is not None and want.zones is not None
        assert found.zones.low.tolist() == want.zones.low.tolist()
        assert found.zones.high.tolist() == want.zones.high.tolist()
