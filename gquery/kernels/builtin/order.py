"""Order: the rows of a frame sorted by its keys, or the first few of them.

All keys of a row, one behind the other, are one long number. A round sorts by as many of its bits as fit into a 64-bit word
above the row's place, so that plain integers are sorted and no permutation is carried along; only rows that are still tied
go into the next round. So text is read no further than it takes to tell rows apart, eight bytes at a time, and a wide
integer need not be looked at to its end. Where few rows are wanted, a bound on the first bits leaves few to sort.

Arrays are NumPy's or CuPy's; row numbers are uint32. Sorts are stable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Protocol

import numpy as np

from gquery import tuning
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.expression.facts import INT64_BITS, UINT64_MAX
from gquery.expression.types import Bounds, PhysicalType
from gquery.kernels.builtin.define import fill, namespace
from gquery.kernels.builtin.elements import are_at_most, converted, differences, or_shifted, put, row_numbers, store
from gquery.kernels.builtin.extremes import greatest
from gquery.kernels.builtin.gathers import gather, gather_views, text_lengths
from gquery.kernels.builtin.order_bits import (
    Piece,
    TieGroups,
    append_bits,
    bounds_of,
    changed_words,
    least_of_chunks,
    placed_words,
    places_in_runs,
    places_of,
    signed,
    starts_of,
    tied,
    tied_places,
    with_places,
)
from gquery.kernels.builtin.prefix_sums import running_sums
from gquery.kernels.builtin.scans import check_rows, compact
from gquery.kernels.builtin.sort_room import room_to_sort, sorted_words
from gquery.kernels.builtin.text_keys import bytes_of_rows, text_words
from gquery.kernels.readback import read_scalar
from gquery.runtime.records import dataclass

Fetch = Callable[[Array | None], Array]
"""``fetch(rows)``: the integers of these rows (None: all)."""


@dataclass(frozen=True)
class Part:
    """A number by which rows are sorted, or a part of one. Descending is ascending with every bit turned. The last ``zeros`` bits
    are 0 in all values."""

    fetch: Fetch
    bounds: Bounds
    descending: bool
    zeros: int = 0

    @property
    def bits(self) -> int:
        """Bits that tell the values within the bounds apart."""
        return (self.bounds.width - 1).bit_length() - self.zeros

    def piece(self, right: int, count: int) -> Piece:
        """``count`` bits of all rows' numbers, those before the last ``right``."""
        flip, least = (-1, ~self.bounds.high) if self.descending else (0, self.bounds.low)
        return Piece(self.fetch(None), flip, signed(least), right + self.zeros, count)

    def append(self, words: Array | None, rows: Array | None, right: int, count: int) -> Array:
        """``words`` (None: nothing) with ``count`` bits of the rows' numbers behind them, those before the last ``right``."""
        found, right = self.fetch(rows), right + self.zeros
        flip, least = (-1, ~self.bounds.high) if self.descending else (0, self.bounds.low)
        if namespace(found) is np:
            if found.dtype.itemsize < 8:
                found = found.astype(np.int64)
            turned = (found.view(np.uint64) ^ np.uint64(flip & UINT64_MAX)) - np.uint64(least & UINT64_MAX)
            part: Array = turned >> np.uint64(right) & np.uint64(2**count - 1)
            return part if words is None else words << np.uint64(count) | part
        return append_bits(words, Piece(found, flip, signed(least), right, count))


class OrderKey(Protocol):
    """What rows are sorted by, as parts, most significant first."""

    size: int
    xp: ModuleType

    def part(self, n: int, rows: Array | None) -> Part | None:
        """The n-th part; None behind the last one. ``rows`` are those that will be asked for, and parts of them."""
        ...


class Integers:
    """Integers of at most 64 bits; ``bounds``, where not known, are looked up."""

    def __init__(self, data: Array, bounds: Bounds | None = None, descending: bool = False) -> None:
        self.data, self.bounds, self.descending = data, bounds, descending
        self.size, self.xp = int(data.size), namespace(data)

    def part(self, n: int, rows: Array | None) -> Part | None:
        """The values and their bounds, as the only part; None behind it."""
        if n > 0:
            return None
        return Part(self._taken, self.bounds or bounds_of(self._taken(rows)), self.descending)

    def _taken(self, rows: Array | None) -> Array:
        return self.data if rows is None else gather(self.data, rows)


class Text:
    """Strings in the order of their bytes: words of eight, and the length, which tells "a" from "a" and a zero byte."""

    def __init__(self, column: ColumnData, device: Device, descending: bool = False) -> None:
        self.column = gather_views(column, device) if column.physical_type is PhysicalType.VIEW else column
        self.device, self.descending = device, descending
        self.size, self.xp = column.length, device.xp
        self.longest = -1

    def part(self, n: int, rows: Array | None) -> Part | None:
        """The n-th eight bytes of the texts as unsigned numbers in their order; at last ranks or lengths; None behind."""
        if self.longest < 0:
            lengths = self._lengths(rows)
            self.longest = read_scalar(greatest(lengths)) if lengths.size else 0
        words = -(-self.longest // 8)
        if n > min(words, tuning.sorting.text_words):
            return None
        if n == words:
            return Part(self._lengths, Bounds(0, self.longest), self.descending)
        if n == tuning.sorting.text_words:
            return self._ranked(rows)

        first = text_words(self.column, self.device, n, rows)

        def word(wanted: Array | None) -> Array:
            return first if wanted is rows else text_words(self.column, self.device, n, wanted)

        return Part(word, bounds_of(first), self.descending)

    def _lengths(self, rows: Array | None) -> Array:
        data = self.column.data.on(self.device)
        if rows is None:
            return differences(data)
        return text_lengths(self.column, rows, self.device)

    def _ranked(self, rows: Array | None) -> Part:
        """The ranks of long strings that begin alike, found on the host."""
        wanted = np.arange(self.size) if rows is None else np.minimum(self.device.to_host(rows), self.size - 1)
        texts = bytes_of_rows(self.column, wanted)
        rank = {s: k for k, s in enumerate(sorted(set(texts)))}
        ranks = np.zeros(self.size, np.int64)
        ranks[wanted] = [rank[s] for s in texts]
        placed = self.device.from_host(ranks)
        bounds = Bounds(0, max(len(rank) - 1, 0))
        return Part(lambda rows: placed if rows is None else gather(placed, rows), bounds, self.descending)


class KeyBits:
    """The bits of all keys, taken from the front."""

    def __init__(self, keys: Sequence[OrderKey]) -> None:
        self.keys, self.xp = list(keys), keys[0].xp
        self.number = 0  # of the next part of the first key that is left
        self.gone = 0  # keys that have no part left
        self.part: Part | None = None
        self.left = 0  # bits of it that were not taken yet

    def take(self, rows: Array | None, room: int, enough: int = INT64_BITS) -> Array | None:
        """The next bits of these rows, at most ``room``, and no further part behind ``enough`` of them; None where no bit is
        left."""
        words: Array | None = None
        used = 0
        while used < min(room, enough) and self._find(rows):
            assert self.part is not None
            count = min(self.left, room - used)
            self.left -= count
            words = self.part.append(words, rows, self.left, count)
            used += count
        return words

    def pieces(self, room: int, first: int = 0) -> tuple[list[Piece], int | None]:
        """The next bits of all rows, at most ``room``, of each number that they are from. And how many bits stand behind those of
        the ``first`` keys, which are plain integers; None where these are not all of it, and of no bits."""
        pieces: list[Piece] = []
        used = before = 0
        while used < room and self._find(None):
            assert self.part is not None
            count = min(self.left, room - used)
            self.left -= count
            pieces.append(self.part.piece(self.left, count))
            used += count
            before += count if self.gone < first else 0
        is_whole = self.gone >= first or (
            self.gone == first - 1 and self.left == 0 and isinstance(self.keys[0], Integers)
        )
        return pieces, used - before if is_whole and pieces else None

    def _find(self, rows: Array | None) -> bool:
        """Whether there is a bit left; the part that it is in is at hand then."""
        while self.left == 0 and self.keys:
            self.part = self.keys[0].part(self.number, rows)
            if self.part is None:
                self.keys.pop(0)
                self.number, self.gone = 0, self.gone + 1
            else:
                self.number, self.left = self.number + 1, self.part.bits
        return self.left > 0

    @property
    def ended(self) -> bool:
        """Whether it is known without looking that no bit is left."""
        return self.left == 0 and self.ends_here

    @property
    def ends_here(self) -> bool:
        """Whether it is known that no bit is left but those of the part at hand."""
        return not self.keys or (len(self.keys) == 1 and isinstance(self.keys[0], Integers))


# ---- sorting --------------------------------------------------------------------------------------------------------


def sort_order(keys: Sequence[OrderKey], rows: Array | None = None, workers: int = 1) -> Array:
    """All rows, or those given, in the order of the keys, ascending."""
    return _sorted(keys, rows, False, workers=workers)[0]


def sort_starts(keys: Sequence[OrderKey], workers: int = 1) -> tuple[Array, Array]:
    """All rows in the order of the keys, and for each place whether its row's keys differ from those of the one before."""
    rows, starts, _ = _sorted(keys, None, True, workers=workers)
    assert starts is not None
    return rows, starts


def sort_partitions(keys: Sequence[OrderKey], first: int, workers: int) -> tuple[Array, Array, Array | None]:
    """The same (as uint8), and for each place whether the ``first`` keys differ (uint8): None where that is not found on the
    way."""
    rows, starts, firsts = _sorted(keys, None, True, first, workers)
    assert starts is not None
    return rows, starts.view(np.uint8), firsts


def top_k(keys: Sequence[OrderKey], k: int) -> Array:
    """The first ``k`` rows of `sort_order`, without sorting the rest."""
    flags = are_candidates(keys, k)
    return sort_order(keys, None if flags is None else compact(flags))[: max(k, 0)]


def are_candidates(keys: Sequence[OrderKey], k: int) -> Array | None:
    """Flags of rows among which the first ``k`` of `sort_order` are, in any case few more: how many depends on the order of the
    rows. None where there are not many rows."""
    n = keys[0].size
    check_rows(n)
    if 0 < k < n // tuning.sorting.candidate_rows:
        values = KeyBits(keys).take(None, INT64_BITS, n.bit_length() + tuning.sorting.spare_bits)
        if values is not None:
            return are_at_most(values, bound_of(values, k))
    return None


def bound_of(values: Array, k: int) -> Array:
    """A value that at least ``k`` of the values do not exceed, and few more."""
    xp = namespace(values)
    if xp is np:
        least: Array = np.partition(values, k - 1)[k - 1]
        return least
    chunk = min(tuning.sorting.bound_chunk, values.size // (tuning.sorting.chunks_a_row * k))
    # a chunk whose least value is not above the bound has one such value at least
    found = least_of_chunks(values, chunk) if chunk > 1 else converted(values, values.dtype)
    room_to_sort(found).sort()
    bound: Array = found[k - 1]
    return bound


def _sorted(
    keys: Sequence[OrderKey], rows: Array | None, with_starts: bool, first: int = 0, workers: int = 1
) -> tuple[Array, Array | None, Array | None]:
    xp, n = keys[0].xp, keys[0].size if rows is None else int(rows.size)
    check_rows(n)
    key_bits, order = KeyBits(keys), rows
    if rows is None and n >= tuning.sorting.fused_rows:
        return _sorted_at_once(key_bits, n, with_starts, first, workers)
    starts: Array | None = None
    if with_starts:
        starts = xp.zeros(n, np.uint8)
        fill(starts[:1], 1)
    order = _told_apart(key_bits, order, starts, None, None, n)
    starts = None if starts is None else starts.view(np.bool_)
    return (row_numbers(xp, n) if order is None else order), starts, None


def _sorted_at_once(
    key_bits: KeyBits, n: int, with_starts: bool, first: int, workers: int
) -> tuple[Array, Array | None, Array | None]:
    """The same of all of many rows: the first round makes, and looks at, all of its words in one pass."""
    xp = key_bits.xp
    place_bits = (n - 1).bit_length()
    limits = tuning.sorting
    bits = min(limits.bucket_bits, place_bits - 1) if xp is np and n >= limits.bucket_rows else 0
    pieces, behind = key_bits.pieces(INT64_BITS - place_bits + bits, first)
    if not pieces:
        flags = xp.zeros(n, np.uint8)
        fill(flags[:1], 1)
        return row_numbers(xp, n), flags.view(np.bool_), flags
    buckets = None
    if bits:
        from gquery.kernels.builtin.sort_buckets import sorted_buckets

        buckets = sorted_buckets(pieces, place_bits, bits, workers)
        words = buckets.words
    else:
        words = sorted_words(placed_words(pieces, place_bits, workers))
    order = places_of(words, place_bits, workers)
    if key_bits.ended and not with_starts:
        return order, None, None
    starts, firsts = starts_of(words, place_bits, behind or 0, workers)
    if buckets is not None:
        buckets.mark(starts, None if behind is None else firsts, sum(p.count for p in pieces) - (behind or 0))
        buckets = None
    at = tied_places(words, place_bits, starts)
    if at.size and not key_bits.ended:
        runs = xp.zeros(at.size, np.uint64)
        running_sums(gather(starts, at[1:]), runs.dtype, runs[1:])
        del words
        _told_apart(key_bits, order, starts, at, runs, n)
    return order, starts.view(np.bool_), firsts if behind is not None else None


def _told_apart(
    key_bits: KeyBits, order: Array | None, starts: Array | None, at: Array | None, runs: Array | None, n: int
) -> Array | None:
    """The order in which rows that are tied stand apart, or have no bit left: at places ``at`` (None: all), with others of their
    run."""
    xp = key_bits.xp
    while n > 1:
        own = order if at is None or order is None else gather(order, at)
        groups, places = _round(key_bits, own, n if at is None else int(at.size), runs, xp)
        if places is None:
            break
        moved = places if own is None else gather(own, places)
        if at is None or order is None:
            order = moved
        else:
            put(order, at, moved)
        if key_bits.ended and starts is None:
            break
        if starts is not None:
            changed = changed_words(groups).view(np.uint8)
            if at is None:
                store(changed, starts[1:])
            else:
                put(starts, at[1:], changed)
        still = tied(groups)
        if still.size == 0:
            break
        at = still if at is None else gather(at, still)
        runs = xp.zeros(still.size, np.uint64)
        changed = changed_words([(gather(g, still), bits) for g, bits in groups])
        running_sums(changed, runs.dtype, runs[1:])
    return order


def _round(
    key_bits: KeyBits, rows: Array | None, size: int, runs: Array | None, xp: ModuleType
) -> tuple[TieGroups, Array | None]:
    """Sort ``size`` tied rows within their runs by the next bits: what tells them apart now, and the place that each had
    before; None where no bit is left."""
    place_bits = (size - 1).bit_length()
    run_bits = 0 if runs is None else read_scalar(runs[-1]).bit_length()
    room = INT64_BITS - place_bits - run_bits
    # runs for which the words have no room: they are sorted by after the bits
    behind = runs if room < tuning.sorting.round_bits else None
    values = key_bits.take(rows, room if behind is None else INT64_BITS)
    if values is None:
        return [], None
    if behind is not None:
        places = places_in_runs(values, behind, place_bits)
        return [(gather(behind, places), 0), (gather(values, places), 0)], places
    words = with_places(values, place_bits)
    if runs is not None and run_bits:
        or_shifted(words, runs, INT64_BITS - run_bits)
    words = sorted_words(words)
    return [(words, place_bits)], places_of(words, place_bits)
