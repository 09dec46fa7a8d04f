"""What an aggregate that looks at rows in an order is, in a physical plan: part of `physical.OrderedGroups`."""

from __future__ import annotations

from gquery.expression.expr import Column, Expr, SortKey
from gquery.expression.frozen import frozen_open


@frozen_open
class OrderedCall:
    """An aggregate over the rows of a group in an order. Arguments are columns of the frame or constants; ``kept``, a BOOLEAN
    column, says which rows count, all where that is None. Without ``order`` rows come as they stand in the frame."""

    function: str
    args: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    kept: Column | None
