"""A join in parts, under way: a table of some of the rows is built and probed, and then the next one (`execution.join_parts`).

Rows that are probed come a slice at a time where a part has more than there is room for beside its table. A part of the table
that is too large is partitioned again, by another mix of the same hashes; one of a single key, or of few, is built in pieces that
are probed in turn.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import numpy as np

from gquery import tuning
from gquery.device.array import Array
from gquery.errors import CardinalityError, OutOfMemoryError
from gquery.execution.behind import Behind, give_way
from gquery.execution.collected import Collected
from gquery.execution.part_runs import in_parts, run_extra
from gquery.execution.parts import Part, Parts
from gquery.execution.state import Run, StageReport, Unbuilt
from gquery.execution.tiers import brought, joined_below, put_below, slice_rows, tier_of
from gquery.expression.expr import Column
from gquery.operators.base import Frame, JoinArrays, JoinIndex
from gquery.operators.join import MORE_THAN_ONE
from gquery.operators.partition_rows import HashPartitioning, rows_between
from gquery.planner.logical.nodes import JoinKind
from gquery.planner.physical import Probe
from gquery.runtime.interrupt import check
from gquery.runtime.records import cached_property, replace
from gquery.runtime.tuples import NamedTuple


class Stages(NamedTuple):
    """The numbers of the stages that a join in parts has behind those of its program: those of `join_parts`."""

    before: int
    rows: int
    middle: int
    last: int
    with_match: int
    others: int

    @classmethod
    def behind(cls, stages: int) -> Stages:
        """Those behind so many stages."""
        return cls(*range(stages, stages + len(cls._fields)))


_WITHOUT_MATCH = (JoinKind.INNER, JoinKind.SEMI)  # kinds that pass no row on without a match
_EACH_MATCH = (
    JoinKind.LEFT,
    JoinKind.SINGLE,
    JoinKind.FULL,
)  # kinds that pass a row on with each of its matches, or without


class JoinedParts:
    """What the parts of a join have made, under way."""

    def __init__(
        self, run: Run, stages: Stages, probe: Probe, unbuilt: Unbuilt, report: StageReport, behind: Behind
    ) -> None:
        self._behind, self._coming = behind, list[Parts]()
        self._run, self._stages, self._probe, self._report = run, stages, probe, report
        self._table, self._rows, self._device = unbuilt.table, unbuilt.rows, run.context.device
        self._label = run.program.stages[stages.before].label
        self._probed_keys = tuple([e.id for e in probe.keys if isinstance(e, Column)])
        self._built_keys = tuple([c.id for c in self._table.keys])
        self._made = Collected(self._device, self._label, behind, run.feedback.rows_in_parts.get(stages.middle, 0))
        self._matches: list[tuple[Frame, Array]] = []

    def add(self, probed: list[Frame], built: list[Frame], parts: int, seed: int) -> None:
        """Join rows, part by part. The lists are emptied once they lie in parts."""
        left = in_parts(probed, HashPartitioning(self._probed_keys, parts, seed), self._run, self._report, self._label)
        right = in_parts(built, HashPartitioning(self._built_keys, parts, seed), self._run, self._report, self._label)
        rows = sum(b.rows for b in built)
        probed.clear()
        built.clear()
        outer, self._coming = self._coming, [left, right]
        with left, right:
            for one, other in zip(left.each(), right.each(), strict=True):
                check()
                other.begin_next()
                one.begin_next()
                self._add(one, other, seed, other.rows == rows)
            if not self._made.frames and not seed:
                nothing = right.nothing()
                self._build(nothing)
                self._join([left.nothing()], nothing)
        self._coming = outer

    def _add(self, probed: Part, built: Part, seed: int, is_whole: bool) -> None:
        """Join the rows of one part, which ``is_whole`` if no other has rows of the table."""
        rows = built.rows
        if not probed.rows:
            if self._probe.records_matches:
                self._note_unmatched(joined_below(built.pieces(), self._device))
        elif rows or self._probe.kind not in _WITHOUT_MATCH:
            if (whole := self._has_built(built)) is not None:
                self._join(probed, whole)
            elif is_whole or seed >= tuning.spilling.levels or rows < tuning.spilling.least_rows:
                self._add_pieces(
                    joined_below(probed.pieces(), self._device), joined_below(built.pieces(), self._device)
                )
            else:
                self.add(probed.pieces(), built.pieces(), tuning.spilling.least_parts, seed + 1)

    def _has_built(self, rows: Part) -> Frame | None:
        """Build the table of some rows: these where kernels read them; None where it found no room."""
        while True:
            try:
                whole = rows.whole()
                self._build(whole)
            except OutOfMemoryError as error:
                traceback.clear_frames(error.__traceback__)
                self._run.frames.pop(self._stages.rows, None)
            else:
                return whole
            if not give_way(self._behind, *self._coming):
                return None

    def _build(self, rows: Frame) -> None:
        """Build the table of some rows, which says what NOT IN asks for of all."""
        number = self._table.stage
        self._run.frames[self._stages.rows] = rows
        run_extra(self._run, number)
        if self._probe.null_key:
            index = self._run.joins[number]
            index.arrays = replace(index.arrays, count=self._rows.rows, null_keys=self._null_keys)

    @cached_property
    def _null_keys(self) -> int:
        """See `JoinArrays.null_keys`."""
        flags = [
            v.on(tier_of(self._device)) for k in self._built_keys if (v := self._rows.columns[k].validity) is not None
        ]
        return sum(int(f.size) - int(np.count_nonzero(f)) for f in flags)

    def _join(self, probed: Part | list[Frame], built: Frame) -> None:
        """Probe the table that was built of some rows; these are at hand where kernels read them, the others lie in the tier."""
        flags: Array | None = None
        for rows in self._at_once(probed):
            self._made.add(self._ran(self._stages.middle, rows))
            if self._probe.records_matches:
                own = self._device.to_host(self._run.matched[self._table.stage][: built.rows])
                flags = own if flags is None else flags | own
        if flags is not None:
            self._matches.append((put_below(built, self._device, self._label), flags))

    def _at_once(self, rows: Part | list[Frame]) -> Iterator[Frame]:
        """The rows of pieces where kernels read them, as many at once as there is room for beside the table."""
        pieces = rows.pieces() if isinstance(rows, Part) else rows
        if self._device.below is None:
            yield from pieces
            return
        if isinstance(rows, Part) and (rows.is_coming or rows.rows <= slice_rows(pieces[0], self._device)):
            yield rows.whole()
            return
        waiting: list[Frame] = []
        for piece in pieces:
            step = slice_rows(piece, self._device)
            for low in range(0, max(piece.rows, 1), step):
                part = rows_between(piece, low, min(low + step, piece.rows))
                if waiting and sum(w.rows for w in waiting) + part.rows > step:
                    yield brought(waiting, self._device)
                    waiting.clear()
                waiting.append(part)
        yield brought(waiting, self._device)

    def _ran(self, number: int, rows: Frame) -> Frame:
        """What a stage makes of rows that are probed, where it makes them or in the tier."""
        self._run.frames[self._stages.before] = rows
        try:
            run_extra(self._run, number)
            return self._run.frames.pop(number)
        except OutOfMemoryError as error:
            traceback.clear_frames(error.__traceback__)
            refused = error.with_traceback(None)
        finally:
            self._run.frames.pop(self._stages.before, None)
        if give_way(self._behind, *self._coming):
            return self._ran(number, rows)
        if self._device.below is None or rows.rows < tuning.spilling.least_rows or self._probe.records_matches:
            raise refused
        half, both = rows.rows // 2, []
        for low, high in ((0, half), (half, rows.rows)):
            both.append(put_below(self._ran(number, rows_between(rows, low, high)), self._device, self._label))
        return joined_below(both, self._device)

    def _note_unmatched(self, built: Frame) -> None:
        if self._probe.records_matches:
            self._matches.append((built, np.zeros(built.rows, np.uint8)))

    def _add_pieces(self, probed: Frame, built: Frame) -> None:
        """Join rows with pieces of those of the table. A row goes on with its matches in each piece; once it has been through all
        of them it is known whether it has one."""
        kind, left, found = self._probe.kind, probed, 0
        if kind is JoinKind.MARK and self._probe.residual is not None:
            whole = brought([built], self._device)  # what compares as NULL in one piece would have to be known of all
            self._build(whole)  # likely an error
            self._join([probed], whole)
            return
        size = -(-built.rows // tuning.spilling.least_parts)
        for low in range(0, built.rows, size):
            check()
            piece = brought([rows_between(built, low, min(low + size, built.rows))], self._device)
            self._build(piece)
            self._report.parts += 1
            if kind is JoinKind.INNER:
                self._join([probed], piece)
                continue
            with_match = self._passed(self._stages.with_match, probed if kind in _EACH_MATCH else left)
            found += with_match.rows
            if kind is not JoinKind.ANTI and with_match.rows:
                self._join([with_match], piece)
            else:
                self._note_unmatched(piece)
            left = self._passed(self._stages.others, left)
        if kind is JoinKind.SINGLE and found + left.rows > probed.rows:
            raise CardinalityError(MORE_THAN_ONE)
        if kind not in _WITHOUT_MATCH:
            nothing = rows_between(built, 0, 0)
            self._build(nothing)
            self._join([left], nothing)

    def _passed(self, number: int, rows: Frame) -> Frame:
        """Those of some rows that a stage passes on, in the tier."""
        passed = [put_below(self._ran(number, part), self._device, self._label) for part in self._at_once([rows])]
        return joined_below(passed, self._device)

    def rows(self) -> Frame:
        """What was made of all rows."""
        self._run.joins.pop(self._table.stage, None)
        self._run.frames.pop(self._stages.rows, None)
        self._run.feedback.rows_in_parts[self._stages.middle] = self._made.rows
        return self._made.all()

    def matches(self) -> tuple[JoinIndex, Array]:
        """FULL: the rows of the table in the order in which they were joined, and which of them had a match (uint8)."""
        frame, tier = joined_below([f for f, _ in self._matches], self._device), tier_of(self._device)
        with self._device.into_files():
            matched = tier.empty_spillable(max(frame.rows, 1), np.uint8, self._label)
        at = 0
        for rows, flags in self._matches:
            matched[at : at + rows.rows] = flags
            at += rows.rows
        if tier is not self._device:
            matched = self._device.from_host(matched, self._label)
        return JoinIndex(JoinArrays(count=frame.rows), frame, self._table, frame.rows), matched
