"""Rows in parts, which lie in the tier below a device (`execution.tiers`) and come back one after another. While kernels are at
one part, the next one may be on its way.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from types import TracebackType

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.device.buffer import Buffer
from gquery.device.copies import queue_all, room_for
from gquery.device.device import Device
from gquery.distributed.column_pieces import statistics_together
from gquery.errors import OutOfMemoryError
from gquery.execution.behind import Beside
from gquery.execution.collected import is_alike
from gquery.execution.tiers import brought, let_go
from gquery.operators.base import Frame, words_a_row
from gquery.operators.partition_rows import Partitioned, rows_between
from gquery.runtime.interrupt import holding
from gquery.runtime.records import cached_property, replace
from gquery.runtime.threads import core_count
from gquery.runtime.tuples import NamedTuple

_PART = "a part of its rows"

Moves = list[tuple[Array, list[Array]]]
"""Arrays, and what is copied to each, one array behind another."""


class Parts:
    """Rows in parts, in the tier: ``cuts`` are frames of which each has some rows of every part. Nothing is on its way from there
    when a block of them is left, and they are let go of."""

    def __init__(self, cuts: Sequence[Partitioned], device: Device) -> None:
        self._cuts, self._device = list(cuts), device
        self._coming: dict[int, tuple[Frame, Beside]] = {}

    @property
    def parts(self) -> int:
        """How many parts there are, with or without rows."""
        return self._cuts[0].parts

    def rows(self, number: int) -> int:
        """How many rows a part has."""
        return sum(c.starts[number + 1] - c.starts[number] for c in self._cuts)

    def pieces(self, number: int) -> list[Frame]:
        """The rows of a part where they lie, in one piece or several."""
        made = [c.part(number) for c in self._cuts if c.starts[number] < c.starts[number + 1]]
        return made or [self.nothing()]

    def part(self, number: int) -> Frame:
        """The rows of a part where kernels read them."""
        if (coming := self._coming.pop(number, None)) is not None:
            coming[1].wait()
            return coming[0]
        if not self._is_copied:
            return brought(self.pieces(number), self._device)
        with self._device.activate():
            made, moves = self._room(number)
            self._bring(moves)
        return made

    def begin(self, number: int) -> None:
        """Start to bring a part's rows to where kernels read them, if there is room for them: `part` waits for them."""
        for passed in [n for n in self._coming if n < number - 1]:  # nobody asked for its rows
            self._coming.pop(passed)[1].join()
        if number >= self.parts or not self.rows(number) or not self._is_copied or core_count() == 1:
            return
        device, width = self._device, sum(c.nbytes / max(c.length, 1) for c in self._cuts[0].frame.columns.values())
        free = (device.memory_limit or 0) - device.used_bytes
        if self.rows(number) * width > free * tuning.spilling.slice_fraction:
            return
        try:
            with device.activate():
                made, moves = self._room(number)
        except OutOfMemoryError as error:
            traceback.clear_frames(error.__traceback__)
            return
        device.synchronize()  # what was launched may still use memory that was given out again

        def bring() -> None:
            with device.activate():
                self._bring(moves)

        with holding():  # Ctrl-C: what has started is waited for
            self._coming[number] = made, Beside(bring, "gquery-part")

    def is_coming(self, number: int) -> bool:
        """Whether a part is on its way, or has arrived."""
        return number in self._coming

    def give_way(self) -> bool:
        """See `behind.GivesWay`."""
        coming, self._coming = self._coming, {}
        for _, beside in coming.values():
            beside.join()
        return bool(coming)

    def __enter__(self) -> Parts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.give_way()
        frames = [c.frame for c in self._cuts]
        self._cuts.clear()
        let_go(frames, self._device)

    def _room(self, number: int) -> tuple[Frame, Moves]:
        """Room for the rows of a part, and what is copied there."""
        rows, columns, moves = self.rows(number), {}, Moves()
        for i, column in self._cuts[0].frame.columns.items():
            own = [(c.frame.columns[i], c.starts[number], c.starts[number + 1]) for c in self._cuts]
            words, dtype = words_a_row(column.physical_type), np.dtype(column.physical_type.numpy)
            data = room_for(words * rows, dtype, self._device, _PART)
            moves.append(self._moved(data, [(c.data, words * low, words * high) for c, low, high in own]))
            flags = None
            if column.validity is not None:
                flags = room_for(rows, np.dtype(np.uint8), self._device, _PART)
                moves.append(self._moved(flags, [(c.validity, low, high) for c, low, high in own if c.validity is not None]))
            columns[i] = replace(
                column,
                length=rows,
                data=Buffer(data, self._device),
                validity=None if flags is None else Buffer(flags, self._device),
                statistics=statistics_together([c for c, _, _ in own], None),
            )
        return Frame(columns, rows), moves

    def _moved(self, to: Array, pieces: Sequence[tuple[Buffer, int, int]]) -> tuple[Array, list[Array]]:
        below = self._device.below
        assert below is not None
        return to, [b.on(below)[low:high] for b, low, high in pieces if low < high]

    def _bring(self, moves: Moves) -> None:
        queue_all(moves, self._device)
        self._device.synchronize()

    @cached_property
    def _is_copied(self) -> bool:
        """Whether a part is copied as it lies below a device: the columns of all cuts lie alike, and have no texts."""
        first = self._cuts[0].frame
        return (
            self._device.below is not None
            and not first.rank_values
            and all(
                not c.physical_type.is_string and all(is_alike(c, cut.frame.columns[i]) for cut in self._cuts)
                for i, c in first.columns.items()
            )
        )

    def each(self) -> list[Part]:
        """The parts."""
        return [Part(self, n) for n in range(self.parts)]

    def nothing(self) -> Frame:
        """No rows."""
        return rows_between(self._cuts[0].frame, 0, 0)


class Part(NamedTuple):
    """One of them."""

    of: Parts
    number: int

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.of.rows(self.number)

    @property
    def is_coming(self) -> bool:
        """See `Parts.is_coming`."""
        return self.of.is_coming(self.number)

    def begin_next(self) -> None:
        """See `Parts.begin`, of the part behind this one."""
        self.of.begin(self.number + 1)

    def pieces(self) -> list[Frame]:
        """See `Parts.pieces`."""
        return self.of.pieces(self.number)

    def whole(self) -> Frame:
        """See `Parts.part`."""
        return self.of.part(self.number)
