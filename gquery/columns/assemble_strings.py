"""String columns put together from pieces that threads decode; see `gquery.columns.assemble`.

What all pieces together need is known once all are there: one dictionary, or the number of bytes. So pieces are kept as
they come, a code in few bytes or Arrow's offsets and characters, and written into the column's arrays in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gquery import tuning
from gquery.columns.arrow_buffers import bits_of, offsets_of
from gquery.columns.dictionary_union import (
    Codes,
    DictionaryUnion,
    codes_of,
    strings_of,
    union_in_phases,
)
from gquery.columns.encode_strings import (
    characters_column,
    characters_of,
    cleared,
    dictionary_limit,
    estimate_strings,
    null_strings,
    without_views,
)
from gquery.columns.page_values import Placed, PlacedTexts, Room, TextRoom, Words, room_for
from gquery.columns.statistics import OrderOfParts
from gquery.columns.table import ColumnData
from gquery.device.device import Device
from gquery.device.transfer import Transfer, Upload
from gquery.expression.types import INT64
from gquery.runtime.arrow_compute import cast, dictionary_encode
from gquery.runtime.threads import Phases, Task


class DictionaryPieces:
    """Strings that come as codes into dictionaries, which may differ from piece to piece."""

    checks_digits, takes_words = False, True

    def __init__(self, starts: Sequence[int], upload: Upload, limit: int | None = None) -> None:
        self._starts, self._upload = starts, upload
        self._limit = tuning.encoding.largest_dictionary if limit is None else limit
        self._groups: list[list[Codes]] = [[] for _ in starts[1:]]
        self._order = OrderOfParts()
        self._united: tuple[DictionaryUnion, Transfer] | None = None  # of texts that came before their codes

    def room(self, group: int, at: int, is_nullable: bool) -> Room | None:
        """For codes, which are narrowed once there is a dictionary."""
        rows = self._starts[group + 1] - self._starts[group] - at
        return room_for(np.empty(rows, np.uint16), max(rows, 1), 0, np.empty(rows, np.uint8) if is_nullable else None)

    def add(self, group: int, pieces: Iterable[pa.DictionaryArray | Words | Placed]) -> int:
        """Holds the codes and dictionaries of a group; how many rows they have."""
        self._groups[group] = [self._kept(codes_of(piece)) for piece in pieces]
        return sum(len(codes.raw) for codes in self._groups[group])

    def _kept(self, codes: Codes) -> Codes:
        if not self._upload.is_limited:
            return codes
        ok = None if codes.ok is None else self._upload.keep(codes.ok)
        return Codes(codes.dictionary, self._upload.keep(codes.raw), ok)

    def finish(self) -> Phases[ColumnData]:
        """The column: codes of one sorted dictionary of all pieces' values, in the narrowest integers. It owns its buffers."""
        rows = self._starts[-1]
        if self._united is not None:
            union, codes = self._united
            return union.column(codes.buffer(), None, 0, self._order.order())
        pieces = [codes for group in self._groups for codes in group]
        if not pieces:
            return null_strings(rows)
        union = yield from union_in_phases(pieces)
        if len(union) > self._limit:
            return (yield from self._spelled_out())
        if len(union) == 0:
            return null_strings(rows)
        codes, validity = self._upload.make(rows, union.physical_type.numpy), None
        if union.has_nulls or any(p.ok is not None for p in pieces):
            validity = self._upload.make(rows, np.uint8)
            self._order.possible = False
        counts: list[int] = []
        yield self._write(union, codes, validity, counts)
        nulls = sum(counts)
        ok = validity.buffer() if validity is not None and nulls else None
        return union.column(codes.buffer(), ok, nulls, self._order.order())

    @property
    def takes_held(self) -> bool:
        """Whether there are enough rows for a device to decode."""
        return self._starts[-1] >= tuning.encoding.compiled_rows

    def unite(self, texts: Sequence[pa.Array]) -> Phases[Any | None]:
        """The codes (int64) of texts in one sorted dictionary, for codes that a device decodes; None where it will not: a
        dictionary is too large, or the device has no room."""
        union = yield from union_in_phases([Codes(some, np.empty(0, np.uint8), None) for some in texts])
        codes = self._upload.make(self._starts[-1], union.physical_type.numpy)
        if not 0 < len(union) <= self._limit or union.has_nulls or not codes.is_alone:
            return None
        self._united = union, codes
        return np.concatenate([union.codes_of(number, len(some)) for number, some in enumerate(texts)])

    def device_values(self, device: Device) -> Any:
        """See `HeldAssembly`."""
        assert self._united is not None
        return self._united[1].buffer().on(device)

    def blocks(self) -> tuple[int, Any, Any]:
        """See `HeldAssembly`: one of all rows."""
        return self._starts[-1], np.full(1, INT64.high), np.full(1, INT64.low)

    def take_found(self, found: Any, low: Any, high: Any, pick: Callable[[Any], Any]) -> None:
        """See `HeldAssembly`."""
        assert self._united is not None
        self._order.take_held(found, pick, self._united[1].dtype)

    def _write(self, union: DictionaryUnion, codes: Transfer, validity: Transfer | None, nulls: list[int]) -> list[Task]:
        """Write the codes of all groups, and note their NULLs."""

        def write(first: int, start: int, end: int, pieces: list[Codes]) -> None:
            made, valid, at = codes.rows(start, end), None, 0
            if validity is not None:
                valid = validity.rows(start, end)
                valid.fill(1)
            for number, piece in enumerate(pieces, first):
                to = at + len(piece.raw)
                union.write(number, piece, made[at:to], None if valid is None else valid[at:to])
                at = to
            codes.send(start, made)
            if validity is not None and valid is not None:
                validity.send(start, valid)
                nulls.append(end - start - int(np.count_nonzero(valid)))
            self._order.see(made)
            self._order.end(start, made)

        tasks, first = [], 0
        for start, end, pieces in zip(self._starts, self._starts[1:], self._groups, strict=False):
            tasks.append(_task(write, first, start, end, pieces))
            first += len(pieces)
        return tasks

    def _spelled_out(self) -> Phases[ColumnData]:
        """The column without a dictionary, which would be too large."""
        strings = Strings(self._starts, self._upload, may_repeat=False)

        def spell(group: int, pieces: list[Codes]) -> None:
            strings.add(group, (strings_of(p) for p in pieces))

        yield [_task(spell, group, pieces) for group, pieces in enumerate(self._groups)]
        return (yield from strings.finish())


class Strings:
    """Strings as they are; a sample decides whether they get a dictionary after all."""

    checks_digits = takes_words = False

    def __init__(self, starts: Sequence[int], upload: Upload, may_repeat: bool = True) -> None:
        self._starts, self._upload, self._may_repeat = starts, upload, may_repeat
        self._groups: list[list[pa.Array]] = [[] for _ in starts[1:]]
        self._nulls = self._distinct = 0

    def room(self, group: int, at: int, is_nullable: bool) -> TextRoom | None:
        """None, as it takes arrays."""

    def add(self, group: int, pieces: Iterable[pa.Array | Words | Placed | PlacedTexts]) -> int:
        """Holds the pieces of a group; how many rows they have."""
        kept = [self._kept(without_views(piece)) for piece in pieces]
        self._groups[group] = kept
        return sum(len(p) for p in kept)

    def _kept(self, piece: pa.Array) -> pa.Array:
        """A piece whose buffers lie where there is room for them."""
        if not self._upload.is_limited or not len(piece):
            return piece
        keep, offsets = self._upload.keep, offsets_of(piece)
        low, high = int(offsets[0]), int(offsets[-1])
        valid = None
        if piece.null_count:
            valid = pa.py_buffer(keep(np.packbits(bits_of(piece, 0), bitorder="little")))
        parts = [valid, pa.py_buffer(keep(offsets - low)), pa.py_buffer(keep(characters_of(piece)[low:high]))]
        return pa.Array.from_buffers(piece.type, len(piece), parts, piece.null_count)

    def finish(self) -> Phases[ColumnData]:
        """The column: as text, or with a dictionary where few values repeat. It owns its buffers."""
        rows = self._starts[-1]
        yield [self._look]
        if self._nulls == rows:
            return null_strings(rows)
        if self._may_repeat and self._distinct <= dictionary_limit(rows):
            return (yield from self._encoded())
        return (yield from self._written())

    def _look(self) -> None:
        """Find out what all pieces together tell, and give them one type."""
        if any(p.type == pa.large_string() for group in self._groups for p in group):
            self._groups = [[cast(p, pa.large_string()) for p in group] for group in self._groups]
        pieces = [p for group in self._groups for p in group]
        self._nulls = sum(p.null_count for p in pieces)
        if not self._may_repeat and self._starts[-1] < tuning.reading.coded_rows:  # nobody would do anything about it
            self._distinct = self._starts[-1] - self._nulls
        elif self._nulls < self._starts[-1]:
            self._distinct = estimate_strings(pa.chunked_array(pieces), self._nulls)

    def _encoded(self) -> Phases[ColumnData]:
        """The column with a dictionary; without one if the sample was wrong."""
        pieces = DictionaryPieces(self._starts, self._upload, dictionary_limit(self._starts[-1]))
        most = tuning.encoding.largest_piece if self._upload.is_limited else self._starts[-1]

        def encode(group: int, strings: list[pa.Array]) -> None:
            pieces.add(group, (codes for some in _parts_of(strings, most) for codes in _encoded(some)))

        yield [_task(encode, group, strings) for group, strings in enumerate(self._groups)]
        return (yield from pieces.finish())

    def _written(self) -> Phases[ColumnData]:
        """The column as offsets and bytes."""
        rows, nulls = self._starts[-1], self._nulls
        groups: list[list[_Part]] = [[] for _ in self._groups]
        yield [_task(_clear, strings, parts) for strings, parts in zip(self._groups, groups, strict=True)]
        parts = [part for group in groups for part in group]
        total = sum(part.bytes for part in parts)
        offsets = self._upload.written(rows + 1, np.int32 if total < tuning.encoding.narrow_offsets else np.int64)
        characters = self._upload.written(total, np.uint8)
        validity = self._upload.make(rows, np.uint8) if nulls else None
        offsets.write(0, np.zeros(1, offsets.dtype))
        tasks: list[Task] = []
        row = byte = 0
        for part in parts:
            tasks.append(_task(part.write, row, byte, offsets, characters, validity))
            row, byte = row + part.rows, byte + part.bytes
        yield tasks
        ok = None if validity is None else validity.buffer()
        return characters_column(offsets.buffer(), characters.buffer(), ok, nulls, self._distinct)


class _Part:
    """Some strings of a column, whose NULLs are empty, with their offsets and validity."""

    def __init__(self, array: pa.Array) -> None:
        self._ok = bits_of(array, 0) if array.null_count else None
        self._array, self._offsets = cleared(array, self._ok)
        self.rows = len(array)
        self.bytes = int(self._offsets[-1]) - int(self._offsets[0])

    def write(self, row: int, byte: int, offsets: Transfer, characters: Transfer, validity: Transfer | None) -> None:
        """Into the column, from a row and a byte on; then they are freed."""
        low = int(self._offsets[0])
        offsets.write(row + 1, np.add(self._offsets[1:], byte - low, dtype=offsets.dtype))
        characters.write(byte, characters_of(self._array)[low : low + self.bytes])
        if validity is not None:
            validity.write(row, np.ones(self.rows, np.uint8) if self._ok is None else self._ok)
        self._array = self._offsets = self._ok = None


def _parts_of(strings: list[pa.Array], most: int) -> Iterator[list[pa.Array]]:
    """Arrays in their order, some together, of no more rows than these where several are."""
    some: list[pa.Array] = []
    rows = 0
    for array in strings:
        if some and rows + len(array) > most:
            yield some
            some, rows = [], 0
        some.append(array)
        rows += len(array)
    if some:
        yield some


def _encoded(strings: list[pa.Array]) -> list[pa.DictionaryArray]:
    """Strings as codes into a dictionary that all of them have."""
    encoded: list[pa.DictionaryArray] = dictionary_encode(pa.chunked_array(strings)).chunks
    return encoded


def _clear(strings: list[pa.Array], parts: list[_Part]) -> None:
    """Make parts of strings, which leave their list: each is to be freed once it is written."""
    while strings:
        parts.append(_Part(strings.pop(0)))


def _task(work: Callable[..., None], *arguments: Any) -> Task:
    return lambda: work(*arguments)
