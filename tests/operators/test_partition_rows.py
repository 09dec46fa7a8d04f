"""Hash partitioning: every row in the part that the contract says, in its order, on every target."""

from __future__ import annotations

import itertools
import math
import random
import struct
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

from gquery import tuning
from gquery.columns.opaque import Opaque
from gquery.columns.table import ColumnData, ColumnStatistics
from gquery.device.device import Device, cpu_device
from gquery.device.profile import H200
from gquery.errors import InternalError, OutOfMemoryError
from gquery.expression.types import Bounds, PhysicalType
from gquery.kernels.builtin import key_hashes, row_partition
from gquery.kernels.primitives import row_partition as words
from gquery.kernels.targets.compilers import compiling_by
from gquery.kernels.targets.cuda import CudaTarget
from gquery.kernels.targets.cuda_shape import block_shape
from gquery.operators import partition_rows as operator
from gquery.operators.base import Frame
from gquery.operators.partition_rows import HashPartitioning, Partitioned, partition_rows
from tests.support import partition_kernels
from tests.support.frames import column, encoded, frame, rows_of, values_of
from tests.support.tuned import Tune

LANES = ["python", "llvm", "numba", pytest.param("cuda", marks=pytest.mark.cuda)]
MASK = 2**64 - 1
INTEGERS = [t for t in PhysicalType if t.value[0] in "iu" and t is not PhysicalType.I128]
TEXTS = [PhysicalType.STRING32, PhysicalType.STRING64, PhysicalType.VIEW]
PARTS = (1, 2, 3, 64, 256, 257, 1024)


@pytest.fixture(params=LANES)
def device(request: pytest.FixtureRequest, tune: Tune) -> Iterator[Device]:
    """Where rows lie; on a CPU everything is interpreted, or compiled by one of two compilers."""
    lane = request.param
    interpreted = 10**9 if lane == "python" else 0
    tune(tuning.built_in_kernels, interpreted_rows=interpreted, compiled_after=interpreted)
    tune(tuning.partitioning, unit_rows=100)  # few rows are several units
    with compiling_by(lane) if lane in ("llvm", "numba") else nullcontext():
        yield Device("cuda") if lane == "cuda" else cpu_device()


# ---- the contract, written down again --------------------------------------------------------------------------
def mix(x: int) -> int:
    x &= MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def combine(h: int, x: int) -> int:
    return mix(h * 0xBF58476D1CE4E5B9 + x)


def integer_hash(v: int) -> int:
    """Of 128 bits, too: one of 64 bits hashes the same in both."""
    low, high = v & MASK, v >> 64 & MASK
    beyond = high ^ (MASK if low >> 63 else 0)
    return mix((low ^ beyond * 0x5851F42D4C957F2D & MASK) + 0x9E3779B97F4A7C15)


def hash_of(v: Any) -> int:
    match v:
        case None:
            return 0
        case float():
            bits = 0x7FF8000000000000 if math.isnan(v) else struct.unpack("<q", struct.pack("<d", v + 0.0))[0]
            return integer_hash(bits ^ (2**63 - 1) if bits < 0 else bits)
        case str():
            text = v.encode()
            h = integer_hash(len(text))
            words = [text[k : k + 8].ljust(8, b"\0") for k in range(0, len(text) // 8 * 8 + 1, 8)]
            for word in words:
                h = combine(h, int.from_bytes(word, "little"))
            return h
        case _:
            return integer_hash(int(v))


def part_of(keys: Sequence[Any], parts: int, seed: int = 0) -> int:
    total = hash_of(keys[0])
    for key in keys[1:]:
        total = combine(total, hash_of(key))
    return combine(total, integer_hash(seed)) * parts >> 64


def check(given: Frame, keys: Sequence[int], parts: int, device: Device, seed: int = 0) -> Partitioned:
    """Partition a frame, and compare each part with the rows that the contract gives it, in their order."""
    made = partition_rows(given, HashPartitioning(tuple(keys), parts, seed), device, 2, "a test")
    expected: list[list[tuple[Any, ...]]] = [[] for _ in range(parts)]
    values = [_read(given.columns[k]) for k in keys]
    for row, of_row in zip(rows_of(given), zip(*values, strict=True), strict=True):
        expected[part_of(of_row, parts, seed)].append(row)
    assert made.starts == tuple(itertools.accumulate(map(len, expected), initial=0))
    assert made.parts == parts
    assert [rows_of(made.part(p)) for p in range(parts)] == expected
    assert rows_of(made.frame) == [row for rows in expected for row in rows]
    return made


def _read(key: ColumnData) -> list[Any]:
    """A key's values, floats as numbers."""
    return [struct.unpack("<d", v)[0] if isinstance(v, bytes) else v for v in values_of(key)]


# ---- every type ------------------------------------------------------------------------------------------------
def numbers(rows: int, r: random.Random, low: int, high: int, nulls: float = 0.2) -> list[int | None]:
    edges = [low, high, 0, max(low, -1)]
    return [None if r.random() < nulls else r.choice([*edges, r.randint(low, high)]) for _ in range(rows)]


def texts(rows: int, r: random.Random, nulls: float = 0.2) -> list[str | None]:
    """Short and long, of all lengths about a word of eight bytes, with bytes of 0 and of more than 127."""
    made = ["", "a", "b\0", "b", "üß€", "12345678", "123456789", "x" * 1000, "x" * 999 + "y"]
    return [
        None if r.random() < nulls else r.choice([*made, "k" * r.randrange(30), str(r.random())]) for _ in range(rows)
    ]


def test_integers_of_every_width_and_dates(device: Device) -> None:
    r = random.Random(1)
    for physical_type in INTEGERS:
        bits, signed = int(physical_type.value[1:]), physical_type.value[0] == "i"
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        key = column(numbers(301, r, low, high), physical_type, device)
        check(frame(key, column(range(301), PhysicalType.I32, device)), [0], 5, device)


def test_wide_integers_floats_and_booleans(device: Device) -> None:
    r = random.Random(2)
    floats = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 5e-324, 1.5, None]
    given = frame(
        column(numbers(301, r, -(2**127), 2**127 - 1), PhysicalType.I128, device),
        column([r.choice([*floats, r.gauss(0, 1e9)]) for _ in range(301)], PhysicalType.F64, device),
        column([r.choice(floats) for _ in range(301)], PhysicalType.F32, device),
        column([r.choice([True, False, None]) for _ in range(301)], PhysicalType.BOOL, device),
    )
    for keys in ([0], [1], [2], [3], [0, 1, 2, 3], [3, 0]):
        check(given, keys, 6, device)


def test_texts_in_every_layout(device: Device) -> None:
    r = random.Random(3)
    values, few = texts(301, r), [r.choice(["x", "yy", None, "zzz"]) for _ in range(301)]
    for physical_type in TEXTS:
        given = frame(
            column(values, physical_type, device), column(range(301), PhysicalType.U16, device), encoded(few, device)
        )
        for keys in ([0], [1], [2], [2, 0]):
            check(given, keys, 7, device)


@pytest.mark.parametrize("parts", PARTS)
def test_parts_from_one_to_many(parts: int, device: Device) -> None:
    r = random.Random(parts)
    given = frame(
        column(numbers(1500, r, -1000, 1000), PhysicalType.I64, device), column(texts(1500, r), TEXTS[1], device)
    )
    check(given, [0], parts, device)
    check(given, [1, 0], parts, device)


@pytest.mark.parametrize("rows", [0, 1, 2, 31, 32, 33, 99, 100, 101, 4095, 4096, 4097, 9000])
def test_sizes_about_units_and_tiles(rows: int, device: Device) -> None:
    r = random.Random(rows)
    given = frame(
        column(numbers(rows, r, 0, 50), PhysicalType.I8, device, nullable=True),
        column(range(rows), PhysicalType.I64, device),
    )
    check(given, [0], 4, device)


def test_keys_alone_and_no_column_at_all(device: Device) -> None:
    given = frame(column(range(200), PhysicalType.I16, device))
    check(given, [0], 3, device)
    nothing = partition_rows(Frame({}, 0), HashPartitioning((), 4), device, 2, "a test")
    assert nothing.starts == (0, 0, 0, 0, 0) and nothing.part(2).columns == {}


# ---- one part --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("physical_type", [PhysicalType.I64, PhysicalType.F64, *TEXTS])
def test_nulls_alone_are_one_part(physical_type: PhysicalType, device: Device) -> None:
    given = frame(column([None] * 500, physical_type, device), column(range(500), PhysicalType.I32, device))
    made = check(given, [0], 8, device)
    assert sorted(np.diff(made.starts).tolist()) == [0] * 7 + [500]


def test_one_key_alone_is_one_part(device: Device) -> None:
    given = frame(column([7] * 5000, PhysicalType.U8, device), column(range(5000), PhysicalType.I64, device))
    for parts in (2, 300):
        assert max(np.diff(check(given, [0], parts, device).starts)) == 5000


def test_equal_values_have_one_part_however_they_lie(device: Device) -> None:
    values = [*range(100), None]
    every = {t: column(values, t, device) for t in (*INTEGERS, PhysicalType.I128)}
    text = [None if v is None else str(v) for v in values]
    written = [*(column(text, t, device) for t in TEXTS), encoded(text, device), encoded(text[::-1], device)]
    zeros = [
        column([0.0, 1.0, math.nan], PhysicalType.F32, device),
        column([-0.0, 1.0, -math.nan], PhysicalType.F64, device),
    ]
    for alike in (list(every.values()), written, zeros):
        labels = []
        for key in alike:
            order = values_of(key) == text[::-1]
            found = row_partition.labels_for(key.length, 1000, device, "a test")
            key_hashes.label_rows([key], found, key_hashes.PartRule(1000), device)
            mine = device.to_host(found).tolist()
            labels.append(mine[::-1] if order else mine)
        assert labels == [labels[0]] * len(alike)


# ---- seeds -----------------------------------------------------------------------------------------------------
def _labels(keys: ColumnData, parts: int, device: Device, seed: int = 0) -> np.ndarray:
    found = row_partition.labels_for(keys.length, parts, device, "a test")
    key_hashes.label_rows([keys], found, key_hashes.PartRule(parts, seed), device)
    return np.asarray(device.to_host(found))


def test_parts_of_a_part_and_slots_of_a_table_are_filled_evenly() -> None:
    """Another seed, and the hash that tables take slots from, are independent of the part. Chi-square with 255 degrees of
    freedom: 1e-6 of even splits have more than 380."""
    device, parts = cpu_device(), 16
    for keys in (np.arange(200_000), np.arange(200_000) << 40, np.arange(200_000) * -1024):
        key = column(keys.tolist(), PhysicalType.I64, device)
        first, second = _labels(key, parts, device), _labels(key, parts, device, seed=1)
        hashes = key_hashes.hash_rows([key], len(keys), device).view(np.uint64)
        high, low = hashes >> np.uint64(60), hashes & np.uint64(15)
        for other in (second, high, low):
            found = np.bincount(first.astype(np.int64) * parts + other.astype(np.int64), minlength=parts**2)
            expected = len(keys) / parts**2
            assert float((np.square(found - expected) / expected).sum()) < 380


def test_seeds_partition_differently(device: Device) -> None:
    given = frame(column(range(300), PhysicalType.I32, device))
    starts = {check(given, [0], 4, device, seed).starts for seed in (0, 1, 2, 2**40)}
    assert len(starts) == 4


# ---- what the frame keeps ---------------------------------------------------------------------------------------
def test_statistics_hold_of_the_new_order() -> None:
    device = cpu_device()
    key = column(range(100), PhysicalType.I8, device)
    key = replace(key, statistics=ColumnStatistics(Bounds(0, 99), 0, 100, True, True, Bounds(0, 99), None, 1))
    made = partition_rows(frame(key), HashPartitioning((0,), 3), device, 1, "a test")
    found = made.frame.columns[0].statistics
    assert found == ColumnStatistics(Bounds(0, 99), 0, 100, False, True, Bounds(0, 99), None, None)
    assert made.part(1).columns[0].statistics.null_count == 0


def test_a_counted_frame_has_the_rows_that_are_counted() -> None:
    device = cpu_device()
    given = frame(column(range(100), PhysicalType.I8, device))
    made = partition_rows(
        Frame(given.columns, 100, number=np.array([60])), HashPartitioning((0,), 3), device, 1, "a test"
    )
    assert sorted(values_of(made.frame.columns[0])) == list(range(60)) and made.starts[-1] == 60


def test_opaque_values_are_no_keys() -> None:
    device = cpu_device()
    codes = column(range(10), PhysicalType.I32, device)
    opaque = ColumnData(
        codes.dtype, codes.physical_type, 10, codes.data, dictionary=Opaque(pa.chunked_array([[[1]] * 10]))
    )
    with pytest.raises(InternalError, match="opaque"):
        partition_rows(frame(opaque), HashPartitioning((0,), 2), device, 1, "a test")
    carried = partition_rows(frame(codes, opaque), HashPartitioning((0,), 2), device, 1, "a test")
    assert carried.frame.columns[1].dictionary is opaque.dictionary
    assert values_of(carried.frame.columns[0]) == values_of(carried.frame.columns[1])


@pytest.mark.parametrize("parts", [-1, 0, 1025])
def test_parts_are_neither_none_nor_too_many(parts: int) -> None:
    with pytest.raises(InternalError, match=f"1 to 1024 parts at once, not {parts}"):
        HashPartitioning((0,), parts)


def test_memory_that_does_not_suffice_is_an_error() -> None:
    device = cpu_device().with_limit(10_000)
    given = frame(column(range(2000), PhysicalType.I64, device))
    with pytest.raises(OutOfMemoryError, match="partitioning the orders"):
        partition_rows(given, HashPartitioning((0,), 2), device, 1, "partitioning the orders")


# ---- what a GPU is told, where there is none -----------------------------------------------------------------------


def test_a_gpu_is_told_what_to_move(monkeypatch: pytest.MonkeyPatch) -> None:
    r, device = random.Random(9), cpu_device()
    partition_kernels.run_here(monkeypatch)
    monkeypatch.setattr(
        operator,
        "_move_on_cpu",
        lambda f, labels, parts, d, _, label: operator._move_on_gpu(f, labels, parts, d, label),
    )
    for rows, parts in ((1, 2), (300, 3), (4097, 1024)):
        types = [PhysicalType.BOOL, PhysicalType.I16, PhysicalType.F32, PhysicalType.I64, PhysicalType.I128]
        few = [r.choice(["x", "yy", None, "zzz"]) for _ in range(rows)]
        columns = [column([r.choice([0, 1, None]) for _ in range(rows)], t, device) for t in types]
        columns += [column(texts(rows, r), t, device) for t in TEXTS]
        check(frame(*columns, encoded(few, device)), [3, 5], parts, device)


# ---- kernels for a GPU where there is none ------------------------------------------------------------------------
def test_kernels_of_keys_compile_for_a_gpu() -> None:
    device = cpu_device()
    keys = [
        [column([1], PhysicalType.I64, device)],
        [column([1, None], PhysicalType.I8, device), column([0.5], PhysicalType.F32, device)],
        [
            column(["a", None], PhysicalType.STRING32, device),
            encoded(["a"], device),
            column([1], PhysicalType.I128, device),
        ],
        [column(["a"], PhysicalType.VIEW, device), column([True], PhysicalType.BOOL, device)],
    ]
    for several in keys:
        for stored in get_args(key_hashes.StoredWord):
            made = CudaTarget().compile_cubin(key_hashes.kernel_for(several, stored), (9, 0))
            assert made.local_bytes == 0


def test_blocks_have_room_for_the_most_parts() -> None:
    """So that most threads of an H200 are at work, and with 1,024 parts still half of them."""
    made = CudaTarget().compile_cubin(row_partition.MOVE_ROWS.kernel, (9, 0))
    for parts, least in ((2, 1536), (64, 1536), (1024, 1024)):
        shared = 8 * (words.TILE_WORDS + words.PART_WORDS * parts)
        threads, blocks = block_shape(shared, made.registers, H200)
        assert shared <= H200.most_shared_bytes and threads * blocks >= least, (parts, threads, blocks)
