"""Buckets of sorted keys: where among them a search has to look, found by the keys' high bits.

A binary search among a hundred million keys reads a dozen places that are in no cache. The range of the keys is cut into buckets
of one width, so many that a bucket has few keys where they are spread evenly, and `starts` says where each begins. So a search
reads two starts beside each other, and a place or two between them; where keys crowd in one bucket, it is the binary search that
it was. Each start is itself found by a search, and neighbours read the same places.

``scale`` (int64) has the least key, how many low bits of the distance to it do not count, and the last bucket that has a key. In
``starts`` (uint32) stands 0 for what is less than the least key, the first place of each bucket up to the last, and the number of
keys, twice, for what is behind (`kernels.primitives.ranges.key_bucket`).
"""

from __future__ import annotations

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.kernels.builtin.define import builtin_kernel, launch, namespace

_SCALE = builtin_kernel(
    "keys:*i64 last:i64 bits:i64 scale:*i64",
    "least = load_i64(keys, 0)",
    "width = sub_i64(load_i64(keys, last), least)",
    "shift = i64(0)",
    "while lt_i64(add_i64(shift, bits), 64) and ne_i64(shr_u64(width, add_i64(shift, bits)), 0):",
    "    shift = add_i64(shift, 1)",
    "store_i64(scale, 0, least)",
    "store_i64(scale, 1, shift)",
    "store_i64(scale, 2, high_bits(width, shift))",
)
_STARTS = builtin_kernel(
    "keys:*i64 count:i64 scale:*i64 starts:*u32",
    "start = i64(0)",
    "bucket = sub_i64(i64(i), 1)",
    "if gt_i64(bucket, load_i64(scale, 2)):",
    "    start = i64(count)",
    "if gt_i64(bucket, 0) and not gt_i64(bucket, load_i64(scale, 2)):",
    "    low = add_i64(load_i64(scale, 0), shl_i64(bucket, load_i64(scale, 1)))",
    "    start = first_at_least(keys, 0, count, shl_i64(low, 0))",  # of 64 bits, as the least key may be far below 0
    "store_u32(starts, i64(i), start)",
)

_BEFORE, _BEHIND = 1, 2  # starts that are of no bucket
_SCALE_PARTS = ("the least key", "the shift", "the last bucket")


def key_buckets(keys: Array, workers: int = 1) -> tuple[Array, Array]:
    """The ``starts`` and the ``scale`` of keys (int64, ascending)."""
    xp, count = namespace(keys), int(keys.size)
    buckets = max(count // tuning.join_layouts.rows_a_bucket, 2)  # two, so that a shift is less than 64
    bits = min(buckets.bit_length() - 1, tuning.join_layouts.bucket_bits)
    starts, scale = xp.zeros(_BEFORE + (1 << bits) + _BEHIND, np.uint32), xp.zeros(len(_SCALE_PARTS), np.int64)
    if count:
        launch(_SCALE, 1, keys, keys, count - 1, bits, scale)
        launch(_STARTS, starts.size, starts, keys, count, scale, starts, workers=workers)
    return starts, scale
