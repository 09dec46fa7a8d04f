"""Reading columns of Parquet files on all cores: a task is one column of a run of row groups.

Files have row groups of 100,000 rows as well as of millions. Each task takes the interpreter's lock a few times, so that small
row groups that lie side by side are read together. A column is a generator of tasks, so that those of all columns, and of several
tables, share the threads. Kernels read pages (`io.pages`), or Arrow does, a batch at a time that stays in a core's cache; the
same thread encodes each batch into the column's final array (`gquery.columns.assemble`) and, on a GPU, sends the finished run
over while others are still decoding. So reading, encoding and copying overlap, and wide values such as Arrow's 16-byte decimals
never reach main memory.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.assemble import Assembly, Fixed, Gathered, Piece, assembly_for
from gquery.columns.assemble_strings import Strings
from gquery.columns.domain import Domain
from gquery.columns.encode_strings import without_views
from gquery.columns.ownership import check_decoded
from gquery.columns.page_values import MisfitError, PageKernels, Room, TextRoom, page_kernels
from gquery.columns.table import ColumnData
from gquery.device.array import Array
from gquery.device.device import Device
from gquery.device.host import trim_freed_memory
from gquery.device.transfer import Upload
from gquery.errors import FileError
from gquery.expression.types import Bounds, Field
from gquery.io.chunks import Chunks
from gquery.io.files import reading
from gquery.io.page_texts import TextReader
from gquery.io.pages import CAN_READ, ChunkReader, Layout, PageBuffers, Pages, are_readable, layout_of, page_buffers
from gquery.io.parquet_files import ParquetFiles, RowGroup
from gquery.io.parquet_opened import OpenedParquet, random_access
from gquery.io.selected_rows import SelectedRows, Selecting, Selection
from gquery.runtime.records import dataclass
from gquery.runtime.threads import Phases, Task
from gquery.runtime.tuples import NamedTuple

if TYPE_CHECKING:
    from gquery.io.held_chunks import HeldBytes


Run = tuple[RowGroup, ...]
"""Row groups of one file that lie side by side, one at least, whose rows one task reads."""


class Cut(NamedTuple):
    """Row groups in runs; ``starts`` are the rows at which they begin, and the number of all rows."""

    runs: Sequence[Run]
    starts: Sequence[int]


def cut_groups(groups: Sequence[RowGroup], rows: int) -> Cut:
    """Row groups in runs of up to so many rows. One of which not all rows are wanted is alone."""
    borders, size = list[int](), rows
    for number, (before, group) in enumerate(zip((None, *groups), groups, strict=False)):
        is_next = before is not None and (before.file, before.number + 1) == (group.file, group.number)
        if before is None or not is_next or not before.whole or not group.whole or size + group.rows > rows:
            borders.append(number)
            size = 0
        size += group.rows
    runs = [tuple(groups[first:last]) for first, last in itertools.pairwise((*borders, len(groups)))]
    return Cut(runs, [0, *itertools.accumulate(sum(group.rows for group in run) for run in runs)])


@dataclass(frozen=True)
class Wanted:
    """A column to read: the numbers of its leaves in the files, its Arrow type, with ``as_codes`` that of codes; bounds and bytes
    that the footers tell; the runs that a task each reads. ``number`` is the field's."""

    field: Field
    leaves: range
    type: pa.DataType
    as_codes: bool
    bounds: Bounds | None
    size: int
    cut: Cut
    number: int = 0


class _Decoding(NamedTuple):
    """Run ``number`` of a column, whose row groups are read, on its way into an assembly."""

    wanted: Wanted
    number: int
    run: Run
    assembly: Assembly | Selecting


@dataclass
class Spent:
    """Where the time went: seconds in all, and seconds of all threads together."""

    wall: float = 0.0
    decode: float = 0.0
    encode: float = 0.0
    copy: float = 0.0


class ParquetReader:
    """One reading of some columns of some row groups, of which a task reads a run; with a ``selection`` of those of their rows
    that it selects, where runs have one row group each. To be closed before the columns are used."""

    def __init__(
        self,
        files: ParquetFiles,
        device: Device | None,
        narrow: bool,
        codes: Sequence[int],
        selection: Selection | None = None,
    ) -> None:
        self._files, self._selection = files, selection
        self._narrow = narrow
        self._codes = codes  # the leaves that are wanted as codes
        self._upload = Upload(device)
        self._idle: dict[tuple[int, bool], list[OpenedParquet]] = {}  # opened files that no thread uses now
        self._buffers: list[PageBuffers] = []  # that no thread uses now
        self._layouts: dict[tuple[int, int], Layout | None] = {}  # of leaves of files
        self._began = time.perf_counter()
        self._decoding: list[float] = []  # seconds of each row group
        self._working: list[float] = []  # seconds of each task

    def column(self, wanted: Wanted) -> Phases[ColumnData]:
        """Read one column; its tasks raise FileError, which names a file that is damaged."""
        phases = self._column(wanted)
        while True:
            try:
                tasks = next(phases)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            yield [partial(self._timed, task) for task in tasks]

    def selected(self, wanted: Wanted, domain: Domain) -> Phases[list[SelectedRows] | None]:
        """Which rows of each row group have values of a domain; None where kernels cannot read all of them."""
        runs = wanted.cut.runs
        made, misfits = Selecting([group for (group,) in runs], domain, self._upload), list[int]()
        yield [partial(self._decode, wanted, run, made, misfits) for run in range(len(runs))]
        return None if misfits else made.found()

    def close(self) -> Spent:
        """Wait until all has arrived on the device; where the time went."""
        for opened in itertools.chain.from_iterable(self._idle.values()):
            opened.close()
        self._upload.close()
        decode, copy = sum(self._decoding), sum(self._upload.seconds)
        encode = max(0.0, sum(self._working) - decode - copy)
        return Spent(time.perf_counter() - self._began, decode, encode, copy)

    def _timed(self, task: Task) -> None:
        began = time.perf_counter()
        task()
        self._working.append(time.perf_counter() - began)

    def _column(self, wanted: Wanted) -> Phases[ColumnData]:
        assembly, runs = self._assembly(wanted), range(len(wanted.cut.runs))
        held = self._held(wanted, assembly)
        if held is not None:
            if (yield from held.read()):
                return (yield from assembly.finish())
            assembly = self._assembly(wanted)
        misfits: list[int] = []
        yield [partial(self._decode, wanted, run, assembly, misfits) for run in runs]
        if misfits:
            assembly = Gathered(wanted.cut.starts, wanted.type, wanted.field, self._narrow)
            yield [partial(self._decode, wanted, run, assembly, []) for run in runs]
        if self._upload.is_limited:
            trim_freed_memory()
        return (yield from assembly.finish())

    def _assembly(self, wanted: Wanted) -> Assembly:
        runs, starts = wanted.cut
        is_short = starts[-1] < tuning.reading.coded_rows and not all(run[0].whole for run in runs)
        if is_short and wanted.type in (pa.string(), pa.large_string()):  # a look at a file: no dictionary pays
            return Strings(starts, self._upload, may_repeat=False)
        sizes = None if self._upload.is_limited or self._selection is not None else self._text_bytes(wanted)
        if sizes is not None:
            from gquery.columns.assemble_texts import CountedStrings

            with suppress(MemoryError):  # a footer that tells of more than there can be
                return CountedStrings(starts, sizes, self._upload)
        made = assembly_for(wanted.type, wanted.field, starts, wanted.bounds, self._narrow, self._upload)
        if self._selection is not None and isinstance(made, Fixed):
            made.is_long = True
        return made

    def _held(self, wanted: Wanted, assembly: Assembly) -> HeldBytes | None:
        """What has a GPU decode a column, if it may."""
        if self._upload.device is None or self._selection is not None or len(wanted.leaves) != 1:
            return None
        from gquery.io.held_columns import held_column

        layouts = {self._layout(run[0].file, wanted) for run in wanted.cut.runs}
        field = wanted.number, wanted.field.name
        groups = [group for run in wanted.cut.runs for group in run]
        return held_column(self._files, groups, layouts, field, assembly, self._upload)

    def _text_bytes(self, wanted: Wanted) -> list[int] | None:
        """How many bytes texts that are wanted as they are have in each run; None where footers do not tell."""
        runs = wanted.cut.runs
        groups = [group for run in runs for group in run]
        if wanted.type not in (pa.string(), pa.large_string(), pa.string_view()) or not all(g.whole for g in groups):
            return None
        (chunks,) = self._files.chunks(wanted.number, groups)
        told = chunks.text_bytes
        if not len(told) or told.min() < 0:
            return None
        sums: list[int] = np.add.reduceat(told, [0, *itertools.accumulate(map(len, runs[:-1]))]).tolist()
        return sums

    def _decode(self, wanted: Wanted, number: int, assembly: Assembly | Selecting, misfits: list[int]) -> None:
        """A run into its assembly, or its number into ``misfits``."""
        if misfits:
            return
        name, run, waited = wanted.field.name, wanted.cut.runs[number], [0.0]
        file = self._files.files[run[0].file].name
        read = run if self._selection is None else (self._files.groups[run[0].position],)
        with reading(file, "Parquet file"), self._opened(read[0]) as opened:
            pieces = self._pieces(opened, _Decoding(wanted, number, read, assembly), waited)
            try:
                rows = assembly.add(number, self._wanted_pieces(pieces, wanted, number, assembly))
            except MisfitError:
                misfits.append(number)
                return
        self._decoding.append(waited[0])
        expected = wanted.cut.starts[number + 1] - wanted.cut.starts[number]
        if rows != expected:
            last = "" if len(run) == 1 else f" to {run[-1].number}"
            raise FileError(
                f'Cannot read the Parquet file "{file}": its footer tells {expected} rows of row group '
                f"{run[0].number}{last}, and {name} has {rows}"
            )

    def _wanted_pieces(
        self, pieces: Iterator[Any], wanted: Wanted, number: int, assembly: Assembly | Selecting
    ) -> Iterator[Any]:
        """Of the pieces of a column in a run, the rows that are wanted."""
        if self._selection is None:
            place = wanted.cut.runs[number][0]
            return pieces if place.whole else _first(pieces, place.rows)
        selected = self._selection.groups[number]
        if self._selection.field == wanted.number and assembly.takes_words:
            return selected.pieces()
        return selected.of(pieces)

    def _pieces(self, opened: OpenedParquet, decoding: _Decoding, waited: list[float]) -> Iterator[Piece]:
        """What a run has of a column: read by kernels where they read its pages, the rest as Arrow makes it."""
        at = 0
        for places, pages in self._parts(decoding):
            rows, whole = 0, sum(place.rows for place in places)
            if pages is not None:
                room = self._room(decoding, at, pages)
                for piece in self._read_pages(opened, decoding.wanted, pages, room):
                    rows += len(piece)
                    yield piece
            at += whole
            if not rows or rows < whole:
                yield from self._arrays(opened, decoding, places, rows, waited)

    def _room(self, decoding: _Decoding, at: int, pages: Pages) -> Room | TextRoom | None:
        """Where a run's rows go from row ``at`` on; None where not all of them are kept."""
        if self._selection is not None:
            return None
        return decoding.assembly.room(decoding.number, at, pages.may_have_nulls)

    def _parts(self, decoding: _Decoding) -> Iterator[tuple[Run, Pages | None]]:
        """A run in parts whose pages kernels read, and others."""
        wanted, run = decoding.wanted, decoding.run
        kernels = self._kernels(run[0], wanted)
        layout = None if kernels is None else self._layout(run[0].file, wanted)
        if kernels is None or layout is None or not (layout.are_texts or decoding.assembly.takes_words):
            yield run, None
            return
        chunks, are_read = self._chunks(decoding, layout)
        borders = [0, *(np.flatnonzero(np.diff(are_read)) + 1).tolist(), len(run)]
        for first, last in itertools.pairwise(borders):
            pages = Pages(kernels, layout, chunks.take(slice(first, last))) if are_read[first] else None
            yield run[first:last], pages

    def _arrays(
        self, opened: OpenedParquet, decoding: _Decoding, places: Run, skipped: int, waited: list[float]
    ) -> Iterator[pa.Array]:
        """What row groups have of a column behind the first rows, which others have read, as Arrow makes it."""
        wanted = decoding.wanted
        size = min(self._batch_rows(wanted.type), max(sum(place.rows for place in places), 1))
        batches = opened.batches(size, [place.number for place in places], wanted.leaves)
        for piece in _pieces(batches, wanted.field.name, waited, decoding.assembly.checks_digits):
            if len(piece) > skipped:
                yield piece[skipped:] if skipped else piece
            skipped = max(skipped - len(piece), 0)

    def _kernels(self, place: RowGroup, wanted: Wanted) -> PageKernels | None:
        """What reads pages of a column, if it reads those of such a file."""
        is_local = place.whole and self._files.files[place.file].filesystem is None
        return page_kernels() if is_local and CAN_READ and len(wanted.leaves) == 1 else None

    def _read_pages(
        self, opened: OpenedParquet, wanted: Wanted, pages: Pages, room: Room | TextRoom | None
    ) -> Iterator[Piece]:
        """The first rows of chunks, as far as kernels read their pages."""
        try:
            buffers = self._buffers.pop()
        except IndexError:
            buffers = page_buffers(self._upload.is_limited)
        reader = TextReader if pages.layout.are_texts else ChunkReader
        yield from reader(opened.source, pages, wanted.field.name, buffers, room).pieces()
        self._buffers.append(buffers)

    def _layout(self, file: int, wanted: Wanted) -> Layout | None:
        """How a column of one leaf lies in a file, if kernels read that."""
        key = file, wanted.leaves[0]
        if key not in self._layouts:
            is_text = wanted.as_codes or wanted.type in (pa.string(), pa.large_string(), pa.string_view())
            self._layouts[key] = layout_of(self._files.footers[file].schema.column(key[1]), is_text, wanted.as_codes)
        return self._layouts[key]

    def _chunks(self, decoding: _Decoding, layout: Layout) -> tuple[Chunks, Array]:
        """The chunks of a run, and whether kernels would read them (bool). Rows that are picked go as words, which NULLs and
        floats are not."""
        wanted, run, assembly = decoding.wanted, decoding.run, decoding.assembly
        (chunks,) = self._files.chunks(wanted.number, run)
        rows = np.array([p.rows for p in run])
        are_read = are_readable(chunks, layout, rows, self._files.files[run[0].file].size)
        if not layout.are_texts and (self._selection is not None or isinstance(assembly, Selecting)):
            is_exact = wanted.field.dtype.is_exact or wanted.field.dtype.is_string
            are_read &= (chunks.nulls <= 0) & is_exact
        return chunks, are_read

    @contextmanager
    def _opened(self, place: RowGroup) -> Iterator[OpenedParquet]:
        """A file for one thread alone. Of a row group whose last rows are not wanted, no more is read than is decoded."""
        idle = self._idle.setdefault((place.file, place.whole), [])
        try:
            opened = idle.pop()
        except IndexError:
            file = self._files.files[place.file]
            opened = OpenedParquet(
                random_access(file),
                self._files.footers[place.file],
                codes=self._codes,
                buffer_size=self._buffer_size(place),
                pre_buffer=place.whole and file.filesystem is not None and not self._upload.is_limited,
            )
            file.check_unchanged()  # the footer that was read before tells where its pages lie
        yield opened
        idle.append(opened)

    def _batch_rows(self, type_: pa.DataType) -> int:
        """How many rows of a type make a batch."""
        size = tuning.reading.limited_bytes if self._upload.is_limited else tuning.reading.batch_bytes
        return max(1, size // _width(type_))

    def _buffer_size(self, place: RowGroup) -> int:
        """Bytes that are read at a time; 0: all of a column that a row group has."""
        if not place.whole:
            return tuning.reading.buffer_bytes
        return tuning.reading.limited_bytes if self._upload.is_limited else 0


def _width(type_: pa.DataType) -> int:
    """About how many bytes a value of a type takes."""
    if pa.types.is_dictionary(type_):
        return 4
    if pa.types.is_primitive(type_) or pa.types.is_decimal(type_):
        return max(1, int(type_.bit_width) // 8)
    return 16


def _first(pieces: Iterator[Any], rows: int) -> Iterator[pa.Array]:
    """Pieces until there are so many rows."""
    while rows > 0 and (piece := next(pieces, None)) is not None:
        yield piece.slice(0, rows)
        rows -= len(piece)


def _pieces(batches: Iterator[Any], name: str, waited: list[float], checks_digits: bool) -> Iterator[pa.Array]:
    """The arrays of one column's batches, in which Arrow has not looked whether strings are UTF-8 and decimals have no more
    digits than they say; the latter is left to who ``checks_digits``. Adds the seconds that decoding took."""
    while True:
        began = time.perf_counter()
        batch = next(batches, None)
        if batch is not None:
            piece = without_views(batch.column(0))
            if not (checks_digits and pa.types.is_decimal(piece.type)):
                check_decoded(piece, name)
        waited[0] += time.perf_counter() - began
        if batch is None:
            return
        yield piece
