"""Order of rows of which only the GPU knows how many there are (see `readback.Count`): nothing is read back.

`order` asks which rows are still tied, and sorts those by the next bits. Here all bits of the keys are made first, and rows are
sorted by words of them, the last word first: a stable sort by each leaves them in the order of all. The first word has a bit
above the keys', which is set for what stands behind the rows that count.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.facts import BITMAP_BITS, INT64_BITS, INT64_BYTES, UINT64_MAX
from gquery.expression.types import Bounds
from gquery.kernels.builtin.define import builtin_kernel, launch, namespace
from gquery.kernels.builtin.elements import row_numbers
from gquery.kernels.builtin.extremes import greatest
from gquery.kernels.builtin.gathers import gather
from gquery.kernels.builtin.order import Integers, KeyBits, OrderKey, Part, Text, bound_of
from gquery.kernels.builtin.order_bits import places_of, with_places
from gquery.kernels.builtin.scans import PADDED, check_rows, counted_compact, counted_rows_of_bits, pad
from gquery.kernels.builtin.sort_room import sorted_words
from gquery.kernels.builtin.text_keys import text_words
from gquery.kernels.kernel import Kernel
from gquery.kernels.readback import Count, read_most
from gquery.runtime.tuples import NamedTuple


def counted_order(keys: Sequence[OrderKey], count: Count, rows: Array | None = None) -> Array | None:
    """All rows, or those given, in the order of the keys, ascending (uint32): as many as ``count`` says, and behind these the
    others in any order. Stable. None where the keys have so many bits that it would take too long."""
    xp, n = keys[0].xp, count.bound
    check_rows(n)
    is_ranked = xp is not np and n <= tuning.sorting.ranked_rows
    place_bits, at = 0 if is_ranked else _place_bits(n), None
    words = _words([_of_known_bits(k) for k in keys], rows, n, INT64_BITS - place_bits)
    if words is None:
        return None
    if words:
        pad(words[0], count)
    if words and is_ranked:
        from gquery.kernels.builtin.ranked import ranked_order

        at, words = ranked_order(words), []
    for word in reversed(words):
        placed = sorted_words(with_places(word if at is None else gather(word, at), place_bits))
        moved = places_of(placed, place_bits)
        at = moved if at is None else gather(at, moved)
    if at is None:  # all rows are equal
        return row_numbers(xp, n) if rows is None else rows
    return at if rows is None else gather(rows, at)


def counted_candidates(keys: Sequence[OrderKey], k: int, number: Array) -> tuple[Array, Count] | None:
    """Rows among which the first ``k`` of `counted_order` are, of so many rows as ``number`` (int64, one, on the GPU) says, and
    how many these are. None where there are not many rows, and where the first key is text."""
    n = keys[0].size
    known = [_of_known_bits(key) for key in takewhile(lambda key: isinstance(key, Integers), keys)]
    if not known or not 0 < k < n // tuning.sorting.candidate_rows:
        return None
    values = KeyBits(known).take(None, INT64_BITS - 1)
    if values is None:
        return None
    pad(values, Count(n, number))
    bound = bound_of(values, k)
    if namespace(values) is np:
        return counted_compact((values <= bound) & (values != np.uint64(UINT64_MAX)))
    return counted_rows_of_bits(candidate_bits(values, bound), n, varies=True)


CANDIDATES = builtin_kernel(
    "c0:*u64 bound:*u64 bits:*u32",
    "v0 = i64(c0[i])",
    "is_candidate = lt_u64(v0, -1) and not lt_u64(load_i64(bound, 0), v0)",
    "v1 = ballot(members(i, hi), is_candidate)",
    "if eq_i64(lane(), 0):",
    "    store_u32(bits, word_index(i), v1)",
    hoisted=("v0",),
)


def candidate_bits(values: Array, bound: Array) -> Array:
    """The bitmap, in words of 32 bits, of the values (uint64) that are neither greater than the only one of ``bound`` nor the
    greatest of all, which `pad` has written."""
    bits: Array = namespace(values).empty(-(-values.size // BITMAP_BITS), np.uint32)
    launch(CANDIDATES, values.size, values, values, bound.reshape(1), bits)
    return bits


_BETWEEN = builtin_kernel(
    "numbers:*i64 before:i64 most:i64 made:*i64",
    "store_i64(made, i64(i), max_i64(min_i64(sub_i64(i64(numbers[i]), before), most), i64(0)))",
)


def kernels_of_counted_sorts() -> tuple[Kernel, ...]:
    """Those that only sorts of so many rows as a GPU knows have use for."""
    from gquery.kernels.builtin.ranked import RANKING

    return tuple(made.kernel for made in (CANDIDATES, _BETWEEN, PADDED, *RANKING.values()))


class RowsBetween(NamedTuple):
    """The rows from ``lo`` to ``hi`` of a frame, of which as many count as ``number`` says (None: all)."""

    lo: int
    hi: int
    number: Array | None


def rows_between(count: Count, offset: int, limit: int | None) -> RowsBetween:
    """The rows that OFFSET and LIMIT leave."""
    lo = min(offset, count.bound)
    hi = count.bound if limit is None else min(lo + limit, count.bound)
    number = count.number
    if number is not None and (lo, hi) != (0, count.bound):
        number = namespace(number).empty(1, np.int64)
        launch(_BETWEEN, 1, number, count.number, lo, hi - lo, number)
    return RowsBetween(lo, hi, number)


def _place_bits(rows: int) -> int:
    return max(rows - 1, 0).bit_length()


def _words(keys: Sequence[OrderKey], rows: Array | None, n: int, room: int) -> list[Array] | None:
    """The bits of all keys, of so many rows, the first ones first: ``room`` for them in each word, one less in the first."""
    key_bits = KeyBits(keys)
    words: list[Array] = []
    limits = tuning.sorting
    while n > 1 and (word := key_bits.take(rows, room if words else room - 1)) is not None:
        words.append(word)
        if (len(words) > 1 and len(words) * n > limits.counted_words) or len(words) > limits.counted_rounds:
            return None
    return words


class CountedText(Text):
    """Strings of which nothing is read back but how many bytes the longest has at most. Behind the last that counts stand empty
    ones."""

    def __init__(self, column: ColumnData, device: Device, descending: bool = False) -> None:
        super().__init__(column, device, descending)
        lengths = self._lengths(None)
        self.longest = read_most(greatest(lengths)) if lengths.size else 0

    def part(self, n: int, rows: Array | None) -> Part | None:
        """The n-th eight bytes of the texts as unsigned numbers in their order, at last the lengths; None behind."""
        words = -(-self.longest // INT64_BYTES)
        if n > words:
            return None
        if n == words:
            return Part(self._lengths, Bounds(0, self.longest), self.descending)
        missing = max(INT64_BYTES * (n + 1) - self.longest, 0)
        bounds = Bounds(0, UINT64_MAX)
        return Part(
            lambda wanted: text_words(self.column, self.device, n, wanted),
            bounds,
            self.descending,
            INT64_BITS // INT64_BYTES * missing,
        )


def _of_known_bits(key: OrderKey) -> OrderKey:
    """A key of which nothing has to be read back to know how many bits it has."""
    match key:
        case Integers(bounds=None):
            info = np.iinfo(key.data.dtype)
            return Integers(key.data, Bounds(int(info.min), int(info.max)), key.descending)
        case CountedText():
            return key
        case Text():
            return CountedText(key.column, key.device, key.descending)
        case _:
            return key
