"""Binding of frames: ROWS, RANGE and GROUPS with their bounds.

A bound of RANGE is a distance from the row's own ORDER BY key. Which distances a key has is what ``key - distance`` takes;
numbers are brought to one type, in which keys and distances are added and compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast as as_type

from sqlglot import exp

from gquery.errors import BindError
from gquery.expression.expr import Expr, Literal, SortKey
from gquery.expression.interval import Interval
from gquery.expression.types import BIGINT, Kind
from gquery.expression.windows import (
    TO_CURRENT,
    WHOLE_PARTITION,
    BoundKind,
    Exclusion,
    FrameBound,
    FrameUnit,
    WindowFrame,
)
from gquery.functions import call, cast, unified
from gquery.runtime.records import replace
from gquery.sql.parse import located

Bind = Callable[[exp.Expr], Expr]
Keys = tuple[SortKey, ...]
_CURRENT = FrameBound("current row")


def bound_frame(spec: exp.Expr | None, order: Keys, bind: Bind, sql: str) -> tuple[WindowFrame, Keys]:
    """The frame that a window's text says, and the keys of its order, of the type that bounds of RANGE are compared in."""
    if spec is None:
        return TO_CURRENT, order
    unit = as_type(FrameUnit, spec.args["kind"].lower())
    try:
        start = _bound(spec.args.get("start"), spec.args.get("start_side"), bind)
        end = _bound(spec.args.get("end"), spec.args.get("end_side"), bind)
        _check(start, end, unit)
        exclude = spec.args.get("exclude")
        frame = WindowFrame(unit, start, end, as_type(Exclusion, exclude.name.lower() if exclude else "no others"))
        if (start.kind, end.kind, frame.exclude) == ("unbounded preceding", "unbounded following", "no others"):
            return WHOLE_PARTITION, order
        if start.amount is None and end.amount is None:
            return frame, order
        return _range(frame, order) if unit == "range" else (_counted(frame), order)
    except BindError as error:
        raise located(error, sql, spec) from None


def without_peers(frame: WindowFrame) -> WindowFrame:
    """The frame of a window without ORDER BY, where all rows are peers."""
    starts = frame.start.kind in ("unbounded preceding", "current row")
    ends = frame.end.kind in ("unbounded following", "current row")
    is_whole = frame.unit != "rows" and starts and ends
    return WHOLE_PARTITION if is_whole and frame.exclude == "no others" else frame


def _bound(node: exp.Expr | str | None, side: str | None, bind: Bind) -> FrameBound:
    if node is None or node == "CURRENT ROW":
        return _CURRENT
    where = (side or "").lower()
    if isinstance(node, str):
        return FrameBound(as_type(BoundKind, f"unbounded {where}"))
    return FrameBound(as_type(BoundKind, where), bind(node))


_ORDER = ("unbounded preceding", "preceding", "current row", "following", "unbounded following")


def _check(start: FrameBound, end: FrameBound, unit: FrameUnit) -> None:
    if start.kind == "unbounded following":
        raise BindError("a frame cannot start at UNBOUNDED FOLLOWING")
    if end.kind == "unbounded preceding":
        raise BindError("a frame cannot end at UNBOUNDED PRECEDING")
    if _ORDER.index(start.kind) > _ORDER.index(end.kind):
        raise BindError(f"a frame that starts at {start.kind.upper()} cannot end at {end.kind.upper()}")
    for bound in (start, end):
        if isinstance(bound.amount, Literal):
            if bound.amount.is_null:
                raise BindError("a bound of a frame cannot be NULL")
            if unit != "rows" and _is_negative(bound.amount):  # of ROWS it lies on the other side
                raise BindError("a bound of a frame cannot be negative")


def _is_negative(amount: Literal) -> bool:
    value = amount.value
    if amount.dtype.kind is Kind.INTERVAL:
        parts = Interval.of(value)
        return min(parts.months, parts.days, parts.micros) < 0
    return amount.dtype.is_numeric and bool(value < 0)


def _counted(frame: WindowFrame) -> WindowFrame:
    start, end = (
        b if b.amount is None else FrameBound(b.kind, cast(b.amount, BIGINT)) for b in (frame.start, frame.end)
    )
    return replace(frame, start=start, end=end)


def _of_values(frame: WindowFrame, key: SortKey) -> tuple[WindowFrame, Keys]:
    """The frame with the keys that lie a distance away, in place of the distance; and the key in their type."""

    def value(b: FrameBound) -> FrameBound:
        if b.amount is None:
            return b
        is_less = (b.kind == "preceding") is not key.descending
        return FrameBound(b.kind, call("subtract" if is_less else "add", key.expr, b.amount), is_value=True)

    start, end = value(frame.start), value(frame.end)
    dtype = next(b.amount.dtype for b in (start, end) if b.amount is not None)
    return replace(frame, start=start, end=end), (SortKey(cast(key.expr, dtype), key.descending, key.nulls_first),)


def _range(frame: WindowFrame, order: Keys) -> tuple[WindowFrame, Keys]:
    """The frame with distances of the type of the only key, or an interval, and the key."""
    if len(order) != 1:
        raise BindError("a RANGE with a distance needs one ORDER BY key")
    key = order[0]
    amounts = [b.amount for b in (frame.start, frame.end) if b.amount is not None]
    moved = [call("subtract", key.expr, amount) for amount in amounts]
    if not key.expr.dtype.is_numeric:
        computed = any(a.dtype.kind is Kind.INTERVAL and not isinstance(a, Literal) for a in amounts)
        return _of_values(frame, key) if computed or key.expr.dtype.kind is Kind.INTERVAL else (frame, order)
    dtype = unified([key.expr, *moved, *amounts], "RANGE", comparing=True, ordering=True)[0].dtype
    start, end = (
        b if b.amount is None else FrameBound(b.kind, cast(b.amount, dtype)) for b in (frame.start, frame.end)
    )
    return replace(frame, start=start, end=end), (SortKey(cast(key.expr, dtype), key.descending, key.nulls_first),)
