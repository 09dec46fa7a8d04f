"""Which small tables are cut beside the large ones that they are joined with: those of the cuts that cost the ranks least."""

from __future__ import annotations

from collections.abc import Callable

from gquery.distributed.cuts import Cuts, located_by
from gquery.distributed.placement import place
from gquery.distributed.rank_cost import PS_A_US, rank_cost
from gquery.distributed.ranks import Ranks
from gquery.planner.physical import Program


def cheapest(program: Program, ranks: Ranks, cut: Callable[[int | None, bool], Cuts], joined_bytes: int) -> Cuts:
    """The cuts of a program's tables: ``cut(joined_bytes, by_groups)`` makes them, see `cuts.cut_tables`. Where no table is large
    enough to be cut, none is; else small ones are cut, too, where that costs each rank less."""
    few = cut(None, False)
    tried = [few]
    for by_groups in (False, True) if few else ():
        more = cut(joined_bytes, by_groups)
        if len(more) > len(tried[-1]):
            tried.append(more)
    return few if len(tried) == 1 else min(tried, key=lambda cuts: _cost(program, cuts, ranks))


def _cost(program: Program, cuts: Cuts, ranks: Ranks) -> float:
    """Picoseconds of a rank, with those that an exchange has to save."""
    placement = place(program, lambda read: located_by(cuts, read), ranks)
    exchanges = sum(len(p.gathers) + p.merges + p.agrees + (p.hashed is not None) for p in placement)
    return rank_cost(program, placement, ranks) + PS_A_US * ranks.limits.waited_us * exchanges
