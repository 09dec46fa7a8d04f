"""Running sums: NumPy's, and those of a GPU's kernels, played by lanes."""

from __future__ import annotations

import itertools
import types
from typing import Any

import numpy as np
import pytest

from gquery import tuning
from gquery.device.device import Device, cpu_device
from gquery.kernels.builtin import elements, prefix_sums
from gquery.kernels.builtin.define import BuiltinKernel
from gquery.kernels.targets.base import arguments_of
from tests.support.lanes import Lanes
from tests.support.tuned import Tune

FORMS = ["numpy", "lanes", pytest.param("cuda", marks=pytest.mark.cuda)]


@pytest.fixture(params=FORMS)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> Device:
    """Where arrays lie; for lanes on the host, which is said to be a GPU, in short parts."""
    if request.param == "lanes":
        arrays: Any = types.ModuleType("arrays")
        vars(arrays).update({n: getattr(np, n) for n in ("zeros", "ascontiguousarray")})
        arrays.empty = lambda size, dtype: np.full(size, 77, dtype)
        lanes = Lanes()

        def played(builtin: BuiltinKernel, rows: int, like: Any, *values: Any) -> None:
            lanes.run(lanes.compile(builtin.kernel), 0, rows, arguments_of(lanes, builtin.kernel, values))

        for module in (elements, prefix_sums):
            monkeypatch.setattr(module, "namespace", lambda array: arrays)
            monkeypatch.setattr(module, "launch", played)
        tune(tuning.built_in_kernels, scanned_rows=1)
    return Device("cuda") if request.param == "cuda" else cpu_device()


def _sizes(device: Device) -> list[int]:
    """No element, less than a warp has lanes, whole steps and more; on a GPU more groups of parts than a warp has lanes."""
    return [0, 1, 31, 32, 128, 129, 300] + [1023, 1025, 150_000, 5_000_001] * device.is_cuda


@pytest.mark.parametrize(
    ("dtype", "made"),
    [*itertools.product(("bool", "uint8", "int32", "uint32", "int64"), ("uint32", "int64")), ("bool", "uint64")],
)
def test_running_sums(device: Device, dtype: str, made: str) -> None:
    """Also wrapped, in place, and in the middle of an array."""
    r = np.random.default_rng(1)
    for size in _sizes(device):
        bits = r.integers(0, 2**64, size, np.uint64)
        values = bits % 2 == 1 if dtype == "bool" else bits.astype(dtype)
        want = np.cumsum(values.astype(made), dtype=made)
        given = device.from_host(values)
        found = prefix_sums.running_sums(given, made)
        assert found.dtype == made and np.array_equal(device.to_host(found), want)
        out = device.from_host(np.full(size + 2, 7, made))
        prefix_sums.running_sums(given, made, out[1:-1])
        assert np.array_equal(device.to_host(out), np.concatenate(([7], want, [7])).astype(made))
        offsets = prefix_sums.offsets_of(given, made)
        assert offsets.dtype == made and np.array_equal(device.to_host(offsets), np.append(0, want).astype(made))
        if dtype == made:
            prefix_sums.running_sums(given, made, given)
            assert np.array_equal(device.to_host(given), want)


def test_group_numbers_and_bits(device: Device) -> None:
    r = np.random.default_rng(2)
    for size in _sizes(device)[1:]:
        starts = r.random(size) < 0.4
        starts[0] = True
        for wanted in ("uint32", "int64"):
            for given in (starts, starts.view(np.uint8)):
                numbers = prefix_sums.group_numbers(device.from_host(given), wanted)
                assert numbers.dtype == wanted and np.array_equal(device.to_host(numbers), np.cumsum(starts) - 1)
        bits = r.integers(0, 2**32, size, np.uint32)
        bits[: size // 2] = 2**32 - 1
        ends = device.to_host(prefix_sums.bits_before(device.from_host(bits)))
        assert ends.dtype == np.int64 and ends.tolist() == np.cumsum(np.bitwise_count(bits), dtype=np.int64).tolist()


def test_groups_of_parts(device: Device) -> None:
    values = np.random.default_rng(3).integers(-(2**62), 2**62, 128 * 129 + 5)
    found = prefix_sums.running_sums(device.from_host(values), np.int64)
    assert np.array_equal(device.to_host(found), np.cumsum(values))
