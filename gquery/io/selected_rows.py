"""Rows of row groups that a filter may keep, found by one column, before others are read.

Under a memory limit a column that is read whole takes memory for rows that the filter above drops at once; what is touched
for the first time costs more than to decode a value. So the column that a filter narrows most is read first, and leaves a
bit a row; of the others, only rows whose bit is set come into their arrays. Its own values that are kept are not
decoded again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow_buffers import arrow_buffer
from gquery.columns.assemble import Piece
from gquery.columns.domain import Domain, at_most
from gquery.columns.page_values import MisfitError, Room, Words, page_kernels
from gquery.device.array import Array
from gquery.device.transfer import Upload
from gquery.expression.types import INT64, Bounds, physical_type_for
from gquery.io.parquet_files import RowGroup
from gquery.runtime.arrow_compute import where
from gquery.runtime.records import dataclass


@dataclass(frozen=True, eq=False)
class SelectedRows:
    """Which of a row group's ``rows`` rows are wanted, a bit each, the lowest first: ``count``. ``values`` are those that the
    column has there by which they were found, codes where there is a ``dictionary``."""

    rows: int
    count: int
    bits: Array
    values: Array
    dictionary: pa.Array | None

    def of(self, pieces: Iterable[pa.Array | Words]) -> Iterator[pa.Array | Words]:
        """What the pieces of a column have in these rows. ValueError where they have more rows than the row group, or fewer."""
        at = 0
        for piece in pieces:
            to = at + len(piece)
            if to > self.rows:
                break
            start, at = at, to
            if isinstance(piece, Words):
                yield Words(_picked(piece.values, self.bits, start), piece.dictionary)
            else:
                mask = [None, arrow_buffer(self.bits[start // 8 : -(-to // 8)])]
                yield where(piece, pa.Array.from_buffers(pa.bool_(), to - start, mask, 0, start % 8))
        else:
            to = at
        if to != self.rows:
            raise ValueError(f"a column has {to} rows or more in a row group of {self.rows}")

    def pieces(self) -> Iterator[Words]:
        """The values, as words."""
        step = tuning.reading.limited_bytes // 8
        for at in range(0, self.count, step):
            yield Words(self.values[at : at + step].astype(np.int64), self.dictionary)


@dataclass(frozen=True, eq=False)
class Selection:
    """The rows of each of a part's row groups that a filter on ``field`` may keep."""

    field: int
    groups: tuple[SelectedRows, ...]


class Selecting:
    """An assembly that keeps of a column which rows have values of a domain. MisfitError where kernels cannot read it."""

    checks_digits, takes_words = False, True

    def __init__(self, groups: Sequence[RowGroup], domain: Domain, upload: Upload) -> None:
        self._groups, self._domain, self._upload = groups, domain, upload
        self._found: list[SelectedRows | None] = [None] * len(groups)

    def room(self, group: int, at: int, is_nullable: bool) -> Room | None:
        """None: words are looked at, and some of them kept."""

    def add(self, group: int, pieces: Iterable[Piece]) -> int:
        """Notes the rows of a group; how many it has."""
        rows, at = self._groups[group].rows, 0
        mask, kept, dictionary = np.zeros(rows, np.bool_), list[Array](), None
        for piece in pieces:
            to = at + len(piece)
            if to > rows:
                raise ValueError(f"a row group holds more than the {rows} rows that the footer tells")
            if not isinstance(piece, Words) or (at and dictionary is not piece.dictionary):
                raise MisfitError
            if piece.dictionary is not dictionary or not at:
                dictionary, accepted = piece.dictionary, _accepted(piece.dictionary, self._domain)
            inside = _inside(piece.values, self._domain) if accepted is None else accepted[piece.values]
            mask[at:to] = inside
            kept.append(_narrow(_picked(piece.values, _bits(inside), 0)))
            at = to
        values = np.concatenate(kept) if kept else np.empty(0, np.int64)
        keep = self._upload.keep
        bits = keep(_bits(mask))
        self._found[group] = SelectedRows(rows, len(values), bits, keep(values), dictionary)
        return at

    def found(self) -> list[SelectedRows]:
        """The rows of each group, once all were added."""
        return [group for group in self._found if group is not None]


def _bits(mask: Array) -> Array:
    """Booleans as bits, the lowest first, with eight bytes behind them."""
    return np.packbits(np.concatenate((mask, np.zeros(64, np.bool_))), bitorder="little")


def _picked(words: Array, bits: Array, first: int) -> Array:
    """The words whose bits are set, in their own place."""
    kernels = page_kernels()
    if kernels is None:
        return words[np.unpackbits(bits, bitorder="little")[first : first + len(words)].view(np.bool_)]
    return words[: kernels.pick(words, bits, first)]


def is_testable(domain: Domain, is_text: bool) -> bool:
    """Whether words can be looked for in a domain: those of integers, or of texts."""
    ends = [end for i in domain.intervals for end in (i.low, i.high) if end is not None]
    return not domain.null and all(type(end) is (str if is_text else int) for end in ends)


def _inside(values: Array, domain: Domain) -> Array:
    """Which integers lie in a domain."""
    made: Any = None
    for interval in domain.intervals:
        low = INT64.low if interval.low is None else max(int(interval.low), INT64.low)
        high = INT64.high if interval.high is None else min(int(interval.high), INT64.high)
        if low > high:
            continue
        inside = (values - low).view(np.uint64) <= np.uint64(high - low)  # one below low is as great as can be
        made = inside if made is None else made | inside
    return np.zeros(len(values), np.bool_) if made is None else made


def _accepted(dictionary: pa.Array | None, domain: Domain) -> Array | None:
    """Which entries of a dictionary lie in a domain; None where there is no dictionary."""
    if dictionary is None:
        return None
    return np.array([_holds(domain, text) for text in dictionary.to_pylist()], np.bool_)


def _holds(domain: Domain, text: str) -> bool:
    return any(
        (i.low is None or at_most(i.low, text)) and (i.high is None or at_most(text, i.high)) for i in domain.intervals
    )


def _narrow(values: Array) -> Array:
    """Integers in as few bytes as hold them."""
    if not len(values):
        return np.empty(0, np.int8)
    return values.astype(physical_type_for(Bounds(int(values.min()), int(values.max()))).numpy)
