"""MD5 over arrays of strings: each step of the algorithm is done for many strings at once."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.functions.vectors import characters_of, offsets_of

_SHIFTS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_SINES = [int(abs(math.sin(n + 1)) * 2**32) for n in range(64)]
_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_AT_ONCE = 4096  # strings whose state stays in a core's cache
_LONG = 64  # blocks from which on Python's own is faster: it lets go of the interpreter's lock


def md5_digests(texts: pa.Array) -> Any:
    """The digests of strings, 16 bytes a row."""
    offsets, data = offsets_of(texts), characters_of(texts)
    lengths = offsets[1:] - offsets[:-1]
    blocks = (lengths + 8) // 64 + 1
    digests = np.empty((len(texts), 16), np.uint8)
    for count in np.unique(blocks):
        (rows,) = np.nonzero(blocks == count)
        if count > _LONG:
            for row in rows.tolist():
                digest = hashlib.md5(data[offsets[row] : offsets[row + 1]], usedforsecurity=False).digest()
                digests[row] = np.frombuffer(digest, np.uint8)
            continue
        step = max(1, _AT_ONCE // int(count))
        for at in range(0, len(rows), step):
            few = rows[at : at + step]
            digests[few] = _digests(_padded(data, offsets[few], lengths[few], int(count)))
    return digests


def _padded(data: Any, starts: Any, lengths: Any, blocks: int) -> Any:
    """Messages with a bit and their length behind them, as words: one row a word, one column a message."""
    size = 64 * blocks
    place = np.arange(size)
    inside = place[None, :] < lengths[:, None]
    if len(data):
        message = data[np.minimum(starts[:, None] + place[None, :], len(data) - 1)] * inside
    else:
        message = np.zeros((len(starts), size), np.uint8)
    message[np.arange(len(starts)), lengths] = 0x80
    words = message.view("<u4").T.copy()
    words[-2] = (lengths * 8).astype(np.uint32)
    words[-1] = (lengths >> 29).astype(np.uint32)
    return words


def _digests(words: Any) -> Any:
    count = words.shape[1]
    state = [np.full(count, word, np.uint32) for word in _START]
    for block in range(0, words.shape[0], 16):
        a, b, c, d = state
        for n in range(64):
            if n < 16:
                mixed, at = d ^ (b & (c ^ d)), n
            elif n < 32:
                mixed, at = c ^ (d & (b ^ c)), (5 * n + 1) % 16
            elif n < 48:
                mixed, at = b ^ c ^ d, (3 * n + 5) % 16
            else:
                mixed, at = c ^ (b | ~d), (7 * n) % 16
            mixed += a
            mixed += words[block + at] + np.uint32(_SINES[n])
            by = _SHIFTS[n // 16][n % 4]
            turned = mixed << np.uint32(by)
            turned |= mixed >> np.uint32(32 - by)
            turned += b
            a, d, c, b = d, c, b, turned
        state = [old + new for old, new in zip(state, (a, b, c, d), strict=True)]
    return np.stack(state, axis=1).astype("<u4").view(np.uint8)
