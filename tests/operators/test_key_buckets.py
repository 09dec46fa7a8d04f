"""Buckets of sorted keys: a search within a value's bucket finds what a search of all keys finds."""

from __future__ import annotations

import numpy as np
import pytest

from gquery.kernels.builtin.key_buckets import key_buckets
from gquery.kernels.primitives.ranges import first_above, first_at_least, key_bucket

LEAST, MOST = -(2**63), 2**63 - 1
KEYS = {
    "none": [],
    "one": [7],
    "equal": [5] * 40,
    "even": list(range(-100, 300, 3)),
    "all of 64 bits": [LEAST, LEAST + 1, -1, 0, 1, MOST - 1, MOST],
    "the ends": [LEAST] * 3 + [MOST] * 3,
    "above 2^63": [-5, 2**62, MOST],
    "crowded": sorted([0, *range(10**15, 10**15 + 50), 10**18]),
    "low": [LEAST, LEAST + 2],
    "random": sorted(np.random.default_rng(1).integers(-(10**6), 10**6, 500).tolist()),
}


@pytest.mark.parametrize("name", KEYS)
def test_a_bucket_has_what_is_searched_for(name: str) -> None:
    keys = np.array(KEYS[name], np.int64)
    starts, scale = key_buckets(keys)
    pointer, scales = memoryview(keys.data), memoryview(scale.data)
    near = {int(k) + d for k in keys for d in (-1, 0, 1)} | {0, LEAST, MOST, 10**15 - 10**9, 2**62 + 1}
    for value in near:
        if not LEAST <= value <= MOST:
            continue
        bucket = key_bucket(scales, value)
        first, last = int(starts[bucket]), int(starts[bucket + 1])
        assert first_at_least(pointer, first, last, value) == np.searchsorted(keys, value, "left")
        assert first_above(pointer, first, last, value) == np.searchsorted(keys, value, "right")


def test_evenly_spread_keys_have_small_buckets() -> None:
    starts, _ = key_buckets(np.arange(0, 10**6, 10, dtype=np.int64))
    assert np.diff(starts.astype(np.int64)).max() <= 8
