"""A filter on the number of a row in its partition: the window leaves out what comes behind, and does not put it in order.

    Filter r <= 2                              Filter r <= 2
      Window by k order x: r = row_number()  =>  Window top 2 by k order x: r = row_number()
        Scan t                                     Scan t

The filter stays: the window may give more rows. Rows of a rank up to 2 are told from others by what comes before them alone, and
so are their row_number(), rank() and dense_rank(). Where another function is computed over the same window, every row counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from gquery import tuning
from gquery.expression.expr import Call, Column, Expr, Literal
from gquery.expression.traverse import conjuncts
from gquery.planner.logical.nodes import Filter, Plan, Window
from gquery.planner.logical.tree import with_sources
from gquery.runtime.records import replace

_NUMBERS = ("row_number", "rank", "dense_rank")
_MIRRORED = {"ge": "le", "gt": "lt", "eq": "eq"}  # of a literal on the left


def limit_windows(plan: Plan) -> Plan | None:
    """Windows that give the first rows of each partition."""
    new = _down(plan)
    return None if new is plan else new


def _down(plan: Plan) -> Plan:
    plan = with_sources(plan, tuple([_down(s) for s in plan.sources]))
    if not isinstance(plan, Filter) or not isinstance(plan.source, Window):
        return plan
    window = plan.source
    if window.first is not None or not window.order or any(call.function not in _NUMBERS for _, call in window.calls):
        return plan
    first = min(_limits(plan.predicate, window), default=None)
    if first is None or not 0 < first <= tuning.sorting.most_leading:
        return plan
    return Filter(replace(window, first=first), plan.predicate)


def _limits(predicate: Expr, window: Window) -> Iterator[int]:
    """The ranks beyond which a predicate lets no row pass."""
    made = {c.id: call.function for c, call in window.calls}
    for term in conjuncts(predicate):
        if not isinstance(term, Call) or len(term.args) != 2:
            continue
        match term.function, term.args:
            case "le" | "lt" | "eq" as name, (Column() as c, Literal() as limit):
                pass
            case name, (Literal() as limit, Column() as c) if name in _MIRRORED:
                name = _MIRRORED[name]
            case _:
                continue
        if c.id not in made or not isinstance(value := limit.value, int):
            continue
        most = value - 1 if name == "lt" else value
        if made[c.id] != "dense_rank" or most == 1:
            yield most
