"""Base64 of many strings at once by NumPy: three bytes are four characters, of which a table of 4,096 entries has two and two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gquery.functions.byte_maps import Strings, bytes_of
from gquery.functions.vectors import from_numpy, text_like
from gquery.runtime.arrow_compute import pc

_CHARACTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)
_VALUES = np.full(256, -1, np.int8)
_VALUES[_CHARACTERS] = np.arange(64)
_PAIRS = np.stack([np.repeat(_CHARACTERS, 64), np.tile(_CHARACTERS, 64)], axis=1).view(np.uint16)[:, 0]
_PAD = ord("=")


def encoded(strings: pa.Array) -> Strings:
    """The bytes of strings or blobs in Base64."""
    data, offsets = bytes_of(strings)
    sizes = np.diff(offsets)
    groups = (sizes + 2) // 3
    ends = np.append(0, np.cumsum(groups))
    padded = np.zeros(3 * int(ends[-1]), np.uint8)
    padded[np.arange(len(data)) + np.repeat(3 * ends[:-1] - offsets[:-1], sizes)] = data
    three = padded.reshape(-1, 3).astype(np.uint32)
    words = three[:, 0] << 16 | three[:, 1] << 8 | three[:, 2]
    made = np.stack([_PAIRS[words >> 12], _PAIRS[words & 0xFFF]], axis=1).reshape(-1).view(np.uint8)
    missing = 3 * groups - sizes
    made[4 * ends[1:][missing > 0] - 1] = _PAD
    made[4 * ends[1:][missing > 1] - 2] = _PAD
    return made, 4 * ends


def decoded(texts: pa.Array) -> tuple[Strings, Any]:
    """The bytes that Base64 says, and which texts are Base64."""
    _, offsets = bytes_of(texts)
    ok = np.diff(offsets) % 4 == 0
    if not ok.all():
        texts = pc.if_else(from_numpy(ok), texts, text_like("", texts))
    data, offsets = bytes_of(texts)
    last = offsets[1:][np.diff(offsets) > 0] - 1
    second = last[data[last - 1] == _PAD] - 1
    pads = last[(data[last] == _PAD) | (data[last - 1] == _PAD)]  # behind the first of two anything may stand, as in DuckDB
    padding = np.concatenate([pads, second])
    values = _VALUES[data]
    values[padding] = 0
    ok[np.searchsorted(offsets, np.flatnonzero(values < 0), "right") - 1] = False
    four = values.view(np.uint8).reshape(-1, 4).astype(np.uint32)
    words = four[:, 0] << 18 | four[:, 1] << 12 | four[:, 2] << 6 | four[:, 3]
    made = np.stack([words >> 16, words >> 8, words], axis=1).astype(np.uint8).reshape(-1)
    kept = np.ones(len(made), np.bool_)
    kept[(pads + 1) // 4 * 3 - 1] = False
    kept[(second + 2) // 4 * 3 - 2] = False
    before = np.searchsorted(np.sort(padding), offsets)
    return (made[kept], offsets // 4 * 3 - before), ok
