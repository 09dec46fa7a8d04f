"""Lowering of window functions: a frame with all that they read, and a breaker that adds their values.

What a window is partitioned and ordered by, and what its calls read, becomes columns of the frame; constants stay constants. The
frame keeps its order, so that rows which a window's order does not tell apart come as they come. Windows over the same rows are
lowered together: they read one frame, and share sorts (`window_sorts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery.columns.opaque import Pending
from gquery.expression.expr import Column, Expr, Literal, SortKey, new_column
from gquery.expression.facts import ROW_ID_BITS
from gquery.expression.types import Bounds, type_bounds
from gquery.expression.windows import WindowCall, with_parts
from gquery.functions.aggregate_record import Count, JoinedText, Listed, Total
from gquery.functions.windows import accumulated_by, aggregate_by, gives_argument, numbers_rows
from gquery.kernels.values import ValueProperties, opaque_properties
from gquery.planner.logical.nodes import Plan, Window
from gquery.planner.logical.tree import expressions, used_columns
from gquery.planner.lower_stream import Stream, stored_of
from gquery.planner.lowering import Lowering
from gquery.planner.physical import Stored, WindowRows
from gquery.planner.window_sorts import Over, sees_ties, shared_sorts
from gquery.runtime.records import dataclass


def window(lowering: Lowering, plan: Window, wanted: frozenset[int]) -> Stream:
    """The stream of the rows of a plan with the values of window functions: its own, and those of windows below over the same
    rows."""
    over, source = _stack(plan, wanted)
    if not over:
        return lowering.plan(source, wanted)
    own = {c.id for w in over for c, _ in w.calls}
    below = (wanted - own).union(*(used_columns(e) for w in over for e in expressions(w)))
    stream = lowering.plan(source, below)
    made: dict[Expr, Column] = {}

    def column(e: Expr) -> Column:
        if isinstance(e, Column):
            return e
        return made.setdefault(e, new_column("key", e.dtype, e.nullable))

    windows = [_in_columns(w, wanted, column) for w in over]
    stream = lowering.compute(stream, tuple((c, e) for e, c in made.items()))
    read = {c.id: c for w in windows for c in w.read}
    passed = [stream.by_id[i] for i in sorted(below & wanted) if i in stream.by_id]
    is_text_made = any(isinstance(aggregate_by(call), JoinedText) for w in windows for _, call in w.calls)
    stream = lowering.materialized(stream, [*passed, *read.values()], "input of a window", plain=is_text_made)
    number, columns = _stages(lowering, windows, stream, frozenset(c.id for c in passed))
    rows = stream.rows if plan.first is None else min(stream.rows, max(lowering.estimator.rows(plan), 1.0))
    return lowering.read(number, tuple(s.column for s in columns), rows, stream.limit)


def _stack(plan: Window, wanted: frozenset[int]) -> tuple[list[Window], Plan]:
    """Windows that stand on each other and read the same rows, the lowest first, as far as they are wanted; and these rows."""
    over = [plan]
    while isinstance(below := over[-1].source, Window) and below.first is None and over[-1].first is None:
        made = {c.id for c, _ in below.calls}
        if any(used_columns(e) & made for window in over for e in expressions(window)):
            break
        over.append(below)
    return [w for w in reversed(over) if any(c.id in wanted for c, _ in w.calls)], over[-1].source


@dataclass(frozen=True)
class _InColumns:
    """A window over columns of a frame."""

    partition: tuple[Column, ...]
    order: tuple[SortKey, ...]
    calls: tuple[tuple[Column, WindowCall], ...]
    first: int | None

    @property
    def read(self) -> tuple[Column, ...]:
        """The columns that it reads."""
        exprs = (
            *self.partition,
            *(k.expr for k in self.order),
            *(e for _, call in self.calls for e in call.expressions),
        )
        return tuple([e for e in exprs if isinstance(e, Column)])

    @property
    def over(self) -> Over:
        """Its keys."""
        return Over(self.partition, self.order, any(sees_ties(call) for _, call in self.calls))


def _in_columns(plan: Window, wanted: frozenset[int], column: Callable[[Expr], Column]) -> _InColumns:
    partition = tuple(map(column, plan.partition))
    order = tuple(SortKey(column(k.expr), k.descending, k.nulls_first) for k in plan.order)
    calls = tuple([(c, _over_columns(call, column)) for c, call in plan.calls if c.id in wanted])
    return _InColumns(partition, order, calls, plan.first)


def _stages(
    lowering: Lowering, windows: Sequence[_InColumns], stream: Stream, passed: frozenset[int]
) -> tuple[int, tuple[Stored, ...]]:
    """A stage for each window, one after another; the last one's number, and its columns."""
    number, base, new = lowering.renamed_frame(stream), stored_of(stream), tuple[tuple[Stored, WindowCall], ...]()
    found, columns = tuple[Stored, ...](), tuple[Stored, ...]()
    sorts = shared_sorts([w.over for w in windows])
    for k, (n, sort) in enumerate(sorts):
        w, later = windows[n], sorts[k + 1 :]
        kept = passed.union(*((c.id for c in windows[m].read) for m, _ in later))
        kept |= {key.expr.id for _, keys in later for key in keys if isinstance(key.expr, Column)}
        new = tuple((_result(c, call, stream), call) for c, call in w.calls)
        columns = (*(s for s in base if s.column.id in kept), *found, *(s for s, _ in new))
        found = (*found, *(s for s, _ in new))
        names = ", ".join(dict.fromkeys(call.function for _, call in w.calls))
        follows = bool(sort) and k > 0 and sorts[k - 1][1] == sort
        label = f"{names} over a window, in the order of the one before" if follows else f"{names} over a window"
        number = lowering.stage(WindowRows(number, w.partition, w.order, new, columns, w.first, sort), label)
    return number, columns


def _over_columns(call: WindowCall, column: Callable[[Expr], Column]) -> WindowCall:
    """The call over columns; constants that say how many rows or how far stay."""
    ends = (call.frame.start.amount, call.frame.end.amount)
    amounts = (*call.args[not numbers_rows(call) :], *(e for e in ends if e is not None))
    stay = {id(e) for e in amounts if isinstance(e, Literal) and not e.is_null}
    return with_parts(call, iter([e if id(e) in stay else column(e) for e in call.expressions]))


def _result(c: Column, call: WindowCall, stream: Stream) -> Stored:
    if isinstance(aggregate_by(call), Listed):
        made = opaque_properties(c.dtype, Pending(), True)
        return Stored(c, made, made.physical_type)
    known = _properties(call, stream)
    return Stored(c, known, known.physical_type)


def _properties(call: WindowCall, stream: Stream) -> ValueProperties:
    """What is known of a call's values."""
    most = stream.limit if stream.limit is not None else 1 << ROW_ID_BITS
    accumulated = accumulated_by(call)
    if numbers_rows(call) or isinstance(accumulated, Count):
        return ValueProperties(call.dtype, Bounds(0, most), call.nullable)
    limits = type_bounds(call.dtype)
    if gives_argument(call.function):
        arg = stream.describe(call.args[0])
        return ValueProperties(call.dtype, arg.bounds, call.nullable, arg.dictionary)
    if (
        isinstance(accumulated, Total)
        and limits is not None
        and (bounds := stream.describe(call.args[0]).bounds) is not None
    ):
        low, high = min(0, bounds.low * most), max(0, bounds.high * most)
        limits = Bounds(max(low, limits.low), min(high, limits.high))
    return ValueProperties(call.dtype, limits, call.nullable)
