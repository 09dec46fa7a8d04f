"""Window functions: what a call over a window says, in a logical plan and in a physical one.

The binder makes calls, rules look into them, `planner.lower_window` puts columns of a frame in place of their expressions, and
`operators.window` computes them. A call's partition and order are those of the node that holds it, as all calls of a node
share them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Literal

from gquery.expression.expr import Expr, SortKey
from gquery.expression.frozen import frozen
from gquery.expression.types import DType
from gquery.runtime.records import replace

FrameUnit = Literal["rows", "range", "groups"]
BoundKind = Literal["unbounded preceding", "preceding", "current row", "following", "unbounded following"]
Exclusion = Literal["no others", "current row", "group", "ties"]


@frozen
class FrameBound:
    """One end of a frame, which it includes. ``amount`` is that of *preceding* and *following*: so many rows or groups of
    peers (BIGINT), or, of RANGE, a distance in the value of the only ORDER BY key: of that key's type, an INTERVAL constant for
    dates and times, or days for dates. It may differ from row to row, and NULL is an error; a negative one lies on the other side
    of the row with ROWS, and is an error with others. ``is_value``: in place of the distance it is the key that lies so far away,
    for keys to which no distance is added while they are searched. *current row* of RANGE and GROUPS is the first or last of
    the row's peers."""

    kind: BoundKind
    amount: Expr | None = None
    is_value: bool = False


@frozen
class WindowFrame:
    """The rows of its partition that an aggregate or a value function looks at. RANGE without ORDER BY: all rows are peers."""

    unit: FrameUnit
    start: FrameBound
    end: FrameBound
    exclude: Exclusion = "no others"


TO_CURRENT = WindowFrame("range", FrameBound("unbounded preceding"), FrameBound("current row"))
"""The frame of a call that names none."""
WHOLE_PARTITION = WindowFrame("range", FrameBound("unbounded preceding"), FrameBound("unbounded following"))


@frozen
class WindowCall:
    """A window function or an aggregate, for each row of the rows of its frame; ranks, ``lag`` and ``lead`` look at the whole
    partition. ``order`` is an ORDER BY inside the call, ``filter`` keeps rows of the frame where it is TRUE, ``ignore_nulls``
    leaves rows out whose first argument is NULL. Over a physical plan all expressions are columns or constants."""

    function: str
    args: tuple[Expr, ...]
    dtype: DType
    nullable: bool
    frame: WindowFrame = TO_CURRENT
    filter: Expr | None = None
    distinct: bool = False
    order: tuple[SortKey, ...] = ()
    ignore_nulls: bool = False

    @property
    def expressions(self) -> Iterator[Expr]:
        """What a call reads, in a fixed order: arguments, filter, its own order, amounts of the frame."""
        yield from self.args
        if self.filter is not None:
            yield self.filter
        yield from (k.expr for k in self.order)
        yield from (b.amount for b in (self.frame.start, self.frame.end) if b.amount is not None)


def with_parts(call: WindowCall, parts: Iterator[Expr]) -> WindowCall:
    """The call with other expressions, in the order of `WindowCall.expressions`."""
    args = tuple([next(parts) for _ in call.args])
    kept = None if call.filter is None else next(parts)
    order = tuple([SortKey(next(parts), k.descending, k.nulls_first) for k in call.order])
    start, end = (b if b.amount is None else replace(b, amount=next(parts)) for b in (call.frame.start, call.frame.end))
    frame = replace(call.frame, start=start, end=end)
    return replace(call, args=args, filter=kept, order=order, frame=frame)


def shape(call: WindowCall) -> Hashable:
    """All of a call but its expressions: two calls with one shape and equal expressions compute the same."""
    start, end = call.frame.start, call.frame.end
    frame = (call.frame.unit, start.kind, end.kind, start.is_value, end.is_value, call.frame.exclude)
    order = tuple((k.descending, k.nulls_first) for k in call.order)
    return (
        call.function,
        len(call.args),
        call.dtype,
        frame,
        call.filter is None,
        call.distinct,
        order,
        call.ignore_nulls,
    )
