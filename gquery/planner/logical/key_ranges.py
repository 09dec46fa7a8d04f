"""How many pairs of rows an equality finds where the two keys have different ranges.

sales of five years            =>     of the calendar's 73,000 days, 1,800 have sales: those take part
calendar of two centuries
"""

from __future__ import annotations

from gquery import tuning
from gquery.expression.expr import Cast, Column, Expr
from gquery.expression.frozen import frozen
from gquery.expression.types import Bounds


@frozen
class KeySide:
    """One side of an equality: its ``rows``, those of the relation ``base`` that its key comes from, and the key's
    ``distinct`` values there."""

    rows: float
    base: float
    distinct: float

    def selectivity(self, part: float) -> float:
        """Of all rows, those whose key lies within a ``part`` of the key's range. Of a side whose keys hardly repeat, rows that a
        filter left are taken to lie there, as far as there is room: a filter usually asks for keys that the other side has."""
        if self.distinct * tuning.cardinality.rows_a_repeated_key <= self.base:
            return part
        return min(1.0, self.base * part / max(self.rows, 1.0))


def pair_selectivity(left: KeySide, right: KeySide, shares: tuple[float, float]) -> float:
    """The share of all pairs of rows that have equal keys; ``shares`` are the parts of the keys' ranges that both have. The
    side whose key domain is larger there is the one that the other refers to. Its base count is taken, not the filtered
    rows: a filter on it drops matches."""
    domain = max(left.distinct * shares[0], right.distinct * shares[1], 1.0)
    return left.selectivity(shares[0]) * right.selectivity(shares[1]) / domain


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
