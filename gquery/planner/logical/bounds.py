"""Ranges of a join: what a condition says of one or two columns of the build side beside equalities.

    a.x BETWEEN b.low AND b.high        a probe takes the rows of b up to the last with b.low <= a.x, which lie sorted by b.low;
                                        of these a tree over b.high finds those with b.high >= a.x (*reach*)
    b.x BETWEEN a.low AND a.high        the rows of b from the first with b.x >= a.low to the last with b.x <= a.high
    a.x < b.x                           the rows from the first with b.x > a.x

Overlapping intervals (``a.low <= b.high AND b.low <= a.high``) are of the first kind. What else is asked is tested on each pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gquery.expression.expr import Call, Expr
from gquery.expression.frozen import frozen_open
from gquery.planner.logical.tree import used_columns

_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


@frozen_open
class Bound:
    """An end of a range: ``expr`` of the left side, itself in the range or not."""

    expr: Expr
    inclusive: bool


@frozen_open
class Comparison:
    """A term of a join's condition: the right side's ``build`` is at least or at most what the left side's bound says."""

    term: Expr
    build: Expr
    bound: Bound
    is_low: bool


@frozen_open
class RowBounds:
    """The right side's rows that match: those with ``by`` within bounds, and with ``reach_of`` of ``reach`` or more; and the
    terms of the condition that say so."""

    by: Expr
    low: tuple[Bound, ...]
    high: tuple[Bound, ...]
    reach_of: Expr | None
    reach: Bound | None
    terms: tuple[Expr, ...]

    @property
    def is_bounded(self) -> bool:
        """Whether the rows are bounded from both sides."""
        return bool(self.high) and (bool(self.low) or self.reach is not None)


def comparison(term: Expr, left: frozenset[int], right: frozenset[int]) -> Comparison | None:
    """A term as a comparison of the right side with the left one; None where it is no such thing."""
    if not (isinstance(term, Call) and term.function in _TURNED):
        return None
    a, b = term.args
    function = term.function
    if used_columns(a) <= left:
        a, b, function = b, a, _TURNED[function]
    used_a, used_b = used_columns(a), used_columns(b)
    if not (used_a and used_b and used_a <= right and used_b <= left):
        return None
    return Comparison(term, a, Bound(b, function in ("le", "ge")), function in ("gt", "ge"))


def comparisons(terms: Iterable[Expr], left: frozenset[int], right: frozenset[int]) -> list[Comparison]:
    """Those among the terms of a condition."""
    return [c for t in terms if (c := comparison(t, left, right)) is not None]


def chosen(found: Sequence[Comparison]) -> RowBounds | None:
    """The range that comparisons bound most: one column from both sides, else one from above and another from below, else one."""
    if not found:
        return None
    by: dict[Expr, list[Comparison]] = {}
    for c in found:
        by.setdefault(c.build, []).append(c)
    both = next((e for e, own in by.items() if any(c.is_low for c in own) and any(not c.is_low for c in own)), None)
    above = next((e for e, own in by.items() if any(not c.is_low for c in own)), None)
    column = both or above or found[0].build
    own = by[column]
    low = tuple(c.bound for c in own if c.is_low)
    high = tuple(c.bound for c in own if not c.is_low)
    reach = next((c for c in found if c.is_low and c.build != column), None) if high and not low else None
    taken = tuple(c.term for c in own) + (() if reach is None else (reach.term,))
    if reach is None:
        return RowBounds(column, low, high, None, None, taken)
    return RowBounds(column, low, high, reach.build, reach.bound, taken)
