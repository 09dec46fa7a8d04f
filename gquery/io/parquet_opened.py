"""A Parquet file that is open, by PyArrow's reader.

`pyarrow.parquet` is not imported: it brings the clients of all object stores and Python's TLS with it, 15 to 30 ms, which a
first query over a local file should not wait for. Of its `ParquetFile` reading needs what is here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow._parquet import ParquetReader

from gquery.io.files import File


class OpenedParquet:
    """One file for one thread at a time. ``metadata`` is its footer where that has been read before; columns of the leaves
    ``codes`` are read with their dictionaries. ``pre_buffer``: parts that are read are fetched ahead, for stores far away."""

    def __init__(
        self,
        source: Any,
        metadata: Any = None,
        *,
        codes: Sequence[int] = (),
        buffer_size: int = 0,
        pre_buffer: bool = False,
    ) -> None:
        self.source = source
        self._reader = ParquetReader()
        self._reader.open(
            source,
            metadata=metadata,
            read_dictionary=list(codes),
            buffer_size=buffer_size,
            pre_buffer=pre_buffer,
            arrow_extensions_enabled=True,
        )

    @property
    def metadata(self) -> Any:
        """The footer."""
        return self._reader.metadata

    @property
    def schema(self) -> pa.Schema:
        """The types of the fields, as Arrow has them."""
        return self._reader.schema_arrow

    def batches(
        self, rows: int, row_groups: Sequence[int], leaves: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Row groups, all columns or those of some leaves, so many rows at a time, decoded by the thread that asks for them."""
        batches: Iterator[pa.RecordBatch] = self._reader.iter_batches(rows, row_groups, leaves, use_threads=False)
        return batches

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def __enter__(self) -> OpenedParquet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def random_access(file: File) -> Any:
    """A file as Arrow reads parts of it."""
    return pa.OSFile(file.path) if file.filesystem is None else file.filesystem.open_input_file(file.path)
