"""Many words sorted by the threads of a CPU: by their first bits into buckets, and then each bucket by itself.

    bits of the keys   bbbbbbbb kkkkkkkkkkkkkkkk    the first of them say which bucket
    a word of it                kkkkkkkkkkkkkkkk pppppp    the others, and the row's place

The bits of a bucket need not stand in its words, so that keys of a few more bits than a word has room for are told apart at once.
Rows go to their buckets in two passes, one that counts and one that writes; threads take turns at nothing in them. A bucket
is small enough for a core's cache, unless rows crowd in it; then it takes as long as all of them together would.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from itertools import pairwise

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.kernels.builtin.define import BuiltinKernel, builtin_kernel, launch
from gquery.kernels.builtin.order_bits import Piece, arguments_of, elements_of, reading
from gquery.runtime.records import dataclass
from gquery.runtime.threads import run_all


@dataclass(frozen=True, eq=False)
class Buckets:
    """Sorted words (uint64) without their first ``bits``, bucket behind bucket, and where each begins, with the end of the
    last."""

    words: Array
    bits: int
    starts: Array

    def mark(self, starts: Array, firsts: Array | None, bits: int) -> None:
        """Set the flags of places with which a bucket begins: all of ``starts``, and in ``firsts`` those of which the first
        ``bits`` bits of the keys differ."""
        numbers = np.flatnonzero(np.diff(self.starts))
        places = self.starts[numbers]
        starts[places] = 1
        if firsts is not None:
            heads = numbers >> max(self.bits - bits, 0)
            firsts[places[1:]] = heads[1:] != heads[:-1]


def sorted_buckets(pieces: Sequence[Piece], place_bits: int, bits: int, workers: int) -> Buckets:
    """The words of `order_bits.placed_words`, sorted; of the pieces' bits, the first ``bits`` are those of the bucket."""
    rows = int(pieces[0].values.size)
    used = sum(piece.count for piece in pieces)
    bits = min(bits, used)
    tile = -(-rows // workers)
    places = np.zeros((workers, 1 << bits), np.int64)
    given = (*arguments_of(pieces), rows, tile, used - bits, 1 << bits, places)
    elements = elements_of(pieces)
    launch(_counting(elements), workers, places, *given, workers=workers, unit=tile)
    starts = np.zeros(places.size + 1, np.int64)
    np.cumsum(places.T.ravel(), out=starts[1:])
    places[:] = starts[:-1].reshape(places.T.shape).T
    words = np.empty(rows, np.uint64)
    launch(_moving(elements), workers, places, *given, place_bits, words, workers=workers, unit=tile)
    ends = starts[::workers]
    _sort(words, ends, workers)
    return Buckets(words, bits, ends)


def _sort(words: Array, ends: Array, workers: int) -> None:
    """Sort each bucket; a task takes neighbouring ones of some rows together."""
    some = max(words.size // (workers * tuning.sorting.tasks_a_thread), 1)
    cuts = sorted({0, *np.searchsorted(ends, np.arange(some, words.size, some)).tolist(), len(ends) - 1})
    run_all([partial(_sort_some, words, ends[a : b + 1]) for a, b in pairwise(cuts)], workers)


def _sort_some(words: Array, ends: Array) -> None:
    for begin, end in pairwise(ends.tolist()):
        words[begin:end].sort()


_PARAMETERS = "rows:i64 tile:i64 right:i64 buckets:i64 places:*i64"


def _each(elements: tuple[str, ...]) -> tuple[str, list[str]]:
    """Parameters, and lines that find the bits ``v`` of each row ``at`` of a thread's tile, and where its bucket is counted."""
    parameters, bits_of_row = reading(elements, "row_index(at)")
    lines = [*bits_of_row, "slot = row_index(add_i64(mul_i64(i64(i), buckets), shr_u64(v, right)))"]
    return f"{parameters} {_PARAMETERS}", lines


def _tiles(parameters: str, lines: Sequence[str]) -> BuiltinKernel:
    return builtin_kernel(
        parameters,
        "at = mul_i64(i64(i), tile)",
        "behind = min_i64(add_i64(at, tile), rows)",
        "while lt_i64(at, behind):",
        *("    " + line for line in lines),
        "    at = add_i64(at, 1)",
    )


@cache
def _counting(elements: tuple[str, ...]) -> BuiltinKernel:
    parameters, lines = _each(elements)
    return _tiles(parameters, [*lines, "store_i64(places, slot, add_i64(i64(places[slot]), 1))"])


@cache
def _moving(elements: tuple[str, ...]) -> BuiltinKernel:
    parameters, lines = _each(elements)
    lines += [
        "place = i64(places[slot])",
        "store_u64(words, place, or_i64(shl_i64(v, place_bits), at))",
        "store_i64(places, slot, add_i64(place, 1))",
    ]
    return _tiles(f"{parameters} place_bits:i64 words:*u64", lines)
