"""Arrow to columns: the narrowest carrier, a sorted dictionary where strings repeat, statistics on the way.

What a column holds is looked at once, here, and everything later rests on it: bounds choose carriers and leave out
overflow checks, a strictly sorted column is proved unique, a dictionary turns string work into integer work. Chunks are
read where they lie and written once, into the final array; a column that already has its narrowest layout is viewed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gquery.arrow import dtype_of, import_schema
from gquery.dtypes import INT64, NULL, VARCHAR, Bounds, Carrier, DType, Field, Kind, carrier_for, type_bounds
from gquery.errors import ConversionError, NotSupportedError
from gquery.table import Buffer, Column, ColumnStatistics, Dictionary, Table

_SAMPLE = 65_536  # rows that decide on a dictionary and estimate distinct values
_SMALL_DICTIONARY = 1_024  # a dictionary up to this size always pays
_LARGEST_DICTIONARY = 1_000_000
_STEP = 1 << 20  # rows a step of tests that may end early


def import_table(table: pa.Table, narrow: bool = True) -> Table:
    """Every column of an Arrow table; NotSupportedError names one whose type is not supported."""
    schema = import_schema(table.schema)
    columns = import_columns([table.column(i) for i in range(table.num_columns)], schema.fields, narrow)
    return Table(schema, tuple(columns), table.num_rows)


def import_columns(arrays: Sequence[pa.ChunkedArray], fields: Sequence[Field], narrow: bool = True) -> list[Column]:
    """Columns one by one on threads (NumPy and Arrow leave the interpreter's lock while they copy)."""
    rows = sum(len(a) for a in arrays)
    if rows < 200_000 or len(arrays) < 2:
        return [import_column(a, f, narrow) for a, f in zip(arrays, fields, strict=True)]
    from concurrent.futures import ThreadPoolExecutor

    from gquery.config import Settings

    with ThreadPoolExecutor(Settings().worker_count) as pool:
        return list(pool.map(lambda a, f: import_column(a, f, narrow), arrays, fields))


def import_column(array: pa.ChunkedArray | pa.Array, field: Field, narrow: bool = True) -> Column:
    """One Arrow column as a Column of the field's logical type. ``narrow=False`` keeps integers at Arrow's width, which
    views them where Arrow holds them without NULLs in one chunk."""
    if isinstance(array, pa.Array):
        array = pa.chunked_array([array])
    dtype = dtype_of(array.type)
    if dtype is None:
        raise NotSupportedError(f'Column "{field.name}" has the Arrow type {array.type}, which gquery does not support')
    if dtype.is_string:
        return _import_strings(array)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if dtype.kind is Kind.NULL:
        return null_column(len(array))
    array = _normalise(array, field)
    nulls = array.null_count
    validity = _validity(array) if nulls else None
    if dtype.is_float:
        return _import_floats(array, dtype, validity, nulls)
    if dtype.kind is Kind.BOOLEAN:
        bits = _zero_nulls(_concatenate([_bits(c, 1) for c in array.chunks], np.uint8), validity)
        low, high = (int(bits.min()), int(bits.max())) if len(bits) else (0, 0)
        sorted_, unique = _order(bits, nulls)
        stats = ColumnStatistics(Bounds(low, high), nulls, high - low + 1, sorted_, unique)
        return Column(dtype, Carrier.BOOL, len(bits), Buffer(bits), _buffer(validity), statistics=stats)
    return _import_integers(array, dtype, validity, nulls, narrow)


def null_column(rows: int, dtype: DType = NULL) -> Column:
    """A column of NULLs."""
    zeros = Buffer(np.zeros(rows, np.uint8))
    if dtype.is_string:
        dictionary = Dictionary(pa.array([""], pa.string()))
        stats = ColumnStatistics(Bounds(0, 0), rows, 0)
        return Column(VARCHAR, Carrier.U8, rows, zeros, zeros, dictionary=dictionary, statistics=stats)
    carrier = {Kind.NULL: Carrier.BOOL, Kind.BOOLEAN: Carrier.BOOL, Kind.REAL: Carrier.F32, Kind.DOUBLE: Carrier.F64}
    chosen = carrier.get(dtype.kind, Carrier.U8)
    data = zeros if chosen.bytes == 1 else Buffer(np.zeros(rows, chosen.numpy))
    bounds = Bounds(0, 0) if dtype.is_exact else None
    return Column(dtype, chosen, rows, data, zeros, statistics=ColumnStatistics(bounds, rows, 0))


# ---- numbers -----------------------------------------------------------------------------------------------------


def _normalise(array: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    """Units and widths that Arrow alone has become ours: timestamps in microseconds (UTC where there was a zone), dates
    in days, decimals in 128 bits, half floats as floats."""
    type_ = array.type
    try:
        if pa.types.is_timestamp(type_) and type_.unit != "us":
            return array.cast(pa.timestamp("us", type_.tz))
        if pa.types.is_date64(type_):
            return array.cast(pa.date32())
        if pa.types.is_decimal256(type_):
            return array.cast(pa.decimal128(type_.precision, type_.scale))
        if pa.types.is_float16(type_):
            return array.cast(pa.float32())
    except pa.ArrowInvalid as error:
        raise ConversionError(f'Column "{field.name}" ({type_}) cannot be held exactly: {error}') from None
    return array


def _import_floats(array: pa.ChunkedArray, dtype: DType, validity: Any, nulls: int) -> Column:
    carrier = Carrier.F32 if dtype.kind is Kind.REAL else Carrier.F64
    parts = [_values(c, carrier.numpy) for c in array.chunks]
    values = _zero_nulls(_concatenate(parts, np.dtype(carrier.numpy)), validity)
    stats = ColumnStatistics(None, nulls, _estimate(values, len(values) - nulls))
    return Column(dtype, carrier, len(values), Buffer(values), _buffer(validity), statistics=stats)


def _import_integers(array: pa.ChunkedArray, dtype: DType, validity: Any, nulls: int, narrow: bool) -> Column:
    rows = len(array)
    parts, high_words = _integer_words(array)
    if validity is not None:  # Arrow leaves anything under a NULL
        ok, at, cleared = validity.view(np.bool_), 0, []
        for part in parts:
            cleared.append(np.where(ok[at : at + len(part)], part, part.dtype.type(0)))
            at += len(part)
        parts = cleared
        if high_words is not None:
            high_words = _zero_nulls(np.array(high_words), validity)
    if high_words is not None:
        return _import_wide(_concatenate(parts, np.int64), high_words, dtype, validity, nulls)
    low, high = _minimum_and_maximum(parts)
    bounds = Bounds(low, high)
    if not bounds.within(INT64):  # UBIGINT in its upper half
        words = _concatenate(parts, np.uint64)
        return _import_wide(words.view(np.int64), np.zeros(rows, np.int64), dtype, validity, nulls)
    carrier = carrier_for(bounds if narrow else type_bounds(dtype) or bounds)
    if carrier is Carrier.I128:
        carrier = Carrier.I64
    values = _concatenate(parts, np.dtype(carrier.numpy))
    return integer_column(values, dtype, carrier, bounds, validity, nulls)


def integer_column(values: Any, dtype: DType, carrier: Carrier, bounds: Bounds, validity: Any, nulls: int) -> Column:
    """A column around an array of integers whose bounds are known, with the rest of its statistics."""
    sorted_, unique = _order(values, nulls)
    if unique:
        distinct = len(values)
    elif sorted_:  # equal values lie together: their runs can be counted
        distinct = _count_runs(values)
    else:
        distinct = min(_estimate(values, len(values) - nulls), bounds.width)
        unique = distinct == len(values) and nulls == 0 and _all_differ(values, bounds)
    stats = ColumnStatistics(bounds, nulls, distinct, sorted_, unique)
    return Column(dtype, carrier, len(values), Buffer(values), _buffer(validity), statistics=stats)


def _import_wide(low_words: Any, high_words: Any, dtype: DType, validity: Any, nulls: int) -> Column:
    """128-bit integers: narrowed where every high word only repeats the sign, else two words a row."""
    rows = len(low_words)
    if rows == 0 or bool(np.array_equal(high_words, low_words >> 63)):
        low, high = _minimum_and_maximum([low_words])
        carrier = carrier_for(Bounds(low, high))
        return integer_column(low_words.astype(carrier.numpy), dtype, carrier, Bounds(low, high), validity, nulls)
    bounds = Bounds(_extreme(high_words, low_words, np.min), _extreme(high_words, low_words, np.max))
    words = np.empty((rows, 2), np.int64)
    words[:, 0] = low_words
    words[:, 1] = high_words
    distinct = _estimate(low_words, rows - nulls)
    stats = ColumnStatistics(bounds, nulls, distinct)
    return Column(dtype, Carrier.I128, rows, Buffer(words.reshape(-1)), _buffer(validity), statistics=stats)


def _extreme(high_words: Any, low_words: Any, pick: Callable[[Any], Any]) -> int:
    top = pick(high_words)
    return (int(top) << 64) + int(pick(low_words[high_words == top].view(np.uint64)))


def _integer_words(array: pa.ChunkedArray) -> tuple[list[Any], Any]:
    """The chunks' integers as views, and for decimals that need more than 64 bits all high words."""
    type_ = array.type
    if not pa.types.is_decimal128(type_):
        width = type_.bit_width // 8
        kind = "u" if pa.types.is_unsigned_integer(type_) else "i"
        return [_values(c, f"{kind}{width}") for c in array.chunks], None
    pairs = [_values(c, "i8", 2).reshape(-1, 2) for c in array.chunks]
    lows = [p[:, 0] for p in pairs]
    if type_.precision <= 18:
        return lows, None
    return lows, _concatenate([p[:, 1] for p in pairs], np.int64)


def _minimum_and_maximum(parts: list[Any]) -> tuple[int, int]:
    """Of all values; (0, 0) for none."""
    filled = [p for p in parts if len(p)]
    if not filled:
        return 0, 0
    return min(int(p.min()) for p in filled), max(int(p.max()) for p in filled)


def _order(values: Any, nulls: int) -> tuple[bool, bool]:
    """Whether values never fall, and whether they always rise (which proves them unique). Ends where one falls."""
    if nulls:
        return False, False
    rising, step = True, 4096
    at = 0
    while at < len(values) - 1:
        a, b = values[at : at + step], values[at + 1 : at + step + 1]
        a = a[: len(b)]
        if rising and not (a < b).all():
            rising = False
        if not rising and not (a <= b).all():
            return False, False
        at += step
        step = _STEP
    return True, rising


def _all_differ(values: Any, bounds: Bounds) -> bool:
    """Proves integers unique that are dense but in no order; False where they repeat, or are too sparse to look."""
    if bounds.width > 8 * len(values):
        return False
    seen = np.zeros(bounds.width, np.bool_)
    for at in range(0, len(values), _STEP):
        seen[values[at : at + _STEP].astype(np.int64) - bounds.low] = True
    return int(np.count_nonzero(seen)) == len(values)


def _count_runs(values: Any) -> int:
    total = 1 if len(values) else 0
    for at in range(0, len(values) - 1, _STEP):
        b = values[at + 1 : at + _STEP + 1]
        total += int(np.count_nonzero(values[at : at + len(b)] != b))
    return total


def _estimate(values: Any, rows: int) -> int:
    """Distinct values, estimated by Chao from how many are seen once and twice in a sample over the whole column."""
    if rows == 0:
        return 0
    sample = values if len(values) <= _SAMPLE else values[:: -(-len(values) // _SAMPLE)]
    counts = np.unique(sample, return_counts=True)[1]
    return chao(len(counts), int((counts == 1).sum()), int((counts == 2).sum()), len(sample), rows)


def chao(distinct: int, once: int, twice: int, sample: int, rows: int) -> int:
    """An estimate of the distinct values of ``rows`` rows from those in a sample.

    >>> chao(100, 0, 10, 1000, 50_000), chao(1000, 1000, 0, 1000, 50_000)
    (100, 50000)
    """
    if sample >= rows or once == 0:
        return min(distinct, rows)
    if once == sample:
        return rows
    return min(rows, int(distinct + once * once / (2 * max(twice, 1))))


# ---- strings -----------------------------------------------------------------------------------------------------


def _import_strings(array: pa.ChunkedArray) -> Column:
    rows = len(array)
    if pa.types.is_dictionary(array.type):
        column = _import_dictionary(array)
        if column is not None:
            return column
        array = array.cast(pa.large_string() if array.type.value_type == pa.large_string() else pa.string())
    if array.null_count == rows:
        return null_column(rows, VARCHAR)
    if _looks_repetitive(array):
        # the sample can be wrong, so the dictionary is judged again once it is whole
        column = _import_dictionary(_plain(array).dictionary_encode(), _dictionary_limit(rows))
        if column is not None:
            return column
    return _import_characters(_plain(array))


def _dictionary_limit(rows: int) -> int:
    return min(_LARGEST_DICTIONARY, max(_SMALL_DICTIONARY, rows // 16))


def _looks_repetitive(array: pa.ChunkedArray) -> bool:
    """Whether a sample from eight places says that a dictionary would pay."""
    rows = len(array)
    if rows <= _SMALL_DICTIONARY:
        return True
    pieces = [array] if rows <= _SAMPLE else _pieces(array)
    sample = pa.chunked_array([c for p in pieces for c in p.chunks], array.type)
    counts = np.asarray(pc.value_counts(_plain(sample).combine_chunks()).field("counts"))
    estimate = chao(len(counts), int((counts == 1).sum()), int((counts == 2).sum()), len(sample), rows)
    return estimate <= _dictionary_limit(rows)


def _pieces(array: Any) -> list[Any]:
    """A sample of an array: eight slices, evenly spread."""
    return [array.slice(k * (len(array) // 8), _SAMPLE // 8) for k in range(8)]


def _plain(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """string_view as string: views lie in many buffers, offsets in one."""
    if array.type != pa.string_view():
        return array
    return array.cast(pa.string() if array.nbytes < 2**31 else pa.large_string())


def _import_dictionary(array: pa.ChunkedArray, limit: int = _LARGEST_DICTIONARY) -> Column | None:
    """A dictionary column under a sorted dictionary; None where the dictionary is larger than the limit.

    Arrow's dictionaries differ from chunk to chunk, and may hold a value twice, NULL, or values that no row has.
    """
    rows = len(array)
    if array.num_chunks == 0:
        return null_column(0, VARCHAR)
    values, starts = _all_dictionaries(array)
    once = values.dictionary_encode()
    if len(once.dictionary) > limit:
        return None
    if len(once.dictionary) == 0:
        return null_column(rows, VARCHAR)
    order = np.asarray(pc.sort_indices(once.dictionary))  # Arrow compares strings bytewise
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    entry_ok = None if once.null_count == 0 else np.append(np.asarray(once.is_valid()), False)
    entry = np.asarray(once.indices.fill_null(0)).astype(np.int64)
    carrier = carrier_for(Bounds(0, len(order) - 1))
    recode = np.append(rank[entry], 0).astype(carrier.numpy)  # one more, for a chunk whose dictionary is empty
    codes = np.empty(rows, carrier.numpy)
    validity = None
    if array.null_count or entry_ok is not None:
        validity = np.ones(rows, np.uint8)
    at = 0
    for chunk, start in zip(array.chunks, starts, strict=True):
        indices = chunk.indices
        view = codes[at : at + len(chunk)]
        if indices.null_count:
            assert validity is not None
            validity[at : at + len(chunk)] = _bits(indices, 0)
        raw = _values(indices, indices.type.to_pandas_dtype())
        if indices.null_count and len(raw):
            raw = np.where(validity[at : at + len(chunk)].view(np.bool_), raw, raw.dtype.type(0))  # type: ignore[index]
        np.take(recode[start:], raw, out=view, mode="clip")
        if entry_ok is not None:
            assert validity is not None
            validity[at : at + len(chunk)] &= np.take(entry_ok[start:], raw, mode="clip").view(np.uint8)
        at += len(chunk)
    nulls = 0
    if validity is not None:
        nulls = rows - int(np.count_nonzero(validity))
        codes[validity == 0] = 0
        validity = validity if nulls else None
    dictionary = Dictionary(once.dictionary.take(pa.array(order)))
    sorted_, unique = _order(codes, nulls)
    distinct = min(len(dictionary), rows - nulls)
    stats = ColumnStatistics(Bounds(0, len(dictionary) - 1), nulls, distinct, sorted_, unique)
    return Column(
        VARCHAR, carrier, rows, Buffer(codes), _buffer(validity), dictionary=dictionary, statistics=stats
    )  # fmt: skip


def _all_dictionaries(array: pa.ChunkedArray) -> tuple[pa.Array, list[int]]:
    """The entries of all chunks' dictionaries, one after another, and where those of each chunk begin; a dictionary
    that repeats the one before is left out. (Arrow's own unification refuses NULLs.)"""
    found: list[pa.Array] = []
    starts: list[int] = []
    for chunk in array.chunks:
        if not found or not found[-1].equals(chunk.dictionary):
            found.append(chunk.dictionary)
        starts.append(sum(len(d) for d in found[:-1]))
    values = pa.concat_arrays(found)
    return (values.cast(pa.string()) if values.type == pa.string_view() else values), starts


def _import_characters(array: pa.ChunkedArray) -> Column:
    """Offsets and bytes: Arrow's own where the column is one chunk."""
    if array.type == pa.string() and array.num_chunks > 1 and array.nbytes >= 2**31:
        array = array.cast(pa.large_string())
    whole = array.chunk(0) if array.num_chunks == 1 else pa.concat_arrays(array.chunks or [pa.array([], array.type)])
    rows, nulls = len(whole), whole.null_count
    wide = whole.type == pa.large_string()
    offset_type = np.dtype(np.int64 if wide else np.int32)
    validity = _bits(whole, 0) if nulls else None
    offsets = _offsets(whole, offset_type)
    if validity is not None and bool((offsets[1:] - offsets[:-1])[validity == 0].any()):
        whole = pc.fill_null(whole, "")
        offsets = _offsets(whole, offset_type)
    data = whole.buffers()[2]
    characters = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    sample = whole if rows <= _SAMPLE else pa.concat_arrays(_pieces(whole))
    counts = np.asarray(pc.value_counts(sample).field("counts"))
    distinct = chao(len(counts), int((counts == 1).sum()), int((counts == 2).sum()), len(sample), rows - nulls)
    return Column(
        VARCHAR,
        Carrier.STRING64 if wide else Carrier.STRING32,
        rows,
        Buffer(offsets),
        _buffer(validity),
        Buffer(characters),
        statistics=ColumnStatistics(None, nulls, distinct),
    )


def _offsets(array: pa.Array, type_: np.dtype[Any]) -> Any:
    buffer = array.buffers()[1]
    if buffer is None or buffer.size == 0:
        return np.zeros(1, type_)
    return np.frombuffer(buffer, type_)[array.offset : array.offset + len(array) + 1]


# ---- buffers -----------------------------------------------------------------------------------------------------


def _values(array: pa.Array, type_: Any, words: int = 1) -> Any:
    """A view of the data buffer of an array of fixed width."""
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.empty(0, type_)
    return np.frombuffer(buffer, type_)[array.offset * words : (array.offset + len(array)) * words]


def _bits(array: pa.Array, which: int) -> Any:
    """A bitmap of an array (0: validity, 1: the data of booleans) as bytes; all ones where there is no validity."""
    buffer = array.buffers()[which]
    rows = len(array)
    if buffer is None or rows == 0:
        return np.ones(rows, np.uint8)
    start = array.offset // 8
    packed = np.frombuffer(buffer, np.uint8)[start : (array.offset + rows + 7) // 8]
    skip = array.offset - 8 * start
    return np.unpackbits(packed, bitorder="little")[skip : skip + rows]


def _validity(array: pa.ChunkedArray) -> Any:
    return _concatenate([_bits(c, 0) for c in array.chunks], np.dtype(np.uint8))


def _concatenate(parts: list[Any], type_: Any) -> Any:
    """One contiguous array of the type; the part itself where there is one that is so already."""
    type_ = np.dtype(type_)
    if len(parts) == 1 and parts[0].dtype == type_ and parts[0].flags.c_contiguous:
        return parts[0]
    out = np.empty(sum(len(p) for p in parts), type_)
    at = 0
    for part in parts:
        out[at : at + len(part)] = part
        at += len(part)
    return out


def _zero_nulls(values: Any, validity: Any) -> Any:
    if validity is None:
        return values
    return np.where(validity.view(np.bool_), values, values.dtype.type(0))


def _buffer(array: Any) -> Buffer | None:
    return None if array is None else Buffer(array)
