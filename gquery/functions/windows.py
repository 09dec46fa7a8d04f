"""Window functions: argument and result types. How each is computed is `operators.window`'s.

`WINDOWS` declares those that are window functions alone; every aggregate of `AGGREGATES` is one too. Types are DuckDB's, save
that sums of integers are BIGINT as in groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from gquery.errors import BindError, NotSupportedError, did_you_mean
from gquery.expression.expr import AggregateCall, Column, Expr, SortKey
from gquery.expression.expr import Literal as Constant
from gquery.expression.types import BIGINT, DOUBLE, INTEGER, NULL, DType
from gquery.expression.windows import TO_CURRENT, WHOLE_PARTITION, WindowCall, WindowFrame
from gquery.functions.aggregate_parts import Parts
from gquery.functions.aggregate_record import Accumulate, Accumulated, AtEnd, By, JoinedText, Listed, MostFrequent
from gquery.functions.aggregates import AGGREGATES, ALIASES, aggregate, called, declaration, is_aggregate
from gquery.functions.casts import cast
from gquery.functions.opaque import refuse_opaque
from gquery.functions.registry import is_declared, no_match
from gquery.runtime.records import dataclass, replace

Resolved = tuple[Sequence[DType], DType]


@dataclass(frozen=True)
class WindowFunction:
    """A function that is only called over a window. ``resolve`` gives (argument types, result type), or None for arguments that
    it does not take. One that ``reads_frame`` looks at the rows of the frame, others at the whole partition. ``gives`` says what
    its values are: *argument*, one of those of its first argument, which it does not look at; *number*, one of the rows of the
    partition, from 1; *share*, of these rows. One that ``takes_order`` can have an ORDER BY of its own over parts of
    partitions."""

    name: str
    resolve: Callable[[Sequence[DType]], Resolved | None]
    signatures: tuple[str, ...]
    doc: str
    example: tuple[str, str]
    gives: Literal["argument", "number", "share"]
    reads_frame: bool = False
    takes_order: bool = True


def _rank(dtype: DType) -> Callable[[Sequence[DType]], Resolved | None]:
    return lambda types: None if types else ((), dtype)


def _tile(types: Sequence[DType]) -> Resolved | None:
    return ((BIGINT,), BIGINT) if len(types) == 1 else None


def _other_row(types: Sequence[DType]) -> Resolved | None:
    if not 1 <= len(types) <= 3:
        return None
    return (types[0], BIGINT, types[0])[: len(types)], types[0]


def _of_frame(types: Sequence[DType]) -> Resolved | None:
    return (types, types[0]) if len(types) == 1 else None


def _nth(types: Sequence[DType]) -> Resolved | None:
    return ((types[0], BIGINT), types[0]) if len(types) == 2 else None


WINDOWS: dict[str, WindowFunction] = {
    f.name: f
    for f in (
        WindowFunction("row_number", _rank(BIGINT), ("row_number() -> BIGINT",),
                       "The number of the row in its partition, from 1.", ("row_number() OVER (ORDER BY x DESC)", "3"),
                       "number"),
        WindowFunction("rank", _rank(BIGINT), ("rank() -> BIGINT",),
                       "The number of the first of the row's peers: equal rows share it, and the next number is left out.",
                       ("rank() OVER (ORDER BY x DESC)", "3"), "number"),
        WindowFunction("dense_rank", _rank(BIGINT), ("dense_rank() -> BIGINT",),
                       "How many different rows there are up to the row's peers.",
                       ("dense_rank() OVER (ORDER BY x DESC)", "3"), "number", takes_order=False),
        WindowFunction("percent_rank", _rank(DOUBLE), ("percent_rank() -> DOUBLE",),
                       "(rank() - 1) / (rows of the partition - 1); 0 for one row.",
                       ("percent_rank() OVER (ORDER BY x DESC)", "1.0"), "share"),
        WindowFunction("cume_dist", _rank(DOUBLE), ("cume_dist() -> DOUBLE",),
                       "The share of the partition's rows that come before the row or are its peers.",
                       ("cume_dist() OVER (ORDER BY x DESC)", "1.0"), "share"),
        WindowFunction("ntile", _tile, ("ntile(n) -> BIGINT",),
                       "The part of the row if the partition is cut into n parts, as equal as can be, from 1.",
                       ("ntile(2) OVER (ORDER BY x DESC)", "2"), "number", takes_order=False),
        WindowFunction("lag", _other_row, ("lag(any)", "lag(any, offset)", "lag(any, offset, default)"),
                       "The value offset rows before (1); the default (NULL) where there is no such row in the partition.",
                       ("lag(x) OVER (ORDER BY x DESC)", "2"), "argument"),
        WindowFunction("lead", _other_row, ("lead(any)", "lead(any, offset)", "lead(any, offset, default)"),
                       "The value offset rows behind (1); the default (NULL) where there is no such row in the partition.",
                       ("lead(x, 1, 0) OVER (ORDER BY x DESC)", "0"), "argument"),
        WindowFunction("first_value", _of_frame, ("first_value(any)",), "The value of the frame's first row.",
                       ("first_value(x) OVER (ORDER BY x DESC)", "3"), "argument", True),
        WindowFunction("last_value", _of_frame, ("last_value(any)",), "The value of the frame's last row.",
                       ("last_value(x) OVER (ORDER BY x DESC)", "1"), "argument", True),
        WindowFunction("nth_value", _nth, ("nth_value(any, n)",),
                       "The value of the frame's row number n, from 1; NULL where there is none.",
                       ("nth_value(x, 2) OVER (ORDER BY x DESC)", "2"), "argument", True),
    )
}  # fmt: skip
WINDOW_ALIASES = {"first": "first_value", "last": "last_value"}


def is_window_function(name: str) -> bool:
    """Whether a name can stand before OVER."""
    return name in WINDOWS or name in WINDOW_ALIASES or is_aggregate(name)


def is_of_no_type(name: str, args: Sequence[Expr]) -> bool:
    """Whether the type of a call is that of an argument that is an untyped NULL."""
    if name in WINDOWS:
        return bool(args) and args[0].dtype == NULL and WINDOWS[name].gives == "argument"
    return called(name, len(args)).is_of_no_type(args)


@dataclass(frozen=True)
class Modifiers:
    """What stands beside the arguments of a call: DISTINCT, FILTER, ORDER BY; ``ignore_nulls`` is None where neither IGNORE NULLS
    nor RESPECT NULLS is said."""

    distinct: bool = False
    where: Expr | None = None
    order: tuple[SortKey, ...] = ()
    ignore_nulls: bool | None = None


PLAIN = Modifiers()


def window_call(
    name: str, args: Sequence[Expr], frame: WindowFrame = TO_CURRENT, said: Modifiers = PLAIN
) -> WindowCall:
    """A typed call of a window function or an aggregate over a window; BindError where its arguments do not fit."""
    function = WINDOWS.get(WINDOW_ALIASES.get(name, name))
    if function is None:
        if not is_aggregate(name):
            raise _unknown(name)
        if said.ignore_nulls is not None:
            raise BindError(f"{name} is an aggregate: it takes neither IGNORE NULLS nor RESPECT NULLS")
        made = aggregate(name, args, said.distinct, said.where, said.order)
        made = made if frame == WHOLE_PARTITION else only_part(made)
        call = WindowCall(made.function, made.args, made.dtype, True, frame, made.filter, made.distinct, made.order)
        return _checked(call)
    if said.where is not None or said.distinct:
        raise BindError(f"{name} is no aggregate: it takes no {'DISTINCT' if said.distinct else 'FILTER'}")
    args = [cast(a, INTEGER) if n != 1 and a.dtype == NULL else a for n, a in enumerate(args)]
    refuse_opaque(args if function.gives != "argument" else (), name)
    resolved = function.resolve([a.dtype for a in args])
    if resolved is None:
        raise no_match(name, args, function.signatures)
    types, dtype = resolved
    casted = tuple(cast(a, t) for a, t in zip(args, types, strict=True))
    ignores = bool(said.ignore_nulls) and function.gives == "argument"
    own = said.order if frame != WHOLE_PARTITION else ()  # of a whole partition it is the order of the window
    if own and not function.takes_order:
        raise NotSupportedError(f"not supported: ORDER BY inside {name} over a part of a partition")
    frame = frame if function.reads_frame or own else TO_CURRENT
    return with_nullability(WindowCall(function.name, casted, dtype, True, frame, order=own, ignore_nulls=ignores))


def over_parts(
    name: str, args: Sequence[Expr], frame: WindowFrame, said: Modifiers
) -> tuple[Expr, dict[WindowCall, Column]] | None:
    """An aggregate over parts of partitions that is made of others: an expression over columns, and the calls that these stand
    for. None for any other call."""
    if frame == WHOLE_PARTITION or not is_aggregate(name) or name in WINDOW_ALIASES or said.ignore_nulls is not None:
        return None
    made = only_part(aggregate(name, args, said.distinct, said.where, said.order))
    parts = declaration(made).parts
    if parts is None:
        return None
    from gquery.functions.frame_parts import over_frame

    result, calls = over_frame(made, parts, name)
    found = {}
    for a, column in calls.items():
        call = WindowCall(a.function, a.args, a.dtype, True, frame, a.filter, a.distinct, a.order)
        found[with_nullability(call)] = column
    return result, found


def only_part(made: AggregateCall) -> AggregateCall:
    """The aggregate that another one is, if it is no more than that: a median is a quantile. One of different pairs is not
    that of different values of one of them."""
    parts = declaration(made).parts
    if parts is None or (made.distinct and len(made.args) > 1):
        return made
    found = Parts()
    found.where = made.filter
    result = parts(found, *made.args)
    is_one = found.is_plain and list(found.calls.values()) == [result]
    return replace(next(iter(found.calls)), distinct=made.distinct) if is_one else made


def _checked(call: WindowCall) -> WindowCall:
    if call.frame == WHOLE_PARTITION or not needs_groups(call):
        return with_nullability(call)
    by = AGGREGATES[call.function].by
    begins, ends = call.frame.start.kind == "unbounded preceding", call.frame.end.kind == "unbounded following"
    within = call.frame.exclude != "no others" or not (begins or ends)
    problem = (
        "DISTINCT" if call.distinct and (within or isinstance(by, Listed))
        else "ORDER BY" if call.order and isinstance(by, Listed | JoinedText | MostFrequent)
        else None
    )  # fmt: skip
    if problem is not None:
        raise NotSupportedError(f"not supported: {problem} inside {call.function} over a part of a partition")
    return with_nullability(call)


def is_group_aggregate(call: WindowCall) -> bool:
    """Whether a call gives of all rows of a partition what an aggregate gives of a group."""
    function = AGGREGATES.get(call.function)
    return function is not None and (bool(call.order) or not isinstance(function.by, AtEnd))


def needs_groups(call: WindowCall) -> bool:
    """Whether a call is computed as an aggregate of groups alone."""
    function = AGGREGATES.get(call.function)
    return function is not None and not isinstance(function.by, Accumulated | AtEnd)


def follows_order(call: WindowCall) -> bool:
    """Whether the order of a window decides what an aggregate gives of a whole partition."""
    function = AGGREGATES.get(call.function)
    if function is None or call.order:
        return False
    return function.takes_order and not (function.orders_itself or isinstance(function.by, MostFrequent))


def aggregate_by(call: WindowCall) -> By | None:
    """What computes an aggregate; None for other functions."""
    function = AGGREGATES.get(call.function)
    return None if function is None else function.by


def accumulated_by(call: WindowCall) -> Accumulate | None:
    """The accumulator that a call gives, if it is an aggregate that is no more."""
    function = AGGREGATES.get(call.function)
    return None if function is None else function.only


def gives_argument(name: str) -> bool:
    """Whether the values of a window function or an aggregate are among those of its first argument."""
    function = WINDOWS.get(name)
    if function is not None:
        return function.gives == "argument"
    return name in AGGREGATES and AGGREGATES[name].gives_argument


def numbers_rows(call: WindowCall) -> bool:
    """Whether a call's values are numbers of rows of the partition, from 1."""
    return call.function in WINDOWS and WINDOWS[call.function].gives == "number"


def with_nullability(call: WindowCall) -> WindowCall:
    """The call saying that NULL is possible exactly where that follows from its arguments and its frame."""
    nullable = _may_be_null(call)
    return call if call.nullable == nullable else replace(call, nullable=nullable)


def _may_be_null(call: WindowCall) -> bool:
    function, aggregate = WINDOWS.get(call.function), AGGREGATES.get(call.function)
    if function is not None:
        if function.gives != "argument":
            return any(a.nullable for a in call.args)
        is_of_row = function.reads_frame and len(call.args) == 1
        return not is_of_row or call.filter is not None or call.args[0].nullable or not _has_a_row(call.frame)
    if aggregate is None or not isinstance(aggregate.by, Accumulated | AtEnd):
        return True
    if aggregate.of_nothing is not None:
        return False
    return call.filter is not None or any(a.nullable for a in call.args) or not _has_a_row(call.frame)


def _has_a_row(frame: WindowFrame) -> bool:
    """Whether the row itself is in its frame, or a peer of it, wherever it stands."""
    is_around = "following" not in frame.start.kind and "preceding" not in frame.end.kind
    if not is_around or frame.exclude not in ("no others", "ties"):
        return False
    return frame.unit != "rows" or all(b.amount is None or _is_positive(b.amount) for b in (frame.start, frame.end))


def _is_positive(amount: Expr) -> bool:
    """Whether an amount of ROWS cannot lie on the other side of the row: it may be negative where it is computed."""
    return isinstance(amount, Constant) and not amount.is_null and amount.value >= 0


def _unknown(name: str) -> BindError:
    if is_declared(name):
        return BindError(f"{name} is no aggregate and no window function: it takes no OVER")
    return BindError(f"there is no window function {name!r}.{did_you_mean(name, (*WINDOWS, *AGGREGATES, *ALIASES))}")
