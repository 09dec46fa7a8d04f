"""Strings from Arrow: codes into one sorted dictionary where they repeat, offsets and bytes where they do not.

A dictionary turns string work into integer work, so a sample decides whether one pays, and codes that Arrow or a file
has already stay codes. Arrow's dictionaries differ from chunk to chunk and are in no order: `union_in_phases` makes one
of them, and each chunk's codes are looked up in a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow import code_array, string_array
from gquery.columns.arrow_buffers import bits_of, buffer_of, offsets_of, values_of
from gquery.columns.dictionary_union import Codes, DictionaryUnion, codes_of, union_in_phases
from gquery.columns.loops import Loops, TextSlots, loops
from gquery.columns.statistics import chao, order_of
from gquery.columns.table import ColumnData, ColumnStatistics, Dictionary
from gquery.device.buffer import Buffer
from gquery.expression.types import VARCHAR, Bounds, PhysicalType
from gquery.runtime.arrow_compute import cast, dictionary_encode, pc, take, value_counts
from gquery.runtime.threads import Phases, core_count, run_phases


def null_strings(rows: int) -> ColumnData:
    """A string column of NULLs."""
    zeros = Buffer(np.zeros(rows, np.uint8))
    stats = ColumnStatistics(Bounds(0, 0), rows, 0)
    dictionary = Dictionary(cast(string_array([""]), pa.string()))
    return ColumnData(VARCHAR, PhysicalType.U8, rows, zeros, zeros, dictionary=dictionary, statistics=stats)


def import_strings(array: pa.ChunkedArray) -> ColumnData:
    """A column of strings, dictionary-encoded or not."""
    return run_phases([import_strings_in_phases(array)], 1)[0]


def import_strings_in_phases(array: pa.ChunkedArray) -> Phases[ColumnData]:
    """`import_strings`, with tasks that several threads take: each piece is encoded under a dictionary of its own first."""
    rows = len(array)
    if pa.types.is_dictionary(array.type):
        column = yield from _dictionary_in_phases(array.chunks, tuning.encoding.largest_dictionary)
        if column is not None:
            return column
        array = cast(array, pa.large_string() if array.type.value_type == pa.large_string() else pa.string())
    if array.null_count == rows:
        return null_strings(rows)
    array = plain(array)
    limit, distinct = dictionary_limit(rows), estimate_strings(array, array.null_count)
    if distinct <= limit and (known := _coding_loops(array, distinct)) is not None:
        column = yield from _coded_in_phases(array.chunk(0), known, distinct, limit)
        if column is not None:
            return column
    elif distinct <= limit:
        size = piece_rows(rows, distinct)
        pieces = [array.slice(at, size) for at in range(0, rows, size)]
        encoded: list[Sequence[pa.Array]] = [()] * len(pieces)

        def encode(number: int) -> None:
            encoded[number] = dictionary_encode(pieces[number]).chunks

        yield [partial(encode, number) for number in range(len(pieces))]
        # the sample can be wrong, so the dictionary is judged again once it is whole
        column = yield from _dictionary_in_phases([chunk for chunks in encoded for chunk in chunks], limit)
        if column is not None:
            return column
    return _import_characters(array, distinct)


def dictionary_limit(rows: int) -> int:
    """How large a dictionary pays for so many rows."""
    limits = tuning.encoding
    return min(limits.largest_dictionary, max(limits.small_dictionary, rows // limits.rows_an_entry))


def piece_rows(rows: int, distinct: int) -> int:
    """How many rows a thread gives a dictionary of their own, so that all threads end together. Where there are many distinct
    values, pieces of few rows would each have most of them, and joining the dictionaries would take longer than making them."""
    cores, limits = core_count(), tuning.encoding
    largest = max(limits.largest_piece, distinct * limits.piece_rows_an_entry)
    rounds = -(-rows // (cores * largest))
    return max(limits.least_piece, -(-rows // max(cores * rounds, 1)))


def estimate_strings(array: pa.ChunkedArray, nulls: int) -> int:
    """Distinct strings, estimated from a sample from several places."""
    rows = len(array)
    pieces = [array.slice(at, size) for at, size in sampled_rows(rows)]
    return estimate_sample(pa.chunked_array([c for p in pieces for c in p.chunks], array.type), rows - nulls)


def sampled_rows(rows: int) -> list[tuple[int, int]]:
    """Of which of so many rows a sample is made: where each part begins, and how many it has."""
    size, places = tuning.encoding.sample, tuning.encoding.sampled_places
    return [(0, rows)] if rows <= size else [(k * (rows // places), size // places) for k in range(places)]


def estimate_sample(sample: pa.ChunkedArray, values: int) -> int:
    """Distinct strings among so many values, estimated from a sample."""
    counts = values_of(value_counts(plain(sample).combine_chunks()).field("counts"), np.int64)
    return chao(len(counts), int((counts == 1).sum()), int((counts == 2).sum()), len(sample), values)


def plain(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """string_view as string: views lie in many buffers, offsets in one."""
    return without_views(array)


def without_views(array: Any) -> Any:
    """The same of an array; any other is given back."""
    if array.type != pa.string_view():
        return array
    return cast(array, pa.string() if array.nbytes < 2**31 else pa.large_string())


# ---- dictionaries ------------------------------------------------------------------------------------------------


def _dictionary_in_phases(chunks: Sequence[pa.DictionaryArray], limit: int) -> Phases[ColumnData | None]:
    """The column of chunks with a dictionary each, under one that is sorted; None where that is larger than the limit."""
    if not chunks:
        return null_strings(0)
    pieces = [codes_of(chunk) for chunk in chunks]
    union = yield from union_in_phases(pieces)
    return None if len(union) > limit else (yield from _written(union, pieces))


def _coding_loops(array: pa.ChunkedArray, distinct: int) -> Loops | None:
    """The loops, for a column whose texts one hash table codes: long, of one chunk, and of many texts that differ. Arrow codes
    pieces, each under a dictionary of its own; 200,000 texts in sixteen are three million entries to cut, sort and look up."""
    limits = tuning.encoding
    is_plain = array.num_chunks == 1 and array.type in (pa.string(), pa.large_string())
    is_long = limits.coded_rows <= len(array) < 2**32 - 1 and distinct >= limits.coded_texts
    return loops() if is_plain and is_long else None


def table_size(texts: int) -> int:
    """How many slots a hash table of so many texts has."""
    return 1 << (2 * texts + tuning.encoding.coded_slots).bit_length()


def _coded_in_phases(array: pa.Array, known: Loops, distinct: int, limit: int) -> Phases[ColumnData | None]:
    """The column of an array that is coded in one table, which all cores enter texts into; None where more texts differ than the
    limit says. The estimate decides how large a table is tried first."""
    valid = bits_of(array, 0) if array.null_count else None
    found: list[TextSlots | None] = []

    def enter(most: int) -> None:
        found.append(known.code_texts(offsets_of(array), characters_of(array), valid, table_size(most), most))

    expected = min(limit, 2 * distinct + tuning.encoding.small_dictionary)
    yield [partial(enter, expected)]
    if found[-1] is None and expected < limit:
        yield [partial(enter, limit)]
    coded = found[-1]
    if coded is None:
        return None
    union = yield from _united(array, coded.first)
    size = -(-len(array) // max(core_count(), -(-len(array) // tuning.encoding.piece)))
    parts = [slice(at, at + size) for at in range(0, len(array), size)]
    pieces = [Codes(union.values, coded.slots[part], None if valid is None else valid[part]) for part in parts]
    return (yield from _written(union.of_slots(coded.used, coded.size, len(pieces)), pieces))


def _united(array: pa.Array, rows: Any) -> Phases[DictionaryUnion]:
    """The sorted dictionary of the texts in these rows (int64), which all differ: taken, cut and sorted by all cores."""
    size = max(-(-len(rows) // core_count()), tuning.encoding.union_part)
    texts: list[pa.Array] = [None] * -(-len(rows) // size)

    def take_some(number: int) -> None:
        texts[number] = take(array, code_array(rows[number * size : (number + 1) * size], None))

    yield [partial(take_some, number) for number in range(len(texts))]
    return (yield from union_in_phases([Codes(some, np.empty(0, np.uint8), None) for some in texts]))


def _written(union: DictionaryUnion, pieces: Sequence[Codes]) -> Phases[ColumnData]:
    """The column of pieces under the dictionary that they have together."""
    rows = sum(len(piece.raw) for piece in pieces)
    if len(union) == 0:
        return null_strings(rows)
    codes = np.empty(rows, union.physical_type.numpy)
    has_nulls = union.has_nulls or any(piece.ok is not None for piece in pieces)
    validity = np.ones(rows, np.uint8) if has_nulls else None
    starts = np.cumsum([0, *(len(piece.raw) for piece in pieces)]).tolist()

    def write(number: int) -> None:
        place = slice(starts[number], starts[number + 1])
        union.write(number, pieces[number], codes[place], None if validity is None else validity[place])

    yield [partial(write, number) for number in range(len(pieces))]
    nulls = 0 if validity is None else rows - int(np.count_nonzero(validity))
    return union.column(Buffer(codes), buffer_of(validity if nulls else None), nulls, order_of(codes, nulls))


# ---- characters --------------------------------------------------------------------------------------------------


def _import_characters(array: pa.ChunkedArray, distinct: int) -> ColumnData:
    """Offsets and bytes: Arrow's own where the column is one chunk."""
    if array.type == pa.string() and array.num_chunks > 1 and array.nbytes >= 2**31:
        array = cast(array, pa.large_string())
    whole = array.chunk(0) if array.num_chunks == 1 else pa.concat_arrays(array.chunks or [pa.nulls(0, array.type)])
    nulls = whole.null_count
    validity = bits_of(whole, 0) if nulls else None
    whole, offsets = cleared(whole, validity)
    return characters_column(Buffer(offsets), Buffer(characters_of(whole)), buffer_of(validity), nulls, distinct)


def cleared(array: pa.Array, validity: Any) -> tuple[pa.Array, Any]:
    """A string array whose NULLs are empty, and its offsets."""
    offsets = offsets_of(array)
    if validity is not None and bool((offsets[1:] - offsets[:-1])[validity == 0].any()):
        array = pc.fill_null(array, cast(string_array([""]), array.type)[0])
        offsets = offsets_of(array)
    return array, offsets


def characters_of(array: pa.Array) -> Any:
    """The bytes that the offsets of a string array point into."""
    data = array.buffers()[2]
    return np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)


def characters_column(
    offsets: Buffer, characters: Buffer, validity: Buffer | None, nulls: int, distinct: int
) -> ColumnData:
    """A string column without a dictionary."""
    physical_type = PhysicalType.STRING64 if offsets.dtype == np.int64 else PhysicalType.STRING32
    stats = ColumnStatistics(None, nulls, distinct)
    return ColumnData(VARCHAR, physical_type, offsets.length - 1, offsets, validity, characters, statistics=stats)
