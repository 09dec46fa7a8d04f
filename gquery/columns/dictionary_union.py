"""One sorted dictionary for pieces of a column that come with a dictionary each.

Where the dictionaries are long, threads make it together: sampled values cut the dictionaries into ranges, and each range is
made unique and sorted by itself, in cache. All of that is Arrow's and NumPy's work, without the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow import code_array, integer_array
from gquery.columns.arrow_buffers import bits_of, numpy_name, values_of
from gquery.columns.page_values import Placed, Words
from gquery.columns.statistics import Order
from gquery.columns.table import ColumnData, ColumnStatistics, Dictionary
from gquery.device.buffer import Buffer
from gquery.expression.types import VARCHAR, Bounds, physical_type_for
from gquery.runtime.arrow_compute import at_least, cast, dictionary_encode, different, sorted_places, take
from gquery.runtime.records import dataclass
from gquery.runtime.threads import Phases


@dataclass(frozen=True)
class Codes:
    """A piece of a column as codes into a dictionary of its own; ``ok`` is 1 where there is a value, None for no NULL."""

    dictionary: pa.Array
    raw: Any
    ok: Any


def codes_of(array: pa.DictionaryArray | Words | Placed) -> Codes:
    """The codes of an Arrow array, in few bytes, 0 for NULL, under which Arrow leaves anything; or those of words, none NULL, or
    of what was placed."""
    if isinstance(array, (Words, Placed)):
        values, ok, texts = array.values if isinstance(array, Words) else array.room.values[: array.rows], None, array.dictionary
        if isinstance(array, Placed) and array.nulls:
            assert array.room.valid is not None
            ok = array.room.valid[: array.rows]
        assert texts is not None
        return Codes(texts, values.astype(physical_type_for(Bounds(0, max(len(texts) - 1, 0))).numpy), ok)
    indices = array.indices
    raw = values_of(indices, numpy_name(indices.type))
    ok = bits_of(indices, 0) if indices.null_count else None
    if ok is not None:
        raw = np.where(ok.view(np.bool_), raw, raw.dtype.type(0))
    physical_type = physical_type_for(Bounds(0, max(len(array.dictionary) - 1, 0)))
    return Codes(array.dictionary, raw.astype(physical_type.numpy, copy=False), ok)


def strings_of(codes: Codes) -> pa.Array:
    """The strings that codes stand for."""
    return take(codes.dictionary, code_array(codes.raw, None if codes.ok is None else codes.ok.view(np.bool_)))


class DictionaryUnion:
    """The sorted dictionary of several pieces, and the table from their codes to its own.

    A dictionary may hold a value twice, NULL, or values that no row has; ``len`` is 0 where none holds a value. ``starts``
    are the entries of the table at which the pieces' begin; it has one more at its end, for a piece whose dictionary is empty.
    ``entry_ok`` tells which entries are values, None that all are.
    """

    def __init__(self, values: pa.Array, starts: Sequence[int], recode: Any, entry_ok: Any) -> None:
        self.values = values
        self.physical_type = physical_type_for(Bounds(0, max(len(values) - 1, 0)))
        self._starts, self._entry_ok = starts, entry_ok
        self._recode = recode.astype(self.physical_type.numpy)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def has_nulls(self) -> bool:
        """Whether a dictionary holds NULL, so that rows are NULL that do not count as such."""
        return self._entry_ok is not None

    def write(self, number: int, piece: Codes, codes: Any, validity: Any) -> None:
        """The codes of piece ``number`` into their place in the column, and its NULLs where the column may have some."""
        start, step = self._starts[number], tuning.encoding.recoded  # NumPy makes words of the codes
        for at in range(0, len(codes), step):
            np.take(self._recode[start:], piece.raw[at : at + step], out=codes[at : at + step], mode="clip")
        if validity is None:
            return
        if piece.ok is not None:
            validity[:] = piece.ok
        if self._entry_ok is not None:
            validity &= np.take(self._entry_ok[start:], piece.raw, mode="clip")
        codes[validity == 0] = 0

    def codes_of(self, number: int, count: int) -> Any:
        """The codes (int64) that the first ``count`` entries of piece ``number`` have, none NULL."""
        assert self._entry_ok is None
        start = self._starts[number]
        return self._recode[start : start + count].astype(np.int64)

    def of_slots(self, used: Any, size: int, pieces: int) -> DictionaryUnion:
        """The same for so many pieces whose codes are slots of a table of that ``size``, where this is of one dictionary, whose
        entries lie in the slots ``used``."""
        recode = np.zeros(size, self._recode.dtype)
        recode[used] = self._recode[: len(used)]
        return DictionaryUnion(self.values, [0] * pieces, recode, None)

    def column(self, codes: Buffer, validity: Buffer | None, nulls: int, order: Order) -> ColumnData:
        """The column whose codes were written."""
        rows = codes.length
        stats = ColumnStatistics(
            Bounds(0, len(self) - 1),
            nulls,
            min(len(self), rows - nulls),
            order.is_sorted,
            order.is_sorted and order.runs == rows,
            longest_run=order.longest_run,
        )
        return ColumnData(
            VARCHAR, self.physical_type, rows, codes, validity, dictionary=Dictionary(self.values), statistics=stats
        )  # fmt: skip


def union_in_phases(pieces: Sequence[Codes]) -> Phases[DictionaryUnion]:
    """The union of the pieces' dictionaries, one piece at least, with tasks that several threads take."""
    found, starts = _different(pieces)
    first = np.cumsum([0, *(len(d) for d in found)])
    bounds = _bounds(found, min(tuning.encoding.union_ranges, int(first[-1]) // tuning.encoding.union_part))
    recode = np.zeros(int(first[-1]) + 1, np.uint32)
    entry_ok = None
    if any(d.null_count for d in found):
        entry_ok = np.zeros(len(recode), np.uint8)
    if len(bounds):
        cut = [_CutDictionary(d, int(at)) for d, at in zip(found, first, strict=False)]
        yield [partial(dictionary.cut, bounds) for dictionary in cut]
    else:  # thousands of short ones, in files of many row groups
        cut = [_CutDictionary(pa.concat_arrays(found), 0)]
    ranges = [_Range(number, cut) for number in range(len(bounds) + 1)]
    yield [r.sort for r in ranges]
    bases = np.cumsum([0, *(len(r.values) for r in ranges)]).tolist()
    yield [partial(r.write, base, recode, entry_ok) for r, base in zip(ranges, bases, strict=False)]
    values = ranges[0].values if len(ranges) == 1 else pa.concat_arrays([r.values for r in ranges])
    return DictionaryUnion(values, starts, recode, entry_ok)


def _different(pieces: Sequence[Codes]) -> tuple[list[pa.Array], list[int]]:
    """The dictionaries, one that several pieces in a row have once, all of one type; and for each piece the number of entries
    before its own."""
    found: list[pa.Array] = []
    starts: list[int] = []
    rows = 0
    for piece in pieces:
        if not found or not found[-1].equals(piece.dictionary):
            rows += len(found[-1]) if found else 0
            found.append(piece.dictionary)
        starts.append(rows)
    if any(d.type == pa.large_string() for d in found):
        return [cast(d, pa.large_string()) for d in found], starts
    return [cast(d, pa.string()) if d.type == pa.string_view() else d for d in found], starts


def _bounds(dictionaries: Sequence[pa.Array], ranges: int) -> pa.Array:
    """The least values of ``ranges`` ranges, or of fewer, with about as many entries each: none for the first."""
    if ranges <= 1:
        return dictionaries[0][:0]
    step = max(sum(map(len, dictionaries)) // (tuning.encoding.union_sample * ranges), 1)
    some = [take(d, code_array(np.arange(0, len(d), step), None)) for d in dictionaries]
    sample = different(pa.concat_arrays(some))
    places = sorted({number * len(sample) // ranges for number in range(1, ranges)} - {0})
    return take(take(sample, sorted_places(sample)), integer_array(places))


class _CutDictionary:
    """A dictionary whose entries, from ``first`` on in the table, are put in the order of the ranges that they fall into."""

    def __init__(self, values: pa.Array, first: int) -> None:
        self._values, self._first = values, first
        self._order: Any = None  # None: as they lie
        self._ends: Any = np.array([len(values)])

    def cut(self, bounds: pa.Array) -> None:
        numbers = np.zeros(len(self._values), np.min_scalar_type(len(bounds)))
        for bound in bounds:
            numbers += bits_of(at_least(self._values, bound), 1)  # NULL falls into any range
        self._order = np.argsort(numbers, kind="stable")
        self._values = take(self._values, code_array(self._order, None))
        self._ends = np.cumsum(np.bincount(numbers, minlength=len(bounds) + 1))

    def part(self, number: int) -> tuple[pa.Array, Any]:
        """The entries of a range, and their places in the table."""
        low, high = int(self._ends[number - 1]) if number else 0, int(self._ends[number])
        places = np.arange(low, high) if self._order is None else self._order[low:high]
        return self._values[low:high], places + self._first


class _Range:
    """The entries of all dictionaries that fall into a range, each once and sorted."""

    def __init__(self, number: int, dictionaries: Sequence[_CutDictionary]) -> None:
        self._number, self._dictionaries = number, dictionaries
        self.values: pa.Array
        self._ranks: Any
        self._places: Any
        self._is_value: Any = None  # None: of all

    def sort(self) -> None:
        parts = [d.part(self._number) for d in self._dictionaries]
        self._places = np.concatenate([places for _, places in parts])
        once = dictionary_encode(pa.concat_arrays([values for values, _ in parts]))
        order = sorted_places(once.dictionary)  # Arrow compares strings bytewise
        self.values = take(once.dictionary, order)
        rank = np.empty(len(order), np.uint32)
        rank[values_of(order, np.uint64)] = np.arange(len(order), dtype=np.uint32)
        codes = values_of(once.indices, np.int32)
        if once.null_count:
            self._is_value = bits_of(once.indices, 0)
            codes, self._places = codes[self._is_value == 1], self._places[self._is_value == 1]
        self._ranks = rank[codes]

    def write(self, base: int, recode: Any, entry_ok: Any) -> None:
        """The codes of the range's entries into the table; its first value has the code ``base``."""
        recode[self._places] = self._ranks + np.uint32(base)
        if entry_ok is not None:
            entry_ok[self._places] = 1
