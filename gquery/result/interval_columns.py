"""Intervals of a result for those who do not know months: durations for data frames, texts for boxes and CSV."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from gquery.columns.arrow import string_array
from gquery.columns.arrow_intervals import durations, packed
from gquery.expression.interval import interval_text
from gquery.runtime.arrow_compute import cast, take

_INTERVALS = pa.month_day_nano_interval()


def with_durations(table: pa.Table) -> pa.Table:
    """The table with durations in place of intervals, a month being 30 days as in DuckDB."""
    return _replaced(table, durations, pa.duration("us"))


def with_texts(table: pa.Table) -> pa.Table:
    """The table with the texts of intervals in their place."""
    return _replaced(table, interval_texts, pa.string())


def interval_texts(array: pa.Array) -> pa.Array:
    """The texts of intervals; each is made once."""
    encoded = packed(array).dictionary_encode()
    known = string_array([interval_text(int(v)) for v in encoded.dictionary.to_pylist()])
    return cast(take(known, encoded.indices), pa.string())


def has_intervals(schema: pa.Schema) -> bool:
    """Whether a column holds intervals."""
    return _INTERVALS in schema.types


def _replaced(table: pa.Table, convert: Callable[[pa.Array], pa.Array], type_: pa.DataType) -> pa.Table:
    for number, field in enumerate(table.schema):
        if field.type == _INTERVALS:
            made = pa.chunked_array([convert(c) for c in table.column(number).chunks], type_)
            table = table.set_column(number, field.with_type(type_), made)
    return table
