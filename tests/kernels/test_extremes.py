"""Extremes and order of whole arrays, every so many-th of them, places of quantiles: kernels beside NumPy."""

from __future__ import annotations

from importlib import import_module
from threading import Thread
from typing import Any

import numpy as np
import pytest

from gquery import tuning
from gquery.columns.looked_over import bounds_and_order, sample_of
from gquery.columns.statistics import minimum_and_maximum
from gquery.device.device import Device, cpu_device
from gquery.expression.expr import Literal
from gquery.expression.types import DOUBLE, INT64, decimal
from gquery.kernels.builtin import elements
from gquery.kernels.builtin.define import launch
from gquery.kernels.builtin.extremes import EXTREMES, ORDERS, extremes, greatest
from gquery.operators import quantiles
from tests.support.tuned import Tune

import_module("gquery.kernels.builtin.column_loops")  # hands down what columns are looked over by

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]


def on(device: str, array: Any) -> Any:
    return (cpu_device() if device == "cpu" else Device("cuda")).from_host(array)


def host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.get()


def arrays(dtype: str) -> list[np.ndarray]:
    """Integers that rise, never fall, fall once at an end, lie at the ends of their type."""
    r = np.random.default_rng(5)
    if dtype == "bool":
        return [np.array(v, np.bool_) for v in ([True], [False, True], [True, False], [False] * 40 + [True] * 60)]
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    rising = np.arange(100).astype(dtype)
    return [
        rising, rising[::-1].copy(), np.repeat(rising, 2), np.append(rising, rising[:1]), np.insert(rising, 0, 99),
        np.array([least, most], dtype), np.array([most, least], dtype), np.array([7], dtype), np.array([most] * 3, dtype),
        r.integers(least, most, 5000, dtype, endpoint=True), np.sort(r.integers(least, most, 5000, dtype, endpoint=True)),
    ]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("rows", [1 << 30, 7])
def test_bounds_and_order(device: str, dtype: str, rows: int, tune: Tune) -> None:
    tune(tuning.ownership, reduced_rows=rows)
    for values in arrays(dtype):
        bounds, order = bounds_and_order(on(device, values))
        assert (bounds.low, bounds.high) == minimum_and_maximum([values])
        assert order == (bool((values[1:] >= values[:-1]).all()), bool((values[1:] > values[:-1]).all()))
    bounds, order = bounds_and_order(on(device, np.zeros(0, dtype)))
    assert (bounds.low, bounds.high, *order) == (0, 0, True, True)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", TYPES[:-1])
def test_the_kernels(compiled: bool, dtype: str, tune: Tune) -> None:
    tune(tuning.built_in_kernels, interpreted_rows=0 if compiled else 1 << 40, compiled_after=1 << 40)
    word, turned = f"{np.dtype(dtype).kind}{8 * np.dtype(dtype).itemsize}", 2**63 if dtype == "uint64" else 0
    for values in arrays(dtype)[: 11 if compiled else 9]:
        two, four = np.array([INT64.high, INT64.low]), np.array([INT64.high, INT64.low, 0, 0])
        given = values.view(np.int64) if turned else values
        launch(EXTREMES[word], values.size, values, given, two)
        launch(ORDERS[word], values.size, values, given, four, values.size - 1)
        known = [int(values.min()), int(values.max())]
        assert [v + turned for v in two.tolist()] == [v + turned for v in four[:2].tolist()] == known
        falls, repeats = int((values[1:] < values[:-1]).sum()), int((values[1:] == values[:-1]).sum())
        assert four[2:].tolist() == [falls, repeats]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", TYPES[:-1])
def test_extremes(device: str, dtype: str) -> None:
    turned = 2**63 if dtype == "uint64" else 0
    for values in arrays(dtype):
        least, most = extremes(on(device, values))
        assert (int(least.item()) + turned, int(most.item()) + turned) == minimum_and_maximum([values])
        assert turned or int(greatest(on(device, values)).item()) == int(values.max())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", TYPES)
def test_every(device: str, dtype: str, tune: Tune) -> None:
    for values in arrays(dtype):
        for stride in (1, 2, 7, 1000):
            found = elements.every(on(device, values), stride)
            assert np.array_equal(host(found), values[::stride])
    tune(tuning.encoding, sample=100)
    assert np.array_equal(sample_of(on(device, arrays("int16")[9])), arrays("int16")[9][::50])


FRACTIONS = [
    *(Literal(f, DOUBLE) for f in (0.0, 0.25, 0.5, 0.9999999, 1.0, -0.0, -0.3, -1.0)),
    *(Literal(n, decimal(3, 2)) for n in (0, 1, 33, 50, 99, 100, -25, -100)),
]
SIZES = np.array([0, 1, 2, 3, 4, 5, 10, 99, 100, 101, 2**31 + 1, 2**40], np.int64)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_positions_of_quantiles(device: str, fraction: Literal) -> None:
    discrete, (low, high, weight) = quantiles.positions_of(fraction, SIZES), quantiles.positions_between(fraction, SIZES)
    if device == "cuda":
        found = [quantiles.positions_of(fraction, on(device, SIZES)), *quantiles.positions_between(fraction, on(device, SIZES))]
        found = [*map(host, found)]
    else:  # what a GPU runs, on this one
        found = [np.empty(SIZES.size, np.int64) for _ in range(3)] + [np.empty(SIZES.size, np.float64)]
        part = quantiles.float_of(fraction)
        if fraction.dtype.is_decimal:
            given: Any = (10**fraction.dtype.scale, abs(fraction.value), int(part < 0))
            launch(quantiles._EXACT, SIZES.size, SIZES, SIZES, *given, found[0])
        else:
            launch(quantiles._INEXACT, SIZES.size, SIZES, SIZES, abs(part), int(part < 0), found[0])
        launch(quantiles._BETWEEN, SIZES.size, SIZES, SIZES, abs(part), int(part < 0), *found[1:])
    for one, other in zip(found, (discrete, low, high, weight), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.cuda
def test_a_thread_that_begins_with_a_kernel() -> None:
    """No call of the runtime has made a context the thread's: what it allocates is in the pool."""
    device, found = Device("cuda"), []
    array = on("cuda", np.arange(1000, dtype=np.int32))

    def look() -> None:
        with device.activate():
            found.append(bounds_and_order(array))

    look()
    for _ in range(3):
        thread = Thread(target=look)
        thread.start()
        thread.join()
    assert found == [found[0]] * 4
