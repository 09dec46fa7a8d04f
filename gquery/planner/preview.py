"""How many rows are made for a look at a result that has not run."""

from __future__ import annotations

from gquery import tuning
from gquery.planner.logical.nodes import (
    Filter,
    Join,
    Limit,
    Plan,
    Project,
    Range,
    Scan,
    Shared,
    UnionAll,
)


def preview_rows(plan: Plan, shown: int) -> int:
    """Rows to make of a plan of which ``shown`` are shown. More than that costs nothing where all rows have to be made
    before the first is known; where they come one by one from a large table, finding more can mean to read all of it."""
    largest = _streamed(plan)
    return (
        max(shown, tuning.memory.previewed_rows)
        if largest is None or largest < tuning.memory.previewed_source
        else shown
    )


def _streamed(plan: Plan) -> int | None:
    """Rows of the largest source whose rows pass one by one to the top; None where something in between needs all."""
    match plan:
        case Scan(source):
            return source.rows
        case Range():
            return plan.rows
        case Shared(definition):
            return _streamed(definition.plan)
        case Filter(source) | Project(source) | Limit(source):
            return _streamed(source)
        case Join(left, right):
            sides = [rows for rows in (_streamed(left), _streamed(right)) if rows is not None]
            return max(sides, default=None)
        case UnionAll(sources):
            parts = [rows for rows in map(_streamed, sources) if rows is not None]
            return max(parts, default=None)
        case _:
            return None
