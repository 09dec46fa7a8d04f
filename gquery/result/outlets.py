"""What files and data frames can hold of columns that gquery carries and does not look into (see `gquery.columns.opaque`).

A column that a format or a library does not take is refused by name and type before anything is written, or looked for
once the library has refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from gquery.columns.arrow import dtype_of
from gquery.errors import NotSupportedError
from gquery.expression.types import Kind

T = TypeVar("T")


def check_csv(schema: pa.Schema) -> None:
    """NotSupportedError where a column would not be the text that DuckDB makes of it, or none at all."""
    for field in schema:
        dtype = dtype_of(field.type)
        if dtype.is_opaque or dtype.kind is Kind.TIMESTAMPTZ:
            raise _refusal(field, "CSV", "write Parquet, or leave it out")


def check_parquet(schema: pa.Schema) -> None:
    """NotSupportedError where Arrow cannot store a column in Parquet."""
    import pyarrow.parquet as pq

    for field in schema:
        dtype = dtype_of(field.type)
        if dtype.kind is Kind.INTERVAL:
            raise _refusal(field, "Parquet", "Arrow has no intervals there; CAST it to VARCHAR, or take epoch_us of it")
        if dtype.is_opaque:
            try:
                pq.write_table(pa.table({"c": pa.nulls(1, field.type)}), pa.BufferOutputStream())
            except MemoryError:
                raise
            except pa.ArrowException as error:
                raise _refusal(field, "Parquet", str(error).split("\n")[0]) from None


def converted(table: pa.Table, convert: Callable[[pa.Table], T], library: str) -> T:
    """What a library makes of a table; NotSupportedError with the column that it cannot hold."""
    if library == "Polars":  # which panics
        for field in table.schema:
            if "decimal256" in str(field.type):
                raise _refusal(field, library, "it has decimals of 38 digits at most")
    try:
        return convert(table)
    except Exception as whole:
        for number, field in enumerate(table.schema):
            if dtype_of(field.type).is_opaque:
                try:
                    convert(table.select([number]))
                except Exception as error:
                    raise _refusal(field, library, str(error).split("\n")[0]) from error
        raise whole


def _refusal(field: pa.Field, what: str, why: str) -> NotSupportedError:
    return NotSupportedError(
        f'not supported: {what} with column "{field.name}" of type {dtype_of(field.type)}: {why}. '
        f"SELECT * EXCLUDE ({field.name}) leaves it out"
    )
