"""Values of a result for who reads them: texts as CAST to VARCHAR writes them, which Python's own values are not.

Python has no months, no years before 1 or behind 9999, and no floats of 32 bits; its texts of lists do not tell NULL from a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from gquery.columns.arrow import string_array
from gquery.expression.types import DType, Kind
from gquery.result.python_rows import python_rows

_AS_THEY_ARE = (Kind.BLOB, Kind.OPAQUE, Kind.BOOLEAN, Kind.NULL)
_TIMES = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME, Kind.INTERVAL)


def shown_rows(table: pa.Table, types: Sequence[DType]) -> Iterator[tuple[Any, ...]]:
    """Rows in which everything is a text, but numbers without a fraction, truth, texts, bytes and NULL."""
    kept = (t.kind in _AS_THEY_ARE or t.is_string or t.is_integer for t in types)
    return python_rows(_with(table, types, [None if k else _text for k in kept]))


def json_rows(table: pa.Table, types: Sequence[DType]) -> Iterator[tuple[Any, ...]]:
    """Rows as JSON has them: times are texts, and a number of 32 bits is the shortest that means it."""
    made = [_text if t.kind in _TIMES else _shortest if t.kind is Kind.REAL else None for t in types]
    return python_rows(_with(table, types, made))


_Made = Callable[[pa.Array, DType], pa.Array]


def _with(table: pa.Table, types: Sequence[DType], made: Sequence[_Made | None]) -> pa.Table:
    """A table with other columns in place of those for which there is a function."""
    for number, (dtype, make) in enumerate(zip(types, made, strict=True)):
        if make is not None:
            chunks = [make(c, dtype) for c in table.column(number).chunks if len(c)]
            column = pa.chunked_array(chunks) if chunks else string_array([])
            table = table.set_column(number, str(number), column)
    return table


def _text(values: pa.Array, dtype: DType) -> pa.Array:
    if dtype.kind is Kind.INTERVAL:
        from gquery.result.interval_columns import interval_texts

        return interval_texts(values)
    from gquery.functions.cast_to_text import to_text
    from gquery.functions.nested_casts import text_of

    return text_of(values, dtype) if dtype.is_nested else to_text(values, dtype)


def _shortest(values: pa.Array, dtype: DType) -> pa.Array:
    return _text(values, dtype).cast(pa.float64())
