"""Sorts by buckets beside sorts of all words at once: the same rows, the same beginnings of ties and of partitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gquery import tuning
from gquery.device.device import cpu_device
from gquery.kernels.builtin import order
from tests.operators.test_order import text_column
from tests.support.tuned import Tune

Keys = list[Any]


def _integers(r: np.random.Generator, rows: int) -> order.Integers:
    """Constant, of few values, of all bits, skewed, ascending."""
    kind = int(r.integers(0, 6))
    values = (
        np.full(rows, 5),
        r.integers(-2, 2, rows),
        r.integers(-(2**63), 2**63 - 1, rows),
        np.where(r.random(rows) < 0.5, 0, r.integers(0, 2**40, rows)),
        np.arange(rows) - rows // 2,
        r.permutation(rows) * 2**20,
    )[kind]
    dtype = (np.int64, np.int32, np.uint16)[int(r.integers(0, 3))] if kind in (0, 3) else np.int64
    return order.Integers(values.astype(dtype), None, bool(r.integers(0, 2)))


def _text(r: np.random.Generator, rows: int) -> order.OrderKey:
    words = ["", "a", "ab", "abcdefgh", "abcdefghi", "abcdefghj", "zz"]
    column = text_column([words[i] for i in r.integers(0, len(words), rows)])
    return order.Text(column, cpu_device(), bool(r.integers(0, 2)))


@pytest.mark.parametrize("seed", range(60))
def test_as_all_at_once(seed: int, tune: Tune) -> None:
    """Every number of first keys, few rows and many, one thread and three."""
    r = np.random.default_rng(seed)
    rows, count = int(r.integers(24, 400)), int(r.integers(1, 4))

    def keys() -> Keys:
        again = np.random.default_rng(seed + 1000)
        return [(_text if again.random() < 0.2 else _integers)(again, rows) for _ in range(count)]

    for first in range(count + 1):
        found = []
        for least, workers in ((1 << 60, 1), (1, 1), (1, 3)):
            tune(tuning.sorting, bucket_rows=least, bucket_bits=int(r.integers(1, 5)))
            made = order.sort_partitions(keys(), first, workers)
            plain = order.sort_order(keys(), None, workers)
            assert np.array_equal(plain, made[0])
            found.append(made)
        for other in found[1:]:
            assert np.array_equal(other[0], found[0][0]) and np.array_equal(other[1], found[0][1])
            if first and other[2] is not None and found[0][2] is not None:
                assert np.array_equal(other[2], found[0][2])


def test_keys_of_a_few_bits_too_many_are_told_apart_at_once(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition and an order whose bits with the row's are 65: with buckets there is no second round."""
    rows = 1 << 12
    place = np.arange(rows)
    partition = np.where(place % 2 == 0, 0, place * 2**8 - 1)
    value = np.where(place % 2 == 0, place // 2, 2**33 - place)[::-1].copy()  # neighbours differ in their last bit
    keys = [order.Integers(partition[::-1].copy()), order.Integers(value)]
    rounds: list[int] = []
    told_apart = order._told_apart

    def counted(*given: Any) -> Any:
        rounds.append(1)
        return told_apart(*given)

    monkeypatch.setattr(order, "_told_apart", counted)
    for least, wanted in ((1 << 60, [1]), (1, [])):
        rounds.clear()
        tune(tuning.sorting, bucket_rows=least)
        found = order.sort_order(keys, None, 2)
        assert np.array_equal(found, np.lexsort((np.arange(rows), keys[1].data, keys[0].data)))
        assert rounds == wanted
