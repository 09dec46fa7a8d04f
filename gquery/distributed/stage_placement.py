"""How ranks run one stage, and what EXPLAIN says of it."""

from __future__ import annotations

from typing import Literal

from gquery.expression.frozen import frozen_open
from gquery.operators.cut_keys import CutKeys, GroupParts
from gquery.runtime.amounts import format_bytes

Rows = Literal["part", "whole"]


@frozen_open
class HashedRows:
    """The rows of an earlier ``stage`` that ranks exchange by the hash of keys of these names: about so many ``bytes`` in all."""

    stage: int
    keys: tuple[str, ...]
    bytes: int


@frozen_open
class StagePlacement:
    """How the ranks run one stage: the rows of its source that each one ``reads``, those that it ``makes``, whether states are
    merged at its end, and the stages whose frames are gathered before it."""

    reads: Rows
    makes: Rows
    merges: bool = False
    gathers: tuple[int, ...] = ()
    own_keys: tuple[tuple[int, CutKeys], ...] = ()  # the keys of the sink, by position, of which each rank has values of its own
    met_keys: tuple[tuple[int, int], ...] = ()  # of tables that are probed, by stage and position: `kept_together.met_keys`
    parts: GroupParts | None = None  # of the merged groups: each rank has a part of them
    state_bytes: int = 0  # of groups that are merged, on each rank, about
    hashed: HashedRows | None = None  # what it reads, where ranks exchange that
    agrees: bool = False  # all ranks take what the first one made (`distributed.agreement`)
    ranges: CutKeys | None = None  # of a merged join table over one key: which of its values each rank's rows have
    alone: bool = False  # the first rank alone runs it, as no other needs what it makes

    def text(self, ranks: int) -> str:
        """What EXPLAIN says of it.

        >>> StagePlacement("part", "whole", merges=True).text(2)
        'each of 2 ranks: a part of the rows, states merged'
        """
        rows = "a part of the rows" if self.reads == "part" and not self.alone else "all rows"
        if self.hashed is not None:
            received = format_bytes(self.hashed.bytes * (ranks - 1) // ranks**2)
            by = f"by the hash of {', '.join(self.hashed.keys)}"
            rows = f"its part of the rows of stage {self.hashed.stage} {by}, about {received}"
        gathers = [f"stage {n} gathered first" for n in self.gathers]
        merges = [self._merges(ranks)] if self.merges else []
        agrees = ["what the first makes is taken by all"] if self.agrees else []
        who = f"the first of {ranks} ranks" if self.alone else f"each of {ranks} ranks"
        return f"{who}: " + ", ".join([*gathers, rows, *merges, *agrees])

    def _merges(self, ranks: int) -> str:
        if self.ranges is not None:
            return "states merged by the range of keys"
        if self.parts is None:
            received = f", about {format_bytes((ranks - 1) * self.state_bytes)}" if self.state_bytes else ""
            return f"states merged{received}"
        by = "hash" if self.parts.cut is None else "range"
        return f"its part of the groups merged by the {by} of keys, about {format_bytes(self.state_bytes)}"


Placement = tuple[StagePlacement, ...]
