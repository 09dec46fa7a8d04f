"""Which rank has which values of a key that is an integer: ranges between bounds, in rank order."""

from __future__ import annotations

from collections.abc import Sequence

from gquery.expression.frozen import frozen_single


class CutKeys:
    """The values at which rows are cut, ascending: rank r has those from ``bounds[r - 1]`` on that are below ``bounds[r]``.
    Rows that are cut at the same ones have the same object."""

    def __init__(self, bounds: Sequence[int] = ()) -> None:
        self.bounds = tuple(bounds)

    def slots(self, rank: int, base: int, size: int) -> tuple[int, int]:
        """The slots of a rank's values in an array of ``size`` slots, the first of which is that of the value ``base``.

        >>> CutKeys([10, 20]).slots(1, 5, 12), CutKeys([10, 20]).slots(2, 5, 12)
        ((5, 12), (12, 12))
        """
        low = self.bounds[rank - 1] - base if rank > 0 else 0
        high = self.bounds[rank] - base if rank < len(self.bounds) else size
        return min(max(low, 0), size), min(max(high, 0), size)

    def own(self, rank: int, base: int, width: int) -> tuple[int, int]:
        """The part of ``width`` values from ``base`` on that a rank may have: where it begins, and its width, 1 at least.

        >>> CutKeys([10, 20]).own(1, 5, 12), CutKeys([10, 20]).own(2, 5, 12)
        ((10, 7), (16, 1))
        """
        low, high = self.slots(rank, base, width)
        low = min(low, width - 1)
        return base + low, max(high - low, 1)


@frozen_single
class GroupParts:
    """Which rank gets which of the groups that ranks have parts of: by the value of key ``position`` in ``cut``; None: by the
    hash of all keys. ``by_slots``: where all ranks have arrays over their one key, they send the slots of the others' values."""

    position: int = 0
    cut: CutKeys | None = None
    by_slots: bool = False
