"""Distances of pairs of strings, in bytes, for many rows at once by NumPy: levenshtein, its kin with swaps, hamming, jaccard.

levenshtein is computed by the bits of words, one word a row (Myers 1999, as Hyyrö 2003 writes it): a bit tells by how much the
distance grows from one prefix of the shorter string to the next, and a column of the table of all prefixes is a dozen operations
for all rows of a block. Rows are sorted by the length of the longer string, so that those which go on are the first ones. Pairs
of which both have more bytes than a word has bits are computed one by one, by Python's integers of any width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from gquery.functions.byte_maps import bytes_of
from gquery.functions.vectors import array_of, flags, from_numpy, size_of, with_nulls_of

WORD_BITS = 64
_ROWS = 1 << 11  # of a block: a word for each of 256 bytes and row stays in a core's cache
_CELLS = 1 << 20  # bytes of the strings of a block, at most
_FEW = 16  # rows that are computed one by one, as an operation of NumPy takes as long for them as for these
_BYTES = 256


_OfBlock = Callable[["Side", "Side"], Any]
_OfPair = Callable[[bytes, bytes], int]


class Side:
    """One string of each row: its bytes, where they begin and how many there are."""

    def __init__(self, data: Any, starts: Any, sizes: Any) -> None:
        self.data, self.starts, self.sizes = data, starts, sizes

    def at(self, rows: Any) -> Side:
        return Side(self.data, self.starts[rows], self.sizes[rows])

    def matrix(self) -> Any:
        """uint8 of rows and columns: the bytes, anything behind the last one."""
        width = int(self.sizes.max(initial=0))
        places = np.minimum(self.starts[:, None] + np.arange(width), max(len(self.data) - 1, 0))
        return self.data[places] if len(self.data) else np.zeros(places.shape, np.uint8)

    def string(self, row: int) -> bytes:
        start = int(self.starts[row])
        found: bytes = self.data[start : start + int(self.sizes[row])].tobytes()
        return found


def sides(a: Any, b: Any) -> tuple[Side, Side, Any]:
    """Both strings of each row, and the rows that have both."""
    rows = size_of(a, b)
    arrays = array_of(a, rows), array_of(b, rows)
    sides = []
    for array in arrays:
        data, offsets = bytes_of(array)
        sides.append(Side(data, offsets[:-1], np.diff(offsets)))
    return sides[0], sides[1], flags(arrays[0].is_valid()) & flags(arrays[1].is_valid())


def _swapped(x: Side, y: Side, where: Any) -> Side:
    """The strings of x, those of y where ``where``. Both lie in one array then."""
    data = np.concatenate([x.data, y.data])
    return Side(data, np.where(where, y.starts + len(x.data), x.starts), np.where(where, y.sizes, x.sizes))


def _distances(a: Any, b: Any, of_block: _OfBlock, of_pair: _OfPair, measured: Callable[[Any, Any], Any]) -> pa.Array:
    """int64 distances, NULL where a string is: by blocks of rows where ``measured``, of the sizes of the shorter and the longer
    string, fits into a word, else by pairs. A block has the shorter strings first, and rows in the order of the longer ones."""
    x, y, ok = sides(a, b)
    is_longer = x.sizes > y.sizes
    short, long = _swapped(x, y, is_longer), _swapped(x, y, ~is_longer)
    made = np.zeros(len(ok), np.int64)
    fits = measured(short.sizes, long.sizes) <= WORD_BITS
    (rows,) = np.nonzero(ok & fits)
    rows = rows[np.argsort(-long.sizes[rows], kind="stable")]
    single = [np.flatnonzero(ok & ~fits)]
    for block in blocks(rows, long.sizes):
        if len(block) < _FEW:
            single.append(block)
        else:
            made[block] = of_block(short.at(block), long.at(block))
    for row in np.concatenate(single).tolist():
        made[row] = of_pair(short.string(row), long.string(row))
    return with_nulls_of(from_numpy(made), *(v for v in (a, b) if isinstance(v, pa.Array)))


def blocks(rows: Any, sizes: Any) -> Iterator[Any]:
    """Rows by blocks, fewer where the first string of a block is long."""
    start = 0
    while start < len(rows):
        stop = start + min(_ROWS, max(1, _CELLS // max(int(sizes[rows[start]]), 1)))
        yield rows[start:stop]
        start = stop


def levenshtein(a: Any, b: Any) -> pa.Array:
    """int64: the bytes to insert, delete or replace from one string to the other."""
    return _distances(a, b, _levenshtein, pair_distance, lambda short, long: short)


def _levenshtein(short: Side, long: Side) -> Any:
    rows = np.arange(len(short.sizes))
    one, all_bits = np.uint64(1), ~np.uint64(0)
    where = places_of_bytes(short)
    last = one << np.maximum(short.sizes - 1, 0).astype(np.uint64)
    more, less = np.full(len(rows), all_bits), np.zeros(len(rows), np.uint64)  # the next prefix has a larger or smaller distance
    made = short.sizes.copy()
    characters = np.ascontiguousarray(long.matrix().T)
    for n, column in enumerate(characters):
        going = int(np.searchsorted(-long.sizes, -n))  # the rows that have a byte here
        equal = where[rows[:going], column[:going]] | less[:going]
        vertical, mask = more[:going], last[:going]
        kept = (((equal & vertical) + vertical) ^ vertical) | equal
        grows, shrinks = less[:going] | ~(kept | vertical), vertical & kept
        made[:going] += ((grows & mask) != 0).astype(np.int64) - ((shrinks & mask) != 0)
        grows = (grows << one) | one
        less[:going] = grows & kept
        more[:going] = (shrinks << one) | ~(grows | kept)
    return np.where(short.sizes > 0, made, long.sizes)


def places_of_bytes(side: Side) -> Any:
    """uint64 of rows and 256 bytes: a bit for each place, of up to 64, at which a byte stands in a string."""
    rows = np.arange(len(side.sizes))
    where = np.zeros((len(rows), _BYTES), np.uint64)
    characters = side.matrix()
    for n in range(characters.shape[1]):
        here = rows[side.sizes > n]
        where[here, characters[here, n]] |= np.uint64(1 << n)
    return where


def pair_distance(a: bytes, b: bytes) -> int:
    """`levenshtein` of one pair.

    >>> pair_distance(b"duck", b"db"), pair_distance(b"", b"abc")
    (3, 3)
    """
    if not a:
        return len(b)
    where: dict[int, int] = {}
    for n, byte in enumerate(a):
        where[byte] = where.get(byte, 0) | 1 << n
    every, last = (1 << len(a)) - 1, 1 << len(a) - 1
    more, less, made = every, 0, len(a)
    for byte in b:
        equal = where.get(byte, 0) | less
        kept = (((equal & more) + more) ^ more) | equal
        grows, shrinks = less | ~(kept | more) & every, more & kept
        made += bool(grows & last) - bool(shrinks & last)
        grows = grows << 1 | 1
        less = grows & kept & every
        more = (shrinks << 1 | ~(grows | kept)) & every
    return made


def damerau_levenshtein(a: Any, b: Any) -> pa.Array:
    """int64: as `levenshtein`, and neighbours that are swapped count once."""
    return _distances(a, b, _with_swaps, pair_distance_with_swaps, lambda short, long: long)


def _with_swaps(short: Side, long: Side) -> Any:
    """The whole table of all prefixes for a block of rows, a cell of all rows at a time."""
    rows = np.arange(len(short.sizes))
    first, second = np.ascontiguousarray(short.matrix().T), np.ascontiguousarray(long.matrix().T)
    height, width = len(first), len(second)
    table = np.full((height + 2, width + 2, len(rows)), WORD_BITS * 4, np.int16)  # a border of more than any distance
    table[1:, 1] = np.arange(height + 1)[:, None]
    table[1, 1:] = np.arange(width + 1)[:, None]
    seen = np.zeros((_BYTES, len(rows)), np.int16)  # the last line whose byte it was
    for i in range(1, height + 1):
        column = np.zeros(len(rows), np.int16)  # the last one whose byte is this line's
        for j in range(1, width + 1):
            line = seen[second[j - 1], rows]
            differs = first[i - 1] != second[j - 1]
            swapped = table[line, column, rows] + (i - line - 1) + (j - column)
            cell = np.minimum(table[i, j] + differs, np.minimum(table[i + 1, j], table[i, j + 1]) + np.int16(1))
            table[i + 1, j + 1] = np.minimum(cell, swapped)
            column = np.where(differs, column, np.int16(j))
        seen[first[i - 1], rows] = i
    return table[short.sizes + 1, long.sizes + 1, rows]


def pair_distance_with_swaps(a: bytes, b: bytes) -> int:
    """`damerau_levenshtein` of one pair."""
    most = len(a) + len(b)
    last: dict[int, int] = {}
    table = [[most] * (len(b) + 2) for _ in range(len(a) + 2)]
    for i in range(len(a) + 1):
        table[i + 1][1] = i
    for j in range(len(b) + 1):
        table[1][j + 1] = j
    for i, x in enumerate(a, 1):
        column = 0
        for j, y in enumerate(b, 1):
            row_of, column_of = last.get(y, 0), column
            if x == y:
                column = j
            table[i + 1][j + 1] = min(
                table[i][j] + (x != y), table[i + 1][j] + 1, table[i][j + 1] + 1,
                table[row_of][column_of] + (i - row_of - 1) + 1 + (j - column_of - 1),
            )  # fmt: skip
        last[x] = i
    return table[-1][-1]


def hamming(a: Any, b: Any) -> pa.Array:
    """int64: at how many places the bytes differ; NULL for strings of several lengths or of length 0."""
    x, y, ok = sides(a, b)
    ok &= (x.sizes == y.sizes) & (x.sizes > 0)
    made = np.zeros(len(ok), np.int64)
    if ok.any():
        (first, offsets), (second, _) = (bytes_of(array_of(v, len(ok)).filter(from_numpy(ok))) for v in (a, b))
        made[ok] = np.add.reduceat(first != second, offsets[:-1], dtype=np.int64)
    return from_numpy(made, ok)


def jaccard(a: Any, b: Any) -> pa.Array:
    """float64: the share of the bytes that both strings have among those that one has; NULL where one is empty."""
    x, y, ok = sides(a, b)
    ok &= (x.sizes > 0) & (y.sizes > 0)
    made = np.zeros(len(ok))
    for block in blocks(np.flatnonzero(ok), np.zeros(len(ok), np.int64)):
        has = [_bytes_there(side.at(block)) for side in (x, y)]
        made[block] = (has[0] & has[1]).sum(axis=1) / (has[0] | has[1]).sum(axis=1)
    return from_numpy(made.view(np.int64), ok).view(pa.float64())


def _bytes_there(side: Side) -> Any:
    """bool of rows and 256 bytes: which stand in each string."""
    there = np.zeros((len(side.sizes), _BYTES), np.bool_)
    rows = np.repeat(np.arange(len(side.sizes)), side.sizes)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(side.sizes) - side.sizes, side.sizes)
    there[rows, side.data[np.repeat(side.starts, side.sizes) + within]] = True
    return there


__all__ = ["WORD_BITS", "Side", "blocks", "damerau_levenshtein", "hamming", "jaccard", "levenshtein", "pair_distance",
           "pair_distance_with_swaps", "places_of_bytes", "sides"]  # fmt: skip
