"""Columns of values that stand in other rows, or in none: NULL, or a value instead.

Results are in the physical type that the plan promised, which may be wider than the column's; a dictionary's codes stay codes
where the result has that dictionary, and are spelled out else.
"""

from __future__ import annotations

import numpy as np

from gquery.columns.table import ColumnData, Dictionary
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.expr import Literal
from gquery.expression.types import VARCHAR, PhysicalType
from gquery.functions.vectors import characters_of, offsets_of
from gquery.kernels.builtin import gathers, wide_arrays
from gquery.kernels.builtin.choosing import all_set, both_set, put_others
from gquery.kernels.builtin.elements import converted, every, hide_nulls
from gquery.operators.base import make_column, narrow, null_column, words_a_row
from gquery.operators.window.positions import Work, repeated
from gquery.planner.physical import Stored
from gquery.runtime.records import dataclass


def take_or_null(column: ColumnData, rows: Array, there: Array | None, stored: Stored, work: Work) -> ColumnData:
    """The column's values in these rows, by row; NULL where ``there`` (uint8) is 0."""
    return take_or_other(column, rows, there, None, stored, work)


def constant_column(literal: Literal, stored: Stored, device: Device) -> ColumnData:
    """A constant as a column of one row, in the dictionary of a result that has one."""
    codes = stored.properties.dictionary
    if isinstance(codes, Dictionary) and isinstance(literal.value, str):
        code = codes.code_of(literal.value)
        assert code is not None
        data = device.from_host(np.array([code], stored.physical_type.numpy))
        return make_column(stored.properties, stored.physical_type, data, None, 1, device)
    return repeated(literal, 1, device)


@dataclass(frozen=True, eq=False)
class Otherwise:
    """What a row has whose value stands nowhere: that of its own row in a column, or the only one of a column of one row."""

    column: ColumnData
    is_constant: bool


def take_or_other(
    column: ColumnData, rows: Array, there: Array | None, other: Otherwise | None, stored: Stored, work: Work
) -> ColumnData:
    """The column's values in these rows (any, where ``there`` is 0), by row; where ``there`` is 0 what ``other`` has, or NULL."""
    count, device = int(rows.size), work.device
    if column.length == 0:
        return null_column(stored, count, device)
    texts: list[ColumnData] = []  # where the text lies whose addresses are taken, until it is copied
    values, validity = _taken(column, rows, stored, device, texts)
    if there is not None:
        if other is None:
            validity = there if validity is None else both_set(validity, there)
        else:
            own = device.zeros(count, np.uint32) if other.is_constant else None
            others, other_validity = _taken(other.column, own, stored, device, texts)
            values = _chosen(values, others, there)
            if validity is not None or other_validity is not None:
                own_flags, other_flags = (
                    all_set(there, count) if v is None else v for v in (validity, other_validity)
                )
                validity = _chosen(own_flags, other_flags, there)
    if validity is not None:
        hide_nulls(values, validity, values.ndim, work.workers)
    return _column(stored, values, validity, count, device)


def _chosen(values: Array, others: Array, there: Array) -> Array:
    """Values, which were taken out of a column for this, and the others where none is ``there`` (uint8)."""
    if isinstance(values, np.ndarray):
        return np.where(there if values.ndim == 1 else there[:, None], values, others)
    put_others(values.reshape(-1), others.reshape(-1), there, values.ndim)
    return values


def _taken(
    column: ColumnData, rows: Array | None, stored: Stored, device: Device, texts: list[ColumnData]
) -> tuple[Array, Array | None]:
    """Values of rows (None: of each) in the stored type's form, and their validity. Text comes as pairs of address and length,
    good as long as the caller holds what is added to ``texts``."""
    validity = None
    if column.validity is not None:
        flags = column.validity.on(device)
        validity = flags if rows is None else gathers.gather(flags, rows)
    if stored.physical_type.is_string:
        if isinstance(column.dictionary, Dictionary):
            codes = column.data.on(device)
            rows = converted(codes if rows is None else gathers.gather(codes, rows), np.int64)
            column = _texts(column.dictionary, device)
        texts.append(column)
        return gathers.string_views(column, device, rows).reshape(-1, 2), validity
    words = words_a_row(column.physical_type)
    data = column.data.on(device)
    taken = data if rows is None else gathers.gather(data, rows, words)
    if words == 2 and stored.physical_type is PhysicalType.I128:
        return taken.reshape(-1, 2), validity
    if words == 2:
        return narrow(every(taken, 2), stored.physical_type), validity
    if stored.physical_type is PhysicalType.I128:
        return wide_arrays.i128_from_i64(taken), validity
    return narrow(taken, stored.physical_type), validity


def _texts(dictionary: Dictionary, device: Device) -> ColumnData:
    """A dictionary's values as a column of text."""
    values = dictionary.values
    offsets = Buffer(device.from_host(offsets_of(values).astype(np.int64)), device)
    characters = Buffer(device.from_host(np.array(characters_of(values))), device)
    return ColumnData(VARCHAR, PhysicalType.STRING64, len(values), offsets, None, characters)


def _column(stored: Stored, values: Array, validity: Array | None, rows: int, device: Device) -> ColumnData:
    if not stored.physical_type.is_string:
        data = narrow(values.reshape(-1), stored.physical_type)
        return make_column(stored.properties, stored.physical_type, data, validity, rows, device)
    offsets, characters = gathers.gather_strings(values.reshape(-1), device=device)
    return ColumnData(
        stored.properties.dtype, PhysicalType.STRING64, rows, Buffer(offsets, device),
        None if validity is None else Buffer(validity, device), Buffer(characters, device),
    )  # fmt: skip
