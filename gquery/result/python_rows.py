"""Rows of a relation as Python's own values, under Polars' names; `Relation` is a `PythonRows`. All of it runs the query."""

from __future__ import annotations

from abc import ABC, abstractmethod
def python_rows(table: pa.Table, types: Sequence[DType] = ()) -> Iterator[tuple[Any, ...]]:
    """Rows as tuples, made a batch at a time. ``types``: those of the columns, which tell UUIDs from texts."""
    uuids = [n for n, t in enumerate(types) if t == UUID]
    return chain.from_iterable(_tuples(batch, uuids) for batch in table.to_batches(max_chunksize=10_000))


def _tuples(batch: pa.RecordBatch, uuids: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    from gquery.columns.python_values import python_values

    try:
        columns = [python_values(c) for c in batch.columns]
    except OverflowError:
        raise DataError(
            "a date or timestamp outside the years 1 to 9999, which Python does not have: read it by to_arrow_table()"
        ) from None
    if uuids:
        from uuid import UUID as Value

        for n in uuids:
            columns[n] = [None if v is None else Value(v) for v in columns[n]]
    return zip(*columns, strict=True)
