"""A program for ranks while parts of it are divided among them: what is tried is taken where it makes the whole cheaper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gquery import tuning
from gquery.distributed.cuts import LoadedPlaces, cut_tables, located_by
from gquery.distributed.placement import Parting, place
from gquery.distributed.rank_cost import rank_cost
from gquery.distributed.stage_placement import Placement
from gquery.planner.physical import Pipeline, Program, Stage


class Division:
    """``program`` as it is now, and its ``placement`` on so many ranks. Its tables are loaded. ``cuts_frame``: see
    `placement.place`."""

    def __init__(self, program: Program, ranks: int, cuts_frame: Callable[[Pipeline], bool]) -> None:
        self._ranks, self._cuts_frame = ranks, cuts_frame
        limits = tuning.distribution
        self._cuts = cut_tables(program, LoadedPlaces(ranks), limits.replicated_bytes, limits.alone_bytes)
        self._parting = Parting(ranks, tuning.distribution.parted_bytes)
        self.program, self.placement = program, self._placed(program)

    def takes(self, stages: Sequence[Stage]) -> bool:
        """Have these stages in place of the program's, if they cost ranks so much less. Whether they do."""
        other = replace(self.program, stages=tuple(stages))
        then = self._placed(other)
        least = tuning.distribution.hashed_most * rank_cost(self.program, self.placement, self._ranks)
        is_cheaper = rank_cost(other, then, self._ranks) < least
        if is_cheaper:
            self.program, self.placement = other, then
        return is_cheaper

    def _placed(self, program: Program) -> Placement:
        return place(program, lambda read: located_by(self._cuts, read), self._cuts_frame, self._parting)
