"""Aggregates that are made of others, over frames: their parts are window functions themselves.

    stddev(x) OVER w   =>   sqrt(central_moment(x, x) OVER w / (count(*) OVER w - 1))     with FILTER (WHERE x IS NOT NULL)

What a group is known to be before its rows are looked at, a frame is not. So where sums would be taken about a number near the
mean of a group, a frame has moments about its own mean (`operators.window.moment_trees`), and the row with the least value is the
first one in that order. What groups its rows by value first has no way here, but for counting the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery.errors import NotSupportedError
from gquery.expression.expr import AggregateCall, Column, Expr, SortKey
from gquery.expression.types import BIGINT, DOUBLE, INTERVAL, DType
from gquery.functions import intervals
from gquery.functions.aggregate_parts import Parts
from gquery.functions.certain import guarded


class NoFrameError(Exception):
    """An aggregate that is not computed over parts of partitions."""


class FrameParts(Parts):
    """The parts of one call over a frame."""

    def central(self, *values: Expr) -> Expr:
        """See `Parts`."""
        is_one = all(e == values[0] for e in values)
        return self.part("central_moment" if is_one else "central_product", DOUBLE, *values)

    def pivot(self, function: str, dtype: DType, *args: Expr) -> Column:
        """See `Parts`."""
        raise NoFrameError

    def regrouped(self, values: Sequence[Expr], function: str, dtype: DType, *args: Expr) -> Column:
        """See `Parts`."""
        raise NoFrameError

    def at_extreme(self, extreme: str, x: Expr, y: Expr) -> Expr:
        """See `Parts`."""
        keys = intervals.parts(y) if y.dtype == INTERVAL else (y,)  # not as they are compared elsewhere
        self.order = (*(SortKey(k, extreme == "max", False) for k in keys), *self.order)
        return self.part("first_value", x.dtype, x, in_order=True)

    def distinct_count(self, x: Expr) -> Expr:
        """See `Parts`."""
        return self.call(AggregateCall("count", (x,), BIGINT, True, self.where))

    def approximate_count(self, x: Expr, registers: Callable[[Parts, Expr], Expr]) -> Expr:
        """See `Parts`; exact, as values come and go while a frame moves."""
        return self.distinct_count(x)


def over_frame(made: AggregateCall, parts: Callable[..., Expr], name: str) -> tuple[Expr, dict[AggregateCall, Column]]:
    """A call as an expression over columns, and the calls over the same frame that these stand for. NotSupportedError where it is
    not computed so."""
    found = FrameParts()
    found.where, found.order = made.filter, made.order
    if made.distinct:
        raise NotSupportedError(f"not supported: {name}(DISTINCT ...) over a part of a partition")
    try:
        result = parts(found, *made.args)
    except NoFrameError:
        raise NotSupportedError(f"not supported: {name} over a part of a partition") from None
    return result, {guarded(call): column for call, column in found.calls.items()}
