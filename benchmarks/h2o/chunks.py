"""Arrays of many random values, made in chunks by threads: a hundred million rows take seconds on a machine with some cores.

Each chunk has a generator of its own, of the seed and the chunk's number, so that a table is the same on any number of cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

CHUNK = 1 << 20  # rows
PREFIX = b"id"

Numbers = np.ndarray[Any, Any]
Make = Callable[[np.random.Generator, int, int], Numbers]
"""``make(random, lo, hi)``: the values of the rows from ``lo`` to before ``hi``."""


class Chunks:
    """Makes arrays, each of other random numbers than the one before."""

    def __init__(self, seed: int) -> None:
        self._seeds = np.random.SeedSequence(seed)
        self._threads = ThreadPoolExecutor(os.cpu_count())

    def array(self, rows: int, dtype: type, make: Make) -> Numbers:
        """So many values."""
        made: Numbers = np.empty(rows, dtype)
        starts = range(0, rows, CHUNK)
        seeds = self._seeds.spawn(1)[0].spawn(len(starts))

        def one(number: int) -> None:
            lo = starts[number]
            hi = min(lo + CHUNK, rows)
            made[lo:hi] = make(np.random.default_rng(seeds[number]), lo, hi)

        list(self._threads.map(one, range(len(starts))))
        return made

    def integers(self, low: int, high: int, rows: int) -> Numbers:
        """Numbers from ``low`` to before ``high`` (int32)."""
        return self.array(rows, np.int32, lambda random, lo, hi: random.integers(low, high, hi - lo, np.int32))

    def uniform(self, rows: int) -> Numbers:
        """Doubles below 100 of six places."""
        return self.array(rows, np.float64, lambda random, lo, hi: np.round(random.uniform(0, 100, hi - lo), 6))

    def normal(self, rows: int) -> Numbers:
        """Doubles about 0."""
        return self.array(rows, np.float64, lambda random, lo, hi: random.normal(0, 1, hi - lo))

    def taken(self, values: Numbers, rows: int) -> Numbers:
        """Of values any, with repetition."""
        return self.array(
            rows, values.dtype.type, lambda random, lo, hi: values[random.integers(0, values.size, hi - lo, np.int32)]
        )

    def permutation(self, size: int) -> Numbers:
        """The numbers from 0 to before ``size`` in some order (int32): each number of as many bits is mixed to another one, and
        those that are too large are left out."""
        bits = max((size - 1).bit_length(), 2)
        factors = [int(n) for n in np.random.default_rng(self._seeds.spawn(1)[0]).integers(1 << 20, 1 << 30, 3) | 1]
        mixed = self.array(
            1 << bits, np.int32, lambda _, lo, hi: _mixed(np.arange(lo, hi, dtype=np.uint64), bits, factors)
        )
        kept: Numbers = mixed[mixed < size]
        return kept

    def texts(self, numbers: Numbers, digits: int) -> pa.Array:
        """``id`` and each number in so many digits."""
        width = len(PREFIX) + digits
        characters = np.empty((numbers.size, width), np.uint8)
        starts = range(0, numbers.size, CHUNK)

        def one(lo: int) -> None:
            part, rest = characters[lo : lo + CHUNK], numbers[lo : lo + CHUNK].astype(np.uint32)
            part[:, : len(PREFIX)] = np.frombuffer(PREFIX, np.uint8)
            for n in reversed(range(len(PREFIX), width)):
                rest, digit = np.divmod(rest, np.uint32(10))
                part[:, n] = digit + ord("0")

        list(self._threads.map(one, starts))
        is_long = numbers.size * width > np.iinfo(np.int32).max
        offsets = np.arange(numbers.size + 1, dtype=np.int64 if is_long else np.int32) * width
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(characters)]
        return pa.Array.from_buffers(pa.large_string() if is_long else pa.string(), numbers.size, buffers)

    def labels(self, numbers: Numbers, most: int, digits: int) -> pa.Array:
        """The same of numbers from 1 to ``most``, of which many are the same: as a dictionary, and which of it each row has."""
        dictionary = self.texts(np.arange(1, most + 1), digits)
        return pa.DictionaryArray.from_arrays(pa.array(numbers - np.int32(1)), dictionary)


def _mixed(numbers: Numbers, bits: int, factors: list[int]) -> Numbers:
    """Other numbers of so many bits, a different one for each."""
    mask, half = np.uint64((1 << bits) - 1), np.uint64(bits // 2)
    for factor in factors:
        numbers = numbers * np.uint64(factor) & mask
        numbers = numbers ^ numbers >> half
    return numbers
