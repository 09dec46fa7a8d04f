"""Few rows of Arrow's arrays that are a table's columns and are not encoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.errors import DataError
from gquery.expression.types import Field

if TYPE_CHECKING:
    import pyarrow as pa

    from gquery.columns.ownership import Origin


def fetched(
    table: str, field: Field, array: pa.ChunkedArray, origin: Origin | None, rows: Array, narrow: bool
) -> ColumnData:
    """The values of a column in these rows; ``origin`` tells whose the array is, None that gquery made it."""
    from gquery.columns.encode import import_column
    from gquery.columns.ownership import Origin
    from gquery.columns.pick import picked

    with (origin or Origin(table, is_shared=False)).named(field.name):
        values = picked(array, rows.astype(np.int64))
        values.validate(full=True)
    made = import_column(values, field, narrow)
    check_nullable(made, field, table)
    return made


def check_nullable(column: ColumnData, field: Field, table: str) -> None:
    """DataError where a column that had no NULL has got one, on which plans rest that are made already."""
    if column.statistics.null_count and not field.nullable:
        raise DataError(f'Column "{field.name}" of {table} has changed since it became a table')
