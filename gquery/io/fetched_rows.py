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
    from gquery.columns.pick import Picker, Places

_NO_NULLS = ColumnStatistics(null_count=0)
_WORDS = ("I8", "I16", "I32", "I64", "U8", "U16", "U32", "F32", "F64")
_PHYSICAL = {np.dtype(PhysicalType[name].numpy): PhysicalType[name] for name in _WORDS}


class RowFetcher:
    """Fetches rows of the columns of one table: ``name`` is the table's, for errors."""

    def __init__(self, name: str, schema: Schema) -> None:
        self._name, self._fields = name, schema.fields
        self._pickers: dict[int, tuple[pa.ChunkedArray, Picker]] = {}
        self._lock = threading.Lock()

    def fetch(self, arrays: Mapping[int, tuple[pa.ChunkedArray, Origin | None]], rows: Array) -> dict[int, ColumnData]:
        """By field, its values in these rows; with each array goes whose it is, None that gquery made it."""
        from gquery.columns.pick import Places

        numbers = rows.astype(np.int64)
        places: dict[tuple[int, ...], Places] = {}  # most columns of a table are cut into chunks alike
        made = {}
        for f, (array, origin) in arrays.items():
            picker = self._picker(f, array)
            at = places.get(picker.starts)
            if at is None:
                at = places[picker.starts] = Places(picker.starts, numbers)
            made[f] = self._fetched(f, picker, origin, at)
        return made

    def _fetched(self, field: int, picker: Picker, origin: Origin | None, at: Places) -> ColumnData:
        of = self._fields[field]
        if picker.is_number:
            made = _numbers(of, *picker.numbers(at))
        else:
            from gquery.columns.ownership import Origin

            with (origin or Origin(self._name, is_shared=False)).named(of.name):
                made = _texts(*picker.texts(at)) if picker.is_text else _others(of, picker.rows(at))
        check_nullable(made, of, self._name)
        return made

    def _picker(self, field: int, array: pa.ChunkedArray) -> Picker:
        from gquery.columns.pick import Picker

        known = self._pickers.get(field)
        if known is None or known[0] is not array:
            with self._lock:
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


def _numbers(field: Field, values: Any, ok: Any) -> ColumnData:
    nulls = 0 if ok is None else len(values) - int(np.count_nonzero(ok))
    statistics = ColumnStatistics(null_count=nulls) if nulls else _NO_NULLS
    valid = Buffer(ok) if nulls else None
    return ColumnData(field.dtype, _PHYSICAL[values.dtype], len(values), Buffer(values), valid, statistics=statistics)


def _texts(offsets: Any, characters: bytes, ok: Any) -> ColumnData:
    from gquery.columns.encode_strings import characters_column, null_strings

    rows = len(offsets) - 1
    nulls = 0 if ok is None else rows - int(np.count_nonzero(ok))
    if nulls == rows:
        return null_strings(rows)
    valid = Buffer(ok) if nulls else None
    return characters_column(Buffer(offsets), Buffer(np.frombuffer(characters, np.uint8)), valid, nulls, rows)


def _others(field: Field, values: pa.Array) -> ColumnData:
    from gquery.columns.encode import import_column

    values.validate(full=True)
    return import_column(values, field)
