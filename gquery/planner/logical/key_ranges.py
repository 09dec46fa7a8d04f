"""How many pairs of rows an equality finds where the two keys have different ranges.

sales of five years            =>     of the calendar's 73,000 days, 1,800 have sales: those take part
calendar of two centuries
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery import tuning
from gquery.expression.expr import Cast, Column, Expr
from gquery.expression.frozen import frozen
from gquery.expression.types import Bounds

_WHOLE = (1.0, 1.0)


@frozen
class KeyPair:
    """What is known of an equality whatever rows of its sides are left, so the same for each pair of subsets that `join_order`
    joins by it: of each key the ``distinct`` values and the rows ``bases`` of the relation that it comes from (0: not known),
    and the ``shares`` of the keys' ranges that both have. ``reduced`` is the share of each side's rows that a SEMI join with
    the other's keys has left before."""

    distinct: tuple[float, float]
    bases: tuple[float, float]
    shares: tuple[float, float]
    reduced: tuple[float, float] = _WHOLE

    def selectivity(self, left_rows: float, right_rows: float) -> float:
        """The share of all pairs of rows that have equal keys. The side whose key domain is larger in the common range is the one
        that the other refers to. Its base count is taken, not the filtered rows: a filter on it drops matches."""
        left_base, right_base = self.bases  # `max` and `min` are written out here: this is asked for each pair of subsets
        left_base = left_rows if left_rows > left_base else left_base
        right_base = right_rows if right_rows > right_base else right_base
        left, right = self.distinct
        left = left if left < left_base else left_base
        right = right if right < right_base else right_base
        left_common, right_common = self.shares
        left_domain, right_domain = left * left_common, right * right_common
        domain = left_domain if left_domain > right_domain else right_domain
        found = _kept(left_rows, left_base, left, left_common) * _kept(right_rows, right_base, right, right_common)
        found /= domain if domain > 1.0 else 1.0
        for left, others in zip(self.reduced, (right_rows, left_rows), strict=True) if self.reduced != _WHOLE else ():
            if left < 1.0:  # each of its rows finds one, if the other side's filter is the same
                found = max(found, min(found / left, 1 / max(others, 1.0)))
        return found


def pairs_selectivity(pairs: Sequence[KeyPair], left_rows: float, right_rows: float) -> float:
    """The share of the cross product that all of some equalities keep."""
    if not pairs:
        return 1.0
    if len(pairs) == 1:
        return pairs[0].selectivity(left_rows, right_rows)
    left = right = 1.0
    for p in pairs:
        left, right = left * p.distinct[0], right * p.distinct[1]
        left_rows, right_rows = max(left_rows, p.bases[0]), max(right_rows, p.bases[1])
    # columns of a composite key depend on each other: the product of their counts says too much on the larger side
    return 1 / max(min(left, left_rows, right, right_rows), 1.0)


def _kept(rows: float, base: float, distinct: float, part: float) -> float:
    """Of all rows of a side, those whose key lies within a ``part`` of the key's range. Of a side whose keys hardly repeat, rows
    that a filter left are taken to lie there, as far as there is room: a filter usually asks for keys that the other side has."""
    if distinct * tuning.cardinality.rows_a_repeated_key <= base:
        return part
    kept = base * part / (rows if rows > 1.0 else 1.0)
    return kept if kept < 1.0 else 1.0


def common_shares(left: Bounds | None, right: Bounds | None) -> tuple[float, float]:
    """The parts of two ranges that they have in common; all of them where one is not known.

    >>> common_shares(Bounds(0, 99), Bounds(90, 109))
    (0.1, 0.5)
    """
    if left is None or right is None:
        return 1.0, 1.0
    common = max(0, min(left.high, right.high) - max(left.low, right.low) + 1)
    return common / max(left.width, 1), common / max(right.width, 1)


def integer_columns(a: Expr, b: Expr) -> tuple[Column, Column] | None:
    """Two columns that are compared as the values they hold: of one type, or integers with casts between them."""
    while isinstance(a, Cast) and a.dtype.is_integer and a.arg.dtype.is_integer:
        a = a.arg
    while isinstance(b, Cast) and b.dtype.is_integer and b.arg.dtype.is_integer:
        b = b.arg
    if not (isinstance(a, Column) and isinstance(b, Column)) or a.dtype.is_string:
        return None
    return (a, b) if a.dtype == b.dtype or (a.dtype.is_integer and b.dtype.is_integer) else None
