"""JSON files as DuckDB writes them: an object a line, or a list of them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from gquery.result.output import writing


def write_json(batches: Iterable[pa.RecordBatch], path: str, is_list: bool) -> None:
    """Write a file of batches whose only column is an object a row, as text."""
    with writing(path) as sink:
        before = "[\n\t" if is_list else ""
        for batch in batches:
            if batch.num_rows:
                sink.write((before + (",\n\t" if is_list else "\n").join(batch.column(0).to_pylist())).encode())
                before = ",\n\t" if is_list else "\n"
        end = "\n]\n" if is_list else "\n"
        sink.write((before + end if before == "[\n\t" else end if is_list or before else "").encode())
