"""Sorts of words of 64 bits: few are compared with each other, others are sorted by NumPy or CuPy.

What CuPy's sorts take beside their values is there before they begin: they cannot be told that a limit has no room, as what the
allocator raises within Thrust is lost, and would write to address 0.
"""

from __future__ import annotations

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.gpu_pool import is_limited
from gquery.kernels.builtin.define import builtin_kernel, launch, namespace

FEW_WORDS = builtin_kernel(  # each finds its place: behind those that are less, and those before it that are equal
    "words:*u64 rows:i64 made:*u64",
    "word = i64(words[i])",
    "place = i64(0)",
    "at = i64(0)",
    "while lt_i64(at, rows):",
    "    other = i64(words[row_index(at)])",
    "    if lt_u64(other, word) or (eq_i64(other, word) and lt_i64(at, i64(i))):",
    "        place = add_i64(place, 1)",
    "    at = add_i64(at, 1)",
    "store_u64(made, place, word)",
)


def room_to_sort(values: Array, copies: int = 1) -> Array:
    """The values, now that the pool has a free block for so many copies of them and some more. OutOfMemoryError where it has
    none."""
    xp, limits = namespace(values), tuning.sorting
    if xp is not np and is_limited():
        size = int(copies * values.nbytes * (1 + limits.room_fraction)) + limits.room_bytes
        xp.empty(size, np.uint8)  # which the pool keeps
    return values


def sorted_words(words: Array) -> Array:
    """Words (uint64) ascending, in their memory or in other."""
    if namespace(words) is not np and words.size <= tuning.sorting.few_words:
        return sorted_few(words)
    room_to_sort(words).sort()
    return words


def sorted_few(words: Array) -> Array:
    """The same by comparing each word with all others: a kernel of 3 to 5 us, where a sort of the fewest takes 15."""
    if words.size < 2:
        return words
    made: Array = namespace(words).empty(words.size, np.uint64)
    launch(FEW_WORDS, words.size, words, words, words.size, made)
    return made
