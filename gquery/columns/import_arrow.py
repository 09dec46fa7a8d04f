"""Arrow data that is in memory, encoded on all cores: long columns in pieces, short ones a thread each.

A column that lies in Arrow as it will lie here is viewed (`gquery.columns.encode`). Any other is cut into pieces:
threads look for their bounds first, which tell the physical type, and then write each piece into the final array
(`gquery.columns.assemble`).

Data with an `Origin` is copied and validated on the way (`gquery.columns.ownership`). What is cut into pieces is copied
block by block while it is narrowed; the bounds that were looked for before are a guess there, which the assembly
checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow import import_schema
from gquery.columns.arrow_buffers import bits_of, numpy_name
from gquery.columns.assemble import Assembly, assembly_for, decoded
from gquery.columns.encode import import_column
from gquery.columns.encode_strings import import_strings_in_phases
from gquery.columns.ownership import Origin
from gquery.columns.page_values import MisfitError
from gquery.columns.plain_nested import is_wrapped
from gquery.columns.table import ColumnData, Table
from gquery.device.transfer import Upload
from gquery.expression.types import INT64, Bounds, Field, Kind, physical_type_for
from gquery.runtime.threads import Phases, Task, core_count, run_phases


def import_table(table: pa.Table, narrow: bool = True) -> Table:
    """An Arrow table, encoded; NotSupportedError names a column whose type SQL here does not know."""
    schema = import_schema(table.schema)
    columns = import_columns([table.column(i) for i in range(table.num_columns)], schema.fields, narrow)
    return Table(schema, tuple(columns), table.num_rows)


def import_columns(
    arrays: Sequence[pa.ChunkedArray],
    fields: Sequence[Field],
    narrow: bool = True,
    workers: int | None = None,
    origin: Origin | None = None,
) -> list[ColumnData]:
    """Columns of Arrow arrays, as `import_column` makes them; ``workers`` None takes all cores. What is not valid is an
    error of the ``origin`` that names the column; None is for arrays that gquery made."""
    if sum(len(a) for a in arrays) < tuning.encoding.one_thread:
        whole = arrays if origin is None else [origin.take(a, f.name) for a, f in zip(arrays, fields, strict=True)]
        return [import_column(a, f, narrow) for a, f in zip(whole, fields, strict=True)]
    pieces = sum([-(-len(a) // _least_piece(f)) for a, f in zip(arrays, fields, strict=True)])
    workers = min(workers or core_count(), pieces)
    phases = [_import(a, f, narrow, origin, workers) for a, f in zip(arrays, fields, strict=True)]
    return run_phases(phases, workers)


def _import(
    array: pa.ChunkedArray, field: Field, narrow: bool, origin: Origin | None, workers: int
) -> Phases[ColumnData]:
    rows, limits = len(array), tuning.encoding
    if rows <= limits.piece or _is_viewed(array, field, narrow) or not _is_fixed(array.type, field):
        array = yield from _taken(array, field, origin)
        origin = None
    if field.dtype.is_string and array.num_chunks == 1 and not is_wrapped(array.type):
        return (yield from import_strings_in_phases(array))
    if rows <= limits.piece or _is_viewed(array, field, narrow):
        return (yield from _whole(array, field, narrow))
    size = min(max(-(-rows // workers), _least_piece(field)), limits.piece)
    starts = [*range(0, rows, size), rows]
    pieces = [array.slice(start, size).chunks for start in starts[:-1]]
    known = None
    if narrow and _has_bounds(array.type, field):
        found: list[Bounds] = []
        yield [_task(_look, part, field, found) for part in pieces]
        known = Bounds(min(b.low for b in found), max(b.high for b in found))
        if not known.within(INT64) or (origin is None and _fits_as_it_is(array, known)):
            return (yield from _whole((yield from _taken(array, field, origin)), field, narrow))
    assembly = assembly_for(array.type, field, starts, known, narrow, Upload(None))
    misfits: list[int] = []
    yield [_task(_add, assembly, group, part, misfits, field, origin) for group, part in enumerate(pieces)]
    if misfits:
        return (yield from _whole((yield from _taken(array, field, origin)), field, narrow))
    return (yield from assembly.finish())


def _least_piece(field: Field) -> int:
    """How many rows are worth a task of their own: one of numbers is short, and each of its calls waits for a turn."""
    return tuning.encoding.least_piece if field.dtype.is_string else tuning.encoding.least_numbers


def _taken(array: pa.ChunkedArray, field: Field, origin: Origin | None) -> Phases[pa.ChunkedArray]:
    """The array in memory of our own, valid in full."""
    return array if origin is None else (yield from origin.taking(array, field.name))


def _whole(array: pa.ChunkedArray, field: Field, narrow: bool) -> Phases[ColumnData]:
    made: list[ColumnData] = []
    yield [lambda: made.append(import_column(array, field, narrow))]
    return made[0]


def _is_viewed(array: pa.ChunkedArray, field: Field, narrow: bool) -> bool:
    """Whether a column will lie as Arrow has it, so that there is nothing to write."""
    if array.num_chunks != 1 or _is_encoded(array.type):
        return False
    if field.dtype.is_string:
        return bool(array.type != pa.string_view())
    is_kept = field.dtype.is_float or (not narrow and field.dtype.kind is not Kind.BOOLEAN)
    return bool(array.null_count == 0 and is_kept)


def _is_fixed(type_: pa.DataType, field: Field) -> bool:
    """Whether a long column is encoded block by block: numbers, dates, times and booleans of up to 64 bits."""
    is_plain = field.dtype.kind is Kind.BOOLEAN or field.dtype.is_float
    return (is_plain and not _is_encoded(type_)) or _has_bounds(type_, field)


def _has_bounds(type_: pa.DataType, field: Field) -> bool:
    dtype = field.dtype
    is_small = not dtype.is_decimal or (dtype.precision <= 18 and pa.types.is_decimal128(type_))
    if type_ == pa.month_day_nano_interval():
        return False
    return dtype.is_exact and is_small and dtype.kind is not Kind.BOOLEAN and not _is_encoded(type_)


def _is_encoded(type_: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(type_)) or is_wrapped(type_)


def _fits_as_it_is(array: pa.ChunkedArray, bounds: Bounds) -> bool:
    if array.num_chunks != 1 or array.null_count or pa.types.is_decimal(array.type):
        return False
    physical_type = np.dtype(physical_type_for(bounds).numpy)
    return bool(physical_type == np.dtype(numpy_name(array.type)))


def _look(pieces: Sequence[pa.Array], field: Field, found: list[Bounds]) -> None:
    """The bounds of an array, 0 for NULL among them."""
    for piece in pieces:
        values = decoded(piece, field)
        if piece.null_count:
            values = np.where(bits_of(piece, 0).view(np.bool_), values, values.dtype.type(0))
        if len(values):
            found.append(Bounds(int(values.min()), int(values.max())))


def _add(
    assembly: Assembly,
    group: int,
    pieces: Sequence[pa.Array],
    misfits: list[int],
    field: Field,
    origin: Origin | None,
) -> None:
    own = pieces if origin is None else (block for piece in pieces for block in origin.blocks(piece, field.name))
    try:
        assembly.add(group, own)
    except MisfitError:
        misfits.append(group)


def _task(work: Callable[..., None], *arguments: Any) -> Task:
    return lambda: work(*arguments)
