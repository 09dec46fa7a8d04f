"""Integers narrowed by compiled loops: the columns that NumPy makes, whatever lies in a piece and however rows are cut."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gquery
from gquery import tuning
from gquery.columns.arrow import dtype_of
from gquery.columns.assemble import Fixed, assembly_for
from gquery.columns.loops import Words
from gquery.columns.narrowing import loop_for, words_in, words_of
from gquery.columns.page_values import MisfitError
from gquery.columns.table import ColumnData
from gquery.device.transfer import Upload
from gquery.expression.types import Bounds, Field
from gquery.io.parquet_rows import ParquetRows
from gquery.kernels.builtin import narrowing as loops
from gquery.kernels.targets import get_target
from gquery.runtime.threads import run_phases
from tests.support.tuned import Tune

TYPES: dict[Words, pa.DataType] = {
    "pairs": pa.decimal128(18, 2), "i64": pa.int64(), "i32": pa.int32(), "i16": pa.int16(),
}  # fmt: skip
UNSIGNED = {1: "u1", 2: "u2", 4: "u4", 8: "i8"}


@pytest.fixture(autouse=True)
def compiled(tune: Tune) -> None:
    """Every loop at once, for columns of any size."""
    tune(tuning.encoding, compiled_rows=0)
    for kernel in loops.LOOPS.values():
        get_target("cpu").compile(kernel.kernel)


def array_of(values: Sequence[int | None], type_: pa.DataType) -> pa.Array:
    """An array of integers, which a decimal's unscaled value may be."""
    if not pa.types.is_decimal(type_):
        return pa.array(values, f"int{type_.bit_width}").view(type_)
    words = [w for v in values for w in (((v or 0) + 2**63) % 2**64 - 2**63, (v or 0) >> 64)]
    ok = None if None not in values else pa.array([v is not None for v in values]).buffers()[1]
    return pa.Array.from_buffers(type_, len(values), [ok, pa.py_buffer(np.array(words, np.int64))])


@pytest.mark.parametrize("words,size", loops.LOOPS)
def test_a_loop_writes_and_finds_extremes(words: Words, size: int) -> None:
    r = np.random.default_rng(size)
    bits = min(8 * size, {"pairs": 59, "i64": 64, "i32": 32, "i16": 16}[words])
    for rows, skip, block in ((1, 0, 64), (63, 1, 64), (64, 0, 64), (1000, 17, 64), (777, 63, 64), (50_000, 5, 16_384)):
        values = r.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), rows, dtype=np.int64)
        piece = array_of([*values.tolist()], TYPES[words])
        around = np.full(rows + 2, 99, UNSIGNED[size])
        found = loops.find_loop(words, size)
        assert found is not None
        low, high, is_narrow = found(words_in(piece), around[1:-1], skip, block)
        signed = around.view(f"i{size}")
        assert is_narrow
        assert signed[1:-1].tolist() == values.tolist()
        assert around[0] == around[-1] == 99
        cuts = [0, *range(block - skip, rows, block), rows]
        assert low.tolist() == [int(values[a:b].min()) for a, b in itertools.pairwise(cuts)]
        assert high.tolist() == [int(values[a:b].max()) for a, b in itertools.pairwise(cuts)]


@pytest.mark.parametrize("value", [2**64, -(2**64), 2**64 - 1, 2**63, -(2**63) - 1, 3 << 64])
def test_a_pair_beyond_64_bits_is_told(value: int) -> None:
    for at in (0, 5, 99):
        values = [7] * 100
        values[at] = value
        found = loops.find_loop("pairs", 8)
        assert found is not None
        assert not found(words_in(array_of(values, TYPES["pairs"])), np.empty(100, np.int64), 3, 64).is_narrow


def test_which_types_have_words() -> None:
    assert {words_of(t): t for t in TYPES.values()} == TYPES
    assert words_of(pa.date32()) == "i32"
    assert words_of(pa.timestamp("us", "UTC")) == "i64"
    assert words_of(pa.time64("us")) == "i64"
    others = (pa.int8(), pa.uint32(), pa.float64(), pa.date64(), pa.timestamp("s"), pa.time64("ns"), pa.bool_())
    for other in (*others, pa.decimal64(9, 1), pa.decimal256(40, 1)):
        assert words_of(other) is None


def test_until_a_loop_is_ready_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for once, and never waited for."""
    target, asked = get_target("cpu"), list[Any]()
    monkeypatch.setattr(target, "is_ready", lambda kernel: False)
    monkeypatch.setattr(target, "is_cached", lambda kernel: False)
    monkeypatch.setattr(target, "compile_in_background", asked.extend)
    monkeypatch.setattr(loops, "_asked", set())
    assert loop_for(pa.int32(), 2) is None
    assert loop_for(pa.int32(), 2) is None
    assert asked == [loops.LOOPS["i32", 2].kernel]


# ---- columns ---------------------------------------------------------------------------------------------------
def column_of(groups: Sequence[Sequence[pa.Array]], known: Bounds | None) -> ColumnData:
    """A column of groups of pieces, which threads add in any order."""
    type_ = groups[0][0].type
    starts = [0, *np.cumsum([sum(len(p) for p in pieces) for pieces in groups]).tolist()]
    made = assembly_for(type_, Field("x", dtype_of(type_)), starts, known, True, Upload(None))
    threads = [threading.Thread(target=made.add, args=(n, pieces)) for n, pieces in enumerate(groups)]
    for thread in random.Random(4).sample(threads, len(threads)):
        thread.start()
    for thread in threads:
        thread.join()
    return run_phases([made.finish()], 1)[0]


def facts(column: ColumnData) -> Any:
    """What is known of a column, as can be compared."""
    zones = column.statistics.zones
    return (
        column.physical_type, column.data.host.tolist(), None if column.validity is None else column.validity.host.tolist(),
        replace(column.statistics, zones=None), zones and (zones.block_rows, zones.low.tolist(), zones.high.tolist()),
    )  # fmt: skip


def kinds(rows: int, r: random.Random) -> dict[str, list[int | None]]:
    base = [r.randrange(-100, 100) for _ in range(rows)]
    return {
        "any": [*base],
        "sorted": [*range(rows)],
        "runs": [n // 7 for n in range(rows)],
        "wide": [v * 10**4 for v in base],
        "one": [5] * rows,
        "some NULL": [None if n % 5 == 0 and n > rows // 2 else v for n, v in enumerate(base)],
        "NULL alone": [None] * rows,
    }


@pytest.mark.parametrize("type_", [*TYPES.values(), pa.date32(), pa.timestamp("us"), pa.decimal128(9, 0)], ids=str)
def test_columns_are_those_that_numpy_makes(type_: pa.DataType, tune: Tune) -> None:
    r = random.Random(11)
    for sizes in ([1], [64], [200, 1, 0, 63, 300], [65, 127, 1000]):
        for kind, values in kinds(sum(sizes), r).items():
            if kind == "wide" and type_ == pa.int16():
                continue
            whole, groups, at = array_of(values, type_), list[list[pa.Array]](), 0
            for size in sizes:
                middle = r.randrange(size + 1)
                groups.append([whole.slice(at, middle), whole.slice(at + middle, size - middle)])
                at += size
            there = [v for v in values if v is not None]
            for known in (None, Bounds(min(there, default=0), max(there, default=0))):
                tune(tuning.encoding, compiled_rows=0)
                by_loops = column_of(groups, known and Bounds(min(known.low, 0), max(known.high, 0)))
                tune(tuning.encoding, compiled_rows=10**9)
                by_numpy = column_of(groups, known and Bounds(min(known.low, 0), max(known.high, 0)))
                assert facts(by_loops) == facts(by_numpy), (kind, sizes, known)


@pytest.mark.parametrize("type_", TYPES.values(), ids=str)
def test_a_value_outside_of_known_bounds_is_a_misfit(type_: pa.DataType) -> None:
    for wrong in (-1, 256, 30_000):
        values = [*range(100), wrong, *range(100)]
        made = assembly_for(type_, Field("x", dtype_of(type_)), [0, 201], Bounds(0, 255), True, Upload(None))
        with pytest.raises(MisfitError):
            made.add(0, [array_of(values, type_)])


@pytest.mark.parametrize(
    "wrong", [10**9, -(10**9), 10**18, 2**63, -(2**63) - 1, 2**64, 2**64 + 5, -(2**64) + 5, 2**126]
)
@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_decimal_with_too_many_digits_is_an_error(wrong: int, is_compiled: bool, tune: Tune) -> None:
    tune(tuning.encoding, compiled_rows=0 if is_compiled else 10**9)
    type_ = pa.decimal128(9, 2)
    for known in (None, Bounds(-(10**9) + 1, 10**9 - 1)):
        for values in ([wrong], [1, wrong, 2], [-1, wrong], [None, wrong]):
            made = assembly_for(type_, Field("x", dtype_of(type_)), [0, len(values)], known, True, Upload(None))
            with pytest.raises(ValueError, match="column x: .*precision"):
                made.add(0, [array_of(values, type_)])


def test_what_lies_under_a_null_is_no_value() -> None:
    type_ = pa.decimal128(9, 2)
    raw = array_of([10**30, 5, -(10**20), 7], type_)
    ok = pa.array([False, True, False, True]).buffers()[1]
    piece = pa.Array.from_buffers(type_, 4, [ok, raw.buffers()[1]])
    assert column_of([[piece]], Bounds(0, 9)).data.host.tolist() == [0, 5, 0, 7]


# ---- files -----------------------------------------------------------------------------------------------------
def test_a_file_whose_footer_lies_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The late misfit of one row group has the whole column gathered."""
    table = pa.table({"x": pa.array([*range(300), 70_000, *range(99)], pa.int64()), "y": range(400)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50)
    refused, check = list[Bounds](), Fixed._check_fits

    def noted(self: Fixed, bounds: Bounds) -> None:
        try:
            check(self, bounds)
        except MisfitError:
            refused.append(bounds)
            raise

    monkeypatch.setattr(Fixed, "_check_fits", noted)
    wanted = ParquetRows._wanted
    monkeypatch.setattr(ParquetRows, "_wanted", lambda self, field: replace(wanted(self, field), bounds=Bounds(0, 255)))
    with gquery.connect(device="cpu") as connection:
        found = connection.sql(f"SELECT sum(x), max(x), min(x) FROM '{tmp_path}/t.parquet'").fetchall()
    assert found == [(sum(table["x"].to_pylist()), 70_000, 0)]
    assert refused and all(bounds.high > 255 for bounds in refused)
