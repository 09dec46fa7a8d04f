"""Heavy keys: found in skewed data, in no other, and their rows stay in one part."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import numpy as np
import pytest

from gquery import tuning
from gquery.device.device import Device, cpu_device
from gquery.expression.types import PhysicalType
from gquery.kernels.builtin.key_hashes import OwnPart, hash_rows
from gquery.kernels.targets.compilers import compiling_by
from gquery.operators.base import Frame
from gquery.operators.heavy_keys import KeySample, heavy_among, heavy_keys, sample_keys
from gquery.operators.partition_rows import HashPartitioning, partition_rows
from tests.support.frames import column, encoded, frame, rows_of, values_of
from tests.support.tuned import Tune

LANES = ["python", "llvm", "numba", pytest.param("cuda", marks=pytest.mark.cuda)]
ROWS = 20_000


@pytest.fixture(params=LANES)
def device(request: pytest.FixtureRequest, tune: Tune) -> Iterator[Device]:
    lane = request.param
    interpreted = 10**9 if lane == "python" else 0
    tune(tuning.built_in_kernels, interpreted_rows=interpreted, compiled_after=interpreted)
    tune(tuning.partitioning, sampled_rows=2_000)
    with compiling_by(lane) if lane in ("llvm", "numba") else nullcontext():
        yield Device("cuda") if lane == "cuda" else cpu_device()


def of_keys(keys: Sequence[int | None], device: Device) -> Frame:
    return frame(column(keys, PhysicalType.I32, device), column(range(len(keys)), PhysicalType.I32, device))


def hashes_of(keys: Sequence[int | None], device: Device) -> list[int]:
    found = hash_rows([column(keys, PhysicalType.I64, device)], len(keys), device)
    return sorted(device.to_host(found).tolist())


def largest(given: Frame, parts: int, own: OwnPart | None, device: Device) -> float:
    """The rows of the largest part of a mean one, of the keys that have no part of their own."""
    made = partition_rows(given, HashPartitioning((0,), parts, own=own), device, 1, "a test")
    sizes = np.diff(made.starts).astype(float)
    if own is not None:
        hashes = hash_rows([given.columns[0]], given.rows, device)
        sizes[own.part] -= np.isin(device.to_host(hashes), own.hashes).sum()
    return float(sizes.max() / max(1.0, sizes.mean()))


@pytest.mark.parametrize("parts", [2, 8, 64])
def test_a_key_of_half_of_the_rows(parts: int, device: Device) -> None:
    r = random.Random(parts)
    given = of_keys([7 if r.random() < 0.5 else r.randrange(10**9) for _ in range(ROWS)], device)
    found = heavy_keys(given, [0], parts, device)
    assert found.tolist() == hashes_of([7], device)
    assert largest(given, parts, None, device) > (1 if parts == 2 else parts / 2.2)
    assert largest(given, parts, OwnPart(found, 0), device) < 1.25


def test_zipf(device: Device) -> None:
    keys = np.random.default_rng(4).zipf(1.3, ROWS) % 2**31
    given, parts = of_keys(keys.tolist(), device), 8
    found = heavy_keys(given, [0], parts, device)
    counts = np.bincount(keys[keys < 1000])
    sure = [k for k in range(1, 1000) if k < counts.size and counts[k] > 0.12 * ROWS / parts]
    perhaps = [k for k in range(1, 1000) if k < counts.size and counts[k] > 0.02 * ROWS / parts]
    assert set(hashes_of(sure, device)) <= set(found.tolist()) <= set(hashes_of(perhaps, device))
    assert len(sure) >= 5
    assert largest(given, parts, None, device) > 2
    assert largest(given, parts, OwnPart(found, 0), device) < 1.35


@pytest.mark.parametrize("parts", [1, 2, 16, 1024])
def test_keys_that_are_all_alike_often_are_not_heavy(parts: int, device: Device) -> None:
    assert heavy_keys(of_keys([k * 17 for k in range(ROWS)], device), [0], parts, device).tolist() == []
    assert heavy_keys(of_keys(list(range(100)), device), [0], parts, device).tolist() == []
    assert heavy_keys(of_keys([], device), [0], parts, device).tolist() == []


def test_one_key_and_null_alone(device: Device) -> None:
    for only in (5, None):
        given = of_keys([only] * 3000, device)
        assert heavy_keys(given, [0], 4, device).tolist() == hashes_of([only], device)


def test_keys_that_come_in_turns_are_not_taken_for_others(device: Device) -> None:
    """Each tenth row, of which one row of ten is looked at."""
    given = of_keys([7 if k % 10 == 0 else k for k in range(ROWS)], device)
    sample = sample_keys(given, [0], device)
    assert sample.rows == ROWS and sample.hashes.size == 2_000
    assert 100 < np.isin(sample.hashes, hashes_of([7], device)).sum() < 300


def test_several_keys_and_texts(device: Device) -> None:
    r = random.Random(3)
    texts = ["often" if r.random() < 0.4 else str(r.randrange(ROWS)) for _ in range(ROWS)]
    numbers = [1] * (ROWS // 2) + list(range(ROWS // 2))
    given = frame(
        column(texts, PhysicalType.STRING32, device), column(numbers, PhysicalType.I32, device),
        encoded([text[0] for text in texts], device),
    )  # fmt: skip
    for keys, count in (([0], 1), ([0, 1], 1), ([1], 1)):
        assert heavy_keys(given, keys, 8, device).size == count
    assert heavy_keys(given, [2], 4, device).size >= 1


def test_samples_of_ranks_are_weighed_by_their_rows() -> None:
    """A key that one small rank has alone is not heavy; one of which each rank has some is."""
    small, large = np.repeat([1, 2], 50), np.arange(3, 103)
    assert heavy_among([KeySample(small, 100), KeySample(large, 100_000)], 4).tolist() == []
    assert heavy_among([KeySample(small, 100_000), KeySample(large, 100)], 4).tolist() == [1, 2]
    both = np.repeat([9, 1], 50)
    assert heavy_among([KeySample(both, 1000), KeySample(both, 5000)], 3).tolist() == [1, 9]
    assert heavy_among([], 3).tolist() == []


def test_rows_of_heavy_keys_stay_and_others_go_where_they_went(device: Device) -> None:
    r = random.Random(8)
    given = of_keys([r.choice([1, 2, None, *range(100)]) for _ in range(3000)], device)
    for parts, own in ((5, 3), (300, 299)):
        heavy = np.array(hashes_of([1, None], device))
        before = partition_rows(given, HashPartitioning((0,), parts), device, 1, "a test")
        made = partition_rows(given, HashPartitioning((0,), parts, own=OwnPart(heavy, own)), device, 1, "a test")
        for p in range(parts):
            rows = rows_of(before.part(p)) if p != own else []
            if p == own:
                mine = set(rows_of(before.part(p)))
                rows = [row for row in rows_of(given) if row[0] in (1, None) or row in mine]
            assert rows_of(made.part(p)) == [row for row in rows if p == own or row[0] not in (1, None)]


def test_a_counted_frame() -> None:
    device = cpu_device()
    given = of_keys([1] * 100 + [2] * 300, device)
    counted = Frame(given.columns, 400, number=np.array([100]))
    assert heavy_keys(counted, [0], 2, device).tolist() == hashes_of([1], device)
    assert values_of(given.columns[0])[:3] == [1, 1, 1]
