"""What is grouped, sorted or compared by intervals, lists and their like is so by their keys.

    Aggregate by x: min(y)              Aggregate by _interval_key(x): any_value(x), arg_min(y, _interval_key(y))
      Scan t (x INTERVAL, y INTERVAL)  =>   Scan t

    Sort x                              Sort _interval_key(x)
      Scan t                           =>   Scan t

'1 month' and '30 days' are equal, and different values: a group shows the first of its own. So nothing below the binder compares
the values themselves, but where they are to be the very same (`decorrelate`). Comparisons are bound over keys in the first place.
Functions that make intervals of an order (the least, the one at a fraction) find the row by the key. The key of a list is
`_nested_key` (`functions.comparison_keys`), as no kernel looks into one.
"""

from __future__ import annotations

from collections.abc import Sequence

from gquery.expression.expr import AggregateCall, Column, Expr, IsNull, Not, SortKey, new_column
from gquery.expression.traverse import conjunction
from gquery.expression.windows import WHOLE_PARTITION, FrameBound, WindowCall, WindowFrame
from gquery.functions import AGGREGATES, aggregate, declaration, declared
from gquery.functions.aggregate_record import AtFraction, Count, Derived, Extreme, MostFrequent
from gquery.functions.certain import guarded
from gquery.functions.comparison_keys import comparable, has_key
from gquery.functions.windows import only_part
from gquery.planner.logical.everywhere import transform_everywhere
from gquery.planner.logical.nodes import Aggregate, Plan, Project, Sort, Window
from gquery.runtime.records import replace


def comparison_keys(plan: Plan) -> Plan | None:
    """No node groups or sorts by what has a key any more."""
    new = transform_everywhere(plan, _node)
    return None if new is plan else new


def _node(p: Plan) -> Plan:
    match p:
        case Aggregate() if any(has_key(e.dtype) for e in _read(p)):
            return _aggregate(p)
        case Sort(keys=keys) if any(has_key(k.expr.dtype) for k in keys):
            return replace(p, keys=_sort_keys(keys))
        case Window() if any(has_key(e.dtype) for e in _read(p)):
            partition = tuple(comparable(e) for e in p.partition)
            calls = tuple((c, _window_call(call)) for c, call in p.calls)
            return Window(p.source, partition, _sort_keys(p.order), calls)
        case _:
            return p


def _read(p: Aggregate | Window) -> list[Expr]:
    if isinstance(p, Aggregate):
        return [e for _, e in p.keys] + [e for _, a in p.aggregates for e in a.expressions]
    return [*p.partition, *(k.expr for k in p.order), *(e for _, call in p.calls for e in call.expressions)]


def _sort_keys(keys: Sequence[SortKey]) -> tuple[SortKey, ...]:
    return tuple(SortKey(comparable(k.expr), k.descending, k.nulls_first) for k in keys)


def _aggregate(p: Aggregate) -> Plan:
    """Keys that stand for others are columns besides: what is above sees those that were there, by their places as well (a
    subquery's value is the first column)."""
    keys: list[tuple[Column, Expr]] = []
    shown: list[tuple[Column, AggregateCall]] = []
    for c, e in p.keys:
        if not has_key(e.dtype):
            keys.append((c, e))
            continue
        key = comparable(e)
        keys.append((new_column(c.name, key.dtype, e.nullable), key))
        shown.append((c, aggregate("any_value", (e,))))
    calls = tuple((c, _call(a)) for c, a in p.aggregates)
    made = Aggregate(p.source, tuple(keys), (*shown, *calls))
    return Project(made, tuple((c, c) for c in p.columns)) if shown else made


def _call(a: AggregateCall) -> AggregateCall:
    """An aggregate that looks at keys where it compares."""
    a = replace(a, order=_sort_keys(a.order))
    if not any(has_key(e.dtype) for e in a.args):
        return a
    a = only_part(a)
    value, by = a.args[0], declaration(a).by
    if isinstance(by, AtFraction):
        return replace(a, order=(SortKey(comparable(value)),))
    function = _by_row(a.function) if has_key(value.dtype) else a.function
    return replace(a, function=function, args=_arguments(a.function, a.args, a.distinct))


def _by_row(function: str) -> str:
    """The aggregate that finds the value of the row with the least or greatest key, in place of one that compares values."""
    only = declared(function).only
    return f"arg_{only.op}" if isinstance(only, Extreme) else function


def _arguments(function: str, args: tuple[Expr, ...], distinct: bool) -> tuple[Expr, ...]:
    by, value = declared(function).by, args[0]
    if isinstance(by, MostFrequent) or _by_row(function) != function:
        return value, comparable(value)
    if distinct and isinstance(declared(function).only, Count):
        return tuple(comparable(e) for e in args)
    if isinstance(by, Derived) and by.compares is not None:  # intervals are looked at as they lie, as in DuckDB
        compared = tuple(comparable(e) if e.dtype.is_nested or by.equates else e for e in args[by.compares :])
        return *args[: by.compares], *compared
    return args


def _frame(frame: WindowFrame) -> WindowFrame:
    """A frame whose bounds are keys where they were intervals."""

    def bound(b: FrameBound) -> FrameBound:
        return replace(b, amount=comparable(b.amount)) if b.is_value and b.amount is not None else b

    return replace(frame, start=bound(frame.start), end=bound(frame.end))


def _first(call: WindowCall) -> WindowCall:
    """The least or greatest value of parts of partitions: the first one in that order that is there."""
    (value,) = call.args
    there: tuple[Expr, ...] = (Not(IsNull(value)),) if value.nullable else ()
    kept = (*there, *((call.filter,) if call.filter is not None else ()))
    keys = (SortKey(comparable(value), declared(call.function).only == Extreme("max")),)
    made = guarded(
        AggregateCall("first_value", call.args, call.dtype, False, conjunction(kept) if kept else None, keys)
    )
    return replace(call, function="first_value", args=made.args, filter=made.filter, order=keys, distinct=False)


def _window_call(call: WindowCall) -> WindowCall:
    call = replace(call, order=_sort_keys(call.order), frame=_frame(call.frame))
    if not any(has_key(e.dtype) for e in call.args):
        return call
    if call.function not in AGGREGATES:
        return call
    if isinstance(declared(call.function).by, AtFraction):
        return replace(call, order=(SortKey(comparable(call.args[0])),))
    function = _by_row(call.function)
    if function != call.function and call.frame != WHOLE_PARTITION:
        return _first(call)
    function = function if has_key(call.args[0].dtype) else call.function
    return replace(call, function=function, args=_arguments(call.function, call.args, call.distinct))
