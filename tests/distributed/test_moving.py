"""Values as they go from one process of a cluster to another: what arrives is what was sent, in no more bytes than it takes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from gquery import tuning
from gquery.cluster.moving import packed, packed_program, unpacked
from gquery.device.buffer import Buffer, InPieces
from gquery.device.device import Device, cpu_device
from gquery.device.simulated import SimulatedDevice
from tests.support.tuned import Tune

pytest.importorskip("distributed")

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def _bytes(value: object) -> int:
    data = packed(value)
    return len(data.head) + sum([int(b.nbytes) for b in data.buffers])


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("copies", [True, False])
def test_integers_arrive_as_they_were(kind: type[np.integer], copies: bool, tune: Tune) -> None:
    """Whatever their range and their least value is, in any part of an array, at the ends of the type, too."""
    tune(tuning.cluster, beside_bytes=256)
    rng = np.random.default_rng(np.iinfo(kind).bits)
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    for width in (0, 1, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, high - low):
        for first in (low, high - width, max(low, -(width // 2)), 0):
            if low <= first and first + width <= high:
                values = rng.integers(first, first + width, 999, kind, endpoint=True)
                values[:2] = first, first + width
                for array in (values, values[::-1], values[3::5], values[:0], values[:996].reshape(4, -1)):
                    found = unpacked(packed(array, copies=copies), copies=copies)
                    assert found.dtype == array.dtype and np.array_equal(found, array)


def test_each_kind_of_buffer_arrives_as_one_array(tune: Tune) -> None:
    """And what it says of devices stays behind."""
    tune(tuning.cluster, beside_bytes=64)
    whole = Buffer(np.arange(100))
    kinds = [whole, whole.slice(3, 50), whole.window(7, 9), InPieces([np.arange(4), np.arange(0)], cpu_device())]
    found = unpacked(packed((kinds, cpu_device(), Device("cpu", 1), SimulatedDevice("cpu", 1), {"k": [None, 1.5]})))
    assert [type(b) for b in found[0]] == [Buffer] * len(kinds)
    assert all(np.array_equal(b.host, k.host) for b, k in zip(found[0], kinds, strict=True))
    assert found[1:] == (*[cpu_device()] * 3, {"k": [None, 1.5]})


def test_a_program_goes_with_code_that_nobody_can_import() -> None:
    table, three = object(), 3
    data = packed_program([table, lambda x: three * x, Buffer(np.arange(3))], {id(table): "t"})
    name, triple, buffer = unpacked(data, "table {}".format)
    assert (name, triple(4), buffer.host.tolist()) == ("table t", 12, [0, 1, 2])
    with pytest.raises((pickle.PicklingError, AttributeError)):
        packed(lambda x: x)


def test_a_part_is_changed_without_the_others(tune: Tune) -> None:
    tune(tuning.cluster, beside_bytes=64)
    data = packed([np.arange(100), Buffer(np.arange(100))])
    one, two = unpacked(data), unpacked(data)
    one[0][:] = 0
    assert np.array_equal(two[0], np.arange(100)) and np.array_equal(two[1].host, np.arange(100))


def test_small_numbers_take_few_bytes() -> None:
    """As counts of groups are, and keys that lie near each other; floats and wide numbers are sent as they are."""
    rows = 100_000
    keys = np.arange(rows) + 10**15
    assert _bytes(np.full(rows, 7)) < 1.1 * rows
    assert _bytes([keys, keys % 200, Buffer(keys)]) < 9.1 * rows
    for array in (np.linspace(0, 1, rows), keys**2, np.ones(rows, np.bool_)):
        assert array.nbytes <= _bytes(array) < array.nbytes + 1000
