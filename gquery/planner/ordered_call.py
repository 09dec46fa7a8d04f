"""What an aggregate that looks at rows in an order is, in a physical plan: part of `physical.OrderedGroups`."""

from __future__ import annotations

from gquery.expression.expr import Column, Expr, SortKey
from gquery.expression.frozen import frozen_open
from gquery.functions import declared
from gquery.functions.aggregate_record import Accumulated, AtEnd, AtFraction, JoinedText


@frozen_open
class OrderedCall:
    """An aggregate over the rows of a group in an order. Arguments are columns of the frame or constants; ``kept``, a BOOLEAN
    column, says which rows count, all where that is None. Without ``order`` rows come as they stand in the frame."""

    function: str
    args: tuple[Expr, ...]
    order: tuple[SortKey, ...]
    kept: Column | None

    @property
    def joins_texts(self) -> bool:
        """Whether it makes texts of those of its rows."""
        return isinstance(declared(self.function).by, JoinedText)

    @property
    def is_of_few_rows(self) -> bool:
        """Whether it is known from a row of each group, or two, that are found by their places."""
        return isinstance(declared(self.function).by, AtEnd | AtFraction | Accumulated)
