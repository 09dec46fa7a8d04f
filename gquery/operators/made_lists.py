"""Columns of lists that a stage makes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from gquery.columns.arrow import arrow_type
from gquery.columns.arrow_buffers import bits_of
from gquery.columns.opaque import Opaque, Pending
from gquery.columns.table import ColumnData, ColumnStatistics
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.expression.types import Bounds
from gquery.functions.nested_arrays import as_type
from gquery.planner.physical import Stored


def list_column(stored: Stored, chunks: Sequence[pa.Array], rows: int, device: Device) -> ColumnData:
    """The column of lists that stand in the arrays one after another: their numbers, and what they are numbers of."""
    type_ = arrow_type(stored.properties.dtype)
    if any(pa.types.is_large_list(c.type) for c in chunks):
        type_ = pa.large_list(type_.value_type)
    values = pa.chunked_array([as_type(c, type_) for c in chunks], type_)
    pending = stored.properties.dictionary
    assert isinstance(pending, Pending)
    numbers, ok = np.arange(rows, dtype=stored.physical_type.numpy), None
    if stored.properties.nullable:
        ok = np.concatenate([bits_of(c, 0) for c in chunks]) if chunks else np.zeros(0, np.uint8)
        numbers *= ok
    return ColumnData(
        stored.properties.dtype,
        stored.physical_type,
        rows,
        Buffer(device.from_host(numbers), device),
        None if ok is None else Buffer(device.from_host(ok), device),
        dictionary=Opaque(values, stands_for=pending),
        statistics=ColumnStatistics(Bounds(0, max(rows - 1, 0))),
    )
