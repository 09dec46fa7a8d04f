"""``range`` and ``generate_series`` in FROM: integers, or moments that an interval lies between.

Bounds are constants, or what a query gives that needs no table of the FROM clause: it runs while the statement is bound
(`Queries.ask`), as a range is a part of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gquery.errors import BindError, NotSupportedError
from gquery.expression.expr import Column, Expr, Literal, new_column
from gquery.expression.facts import MICROS_PER_DAY
from gquery.expression.interval import Interval
from gquery.expression.types import BIGINT, DATE, TIMESTAMP, Kind
from gquery.functions import call, cast
from gquery.functions.calendar import add_interval
from gquery.planner.logical.nodes import Plan, Project, Query, Range, Values

_MOST_MONTHS = 100_000
Ask = Callable[[Query], list[tuple[object, ...]]]


def range_plan(name: str, bounds: Sequence[Expr], ask: Ask) -> tuple[Plan, Column]:
    """The rows of a range, and their only column."""
    values = [_constant(b, ask) for b in bounds]
    if any(v.dtype in (DATE, TIMESTAMP) for v in values) and len(values) == 3:
        return _moments(name, values)
    if not all(v.dtype.is_integer or v.is_null for v in values):
        raise BindError(f"{name} takes integers, or two moments and an INTERVAL")
    if not 1 <= len(values) <= 3:
        raise BindError(f"{name} takes (stop), (start, stop) or (start, stop, step)")
    if any(v.is_null for v in values):
        return _integers(name, 0, 0, 1)
    numbers = [int(v.value) for v in values]
    start, stop, step = (*((0, *numbers) if len(numbers) == 1 else numbers), 1)[:3]
    if step == 0:
        raise BindError(f"{name}: a step of 0")
    return _integers(name, start, stop if name == "range" else stop + (1 if step > 0 else -1), step)


def _constant(e: Expr, ask: Ask) -> Literal:
    if isinstance(e, Literal):
        return e
    if not e.dtype.is_integer and e.dtype not in (DATE, TIMESTAMP):
        raise NotSupportedError("not supported: bounds of a range that are neither integers nor moments")
    column = new_column("bound", BIGINT, True)
    value = cast(e, BIGINT) if e.dtype.is_integer else call("epoch_us", cast(e, TIMESTAMP))
    plan = Project(Values((), ((),)), ((column, value),))
    found = ask(Query(plan, (column,), ("bound",)))[0][0]
    return Literal(found, BIGINT if e.dtype.is_integer else TIMESTAMP)


def _integers(name: str, start: int, stop: int, step: int) -> tuple[Plan, Column]:
    column = new_column(name, BIGINT, nullable=False)
    return Range(column, start, stop, step), column


def _moments(name: str, values: Sequence[Literal]) -> tuple[Plan, Column]:
    column = new_column(name, TIMESTAMP, nullable=False)
    if any(v.is_null for v in values):
        return Values((column,), ()), column
    start, stop = (v.value * MICROS_PER_DAY if v.dtype == DATE else v.value for v in values[:2])
    if values[2].dtype.kind is not Kind.INTERVAL:
        raise BindError(f"{name} of moments takes an INTERVAL as its step")
    step = Interval.of(values[2].value)
    if step.months:
        return Values((column,), tuple((Literal(m, TIMESTAMP),) for m in _by_months(name, start, stop, step))), column
    micros = step.days * MICROS_PER_DAY + step.micros
    if micros == 0:
        raise BindError(f"{name}: a step of 0")
    last = stop if name == "range" else stop + (1 if micros > 0 else -1)
    numbers, number = _integers(name, start, last, micros)
    return Project(numbers, ((column, call("make_timestamp", number)),)), column


def _by_months(name: str, start: int, stop: int, step: Interval) -> list[int]:
    """Each moment is the one before it plus the interval, so that days beyond the end of a month are lost on the way."""
    parts = (step.months, step.days, step.micros)
    if min(parts) < 0 < max(parts):
        raise BindError(f"{name}: an INTERVAL of parts in both directions")
    found: list[int] = []
    ascending = max(parts) > 0
    at = start
    while (at < stop if ascending else at > stop) or (name != "range" and at == stop):
        found.append(at)
        if len(found) > _MOST_MONTHS:
            raise NotSupportedError(f"not supported: {name} of more than {_MOST_MONTHS:,} moments by months")
        at = add_interval(at, step.packed)
    return found
