"""How a relation's rows leave it: as Arrow, pandas, Polars, arrays of NumPy and CuPy, files. The names are DuckDB's.

Everything goes through the result in memory, made once. What holds no NULL and lies in the layout that is asked for is
handed out as it lies, without a copy.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gquery.errors import FileError, InterfaceError, did_you_mean
from gquery.runtime.arguments import checked
from gquery.runtime.boundary import boundary
from gquery.runtime.stopwatch import part

if TYPE_CHECKING:
    import pyarrow as pa

    from gquery.columns.table import Table
    from gquery.result.result_column import ResultColumn

_BATCH = 1_000_000


@checked
class Outputs(ABC):
    """The ways out of a result that `table` gives."""

    _arrow: pa.Table | None = None

    @abstractmethod
    def table(self) -> Table:
        """The result in memory."""

    # ---- Arrow -----------------------------------------------------------------------------------------------------

    @boundary
    def to_arrow_table(self) -> pa.Table:
        """The result as a PyArrow table."""
        if self._arrow is None:
            from gquery.columns.arrow import export_table

            table = self.table()
            with part("fetch"):
                self._arrow = export_table(table)
        return self._arrow

    def arrow(self) -> pa.Table:
        """The same as `to_arrow_table`."""
        return self.to_arrow_table()

    fetch_arrow_table = arrow

    @boundary
    def to_arrow_reader(self, batch_size: int = _BATCH) -> pa.RecordBatchReader:
        """The result as a reader of record batches; each is made when it is read."""
        import pyarrow as pa

        if not isinstance(batch_size, int):
            raise InterfaceError(f"A batch has a number of rows, not {batch_size!r}")
        if batch_size < 1:
            raise InterfaceError(f"A batch has at least one row, not {batch_size}")
        if self._arrow is not None:
            return pa.RecordBatchReader.from_batches(self._arrow.schema, self._arrow.to_batches(batch_size))
        from gquery.columns.arrow import export_schema

        table = self.table()
        schema = export_schema(table.schema)
        return pa.RecordBatchReader.from_batches(schema, _batches(table, schema, batch_size))

    fetch_record_batch = to_arrow_reader

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow_table().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self.to_arrow_table().schema.__arrow_c_schema__()

    def __arrow_c_device_array__(self, requested_schema: Any = None, **options: Any) -> Any:
        """The result as one array of structs in the memory of the host."""
        import pyarrow as pa

        batches = self.to_arrow_table().combine_chunks().to_batches()
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=self.to_arrow_table().schema)
        return batch.__arrow_c_device_array__(requested_schema, **options)

    # ---- data frames -----------------------------------------------------------------------------------------------

    @boundary
    def df(self, dtype_backend: str | None = None, copy: bool = True) -> Any:
        """The result as a pandas DataFrame. By default dates become datetime64, integers with NULLs floats, decimals stay
        exact; ``dtype_backend="pyarrow"`` keeps every type and NULL. ``copy=False`` hands out columns that pandas can use
        as they lie; those cannot be written to."""
        from gquery.result.interval_columns import with_durations
        from gquery.result.outlets import converted

        table = self.to_arrow_table()
        match dtype_backend:
            case None:
                return converted(
                    with_durations(table), lambda t: t.to_pandas(date_as_object=False, split_blocks=not copy), "pandas"
                )
            case "pyarrow":
                import pandas

                return converted(table, lambda t: t.to_pandas(types_mapper=pandas.ArrowDtype), "pandas")
            case _:
                raise InterfaceError(f"The dtype_backend is None or 'pyarrow', not {dtype_backend!r}")

    to_df = fetchdf = to_pandas = df

    @boundary
    def pl(self) -> Any:
        """The result as a Polars DataFrame, which shares the memory of numbers and dates."""
        import polars

        from gquery.result.interval_columns import with_durations
        from gquery.result.outlets import converted

        return converted(with_durations(self.to_arrow_table()), polars.from_arrow, "Polars")

    # ---- arrays ----------------------------------------------------------------------------------------------------

    @boundary
    def column(self, name: str) -> ResultColumn:
        """One column as an array of the device that it lies on, for CuPy, PyTorch and others (``__cuda_array_interface__``,
        DLPack), and for NumPy."""
        from gquery.result.result_column import ResultColumn

        table = self.table()
        for field, column in zip(table.schema, table.columns, strict=True):
            if field.name.lower() == name.lower():
                return ResultColumn(field.name, column)
        raise InterfaceError(f'There is no column "{name}".{did_you_mean(name, table.schema.names)}')

    @boundary
    def fetchnumpy(self) -> dict[str, Any]:
        """The columns as NumPy arrays by name, masked where there are NULLs; dates as datetime64, text as objects, decimals
        as floats. Arrays may be read-only views of the result."""
        return {name: column.to_numpy() for name, column in self._result_columns()}

    @boundary
    def to_cupy(self) -> dict[str, Any]:
        """The columns as CuPy arrays by name: dates as days, timestamps as microseconds since 1970, decimals as floats.
        InterfaceError for text and for a column with NULLs, which CuPy cannot tell."""
        return {name: column.to_cupy() for name, column in self._result_columns()}

    def _result_columns(self) -> Iterator[tuple[str, ResultColumn]]:
        from gquery.result.result_column import ResultColumn

        table = self.table()
        for name, column in zip(distinct_names(table.schema.names), table.columns, strict=True):
            yield name, ResultColumn(name, column)

    # ---- files -----------------------------------------------------------------------------------------------------

    @boundary
    def to_parquet(
        self, path: str | os.PathLike[str], compression: str = "zstd", row_group_size: int = _BATCH, **options: Any
    ) -> None:
        """Write a Parquet file, to a path or a URI of an object store; ``options`` go to `pyarrow.parquet.ParquetWriter`."""
        parquet_of(self.to_arrow_reader(row_group_size), path, compression, row_group_size, **options)

    write_parquet = to_parquet

    def to_csv(
        self, path: str | os.PathLike[str], sep: str = ",", header: bool = True, quoting_style: str = "needed"
    ) -> None:
        """Write a CSV file, to a path or a URI of an object store. NULL is nothing, an empty text is ``""``: read it with
        ``allow_quoted_nulls=False`` to tell them apart."""
        import pyarrow as pa
        from pyarrow import csv

        from gquery.result.interval_columns import has_intervals, with_texts
        from gquery.result.outlets import check_csv

        reader = self.to_arrow_reader()
        if has_intervals(reader.schema):
            table = with_texts(self.to_arrow_table())
            reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(_BATCH))
        check_csv(reader.schema)
        if not isinstance(header, bool):
            raise InterfaceError(f"to_csv: header is True or False, not {header!r}")
        with _options("to_csv"):
            how = csv.WriteOptions(include_header=header, delimiter=sep, quoting_style=quoting_style)
        with writing(path) as sink, csv.CSVWriter(sink, reader.schema, write_options=how) as file:
            for batch in reader:
                file.write_batch(batch)

    write_csv = to_csv


def parquet_of(
    reader: pa.RecordBatchReader,
    path: str | os.PathLike[str],
    compression: str,
    row_group_size: int = _BATCH,
    **options: Any,
) -> None:
    """Write batches as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from gquery.result.outlets import check_parquet

    check_parquet(reader.schema)
    with _options("to_parquet"):  # before there is a file
        pq.ParquetWriter(pa.BufferOutputStream(), reader.schema, compression=compression, **options).close()
    with writing(path) as sink, pq.ParquetWriter(sink, reader.schema, compression=compression, **options) as file:
        for batch in reader:
            file.write_batch(batch, row_group_size)


@contextmanager
def _options(method: str) -> Iterator[None]:
    """Turns what Arrow says of options that it does not take into an InterfaceError."""
    import pyarrow as pa

    try:
        yield
    except MemoryError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OSError) as error:
        raise InterfaceError(f"{method}: {str(error).splitlines()[0]}") from None


def _batches(table: Table, schema: pa.Schema, size: int) -> Iterator[pa.RecordBatch]:
    from gquery.columns.arrow import export_table

    for low in range(0, table.rows, size):
        part = export_table(table.slice(low, low + size))
        yield from (part if part.schema.types == schema.types else part.cast(schema)).to_batches()


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[Any]:
    """A stream to write a file through; what goes wrong is a FileError that names the file."""
    from pyarrow import fs

    name = os.fspath(path)
    try:
        if "://" in name:
            system, inner = fs.FileSystem.from_uri(name)
        else:
            system, inner = fs.LocalFileSystem(), os.path.expanduser(name)
        stream = system.open_output_stream(inner, compression=None)
    except (OSError, ValueError) as error:
        raise FileError(f'Cannot write the file "{name}": {error}') from error
    try:
        with stream:
            yield stream
    except OSError as error:
        raise FileError(f'Cannot write the file "{name}": {error}') from error


def distinct_names(names: Sequence[str]) -> list[str]:
    """Names of columns as keys: one that stands twice gets a number.

    >>> distinct_names(["a", "b", "a"])
    ['a', 'b', 'a_1']
    """
    made: list[str] = []
    for name in names:
        candidate, number = name, 0
        while candidate in made:
            number += 1
            candidate = f"{name}_{number}"
        made.append(candidate)
    return made
