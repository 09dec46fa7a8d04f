"""What an aggregate that is made of others consists of: parts that the engine accumulates, and an expression over them.

The declaration of such an aggregate (`functions.moments`, for one) is a function from `Parts` and the call's arguments to the
result, an expression over columns that `Parts` hands out: one for each aggregate that it asks for. The rule
`expand_aggregates` puts the parts into the plan. So an aggregate of this kind is a few lines, and runs wherever sums do.

Some need to know something of the group before they look at its rows: a *pivot*, which is computed first. The sums of squares
about a number near the group's mean lose no digits, those about 0 do. Others group rows by value first (`regrouped`): what
they ask for then is over one row for each value of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery.expression.expr import AggregateCall, Call, Column, Expr, IsNull, Literal, Not, SortKey, new_column
from gquery.expression.traverse import conjunction
from gquery.expression.types import BIGINT, BOOLEAN, DOUBLE, DType

Calls = dict[AggregateCall, Column]


class Parts:
    """The aggregates that one call, or several of a group, are made of; equal ones are the same column. ``where`` and
    ``order`` are the FILTER and the ORDER BY of the call that is taken apart now. ``is_small`` tells whether a
    group has so few rows that each value is best looked at."""

    def __init__(self, is_small: Callable[[], bool] = bool) -> None:
        self.is_small = is_small
        self.where: Expr | None = None
        self.order: tuple[SortKey, ...] = ()
        self.calls: Calls = {}
        self.pivot_calls: Calls = {}
        self.pivots: dict[tuple[Expr, ...], Column] = {}
        self.values: tuple[tuple[Column, Expr], ...] = ()
        self.value_calls: Calls = {}

    # ---- over the rows of a group ------------------------------------------------------------------------------------

    def only(self, *there: Expr) -> None:
        """Looks at rows alone in which none of these is NULL."""
        tests = tuple(Not(IsNull(e)) for e in there if e.nullable)
        kept = () if self.where is None else (self.where,)
        self.where = conjunction((*kept, *tests)) if kept or tests else None

    def part(self, function: str, dtype: DType, *args: Expr, in_order: bool = False) -> Column:
        """The column of an aggregate over the rows, which it looks at in the call's order if it is told so."""
        order = self.order if in_order else ()
        return self.call(AggregateCall(function, args, dtype, False, self.where, order))

    def call(self, call: AggregateCall) -> Column:
        """The column of an aggregate over the rows."""
        return _column(self.calls, call)

    def count(self) -> Column:
        """How many rows there are."""
        return self.part("count", BIGINT)

    def central(self, *values: Expr) -> Expr | None:
        """The sum of the products of the distances of these DOUBLEs from their means, where that is computed at once; None where
        it is made of sums about a `centre`."""
        return None

    # ---- known of a group before its rows are looked at --------------------------------------------------------------

    def pivot(self, function: str, dtype: DType, *args: Expr) -> Column:
        """The column of an aggregate that is known while rows are looked at."""
        return _column(self.pivot_calls, AggregateCall(function, args, dtype, False, self.where))

    def centre(self, e: Expr) -> Column:
        """A DOUBLE near the mean of a DOUBLE; where all values are the same it is that value, and never beyond them."""
        low, mean, high = (self.pivot(f, DOUBLE, e) for f in ("min", "avg", "max"))
        key = (low, mean, high)
        if key not in self.pivots:
            self.pivots[key] = new_column("centre", DOUBLE, True)
        return self.pivots[key]

    def at_extreme(self, extreme: str, x: Expr, y: Expr) -> Expr:
        """The value of x in the first row where y is least or greatest ("min" or "max")."""
        best = self.pivot(extreme, y.dtype, y)
        kept = (self.where,) if self.where is not None else ()
        self.where = conjunction((*kept, Call("eq", (y, best), BOOLEAN, True)))
        return self.part("first", x.dtype, x, in_order=True)

    # ---- over the values of a group ----------------------------------------------------------------------------------

    def regrouped(self, values: Sequence[Expr], function: str, dtype: DType, *args: Expr) -> Column:
        """Groups the rows by ``values`` too: the column of an aggregate over the rows of each. What is asked for from now on is
        over these rows."""
        self.values = tuple((new_column("value", e.dtype, e.nullable), e) for e in values)
        found = _column(self.value_calls, AggregateCall(function, args, dtype, False, self.where))
        self.where = None
        return found

    def distinct_count(self, x: Expr) -> Expr:
        """How many different values there are among the rows."""
        n = self.regrouped((x,), "count", BIGINT)
        self.where = is_there("gt", n, Literal(0, BIGINT))
        return self.count()

    def approximate_count(self, x: Expr, registers: Callable[[Parts, Expr], Expr]) -> Expr:
        """About how many different values there are, by registers (`functions.approximate`)."""
        return registers(self, x)

    @property
    def is_plain(self) -> bool:
        """Whether all is over the rows of the group, looked at once."""
        return not self.pivot_calls and not self.values


def centred(key: tuple[Expr, ...]) -> Expr:
    """The expression that a centre stands for, over its (least, mean, greatest) value."""
    low, mean, high = key
    least = Call("least", (mean, high), DOUBLE, True)
    return Call("greatest", (least, low), DOUBLE, True)


def is_there(test: str, a: Expr, b: Expr) -> Call:
    """A comparison of two values."""
    return Call(test, (a, b), BOOLEAN, a.nullable or b.nullable)


def _column(calls: Calls, call: AggregateCall) -> Column:
    if call not in calls:
        calls[call] = new_column(call.function, call.dtype, call.nullable)
    return calls[call]
