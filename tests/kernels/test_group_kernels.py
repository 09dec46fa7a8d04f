"""Kernels that make columns of groups on a GPU, against NumPy, on the targets that need none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gquery import tuning
from gquery.kernels.builtin import choosing, group_columns, group_modes, group_ranges, group_texts, interpolating
from gquery.operators import quantiles
from tests.support.tuned import Tune

SIZES = (0, 1, 31, 33, 100)


@pytest.fixture(params=["python", "cpu"], autouse=True)
def _target(request: pytest.FixtureRequest, tune: Tune) -> None:
    if request.param == "cpu":
        tune(tuning.built_in_kernels, interpreted_rows=0)


@pytest.mark.parametrize("size", SIZES)
def test_keys_in_mixed_radix(size: int) -> None:
    widths, base = (3, 1, 7), -5
    digits = [np.random.default_rng(n).integers(0, w, size) for n, w in enumerate(widths)]
    keys, stride = sum((d * s for d, s in zip(digits, (1, 3, 3), strict=True)), np.zeros(size, np.int64)), 1
    for n, (digit, width) in enumerate(zip(digits, widths, strict=True)):
        given = None if n == len(widths) - 1 else width
        assert np.array_equal(group_columns.key_values(keys, stride, given, base), digit + base)
        made, valid = group_columns.nullable_key_values(keys, stride, given, base, width - 1)
        is_valid = digit != width - 1
        assert valid.dtype == np.uint8 and np.array_equal(valid, is_valid)
        assert np.array_equal(made, np.where(is_valid, digit + base, 0))
        stride *= width


def test_keys_as_they_are() -> None:
    keys = np.array([-(2**63), -1, 0, 1, 2**63 - 1])
    for null in (2**63 - 1, -(2**63), 5):
        made, valid = group_columns.nullable_key_values(keys, 1, None, 0, null)
        assert np.array_equal(valid, keys != null) and np.array_equal(made, np.where(keys != null, keys, 0))


@pytest.mark.parametrize("capacity", SIZES)
@pytest.mark.parametrize("has_zero", [False, True])
def test_slots_of_a_hash_table(capacity: int, has_zero: bool) -> None:
    slots = np.random.default_rng(capacity).integers(-(2**63), 2**63, (capacity + 2, 4))
    slots[::3, 0] = 0
    slots[capacity, 0] = 77 if has_zero else 0
    slots[capacity + 1, 0] = 0
    keys, words = group_columns.slot_columns(slots.reshape(-1), 4, 2, capacity)
    at = np.flatnonzero(slots[:, 0])
    assert np.array_equal(keys, np.where(at == capacity, 0, slots[at, 0]))
    assert len(words) == 2 and all(np.array_equal(w, slots[at, 1 + n]) for n, w in enumerate(words))


@pytest.mark.parametrize("size", SIZES)
def test_distinct_keys(size: int) -> None:
    keys = np.random.default_rng(size).integers(0, 40, size)
    want, numbers = np.unique(keys, return_inverse=True)
    for found in (group_columns.distinct_slots(keys, 41), group_columns.distinct_sorted(keys)):
        assert [a.dtype for a in found] == [np.int64, np.int64]
        assert np.array_equal(found[0], want) and np.array_equal(found[1], numbers)
    flags = np.zeros(41, np.uint8)
    flags[keys] = 1
    for dtype in (np.int64, np.uint32):
        assert np.array_equal(group_columns.marked(keys.astype(dtype), 41), flags)
    used = np.flatnonzero(flags).astype(np.uint32)
    assert np.array_equal(group_columns.numbers_of_slots(used, 41)[used], np.arange(used.size))


def test_all_the_same() -> None:
    for value, dtype in ((-(2**63), np.int64), (-0.0, np.float64), (np.inf, np.float64), (0, np.int64)):
        made = group_columns.full_of(np.zeros(1), 3, value, dtype)
        assert made.dtype == dtype and made.tobytes() == np.full(3, value, dtype).tobytes()


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("filtered", [False, True])
def test_most_frequent_values(rows: int, grouped: bool, filtered: bool) -> None:
    r = np.random.default_rng(rows)
    values, numbers = r.integers(0, 4, rows), r.integers(0, 5 if grouped else 1, rows).astype(np.uint32)
    kept = r.integers(0, 2, rows).astype(np.uint8) if filtered else np.ones(rows, np.uint8)
    order = np.lexsort((values, 1 - kept, numbers)).astype(np.uint32)
    words = np.stack((numbers, kept, values))[:, order]
    at = np.flatnonzero(np.append(True, (words[:, 1:] != words[:, :-1]).any(axis=0))[:rows]).astype(np.uint32)
    runs = group_modes.SortedValues(order, at)
    groups = 5 if grouped else 1
    ways: dict[group_modes.By, Callable[[int, np.ndarray], Any]] = {
        "row": lambda v, own: own[values[own] == v].min(),
        "least": lambda v, own: v,
        "greatest": lambda v, own: -v,
    }
    for by, comes_first in ways.items():
        given = numbers if grouped else None, kept if filtered else None
        found = group_modes.most_frequent(runs, *given, groups, by)
        for group in range(groups):
            own = np.flatnonzero((numbers == group) & (kept == 1))
            if not own.size:
                assert found[group] < max(rows, 1)
                continue
            ranked = [(-(values[own] == v).sum(), comes_first(v, own), v) for v in np.unique(values[own])]
            best = min(ranked)[-1]
            assert numbers[found[group]] == group and values[found[group]] == best
            if by == "row":
                assert found[group] == own[values[own] == best].min()


@pytest.mark.parametrize("sizes", [[], [0], [1], [0, 0, 7], [5, 0, 3, 6, 0], [100, 0]])
def test_pieces_of_ranges(sizes: list[int]) -> None:
    lengths = np.array(sizes, np.int64)
    begins = np.cumsum(lengths) - lengths + 3
    want = [(k, min(k + 3, b + n)) for b, n in zip(begins, sizes, strict=True) for k in range(b, b + n, 3)]
    low, high, first, last = group_ranges.pieces_of(begins, lengths, 3)
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == want
    assert np.array_equal(last - first, -(-lengths // 3)) and np.array_equal(first, np.cumsum(last - first) - (last - first))
    assert group_ranges.pairs_of(begins, lengths).tolist() == [n for p in zip(begins, sizes, strict=True) for n in p]


@pytest.mark.parametrize("rows", SIZES)
def test_texts_of_groups(rows: int) -> None:
    r = np.random.default_rng(rows)
    views, separator = r.integers(1, 2**40, 2 * rows), np.array([17, 2])
    valid, slots = r.integers(0, 2, rows).astype(np.uint8), r.integers(0, 6, rows)
    made, there = group_texts.first_texts(views, valid, slots, 7)
    for group in range(7):
        own = np.flatnonzero((slots == group) & (valid == 1))
        assert there[group] == bool(own.size)
        assert made.reshape(-1, 2)[group].tolist() == (views.reshape(-1, 2)[own[0]].tolist() if own.size else [0, 0])

    order, starts = r.permutation(rows).astype(np.uint32), np.unique(r.integers(0, max(rows, 1), 3))
    for kept in (None, valid):
        pairs = np.empty((rows, 2, 2), np.int64)
        pairs[:, 0], pairs[:, 1] = separator, views.reshape(-1, 2)
        if kept is not None:
            pairs[:, :, 1] *= kept[order][:, None]
        found = group_texts.separated(separator, views, order, kept)
        assert np.array_equal(found, pairs.reshape(-1))
        group_texts.hide_first_separators(found, starts)
        pairs[starts[starts < rows], 0, 1] = 0
        assert np.array_equal(found, pairs.reshape(-1))


WIDE: np.ndarray = np.array([[-1, -1], [0, 0], [-(2**63), 2**63 - 1], [2**63 - 1, -(2**63)], [5, 0], [2**40, 3]], np.int64)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "float32", "float64", "uint32"])
def test_other_values(dtype: str) -> None:
    bits = np.random.default_rng(1).integers(0, 2**63, (2, 67))
    values, others = (bits % 2 == 1) if dtype == "bool" else bits.astype(dtype)
    there = np.random.default_rng(2).integers(0, 2, 67).astype(np.uint8)
    for size in (0, 1, 67):
        made = values[:size].copy()
        choosing.put_others(made, others[:size].copy(), there[:size].copy())
        assert made.dtype == values.dtype and np.array_equal(made, np.where(there, values, others)[:size])
        times = choosing.repeated_words(values[: min(size, 3)].copy(), 5)
        assert times.dtype == values.dtype and np.array_equal(times, np.tile(values[: min(size, 3)], 5))
        changed = choosing.changes_of(values[:size] % 3 if dtype != "bool" else values[:size].copy())
        plain = values[:size] % 3 if dtype != "bool" else values[:size]
        assert np.array_equal(changed, np.append(True, plain[1:] != plain[:-1])[:size])


def test_flags() -> None:
    flags = np.array([0, 1, 0, 1, 1], np.uint8)
    others = flags[::-1].copy()
    assert choosing.all_set(flags, 3).tolist() == [1, 1, 1] and choosing.all_set(flags, 0).size == 0
    assert np.array_equal(choosing.both_flags(flags, others), flags & others)
    assert np.array_equal(choosing.both_set(flags, others), flags & others)
    values = np.array([-(2**63), -1, 0, 1, 2**63 - 1])
    for bound in (-(2**63), 0, 1, 2**63 - 1):
        for valid in (None, flags):
            want = (values < bound) & (np.ones(5, bool) if valid is None else valid == 1)
            assert np.array_equal(choosing.less_flags(values, bound, valid), want)
            assert np.array_equal(choosing.are_less(values, bound, valid), want)
    floats = np.array([-np.inf, -0.0, 0.0, np.nan, np.inf, -5e-324])
    assert choosing.less_flags(floats, 0, None).tolist() == [1, 0, 0, 0, 0, 1]
    choosing.put_number(made := values.copy(), -7, flags)
    assert np.array_equal(made, np.where(flags, values, -7))
    with np.errstate(over="ignore"):
        assert np.array_equal(choosing.multiplied_words(values, 86_400_000_000), values * 86_400_000_000)
    assert np.array_equal(choosing.complements_of(values, 2**32 - 1), 2**32 - 1 - (values & (2**32 - 1)))
    bounds = np.array([-5, 0, 1])
    for dtype in (np.uint8, np.uint16):
        labels = np.empty(5, dtype)
        choosing.label_by_bounds(values, bounds, labels)
        assert labels.tolist() == np.searchsorted(bounds, values, "right").tolist()
        choosing.label_by_bounds(values, bounds[:0], labels)
        assert not labels.any()
        choosing.label_by_ranges(np.arange(-7, -2), -7, 2, labels)
        assert labels.tolist() == [0, 0, 1, 1, 2]


def test_parts_of_wide_integers() -> None:
    for present in (None, np.array([1, 0, 1, 1, 0, 1], np.uint8)):
        parts = choosing.parts_of_pairs(WIDE.reshape(-1).copy(), present, 32)
        pairs = WIDE if present is None else WIDE * present[:, None].astype(np.int64)
        want = [pairs[:, 0] & (2**32 - 1), pairs[:, 0] >> 32 & (2**32 - 1), pairs[:, 1] & (2**32 - 1), pairs[:, 1] >> 32]
        assert all(np.array_equal(a, b) for a, b in zip(parts, want, strict=True))


RULES: list[tuple[str, interpolating.Rule]] = [
    ("float64", "double"), ("float32", "real"), ("int8", "double"), ("int64", "double"), ("int64", "moment"), ("int32", "moment"),
    ("int64", "decimal"), ("int16", "decimal"), ("int64", "integer"), ("int8", "integer"), ("int32", "integer"),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "rule"), RULES)
def test_what_lies_between_values(dtype: str, rule: interpolating.Rule) -> None:
    r = np.random.default_rng(3)
    low = np.append(r.normal(0, 100, 60), [0, -1, 0.5, 7, 7]).astype(dtype)
    high = np.append(r.normal(0, 100, 60), [-0.0, 1, 1, 7, 8]).astype(dtype)
    if dtype == "float64":
        low[:4], high[:4] = [np.inf, -np.inf, np.nan, 1e308], [np.inf, np.inf, 1, -1e308]
    if dtype == "int64":
        low[:2], high[:2] = [2**52, -(2**52)], [2**52 + 3, 2**52]
    weights = np.append(r.random(60), [0.0, 0.5, 0.5, 0.3, 0.5])
    weights[::7] = 0
    there = r.integers(0, 2, 65).astype(np.uint8)
    with np.errstate(invalid="ignore", over="ignore"):
        want = np.where(there, quantiles._between(low, high, weights, rule), 0)
    for size in (0, 1, 65):
        a, b, w, t = (a[:size].copy() for a in (low, high, weights, there))
        made = interpolating.between(a, b, w, t, rule)
        assert made.dtype.kind == want.dtype.kind
        assert np.array_equal(made, want[:size].astype(made.dtype), equal_nan=rule == "double")


def test_what_lies_between_wide_integers() -> None:
    low, high = np.repeat(WIDE, len(WIDE), axis=0), np.tile(WIDE, (len(WIDE), 1))
    kept = (low[:, 1] >> 60 == low[:, 1] >> 63) & (high[:, 1] >> 60 == high[:, 1] >> 63)  # others may be between what no word has
    low, high = low[kept], high[kept]
    for weight in (0.0, 0.5, 0.75):
        weights, there = np.full(len(low), weight), (np.arange(len(low)) % 5 > 0).astype(np.uint8)
        found = interpolating.between_wide(low.reshape(-1).copy(), high.reshape(-1).copy(), weights, there)
        assert np.array_equal(found, quantiles._between_wide(low.reshape(-1), high.reshape(-1), weights, there))
