"""Lowering of recursions: the first rows as a frame, and a program for what a round makes of the rows of the round before.

All rounds run one program, so that nothing is planned or compiled anew. Columns are stored as their type asks for: what a later
round makes is not known.
"""

from __future__ import annotations

from gquery.expression.expr import Column, new_column
from gquery.kernels.values import value_properties
from gquery.planner.logical.nodes import Fixpoint
from gquery.planner.lower_stream import Stream
from gquery.planner.lowering import Lowering
from gquery.planner.physical import Materialize, RecursiveRows, Stored
from gquery.planner.stage_columns import normalized, stage_columns


def fixpoint(lowering: Lowering, plan: Fixpoint) -> Stream:
    """The stream of a recursion."""
    first = lowering.plan(plan.source, frozenset(c.id for c in plan.inputs))
    stage, inputs = as_stored(lowering, first, plan.inputs, "first rows of a recursion")
    columns = tuple(stored(c) for c in plan.columns)
    program = lowering.round_program(plan.step, plan.number, columns)
    number = lowering.stage(RecursiveRows(stage, inputs, program, columns, plan.enough), "recursion")
    return lowering.read(number, plan.columns, lowering.estimate(plan), None)


def as_stored(
    lowering: Lowering, stream: Stream, columns: tuple[Column, ...], label: str
) -> tuple[int, tuple[Stored, ...]]:
    """A stage that materializes columns as their types ask for."""
    fresh = tuple(new_column(c.name, c.dtype, True) for c in columns)
    stream = lowering.compute(stream, tuple(zip(fresh, columns, strict=True)))
    wide = tuple(_as_made(c) for c in fresh)
    number = lowering.sink(stream, Materialize(wide, ordered=True), label)
    return number, stage_columns(lowering.stages[number].work)


def stored(column: Column) -> Stored:
    """How a recursion's column lies in frames."""
    return normalized(_as_made(column))


def _as_made(column: Column) -> Stored:
    known = value_properties(column.dtype, None, True)
    return Stored(column, known, known.physical_type)
