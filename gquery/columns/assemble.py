"""Columns put together from pieces that threads decode: each piece is encoded where it was decoded, while it is in cache.

A column of many row groups is one array in the end. An `Assembly` takes the pieces of a row group on whichever thread
has decoded them, narrows them into their place in that array, and notes what they tell: bounds, NULLs, order. Nothing
walks over a whole column on one thread, and no copy of it exists in Arrow's wide types. Integers go straight into their
final array where the bounds are known before, as a Parquet footer tells them; strings and dictionaries, whose sizes all
pieces together tell, are kept in pieces and joined at the end, in parallel as well.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow_buffers import bits_of, numpy_name, values_of
from gquery.columns.assemble_strings import DictionaryPieces, Strings
from gquery.columns.encode import (
    Integers,
    boolean_column,
    float_column,
    import_column,
    integer_column,
    normalise,
)
from gquery.columns.loops import NarrowingLoop
from gquery.columns.narrowing import loop_for, word_loop, words_in, words_of
from gquery.columns.ownership import are_narrow, check_digits
from gquery.columns.page_values import MisfitError, Placed, PlacedTexts, Room, TextRoom, Words, room_for
from gquery.columns.plain_nested import is_wrapped
from gquery.columns.statistics import OrderOfParts, SampleOfParts, may_all_differ
from gquery.columns.table import ColumnData
from gquery.columns.zones import ZonesOfParts
from gquery.device.buffer import Buffer
from gquery.device.device import Device
from gquery.device.transfer import Transfer, Upload
from gquery.expression.types import INT64, Bounds, Field, Kind, PhysicalType, physical_type_for, type_bounds
from gquery.runtime.threads import Phases, Task

_FLOATS = {Kind.REAL: PhysicalType.F32, Kind.DOUBLE: PhysicalType.F64}


Piece: TypeAlias = "pa.Array | Words | Placed | PlacedTexts"


class Assembly(Protocol):
    """A column in the making. ``add`` takes the pieces of one group, in order, and says how many rows they had."""

    checks_digits: bool
    """Whether `add` looks itself whether decimals have no more digits than they say."""

    @property
    def takes_words(self) -> bool:
        """Whether `add` takes words in place of arrays: it copies them at once."""

    def room(self, group: int, at: int, is_nullable: bool) -> Room | TextRoom | None:
        """Where the rows of a group go, from its row ``at`` on, some of which may be NULL; None where `add` copies words, if it
        takes any, or arrays."""

    def add(self, group: int, pieces: Iterable[Piece]) -> int:
        """Takes the pieces of a group, in order; how many rows they have. Arrays are held as long as `finish` needs them."""

    def finish(self) -> Phases[ColumnData]:
        """The column, once every group is there: phases of tasks that threads may share, and the column as their result."""


def assembly_for(
    type_: pa.DataType, field: Field, starts: Sequence[int], known: Bounds | None, narrow: bool, upload: Upload
) -> Assembly:
    """The assembly for a column of an Arrow type, whose groups start at the rows ``starts`` (and end at its last one).
    ``known`` are bounds of all values, as far as somebody tells them."""
    dtype = field.dtype
    if dtype.is_opaque or is_wrapped(type_):
        return Gathered(starts, type_, field, narrow)
    if dtype.is_string:
        if pa.types.is_dictionary(type_):
            return DictionaryPieces(starts, upload)
        return Strings(starts, upload)
    is_other = dtype.is_decimal and (dtype.precision > 18 or not pa.types.is_decimal128(type_))
    if pa.types.is_dictionary(type_) or dtype.kind is Kind.NULL or is_other:
        return Gathered(starts, type_, field, narrow)
    if type_ == pa.month_day_nano_interval():
        return Gathered(starts, type_, field, narrow)
    return Fixed(starts, type_, field, known, narrow, upload)


class Gathered:
    """Any column: its pieces as Arrow has them, encoded as a whole."""

    checks_digits = takes_words = False

    def __init__(self, starts: Sequence[int], type_: pa.DataType, field: Field, narrow: bool) -> None:
        self._pieces: list[list[pa.Array]] = [[] for _ in starts[1:]]
        self._type, self._field, self._narrow = type_, field, narrow

    def room(self, group: int, at: int, is_nullable: bool) -> Room | None:
        """None, as it takes no words."""

    def add(self, group: int, pieces: Iterable[Piece]) -> int:
        """Holds the pieces of a group; how many rows they have."""
        self._pieces[group] = list(pieces)
        return sum(len(p) for p in self._pieces[group])

    def finish(self) -> Phases[ColumnData]:
        """The column, encoded from all pieces at once. It owns its buffers."""
        made: list[ColumnData] = []

        def encode() -> None:
            pieces = [p for group in self._pieces for p in group]
            made.append(import_column(pa.chunked_array(pieces, self._type), self._field, self._narrow))

        yield [encode]
        return made[0]


def decoded(piece: pa.Array, field: Field) -> Any:
    """An array of numbers, dates, times or booleans as contiguous integers or floats, anything where it is NULL."""
    type_ = piece.type
    if pa.types.is_boolean(type_):
        return bits_of(piece, 1)
    if pa.types.is_decimal128(type_):
        return np.ascontiguousarray(values_of(piece, "i8", 2)[::2])
    piece = normalise(piece, field)
    return values_of(piece, numpy_name(piece.type))


class Fixed:
    """Numbers, dates, times and booleans of up to 64 bits."""

    checks_digits = True

    def __init__(
        self,
        starts: Sequence[int],
        type_: pa.DataType,
        field: Field,
        known: Bounds | None,
        narrow: bool,
        upload: Upload,
    ) -> None:
        self._starts, self._type, self._field, self._upload = starts, type_, field, upload
        self._dtype = field.dtype
        self._physical_type, self._is_final = self._choose(known, narrow)
        dtype = self._physical_type.numpy
        self._wide = None if self._is_final else upload.empty(starts[-1], dtype)  # until its type is known
        self._transfer = upload.make(starts[-1], dtype) if self._wide is None else Transfer(starts[-1], dtype, self._wide)
        self._rows: dict[int, Any] = {}  # where the values of groups go that are being read
        self._limits = np.iinfo(self._physical_type.numpy) if self._dtype.is_exact else None
        self._bounds: list[Bounds] = []
        self._order, self._sample = OrderOfParts(self._dtype.is_exact), SampleOfParts(starts[-1])
        is_integer = self._dtype.is_exact and self._dtype.kind is not Kind.BOOLEAN
        self._zones = ZonesOfParts(starts[-1]) if is_integer else None
        # whether enough values are decoded for compiled loops
        self.is_long = starts[-1] >= tuning.encoding.compiled_rows
        self._lock = threading.Lock()
        self._validity: Any = None
        self._nulls = 0

    def _choose(self, known: Bounds | None, narrow: bool) -> tuple[PhysicalType, bool]:
        """The physical type of the array that pieces are written into, and whether it stays."""
        if self._dtype.kind is Kind.BOOLEAN:
            return PhysicalType.BOOL, True
        if self._dtype.is_float:
            return _FLOATS[self._dtype.kind], True
        widest = type_bounds(self._dtype)
        assert widest is not None
        bounds = known if narrow and known is not None and known.within(INT64) else widest
        physical_type = physical_type_for(bounds)
        return (
            PhysicalType.I64 if physical_type is PhysicalType.I128 else physical_type
        ), not narrow or bounds is known

    @property
    def takes_words(self) -> bool:
        """Whether there are enough numbers for compiled loops, and the loop from words is there; floats have a room, and none."""
        if self._type in (pa.float32(), pa.float64()):
            return self.is_long
        is_plain = self._zones is not None and words_of(self._type) is not None
        return is_plain and self.is_long and word_loop(self._transfer.dtype.itemsize) is not None

    def room(self, group: int, at: int, is_nullable: bool) -> Room | None:
        """In the array itself, or what is sent into it."""
        rows = slice(self._starts[group] + at, self._starts[group + 1])
        block = max(self._starts[-1], 1) if self._zones is None else self._zones.block
        valid = self._flags()[rows] if is_nullable else None
        return room_for(self._place(group)[at:], block, rows.start % block, valid)

    def _place(self, group: int) -> Any:
        """Where the values of a group go."""
        if group not in self._rows:
            self._rows[group] = self._transfer.rows(self._starts[group], self._starts[group + 1])
        return self._rows[group]

    def add(self, group: int, pieces: Iterable[Piece]) -> int:
        """Copies the pieces of a group into their rows of the column's array; how many rows they have. MisfitError where
        a value is outside of the bounds that narrowed the array, ValueError where a group has more rows than its footer says or
        a decimal more digits than its type."""
        start, end = self._starts[group], self._starts[group + 1]
        made, at, found, loop = self._place(group), 0, list[Bounds](), self._loop()
        for piece in pieces:
            to = at + len(piece)
            if to > end - start:
                raise ValueError(f"a row group holds more than the {end - start} rows that the footer tells")
            assert not isinstance(piece, PlacedTexts)
            if not len(piece):
                continue
            place = made[at:to]
            if isinstance(piece, Placed):
                found += self._placed(start + at, piece)
            elif isinstance(piece, Words):
                found.append(self._narrow_words(piece.values, start + at, place))
            elif loop is not None and not piece.null_count and piece.type == self._type:
                found.append(self._narrow(loop, piece, start + at, place))
            else:
                found += self._write(piece, start + at, place)
            seen = min(at, tuning.encoding.longest_run)
            self._order.see(made[at - seen : to], seen)
            self._sample.see(start + at, place)
            at = to
        self._order.end(start, made[:at])
        self._transfer.send(start, made[:at])
        with self._lock:
            self._bounds += found
            del self._rows[group]
        return at

    @property
    def takes_held(self) -> bool:
        """Whether these are integers that a device has alone, in their last type, of enough rows."""
        is_plain = self._zones is not None and words_of(self._type) is not None
        return is_plain and self.is_long and self._wide is None and self._transfer.is_alone

    def device_values(self, device: Device) -> Any:
        """See `HeldAssembly`."""
        return self._transfer.buffer().on(device)

    def blocks(self) -> tuple[int, Any, Any]:
        """See `HeldAssembly`."""
        assert self._zones is not None
        return self._zones.block, *self._zones.no_extremes()

    def take_found(self, found: Any, low: Any, high: Any, pick: Callable[[Any], Any]) -> None:
        """See `HeldAssembly`; MisfitError as in `add`."""
        self._bounds.append(self._checked(0, low, high))
        dtype = self._transfer.dtype
        unsigned = np.dtype(f"u{dtype.itemsize}")
        self._sample.take(pick(self._sample.places).astype(unsigned).view(dtype))
        self._order.take_held(found, pick, dtype)

    def _loop(self) -> NarrowingLoop | None:
        """What narrows pieces in one pass, where there are enough rows for it."""
        if self._zones is None or not self.is_long:
            return None
        return loop_for(self._type, self._transfer.dtype.itemsize)

    def _narrow(self, loop: NarrowingLoop, piece: pa.Array, at: int, made: Any) -> Bounds:
        """Write a piece without NULLs, from a row on, by a loop; its bounds."""
        assert self._zones is not None
        block = self._zones.block
        low, high, is_narrow = loop(words_in(piece), made, at % block, block)
        bounds = Bounds(int(low.min()), int(high.max()))
        check_digits(piece, self._field.name, bounds, is_narrow)
        self._check_fits(bounds)
        self._zones.take(at // block, low, high)
        return bounds

    def _narrow_words(self, words: Any, at: int, made: Any) -> Bounds:
        """The same of words."""
        loop = word_loop(made.itemsize)
        assert loop is not None and self._zones is not None
        block = self._zones.block
        low, high, _ = loop(words, made, at % block, block)
        return self._checked(at, low, high)

    def _placed(self, at: int, piece: Placed) -> list[Bounds]:
        """Values that are written; their bounds, among which is 0 where some are NULL."""
        if piece.nulls:
            self._count_nulls(piece.nulls)
        if self._zones is None:
            return []
        if piece.nulls == piece.rows:
            return [Bounds(0, 0)]
        bounds = self._checked(at, piece.room.low, piece.room.high)
        return [bounds | Bounds(0, 0) if piece.nulls else bounds]

    def _checked(self, at: int, low: Any, high: Any) -> Bounds:
        """The bounds of values that are written, one at least, by the extremes of their blocks. MisfitError, too, where a decimal
        has too many digits: who reads again tells."""
        assert self._zones is not None
        bounds = Bounds(int(low.min()), int(high.max()))
        limit = 10**self._dtype.precision if self._dtype.is_decimal else None
        if limit is not None and not -limit < bounds.low <= bounds.high < limit:
            raise MisfitError
        self._check_fits(bounds)
        self._zones.take(at // self._zones.block, low, high)
        return bounds

    def _write(self, piece: pa.Array, at: int, made: Any) -> list[Bounds]:
        """Write a piece, from a row on, pass by pass; its bounds, if it has any."""
        values, bounds = decoded(piece, self._field), list[Bounds]()
        if self._limits is not None:
            bounds = [Bounds(int(values.min()), int(values.max()))]
            if pa.types.is_decimal(piece.type):
                check_digits(piece, self._field.name, bounds[0], are_narrow(piece, values, bounds[0].low))
        if piece.null_count:
            self._count_nulls(piece.null_count)
            values = self._clear_nulls(at, piece, values)
            if bounds:
                bounds = [Bounds(int(values.min()), int(values.max()))]
        for found in bounds:
            self._check_fits(found)
        made[:] = values
        if self._zones is not None:
            self._zones.see(at, made, self._validity[at : at + len(made)] if piece.null_count else None)
        return bounds

    def _check_fits(self, bounds: Bounds) -> None:
        assert self._limits is not None
        if bounds.low < self._limits.min or bounds.high > self._limits.max:
            raise MisfitError

    def _count_nulls(self, nulls: int) -> None:
        with self._lock:
            self._nulls += nulls
        self._order.possible = False

    def _flags(self) -> Any:
        """A byte for each row, 1 until it is NULL."""
        with self._lock:
            if self._validity is None:
                validity = self._upload.empty(self._starts[-1], np.uint8)
                validity.fill(1)
                self._validity = validity
            return self._validity

    def _clear_nulls(self, at: int, piece: pa.Array, values: Any) -> Any:
        ok = bits_of(piece, 0)
        self._flags()[at : at + len(ok)] = ok
        return np.where(ok.view(np.bool_), values, values.dtype.type(0))

    def finish(self) -> Phases[ColumnData]:
        """The column over the array that was written, with the bounds, NULLs and order that `add` noted."""
        bounds = Bounds(0, 0)
        if self._bounds:
            bounds = Bounds(min(b.low for b in self._bounds), max(b.high for b in self._bounds))
        if not self._is_final:
            yield self._narrow_to(physical_type_for(bounds))
        validity = self._upload.start(self._validity) if self._nulls else None
        if validity is not None:
            yield [lambda: validity.send(0, self._validity)]
        made: list[ColumnData] = []
        yield [lambda: made.append(self._column(bounds, None if validity is None else validity.buffer()))]
        return made[0]

    def _narrow_to(self, physical_type: PhysicalType) -> list[Task]:
        wide, self._wide = self._wide, None
        assert wide is not None
        stays = physical_type is self._physical_type
        self._physical_type = physical_type
        transfer = self._transfer = self._upload.start(wide) if stays else self._upload.make(len(wide), physical_type.numpy)
        bring = transfer.send if stays else transfer.write
        return [partial(bring, low, wide[low:high]) for low, high in pairwise(self._starts)]

    def _column(self, bounds: Bounds, validity: Buffer | None) -> ColumnData:
        data = self._transfer.buffer()
        if self._dtype.is_float:
            return float_column(data, self._dtype, self._physical_type, validity, self._nulls, self._sample)
        order = self._order.order()
        if self._dtype.kind is Kind.BOOLEAN:
            return boolean_column(data, bounds, validity, self._nulls, order)
        if data.cpu is None and not order.is_sorted and may_all_differ(data.length, bounds):
            self._upload.wait()  # that the values may be looked at
        found = None if self._zones is None else self._zones.found()
        integers = Integers(data, self._physical_type, bounds, order, found, self._sample)
        return integer_column(self._dtype, integers, validity, self._nulls)
