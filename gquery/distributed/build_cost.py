"""What it costs to enter rows in a join table, by how it is laid out and in which order they come.

`distributed.rank_cost` asks for it, since a rank that has a part of a table enters fewer rows. Only a hash table is dear: rows
that come in the order of a sorted key are ranges as they stand, and so it is cheap to have all of them on every rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from gquery.planner.physical import (
    JoinTable,
    Materialize,
    Pipeline,
    ReadOne,
    ReadRange,
    ReadStage,
    ReadTable,
    Source,
    Stage,
)
from gquery.tuning.dividing import Distribution


def entering_ps(stages: Sequence[Stage], work: Pipeline, table: JoinTable, limits: Distribution) -> float:
    """Picoseconds that a row takes which a pipeline enters in its join table."""
    match table.layout:
        case "one" | "loop":
            return 0.0
        case "hash":
            return limits.entered_ps
        case "sorted":
            return limits.ranged_ps
        case "direct-address":
            if len(table.keys) == 1 and comes_in_order(stages, work.source, table.keys[0].id):
                return limits.ordered_ps
            return limits.placed_ps if table.exists or table.unique else limits.ranged_ps
        case _:
            assert_never(table.layout)


def comes_in_order(stages: Sequence[Stage], source: Source, column: int) -> bool:
    """Whether the rows of a source come in the order of a column of it, by its id: it is that of a table that is sorted, or of
    rows of one that were left in their order. Those that ranks exchange are taken to have lost it."""
    match source:
        case ReadTable(table, fields, columns):
            return any(
                s.column.id == column and table.statistics(f).is_sorted for s, f in zip(columns, fields, strict=True)
            )
        case ReadStage(stage, columns, origins):
            work = stages[stage].work
            if source.by_hash is not None or not isinstance(work, Pipeline) or not isinstance(work.sink, Materialize):
                return False
            origin = next((o for s, o in zip(columns, origins, strict=True) if s.column.id == column), None)
            return origin is not None and comes_in_order(stages, work.source, origin)
        case ReadRange() | ReadOne():
            return False
        case _:
            assert_never(source)
