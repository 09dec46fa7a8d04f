"""Whose memory a column lies in: what is copied, what is validated, and when.

gquery keeps what it has proved of a column (bounds, order, uniqueness, NULLs, dictionaries, and plans over them), so
nobody else may be able to write to what it keeps. `caller_origin` and `file_origin` say whose it is, by the kind of the data:

| data                                   | who can write to its memory       | what is done                              |
|----------------------------------------|-----------------------------------|-------------------------------------------|
| results, CREATE TABLE AS, VALUES       | nobody: they leave read-only      | nothing                                   |
| files                                  | nobody: they are read, not mapped | validated when a column is first used     |
| pandas data frames                     | NumPy arrays that they were made  | a copy-on-write copy when registered;     |
|                                        | over                              | copied and validated at the first use     |
| Arrow tables, batches, streams, Polars | what lies below: NumPy, a mapped  | copied and validated at the first use     |
|                                        | file, another library             |                                           |
| NumPy, CuPy, DLPack arrays and lists   | whoever holds them                | copied when registered                    |

A variable that is named in SQL is read by `Connection.sql`, the columns that the query uses. Arrow cannot tell memory of its
own from NumPy's, and Polars and pandas can lie over either, so no array of another library counts as immutable. Bounds and
all else are computed from the copies. A column that is narrowed is a copy then; what is copied before is small or would
have been kept as it lies. A late fetch (`planner.late_fetch`) reads rows of columns that were not used before: as these are
when it runs, with their text compared with its bytes and validated; nothing is kept of them, and nothing rests on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow_buffers import numpy_name, offsets_of, values_of
from gquery.columns.plain_nested import is_encoded, plain_array, plain_type
from gquery.errors import DataError, Error, FileError
from gquery.expression.types import Bounds
from gquery.runtime.records import dataclass
from gquery.runtime.threads import Phases, Task

if TYPE_CHECKING:
    from gquery.columns.owned_text import OwnedText
    from gquery.columns.owned_values import OwnedValues

_ANY_WORD = (pa.bool_(), pa.date32(), *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")))  # is a value of these


@dataclass(frozen=True)
class Origin:
    """Where data came from: ``name`` for errors, and whether others may write to its memory (``is_shared``)."""

    name: str
    is_shared: bool
    error: type[Error] = DataError

    def structure(self, array: pa.ChunkedArray, column: str) -> None:
        """Look whether an array's buffers are long enough for it, without looking at values."""
        self._validate(array, column, full=False)

    def take(self, array: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
        """The array in memory that nobody else can write to, valid in full."""
        self.structure(array, column)
        if self.is_shared:
            with self.named(column):
                array = _copied(array)
        self._validate(array, column, full=True)
        return array

    def taking(self, array: pa.ChunkedArray, column: str) -> Phases[pa.ChunkedArray]:
        """The same as `take` in tasks for threads: a long column in pieces."""
        parts = self._parts(array, column)
        if parts is None:
            made: list[pa.ChunkedArray] = []
            yield [lambda: made.append(self.take(array, column))]
            return made[0]
        for tasks in (parts.copies, parts.checks):
            with self.named(column):
                listed = list(tasks())
            yield [partial(self._do, task, column) for task in listed]
        return pa.chunked_array(parts.chunks)  # text beyond 2 GiB has another type

    def _parts(self, array: pa.ChunkedArray, column: str) -> OwnedText | OwnedValues | None:
        """What copies the array in pieces; None where it is short, or where its values are no bytes one after another."""
        if not self.is_shared or len(array) < tuning.ownership.long_column:
            return None
        from gquery.columns.owned_text import OwnedText
        from gquery.columns.owned_values import OwnedValues

        type_ = array.type
        is_text, is_coded = type_ in (pa.string(), pa.large_string()), pa.types.is_dictionary(type_)
        if not is_text and not is_coded and (not _has_width(type_) or pa.types.is_boolean(type_)):
            return None
        self.structure(array, column)
        shared: dict[Any, Any] = {}
        with self.named(column):
            return OwnedText(array) if is_text else OwnedValues(array, partial(self._dictionary, column, shared))

    def _dictionary(self, column: str, shared: dict[Any, Any], dictionary: pa.Array) -> pa.Array:
        copy = _once(dictionary, shared)
        self._validate(copy, column, full=True)
        return copy

    def _do(self, task: Task, column: str) -> None:
        with self.named(column):
            task()

    def blocks(self, piece: pa.Array, column: str) -> Iterator[pa.Array]:
        """An array of fixed width block by block, each in memory of its own, to be read while it is in cache."""
        for at in range(0, len(piece), tuning.ownership.block):
            block = (
                copied(piece.slice(at, tuning.ownership.block))
                if self.is_shared
                else piece.slice(at, tuning.ownership.block)
            )
            self._validate(block, column, full=True)
            yield block

    def _validate(self, array: Any, column: str, full: bool) -> None:
        with self.named(column):
            array.validate(full=full)

    @contextmanager
    def named(self, column: str) -> Iterator[None]:
        """Within it, what Arrow finds wrong is an error of the column's."""
        try:
            yield
        except MemoryError:
            raise
        except (pa.ArrowException, ValueError) as error:
            cause = str(error).split("\n")[0]
            raise self.error(f'Column "{column}" of {self.name} is not valid Arrow data: {cause}') from None


def caller_origin(name: str) -> Origin:
    """Of data of the caller that are to be a table called ``name``: others may write to the memory."""
    return Origin(name, is_shared=True)


def file_origin(name: str) -> Origin:
    """Of what was read from a file: the memory is ours, what stands in it is not."""
    return Origin(name, is_shared=False, error=FileError)


def changes_in_place(data: Any) -> bool:
    """Whether data must be copied when it is registered, since its owner writes to it in the usual course of things."""
    return isinstance(data, Mapping) or (_is_frame(data) and not _copies_on_write())


def unchanging(data: Any) -> Any:
    """Data that does not see what its owner writes by pandas' own methods; anything else is given back."""
    return data.copy(deep=not _copies_on_write()) if _is_frame(data) else data


def _is_frame(data: Any) -> bool:
    return type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "columns")


def _copies_on_write() -> bool:
    import pandas

    return int(pandas.__version__.split(".")[0]) >= 3 or pandas.options.mode.copy_on_write is True


def check_decoded(array: pa.Array, column: str) -> None:
    """Look at what Arrow's reader of Parquet leaves unchecked: UTF-8, codes into dictionaries, digits of decimals.
    ValueError says what is wrong with the column."""
    try:
        _check(array)
    except (pa.ArrowInvalid, ValueError) as error:
        raise ValueError(f"column {column}: {error}") from None


def check_digits(array: pa.Array, column: str, bounds: Bounds, is_narrow: bool) -> None:
    """The same for decimals of up to 18 digits whose ``bounds`` are known, and whether all fit 64 bits; for others nothing."""
    if pa.types.is_decimal(array.type):
        limit = 10**array.type.precision
        if not is_narrow or not -limit < bounds.low <= bounds.high < limit:
            check_decoded(array, column)


def _check(array: pa.Array) -> None:
    """`pa.Array.validate` finds the same and takes as long as decoding does."""
    type_ = array.type
    if pa.types.is_dictionary(type_):
        _check(array.dictionary)
        codes = values_of(array.indices, numpy_name(array.indices.type))
        if len(codes) and array.null_count < len(array) and (codes.min() < 0 or codes.max() >= len(array.dictionary)):
            array.validate(full=True)  # a code under NULL may be anything
    elif type_ in (pa.string(), pa.large_string()):
        array.validate()
        offsets = offsets_of(array)
        data = array.buffers()[2]
        size = int(offsets[-1]) - int(offsets[0])
        if size and int(np.frombuffer(data, np.uint8, size, int(offsets[0])).max()) >= 128:
            array.validate(full=True)
    elif pa.types.is_decimal128(type_) and type_.precision <= 18:
        low, limit = values_of(array, "i8", 2)[::2], 10**type_.precision
        if len(array) and not (
            -limit < (least := int(low.min())) and int(low.max()) < limit and are_narrow(array, low, least)
        ):
            array.validate(full=True)
    elif not (pa.types.is_integer(type_) or pa.types.is_floating(type_) or type_ in _ANY_WORD):
        array.validate(full=True)


def are_narrow(array: pa.Array, low: Any, least: int) -> bool:
    """Whether decimals of 128 bits, whose lower words are ``low`` and no less than ``least``, are those words: the upper ones are
    their signs alone."""
    high = values_of(array, "i8", 2)[1::2]
    return not np.count_nonzero(high) if least >= 0 else bool((high == low >> 63).all())


# ---- copies --------------------------------------------------------------------------------------------------------


def _copied(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Every chunk in memory of its own; what several chunks share (a dictionary) is copied once."""
    shared: dict[Any, Any] = {}
    chunks = [copied(chunk, shared) for chunk in array.chunks]
    return pa.chunked_array(chunks, chunks[0].type if chunks else array.type)


def copied(array: pa.Array, shared: dict[Any, Any] | None = None) -> pa.Array:
    """An array whose structure is valid in memory of its own. Values are not looked at, so that these may be anything."""
    shared = {} if shared is None else shared
    type_ = array.type
    if is_encoded(type_):
        array.validate(full=True)
        return copied(plain_array(array, plain_type(type_)), shared)
    if len(array) == 0 or pa.types.is_null(type_):
        return pa.nulls(len(array), type_) if not pa.types.is_dictionary(type_) else array
    if pa.types.is_dictionary(type_):
        values = _once(array.dictionary, shared)
        return pa.DictionaryArray.from_arrays(copied(array.indices), values, ordered=type_.ordered, safe=False)
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, copied(array.storage, shared))
    buffers = array.buffers()
    skip = array.offset % 8  # bitmaps are cut at bytes
    start, rows = array.offset - skip, len(array) + skip
    ok = None if buffers[0] is None else _bytes(buffers[0], start // 8, -(-rows // 8))
    if pa.types.is_boolean(type_):
        made = [ok, _bytes(buffers[1], start // 8, -(-rows // 8))]
    elif _is_text(type_):
        made = [ok, *_text(buffers, start, rows, np.int64 if "large" in str(type_) else np.int32)]
    elif type_ in (pa.string_view(), pa.binary_view()):
        made = [ok, _bytes(buffers[1], 16 * start, 16 * rows), *(_once_bytes(b, shared) for b in buffers[2:])]
    elif _has_width(type_):
        width = type_.bit_width // 8
        made = [ok, _bytes(buffers[1], width * start, width * rows)]
    else:
        return _nested(array)
    return pa.Array.from_buffers(type_, len(array), made, offset=skip)


def _is_text(type_: pa.DataType) -> bool:
    return type_ in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _has_width(type_: pa.DataType) -> bool:
    is_plain = pa.types.is_primitive(type_) or pa.types.is_decimal(type_) or pa.types.is_fixed_size_binary(type_)
    return is_plain and not isinstance(type_, pa.BaseExtensionType)


def _bytes(buffer: pa.Buffer, start: int, size: int) -> pa.Buffer:
    """A copy of bytes of a buffer; of those that are there."""
    return pa.py_buffer(np.frombuffer(buffer.slice(start, min(size, buffer.size - start)), np.uint8).copy())


def _text(buffers: list[Any], start: int, rows: int, word: Any) -> list[pa.Buffer]:
    """Offsets that begin at 0, and the bytes that they span."""
    width = np.dtype(word).itemsize
    offsets = np.frombuffer(buffers[1].slice(start * width, (rows + 1) * width), word).copy()
    first, last = int(offsets[0]), int(offsets[-1])
    size = buffers[2].size if buffers[2] is not None else 0
    if not 0 <= first <= last <= size:
        raise ValueError(f"offsets from {first} to {last} into {size} bytes")
    offsets -= first
    characters = _bytes(buffers[2], first, last - first) if last > first else pa.py_buffer(b"")
    return [pa.py_buffer(offsets), characters]


def _nested(array: pa.Array) -> pa.Array:
    """A copy of an array of any type, by way of Arrow's format for messages."""
    array.validate(full=True)
    batch = pa.record_batch([array], names=["x"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    made = pa.ipc.open_stream(sink.getvalue()).read_all().column(0)
    if made.type != array.type:
        raise ValueError(f"{array.type} comes back as {made.type}: pyarrow.register_extension_type is to know it")
    return made.chunk(0) if made.num_chunks == 1 else pa.concat_arrays(made.chunks)


def _once(array: pa.Array, shared: dict[Any, Any]) -> pa.Array:
    key = (array.offset, len(array), *(None if b is None else (b.address, b.size) for b in array.buffers()))
    if key not in shared:
        shared[key] = copied(array, shared)
    return shared[key]


def _once_bytes(buffer: pa.Buffer, shared: dict[Any, Any]) -> pa.Buffer:
    key = (buffer.address, buffer.size)
    if key not in shared:
        shared[key] = _bytes(buffer, 0, buffer.size)
    return shared[key]
