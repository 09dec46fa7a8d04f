"""A look at a Parquet footer before it is used: PyArrow's metadata objects end the process where it is damaged.

``footer.row_group(g).column(c)`` makes an object of Arrow's in a call that lets no C++ exception out, so that lengths which
contradict each other abort. Reading goes through calls that let them out, and before a reader reads anything it makes those
objects for all that it will read. So one is set up over a file that cannot be read, for those columns and row
groups that are asked for. What is left is a minimum or maximum that is shorter than its type, which nothing tells before the
object for statistics is made.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from gquery.errors import FileError
from gquery.io.parquet_opened import OpenedParquet


class _ReachedError(Exception):
    """The reader wants bytes: it has been through the footer."""


class _Unreadable(io.RawIOBase):
    """A file of some size without a byte in it."""

    def __init__(self, size: int) -> None:
        self._size, self._at = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        raise _ReachedError

    def size(self) -> int:
        return self._size


def check_rows(footer: Any) -> None:
    """OSError where a footer contradicts itself about rows."""
    counts = rows_of(footer)
    if min(counts, default=0) < 0 or sum(counts) != footer.num_rows:
        raise OSError(f"its footer tells of {footer.num_rows} rows, and of {sum(counts)} in its row groups")


def rows_of(footer: Any) -> list[int]:
    """How many rows each row group has."""
    return [footer.row_group(g).num_rows for g in range(footer.num_row_groups)]


def check_chunks(footer: Any, size: int, row_groups: Sequence[int], leaves: Sequence[int]) -> None:
    """OSError or ArrowException where the footer of a file of so many bytes cannot be asked about columns in row groups."""
    with OpenedParquet(pa.PythonFile(_Unreadable(size), mode="r"), footer, pre_buffer=True) as file:
        try:
            next(file.batches(1, row_groups, leaves), None)
        except _ReachedError as reached:
            reached.__traceback__ = None  # Arrow keeps the error: it must not keep who called


def types_of(footer: Any) -> list[str]:
    """The physical type of each column, as the schema has it."""
    schema = footer.schema
    return [schema.column(position).physical_type for position in range(footer.num_columns)]


def chunk_of(row_group: Any, position: int, types: Sequence[str], name: str) -> Any:
    """The metadata of a column in a row group, of which statistics can be asked. FileError where it contradicts the schema
    (`types_of`): Arrow would abort when it makes sense of them."""
    if position >= len(types):
        raise FileError(f'Cannot read the Parquet file "{name}": its footer tells of {len(types)} columns only')
    chunk = row_group.column(position)
    if chunk.physical_type != types[position]:
        raise FileError(
            f'Cannot read the Parquet file "{name}": its footer tells two types, {types[position]} and '
            f"{chunk.physical_type}, of column {position}"
        )
    return chunk
