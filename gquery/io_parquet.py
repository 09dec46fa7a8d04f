"""Reading columns of Parquet files on all cores: a task is one column of one row group.

Arrow decodes a row group in batches that stay in a core's cache; the same thread encodes each batch into the column's
final array (`gquery.assemble`) and, on a GPU, sends the finished row group over while others are still decoding. So
reading, encoding and copying overlap, and wide values such as Arrow's 16-byte decimals never reach main memory.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gquery.assemble import Assembly, Gathered, MisfitError, assembly_for
from gquery.device import Device
from gquery.dtypes import Bounds, Field
from gquery.errors import FileError
from gquery.files import File, reading
from gquery.parallel import Task, run_all, run_phases
from gquery.table import Column
from gquery.upload import Upload

_BATCH = 1 << 18  # rows: 4 MB of decimals as Arrow has them, and few steps of the interpreter


@dataclass(frozen=True)
class Wanted:
    """A column to read: its Arrow type, with ``as_codes`` that of codes; bounds and bytes that the footers tell."""

    field: Field
    type: pa.DataType
    as_codes: bool
    bounds: Bounds | None
    size: int


@dataclass
class Spent:
    """Where the time went: seconds in all, and seconds of all threads together."""

    wall: float = 0.0
    decode: float = 0.0
    encode: float = 0.0
    copy: float = 0.0


class ParquetReader:
    """One reading of some columns of some files."""

    def __init__(
        self, files: Sequence[File], footers: Sequence[Any], workers: int, device: Device | None, narrow: bool
    ) -> None:
        self._files, self._footers = files, footers
        self._workers, self._narrow = workers, narrow
        self._upload = Upload(device)
        self._groups = [(f, g) for f, footer in enumerate(footers) for g in range(footer.num_row_groups)]
        rows = [footers[f].row_group(g).num_rows for f, g in self._groups]
        self._starts = [0, *itertools.accumulate(rows)]
        self._idle: list[list[Any]] = [[] for _ in files]  # opened files that no thread uses now
        self._codes: list[str] = []
        self._times: list[tuple[float, float]] = []  # of each task: decoding, in all
        self.spent = Spent()

    def read(self, columns: Sequence[Wanted]) -> list[Column]:
        """The columns. FileError names a file that is damaged."""
        began = time.perf_counter()
        self._codes = [w.field.name for w in columns if w.as_codes]
        try:
            assemblies = [self._assembly(w) for w in columns]
            misfits = self._decode(columns, assemblies)
            for number in misfits:
                assemblies[number] = self._gathered(columns[number])
            again = sorted(misfits)
            self._decode([columns[n] for n in again], [assemblies[n] for n in again])
            decoded = time.perf_counter()
            made = run_phases([assembly.finish() for assembly in assemblies], self._workers)
            joined = time.perf_counter() - decoded
            self._upload.wait()
        finally:
            for opened in itertools.chain.from_iterable(self._idle):
                opened.close()
        decode, copy = sum(d for d, _ in self._times), sum(self._upload.seconds)
        encode = sum(t for _, t in self._times) - decode + joined * self._workers - copy
        self.spent = Spent(time.perf_counter() - began, decode, max(encode, 0.0), copy)
        return made

    def _assembly(self, wanted: Wanted) -> Assembly:
        return assembly_for(wanted.type, wanted.field, self._starts, wanted.bounds, self._narrow, self._upload)

    def _gathered(self, wanted: Wanted) -> Assembly:
        return Gathered(self._starts, wanted.type, wanted.field, self._narrow)

    def _decode(self, columns: Sequence[Wanted], assemblies: Sequence[Assembly]) -> set[int]:
        """Every row group of the columns into their assemblies; the numbers of those that do not fit theirs."""
        misfits: set[int] = set()

        def task(number: int, group: int) -> Task:
            def decode() -> None:
                if number not in misfits:
                    try:
                        self._decode_group(columns[number].field.name, group, assemblies[number])
                    except MisfitError:
                        misfits.add(number)

            return decode

        largest_first = sorted(range(len(columns)), key=lambda n: -columns[n].size)
        run_all([task(n, group) for group in range(len(self._groups)) for n in largest_first], self._workers)
        return misfits

    def _decode_group(self, name: str, group: int, assembly: Assembly) -> None:
        at, number = self._groups[group]
        began = time.perf_counter()
        waited = [0.0]
        with reading(self._files[at].name, "Parquet file"), self._opened(at) as opened:
            batches = opened.iter_batches(_BATCH, row_groups=[number], columns=[name], use_threads=False)
            rows = assembly.add(group, _pieces(batches, waited))
            expected = self._starts[group + 1] - self._starts[group]
        if rows != expected:
            raise FileError(
                f'Cannot read the Parquet file "{self._files[at].name}": its footer tells {expected} rows of row group '
                f"{number}, and {name} has {rows}"
            )
        self._times.append((waited[0], time.perf_counter() - began))

    @contextmanager
    def _opened(self, at: int) -> Iterator[Any]:
        """A file for one thread alone."""
        idle = self._idle[at]
        try:
            opened = idle.pop()
        except IndexError:
            file = self._files[at]
            is_local = file.filesystem is None
            opened = pq.ParquetFile(
                file.path,
                metadata=self._footers[at],
                read_dictionary=self._codes,
                memory_map=is_local,
                pre_buffer=not is_local,
                filesystem=file.filesystem,
            )
        yield opened
        idle.append(opened)


def _pieces(batches: Iterator[Any], waited: list[float]) -> Iterator[pa.Array]:
    """The arrays of one column's batches; adds the seconds that decoding took."""
    while True:
        began = time.perf_counter()
        batch = next(batches, None)
        waited[0] += time.perf_counter() - began
        if batch is None:
            return
        yield batch.column(0)
