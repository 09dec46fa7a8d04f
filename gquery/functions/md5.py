"""MD5 over arrays of strings: each step of the algorithm is done for many strings at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.functions.vectors import characters_of, offsets_of

_SHIFTS: Any = np.array(((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21)), np.uint32)
_SINES = [np.uint32(int(abs(math.sin(n + 1)) * 2**32)) for n in range(64)]
_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
_AT_ONCE = 16384  # strings whose state stays in a core's cache
_LONG = 64  # blocks from which on Python's own is faster: it lets go of the interpreter's lock


def md5_digests(texts: pa.Array) -> Any:
    """The digests of strings, 16 bytes a row."""
    import hashlib  # loads OpenSSL

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
    message = np.zeros((len(starts), size), np.uint8)
    begins = np.arange(len(starts)) * size
    before = np.cumsum(lengths) - lengths
    place = np.arange(int(lengths.sum()))
    message.reshape(-1)[place + np.repeat(begins - before, lengths)] = data[place + np.repeat(starts - before, lengths)]
    message[np.arange(len(starts)), lengths] = 0x80
    words = message.view("<u4").T.copy()
    words[-2] = (lengths * 8).astype(np.uint32)
    words[-1] = (lengths >> 29).astype(np.uint32)
    return words


def _digests(words: Any) -> Any:
    count = words.shape[1]
    state = [np.full(count, word, np.uint32) for word in _START]
    mixed, other = np.empty(count, np.uint32), np.empty(count, np.uint32)
    for block in range(0, words.shape[0], 16):
        a, b, c, d = (s.copy() for s in state)
        for n in range(64):
            at = _mix(n, b, c, d, mixed, other)
            mixed += a
            mixed += words[block + at]
            mixed += _SINES[n]
            by = _SHIFTS[n // 16, n % 4]
            np.left_shift(mixed, by, out=a)
            np.right_shift(mixed, np.uint32(32) - by, out=other)
            a |= other
            a += b
            a, b, c, d = d, a, b, c
        state = [old + new for old, new in zip(state, (a, b, c, d), strict=True)]
    return np.stack(state, axis=1).astype("<u4").view(np.uint8)


def _mix(n: int, b: Any, c: Any, d: Any, mixed: Any, other: Any) -> int:
    """What step ``n`` makes of three words of the state, in ``mixed``; the number of the message's word that it takes."""
    if n < 16:
        np.bitwise_xor(c, d, out=mixed)
        mixed &= b
        mixed ^= d
        return n
    if n < 32:
        np.bitwise_xor(b, c, out=mixed)
        mixed &= d
        mixed ^= c
        return (5 * n + 1) % 16
    if n < 48:
        np.bitwise_xor(b, c, out=mixed)
        mixed ^= d
        return (3 * n + 5) % 16
    np.invert(d, out=other)
    np.bitwise_or(b, other, out=mixed)
    mixed ^= c
    return (7 * n) % 16
