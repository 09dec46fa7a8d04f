"""Pieces of one column, a rank's each, one after another on one device: `distributed.movable` calls it for each column.

The pieces come in different physical types, with dictionaries of their own, from different devices. Each is copied once, into
its place, where nothing has to be changed on the way; what has to be is changed on the device that it comes to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gquery import tuning
from gquery.columns.dictionary_union import Codes, union_in_phases
from gquery.columns.opaque import Opaque, gathered
from gquery.columns.table import ColumnData, ColumnStatistics, Dictionary
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.copies import copied, copy_into, room_for
from gquery.device.device import Device
from gquery.errors import InternalError
from gquery.expression.facts import ROW_ID_BITS
from gquery.expression.types import INT128, Bounds, PhysicalType, physical_type_for
from gquery.kernels.builtin import elements, gathers
from gquery.kernels.builtin.define import fill
from gquery.kernels.builtin.order_bits import bounds_of
from gquery.kernels.builtin.wide_arrays import i128_within, widen
from gquery.kernels.readback import read_scalar
from gquery.operators.base import words_a_row
from gquery.planner.physical import Stored
from gquery.runtime.threads import run_phases

_CONTEXT = "putting the rows of all devices together"
_FLOATS = (PhysicalType.F32, PhysicalType.F64)


class Copies:
    """Copies of pieces to their places on a GPU, which short ones come to together, by one kernel: at the end of all."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._pairs: list[tuple[Array, Array]] = []

    def put(self, to: Array, array: Array, at: Device) -> None:
        """Copy what lies ``at`` a device to ``to``, as long; nobody reads it before the end."""
        from gquery.operators.combined_arrays import reads_there  # of ranks alone

        is_short = 0 < array.nbytes <= tuning.transfers.together_bytes and array.flags.c_contiguous
        if is_short and reads_there(self._device, at):
            self._pairs.append((array, to))
        else:
            copy_into(to, self._device, array, at)

    def end(self) -> None:
        """Copy what is left."""
        if self._pairs:
            elements.copy_together(self._pairs, self._device)
            self._pairs = []


def one_column(
    pieces: Sequence[ColumnData], planned: Stored | None, device: Device, copies: Copies | None = None
) -> ColumnData:
    """See `movable.concatenated`. The current device is ``device``. With ``copies`` the column is there when these end."""
    copied_last = copies or Copies(device)
    made = _one_column(pieces, planned, device, copied_last)
    if copies is None:
        copied_last.end()
    return made


def _one_column(
    pieces: Sequence[ColumnData], planned: Stored | None, device: Device, copies: Copies
) -> ColumnData:
    filled = [p for p in pieces if p.length] or list(pieces[:1])
    dictionary, filled = _with_one_dictionary(filled, planned, device)
    rows = sum(p.length for p in filled)
    nullable = planned.properties.nullable if planned else any(p.validity is not None for p in filled)
    validity = _validity(filled, rows, device, copies) if nullable else None
    physical_type = _physical_type(filled, planned)
    if physical_type.is_string:
        physical_type, data, characters = _text(filled, physical_type, device, copies)
    else:
        data, characters = _numbers(filled, physical_type, rows, device, copies), None
    dtype = planned.properties.dtype if planned else filled[0].dtype
    known = statistics_together(filled, None if planned is None else planned.properties.bounds)
    return ColumnData(dtype, physical_type, rows, data, validity, characters, dictionary, known)


def recoded(piece: ColumnData, table: Array, known: Bounds, device: Device) -> ColumnData:
    """A column of codes with ``table[code]`` (integers within ``known``, on ``device``) in their place, and 0 under NULL."""
    codes = _on(piece.data, device)
    if table.size:
        made = gathers.gather(table, codes)
    else:  # of nothing but NULLs
        made = device.zeros(piece.length, table.dtype, _CONTEXT)
    physical_type = physical_type_for(known)
    made = _as(made, physical_type)
    validity = None
    if piece.validity is not None:
        validity = Buffer(_on(piece.validity, device), device)
        elements.clear_others(made, validity.on(device))
    bounds = ColumnStatistics(known, piece.statistics.null_count)
    data = Buffer(made, device)
    return replace(piece, physical_type=physical_type, data=data, validity=validity, statistics=bounds)


def text_parts(piece: ColumnData, at: Device) -> tuple[Array, Array]:
    """Offsets from 0 on and their characters of a column of text that lies on ``at``, as views where that is possible."""
    offsets = piece.data.on(at)
    if piece.characters is None:
        return offsets, at.empty(0, np.uint8, _CONTEXT)
    with at.activate():
        first, last = read_scalar(offsets[:1]), read_scalar(offsets[-1:])
        characters = piece.characters.on(at)[first:last]
        return (elements.added(offsets, -first) if first else offsets), characters


# ---- dictionaries ---------------------------------------------------------------------------------------------------


def _with_one_dictionary(
    pieces: list[ColumnData], planned: Stored | None, device: Device
) -> tuple[Dictionary | Opaque | None, list[ColumnData]]:
    """The dictionary of all pieces, and those with codes of that one."""
    wanted = None if planned is None else planned.properties.dictionary
    is_pending = isinstance(wanted, Opaque) and wanted.is_pending
    if planned is not None and not is_pending and not any(p.length for p in pieces):
        return wanted, [replace(p, dictionary=wanted) for p in pieces]
    own = [p.dictionary for p in pieces]
    if all(d is own[0] for d in own):
        found, made = own[0], pieces
    elif all(isinstance(d, Dictionary) for d in own):
        found, made = _united(pieces, wanted if isinstance(wanted, Dictionary) else None, device)
    elif pieces[0].dtype.is_opaque:
        found, made = _values_joined(pieces, device)
    else:
        raise InternalError("some pieces of a column are codes and others are text")
    if planned is not None and found is not wanted and not is_pending:
        if not (isinstance(found, Dictionary) and isinstance(wanted, Dictionary) and found.digest == wanted.digest):
            raise InternalError(f"{planned.column} has another dictionary than was planned: {found}, not {wanted}")
        found = wanted
    return found, made


def _united(pieces: list[ColumnData], wanted: Dictionary | None, device: Device) -> tuple[Dictionary, list[ColumnData]]:
    """The union of dictionaries, among them the one that is planned; that one itself where it has all values."""
    different: dict[bytes, Dictionary] = {}
    for dictionary in (wanted, *(p.dictionary for p in pieces)):
        if isinstance(dictionary, Dictionary):
            different.setdefault(dictionary.digest, dictionary)
    found = list(different.values())
    if len(found) == 1:
        return found[0], pieces
    codes = [np.arange(len(d)) for d in found]
    (union,) = run_phases([union_in_phases([Codes(d.values, c, None) for d, c in zip(found, codes, strict=True)])], 1)
    tables = {}
    for number, (digest, own) in enumerate(zip(different, codes, strict=True)):
        table = np.empty(len(own), union.physical_type.numpy)
        union.write(number, Codes(found[number].values, own, None), table, None)
        tables[digest] = table
    dictionary = wanted if wanted is not None and len(wanted) == len(union) else Dictionary(union.values)
    made = []
    for piece in pieces:
        assert isinstance(piece.dictionary, Dictionary)
        made.append(_in_union(piece, tables[piece.dictionary.digest], len(union), device))
    return dictionary, made


def _in_union(piece: ColumnData, table: Array, values: int, device: Device) -> ColumnData:
    """A piece as codes of a larger sorted dictionary: codes keep their order, so the piece's keeps as well."""
    made = recoded(piece, device.from_host(table, _CONTEXT), Bounds(0, values - 1), device)
    old = piece.statistics
    bounds, taken = _through(table, old.bounds), _through(table, old.values)
    if bounds is not None and piece.validity is not None:
        bounds = bounds | Bounds(0, 0)
    return replace(made, statistics=replace(old, bounds=bounds or made.statistics.bounds, values=taken, zones=None))


def _through(table: Array, known: Bounds | None) -> Bounds | None:
    return None if known is None else Bounds(int(table[known.low]), int(table[known.high]))


def _values_joined(pieces: list[ColumnData], device: Device) -> tuple[Opaque, list[ColumnData]]:
    """The values of all pieces one after another; a piece of NULLs alone may have none."""
    whole = gathered([p.dictionary for p in pieces if isinstance(p.dictionary, Opaque)])
    known = Bounds(0, max(whole.numbers - 1, 0))
    return whole, [p if p.dictionary is whole else _renumbered(p, whole, known, device) for p in pieces]


def _renumbered(piece: ColumnData, whole: Opaque, known: Bounds, device: Device) -> ColumnData:
    """A piece with the numbers that its values have among those of all."""
    own, physical_type = piece.dictionary, physical_type_for(known)
    starts = own.starts_in(whole) if isinstance(own, Opaque) else (0,)
    data = elements.converted(_on(piece.data, device), np.int64)
    if len(starts) == 1:
        data = elements.added(data, starts[0])
    else:
        data = elements.renumber(data, device.from_host(np.array(starts, np.int64), _CONTEXT), ROW_ID_BITS)
    data = _as(data, physical_type)
    if piece.validity is not None:
        elements.clear_others(data, _on(piece.validity, device))
    bounds = ColumnStatistics(known, piece.statistics.null_count)
    return replace(piece, physical_type=physical_type, data=Buffer(data, device), statistics=bounds)


def _as(values: Array, physical_type: PhysicalType) -> Array:
    """Integers that are nobody else's as those of a type."""
    return values if values.dtype == physical_type.numpy else elements.converted(values, physical_type.numpy)


# ---- data -----------------------------------------------------------------------------------------------------------


def _on(buffer: Buffer, device: Device) -> Array:
    """A buffer's array on a device, without a copy of it there being kept."""
    if buffer.is_on(device):
        return buffer.on(device)
    at = buffer.devices[0]
    return copied(buffer.on(at), at, device, _CONTEXT)


def _put(buffer: Buffer, to: Array, device: Device, copies: Copies) -> None:
    at = device if buffer.is_on(device) else buffer.devices[0]
    copies.put(to, buffer.on(at), at)


def _validity(pieces: Sequence[ColumnData], rows: int, device: Device, copies: Copies) -> Buffer:
    made, at = room_for(rows, np.dtype(np.uint8), device, _CONTEXT), 0
    for piece in pieces:
        part = made[at : at + piece.length]
        if piece.validity is None:
            fill(part, 1)
        else:
            _put(piece.validity, part, device, copies)
        at += piece.length
    return Buffer(made, device)


def _numbers(
    pieces: Sequence[ColumnData], physical_type: PhysicalType, rows: int, device: Device, copies: Copies
) -> Buffer:
    words = words_a_row(physical_type)
    made, at = room_for(words * rows, np.dtype(physical_type.numpy), device, _CONTEXT), 0
    for piece in pieces:
        part = made[words * at : words * (at + piece.length)]
        if piece.physical_type is physical_type:
            _put(piece.data, part, device, copies)
        elif physical_type is PhysicalType.I128:
            widen(_on(piece.data, device), part)
        else:
            elements.store(elements.every(_on(piece.data, device), words_a_row(piece.physical_type)), part)
        at += piece.length
    return Buffer(made, device)


def _text(
    pieces: Sequence[ColumnData], physical_type: PhysicalType, device: Device, copies: Copies
) -> tuple[PhysicalType, Buffer, Buffer]:
    """The texts of pieces, with offsets of 32 bits only where they are wanted and enough."""
    parts = [_own_text(p, device) for p in pieces]
    size = sum(int(c.size) for _, c, _ in parts)
    if physical_type is not PhysicalType.STRING32 or size > np.iinfo(np.int32).max:
        physical_type = PhysicalType.STRING64
    rows = sum(p.length for p in pieces)
    offsets = device.empty_spillable(rows + 1, physical_type.numpy, _CONTEXT)
    characters = room_for(size, np.dtype(np.uint8), device, _CONTEXT)
    row = byte = 0
    offsets[:1] = 0
    for own_offsets, own, at in parts:
        ends = own_offsets[1:] if at == device else copied(own_offsets[1:], at, device, _CONTEXT)
        elements.store_added(ends, byte, offsets[row + 1 : row + 1 + ends.size])
        copies.put(characters[byte : byte + own.size], own, at)
        row, byte = row + int(ends.size), byte + int(own.size)
    return physical_type, Buffer(offsets, device), Buffer(characters, device)


def _own_text(piece: ColumnData, device: Device) -> tuple[Array, Array, Device]:
    """Offsets, characters and where they lie, of a piece of text that is movable (see `movable`)."""
    at = device if piece.data.is_on(device) else piece.data.devices[0]
    assert piece.characters is not None
    return piece.data.on(at), piece.characters.on(at), at


# ---- what is known --------------------------------------------------------------------------------------------------


def _physical_type(pieces: Sequence[ColumnData], planned: Stored | None) -> PhysicalType:
    """What the plan says, else the narrowest that holds all that the pieces' types hold."""
    own = {p.physical_type for p in pieces}
    if planned is not None:
        if any(_family(o) is not _family(planned.physical_type) for o in own):
            raise InternalError(f"{planned.column} is {planned.physical_type.value}, and has pieces of {own}")
        if _family(planned.physical_type) == "integer":
            _refuse_misfits(pieces, planned)
        return planned.physical_type
    return widest_type(pieces)


def widest_type(pieces: Sequence[ColumnData]) -> PhysicalType:
    """The narrowest type that holds all that the pieces' types hold."""
    own = {p.physical_type for p in pieces}
    if len({_family(o) for o in own}) > 1:
        raise InternalError(f"one column has pieces of {own}")
    if len(own) == 1:
        return own.pop()
    if any(o.is_string for o in own):
        return PhysicalType.STRING64
    if own <= set(_FLOATS):
        return PhysicalType.F64
    ranges = [_range(o) for o in own]
    return physical_type_for(Bounds(min(r.low for r in ranges), max(r.high for r in ranges)))


def _refuse_misfits(pieces: Sequence[ColumnData], planned: Stored) -> None:
    room = _range(planned.physical_type)
    for piece in pieces:
        known = piece.statistics.bounds
        if known is not None and not known.within(room) and not _fits(piece, room):
            raise InternalError(f"{planned.column} is {planned.physical_type.value}, and has values in {known}")


def _fits(piece: ColumnData, room: Bounds) -> bool:
    """Whether all integers are within the room: what is known of them may be more than there is."""
    at = piece.data.devices[0]
    with at.activate():
        values = piece.data.on(at)
        if piece.physical_type is PhysicalType.I128:
            return i128_within(values.reshape(-1, 2), room.low, room.high)
        return not values.size or bounds_of(values).within(room)


def _family(physical_type: PhysicalType) -> str:
    """Physical types of one family turn into each other."""
    if physical_type.is_string:
        return "text"
    if physical_type in _FLOATS:
        return "float"
    return "truth" if physical_type is PhysicalType.BOOL else "integer"


def _range(physical_type: PhysicalType) -> Bounds:
    if physical_type is PhysicalType.I128:
        return INT128
    limits = np.iinfo(physical_type.numpy)
    return Bounds(int(limits.min), int(limits.max))


def statistics_together(pieces: Sequence[ColumnData], planned: Bounds | None) -> ColumnStatistics:
    """What is known of the rows of all pieces from what is known of each; ``planned`` bounds hold in any case."""
    known = [p.statistics for p in pieces]
    rising = _rising(pieces)
    return ColumnStatistics(
        bounds=_all_of(known, lambda s: s.bounds) or planned,
        null_count=_sum([s.null_count for s in known]),
        is_sorted=rising is not None,
        is_unique=rising is True and all(s.is_unique for s in known),
        values=_all_of(known, lambda s: s.values),
    )


def _all_of(known: Sequence[ColumnStatistics], bounds_of: Callable[[ColumnStatistics], Bounds | None]) -> Bounds | None:
    """Bounds of the values of all; None where they are not known of one."""
    found = None
    for statistics in known:
        own = bounds_of(statistics)
        if own is None:
            return None
        found = own if found is None else found | own
    return found


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [c for c in counts if c is not None]
    return sum(known) if len(known) == len(counts) else None


def _rising(pieces: Sequence[ColumnData]) -> bool | None:
    """Whether each sorted piece begins above the end of the one before (True), or not below it (False); None where that is not
    known. Bounds tell it without a look at the values."""
    is_strict = True
    if not all(p.statistics.is_sorted and p.statistics.bounds is not None for p in pieces):
        return None
    for before, after in pairwise(p.statistics.bounds for p in pieces):
        assert before is not None and after is not None
        if before.high > after.low:
            return None
        is_strict &= before.high < after.low
    return is_strict
