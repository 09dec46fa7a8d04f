"""An aggregate over whole partitions is an aggregate of groups, joined back: no row has to be put in order.

    Window by k: s = sum(x)           Project k, x, s
      Scan t (k, x)                     Join inner on k = k#2
                                =>        Scan t (k, x)
                                          Aggregate by k#2: s = sum(x#2)
                                            Scan t (k#2, x#2)

Partitions are the groups of equal keys, NULLs taken as equal, and each row finds its own. Rows that cost more than a scan
are a definition, which all sides use. A call stays where another of its node needs the order anyway, unless windows can't
compute it: aggregates that are made of others (`expand_aggregates` sees to those), and those of rows in an order.
"""

from __future__ import annotations

from gquery.expression.expr import AggregateCall, Column, new_column
from gquery.expression.windows import WHOLE_PARTITION, WindowCall
from gquery.functions.windows import follows_order, is_group_aggregate, needs_groups
from gquery.planner.logical.aggregate_joins import equal_keys, moved
from gquery.planner.logical.nodes import Aggregate, Join, JoinKind, Plan, Project, Query, Shared, Window
from gquery.planner.logical.shared import new_definition, use
from gquery.planner.logical.tree import expressions, fresh_copy, remap_expr, used_columns, with_sources
from gquery.planner.rules.inline_shared import is_cheap
from gquery.runtime.records import replace

Calls = tuple[tuple[Column, WindowCall], ...]


def whole_partitions(plan: Plan) -> Plan | None:
    """Aggregates over whole partitions as joins with groups."""
    new = _down(plan)
    return None if new is plan else new


def _down(plan: Plan) -> Plan:
    if not isinstance(plan, Window):
        return with_sources(plan, tuple([_down(s) for s in plan.sources]))
    over = _stack(plan)
    below = _down(over[0].source)
    parts = [_calls(w) for w in over]
    if any(found for found, _ in parts):
        rows = _Rows(below)
        joined = rows.first
        for window, (found, _) in zip(over, parts, strict=True):
            joined = _joined(joined, rows, window, found) if found else joined
        made = tuple(c for found, _ in parts for c, _ in found)
        below = Project(joined, tuple((c, c) for c in (*rows.first.columns, *made)))
    for window, (found, rest) in zip(over, parts, strict=True):
        if rest:
            below = replace(window, source=below, calls=rest) if found else with_sources(window, (below,))
    return below


def _stack(plan: Window) -> list[Window]:
    """Windows that stand on each other and read the same rows, the lowest first."""
    over = [plan]
    while isinstance(over[0].source, Window):
        made = {c.id for c, _ in over[0].source.calls}
        if any(used_columns(e) & made for window in over for e in expressions(window)):
            break
        over.insert(0, over[0].source)
    return over


def _calls(plan: Window) -> tuple[Calls, Calls]:
    """The calls that become aggregates of groups, and those that stay."""
    found = tuple((c, call) for c, call in plan.calls if _is_of_group(call))
    rest = tuple((c, call) for c, call in plan.calls if not _is_of_group(call))
    if rest:  # their order serves these too
        rest += tuple((c, call) for c, call in found if not needs_groups(call))
        found = tuple((c, call) for c, call in found if needs_groups(call))
    return found, rest


def _is_of_group(call: WindowCall) -> bool:
    return call.frame == WHOLE_PARTITION and is_group_aggregate(call)


def _joined(left: Plan, rows: _Rows, window: Window, found: Calls) -> Plan:
    """Rows with the aggregates of their partitions."""
    source, names = rows.again()
    keys = tuple((new_column("key", e.dtype, e.nullable), remap_expr(e, names)) for e in window.partition)
    groups = Aggregate(source, keys, tuple((c, moved(_group_call(window, call), names)) for c, call in found))
    return Join(left, groups, JoinKind.INNER, equal_keys(window.partition, [c for c, _ in keys]))


def _group_call(window: Window, call: WindowCall) -> AggregateCall:
    order = window.order if follows_order(call) else call.order
    return AggregateCall(call.function, call.args, call.dtype, call.distinct, call.filter, order)


class _Rows:
    """The rows of a plan, read in several places: ``first`` under its own columns."""

    def __init__(self, plan: Plan) -> None:
        copy, names = fresh_copy(plan)
        nullable = {c.id: c.nullable for c in copy.columns}
        made = tuple(Column(names[c.id].id, c.name, c.dtype, nullable[names[c.id].id]) for c in plan.columns)
        self._columns = plan.columns
        self._definition = new_definition(Query(copy, made, tuple(c.name for c in made)))
        self._is_cheap = is_cheap(self._definition)
        self.first = plan if self._is_cheap else Shared(self._definition, plan.columns, tuple(range(len(made))))

    def again(self) -> tuple[Plan, dict[int, Column]]:
        """The rows under other columns, and these by the ids of the first ones."""
        if self._is_cheap:
            return fresh_copy(self.first)
        used = use(self._definition)
        return used, {c.id: own for c, own in zip(self._columns, used.columns, strict=True)}
