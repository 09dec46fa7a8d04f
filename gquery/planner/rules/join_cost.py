"""What joins cost, in rows that probe a table: estimates by which `join_order` compares trees of joins.

A table over a unique key is filled with one write a row. One over repeated keys counts, scans and orders its rows, and has
slots for every row of its source, also for those that a filter drops. Anything but a filtered table, or groups, is
materialized before a table is built over it: its source is scanned once more, and its columns are written.
"""

from __future__ import annotations

from math import log2
from typing import Literal

from gquery import tuning
from gquery.expression.frozen import frozen_open
from gquery.planner.logical.nodes import Aggregate, Filter, Join, JoinKind, Plan, Scan, Shared, Sort
from gquery.planner.logical.properties import Keys, unique_keys


@frozen_open
class Tree:
    """A joined subset of the relations: how, and what it is estimated to give and cost."""

    mask: int
    rows: float
    cost: float
    keys: Keys = ()  # unique keys of the result
    source: float = 0.0  # rows of the frame that a table over it has slots for
    materialize: float = 0.0  # what it costs to have its rows in a frame
    streamed: float = 0.0  # rows of the relation that streams through
    width: float = 0.0  # what a materialized row costs
    left: Tree | None = None
    right: Tree | None = None


def leaf(mask: int, plan: Plan, rows: float) -> Tree:
    """A relation by itself. A filter on a table or on groups is fused into the build: its dropped rows stay in the frame."""
    base = plan
    while isinstance(base, Filter):
        base = base.source
    raw = raw_rows(plan, rows)
    costs = tuning.join_costs
    width = sum(costs.materialize_text if c.dtype.is_string else costs.materialize_column for c in plan.columns)
    is_frame = isinstance(base, Scan | Shared | Aggregate)
    materialize = 0.0 if is_frame else raw * costs.materialize_source + rows * width
    return Tree(mask, rows, 0.0, unique_keys(plan), raw if is_frame else rows, materialize, raw, width)


Matching = Literal["equal", "range", "all"]
"""How rows of two trees find each other: by equal keys, by a comparison for which one side is sorted, or each meets all."""


def cost_of(stream: Tree, build: Tree, by: Matching, is_unique_key: bool) -> float:
    """The cost of a table over one tree and of every row of the other probing it."""
    costs = tuning.join_costs
    if by == "all":
        return build.materialize + build.rows + stream.rows * max(build.rows, 1.0)
    if by == "range":
        search = log2(max(build.rows, 2.0))
        return build.materialize + build.rows * costs.sorted_build + stream.rows * costs.sorted_probe * search
    if is_unique_key:
        return build.materialize + build.rows * costs.unique_build + stream.rows * costs.probe
    table = build.rows * costs.duplicate_build + build.source * costs.duplicate_source
    return build.materialize + table + stream.rows * costs.duplicate_probe


def least_cost() -> float:
    """What a row of either side costs at least, whatever the join."""
    costs = tuning.join_costs
    return min(costs.unique_build, costs.duplicate_build, costs.probe, costs.duplicate_probe, 1.0)


def raw_rows(plan: Plan, rows: float) -> float:
    """Rows of the table below filters: what reading it costs."""
    while True:
        match plan:
            case Filter(source=s) | Sort(source=s):
                plan = s
            case Join(left=s, kind=JoinKind.SEMI | JoinKind.ANTI):
                plan = s
            case Scan():
                return float(plan.source.rows)
            case _:
                return rows
