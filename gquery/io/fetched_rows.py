"""Few rows of Arrow's arrays that are a table's columns and are not encoded."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gquery.columns.table import ColumnData, ColumnStatistics
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.errors import DataError
from gquery.expression.types import Field, PhysicalType, Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from gquery.columns.ownership import Origin
    from gquery.columns.pick import Picker

_WORDS = ("I8", "I16", "I32", "I64", "U8", "U16", "U32")
_PHYSICAL = {np.dtype(PhysicalType[name].numpy): PhysicalType[name] for name in _WORDS}


class RowFetcher:
    """Fetches rows of the columns of one table: ``name`` is the table's, for errors."""

    def __init__(self, name: str, schema: Schema) -> None:
        self._name, self._fields = name, schema.fields
        self._pickers: dict[int, tuple[pa.ChunkedArray, Picker]] = {}
        self._lock = threading.Lock()

    def fetch(self, arrays: Mapping[int, tuple[pa.ChunkedArray, Origin | None]], rows: Array) -> dict[int, ColumnData]:
        """By field, its values in these rows; with each array goes whose it is, None that gquery made it."""
        numbers = rows.astype(np.int64)
        return {f: self._fetched(f, array, origin, numbers) for f, (array, origin) in arrays.items()}

    def _fetched(self, field: int, array: pa.ChunkedArray, origin: Origin | None, rows: Any) -> ColumnData:
        from gquery.columns.ownership import Origin
        from gquery.columns.pick import is_integral

        of, picker = self._fields[field], self._picker(field, array)
        if is_integral(array.type):
            made = _integers(of, *picker.numbers(rows), len(rows))
        else:
            with (origin or Origin(self._name, is_shared=False)).named(of.name):
                values = picker.rows(rows)
                values.validate(full=True)
            made = _others(of, values)
        check_nullable(made, of, self._name)
        return made

    def _picker(self, field: int, array: pa.ChunkedArray) -> Picker:
        from gquery.columns.pick import Picker

        with self._lock:
            known = self._pickers.get(field)
            if known is None or known[0] is not array:
                known = self._pickers[field] = array, Picker(array)
            return known[1]

    def forget(self, field: int) -> None:
        """Let go of an array, which is encoded."""
        with self._lock:
            self._pickers.pop(field, None)


def check_nullable(column: ColumnData, field: Field, table: str) -> None:
    """DataError where a column that had no NULL has got one, on which plans rest that are made already."""
    if column.statistics.null_count and not field.nullable:
        raise DataError(f'Column "{field.name}" of {table} has changed since it became a table')


def _integers(field: Field, values: Any, ok: Any, rows: int) -> ColumnData:
    if values is None:
        values = np.zeros(0, np.int8)
    nulls = 0 if ok is None else rows - int(np.count_nonzero(ok))
    if nulls:
        values = np.where(ok == 1, values, values.dtype.type(0))
    valid = Buffer(ok) if nulls else None
    return ColumnData(
        field.dtype, _PHYSICAL[values.dtype], rows, Buffer(values), valid, statistics=ColumnStatistics(null_count=nulls)
    )


def _others(field: Field, values: pa.Array) -> ColumnData:
    from gquery.columns.arrow_buffers import bits_of, buffer_of
    from gquery.columns.encode import import_column
    from gquery.columns.encode_strings import characters_column, characters_of, cleared

    nulls = values.null_count
    if not field.dtype.is_string or nulls == len(values):
        return import_column(values, field)
    whole, offsets = cleared(values, bits_of(values, 0) if nulls else None)
    ok = buffer_of(bits_of(values, 0) if nulls else None)
    return characters_column(Buffer(offsets), Buffer(characters_of(whole)), ok, nulls, len(values))
