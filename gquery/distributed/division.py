"""A program for ranks while parts of it are divided among them: what is tried is taken where it makes the whole cheaper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gquery.distributed.cuts import Cuts, located_by
from gquery.distributed.placement import place
from gquery.distributed.rank_cost import rank_cost
from gquery.distributed.ranks import Ranks
from gquery.distributed.stage_placement import Placement
from gquery.planner.physical import Program, Stage


class Division:
    """``program`` as it is now, and its ``placement`` on ranks that have its tables cut so."""

    def __init__(self, program: Program, ranks: Ranks, cuts: Cuts) -> None:
        self._ranks, self._cuts = ranks, cuts
        self.program, self.placement = program, self._placed(program)

    def takes(self, stages: Sequence[Stage]) -> bool:
        """Have these stages in place of the program's, if they cost ranks so much less. Whether they do."""
        other = replace(self.program, stages=tuple(stages))
        then = self._placed(other)
        least = self._ranks.limits.hashed_most * rank_cost(self.program, self.placement, self._ranks)
        is_cheaper = rank_cost(other, then, self._ranks) < least
        if is_cheaper:
            self.program, self.placement = other, then
        return is_cheaper

    def _placed(self, program: Program) -> Placement:
        return place(program, lambda read: located_by(self._cuts, read), self._ranks)
