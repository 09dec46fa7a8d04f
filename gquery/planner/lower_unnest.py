"""Lowering of UNNEST: a frame with the lists, and a breaker that makes rows of their elements.

Elements are stored as their type asks for, as nothing is known of them before a run: the lists may be made in it.
"""

from __future__ import annotations

from gquery.expression.expr import Column, new_column
from gquery.expression.facts import ROW_ID_BITS
from gquery.expression.types import BIGINT, Bounds, PhysicalType
from gquery.kernels.host_calls import made_properties
from gquery.kernels.values import ValueProperties
from gquery.planner.logical.nodes import Unnest
from gquery.planner.logical.tree import expressions, used_columns
from gquery.planner.lower_stream import Stream, stored_of
from gquery.planner.lowering import Lowering
from gquery.planner.physical import Stored, UnnestRows


def unnest(lowering: Lowering, plan: Unnest, wanted: frozenset[int]) -> Stream:
    """The stream of the rows of a plan's source, one for each element."""
    below = (wanted - {c.id for c in plan.made}).union(*(used_columns(e) for e in expressions(plan)))
    stream = lowering.plan(plan.source, below)
    lists = tuple((c, e if isinstance(e, Column) else new_column("list", e.dtype, e.nullable)) for c, e in plan.lists)
    computed = tuple((a, e) for (_, a), (_, e) in zip(lists, plan.lists, strict=True) if a is not e)
    stream = lowering.compute(stream, computed)
    passed = [stream.by_id[i] for i in sorted(below & wanted) if i in stream.by_id]
    stream = lowering.materialized(stream, [*passed, *(a for _, a in lists)], "input of unnest")
    stage = lowering.renamed_frame(stream)
    kept = {c.id for c in passed}
    new = tuple((_element(c), a) for c, a in lists)
    ordinal = None if plan.ordinal is None else _ordinal(plan.ordinal)
    made = (*(s for s, _ in new), *(() if ordinal is None else (ordinal,)))
    columns = (*(s for s in stored_of(stream) if s.column.id in kept), *made)
    number = lowering.stage(UnnestRows(stage, new, ordinal, plan.kept, columns), "rows of the elements of lists")
    return lowering.read(number, tuple(s.column for s in columns), lowering.estimate(plan), None)


def _element(c: Column) -> Stored:
    known = made_properties(c.dtype, True)
    return Stored(c, known, PhysicalType.STRING64 if c.dtype.is_string else known.physical_type)


def _ordinal(c: Column) -> Stored:
    known = ValueProperties(BIGINT, Bounds(0, 1 << ROW_ID_BITS), True)
    return Stored(c, known, known.physical_type)
