"""Lowering of questions for the different values of one column, by sorting it.

A hash table of very many values lies in no cache, so that each row costs an access to a GPU's memory; sorting streams through
it. Values of a small range are better addressed, and few values better hashed: `lower_aggregate` does both.
"""

from __future__ import annotations

from gquery import tuning
from gquery.expression.expr import Column
from gquery.expression.types import BIGINT, INT64, Bounds, Register
from gquery.functions import counts
from gquery.kernels.targets.capabilities import capabilities
from gquery.kernels.values import ValueProperties
from gquery.planner.logical.nodes import Aggregate, Filter, Plan, Project, Scan
from gquery.planner.logical.tree import walk
from gquery.planner.lower_stream import Stream
from gquery.planner.lowering import Lowering
from gquery.planner.physical import DistinctRows, Stored


def distinct(lowering: Lowering, plan: Aggregate, wanted: frozenset[int]) -> Stream | None:
    """The stream of the different values of a column, or of their number; None where that is not all that is asked for, or
    sorting is not the best way."""
    counts = _counted(plan)
    inner = plan if counts is None else plan.source
    if (
        not capabilities(lowering.target).prefers_sorting
        or not isinstance(inner, Aggregate)
        or not _is_worth_sorting(lowering, inner)
    ):
        return None
    column, key = inner.keys[0]
    assert isinstance(key, Column)
    stream = lowering.plan(inner.source, frozenset((key.id,)))
    known = stream.columns[key.id]
    if known.nullable or known.register is not Register.I64 or known.dictionary is not None:
        return None
    stream = lowering.materialized(stream, (key,), "input of different values")
    frame = lowering.renamed_frame(stream)
    if counts is None:
        made: tuple[Stored, ...] = (Stored(column, known, known.physical_type),)
    else:
        most = ValueProperties(BIGINT, Bounds(0, stream.limit if stream.limit is not None else INT64.high), False)
        made = tuple(Stored(c, most, most.physical_type) for c in counts if c.id in wanted)
    number = lowering.stage(DistinctRows(frame, key, made, counts is not None), "different values")
    rows = lowering.estimator.rows(inner) if counts is None else 1.0
    return lowering.read(number, tuple(s.column for s in made), rows, stream.limit if counts is None else 1)


def _counted(plan: Aggregate) -> tuple[Column, ...] | None:
    """The results of an aggregate that only counts the different values of a column without NULLs."""
    source = plan.source
    if plan.keys or not plan.aggregates or not isinstance(source, Aggregate) or len(source.keys) != 1:
        return None
    value = source.keys[0][0]
    for _, a in plan.aggregates:
        if not counts(a) or a.filter is not None or a.distinct or a.args not in ((), (value,)):
            return None
    return tuple(c for c, _ in plan.aggregates)


def _is_worth_sorting(lowering: Lowering, plan: Aggregate) -> bool:
    """Whether an aggregate asks for the many different values of a stored column that lie far apart."""
    if len(plan.keys) != 1 or plan.aggregates or not all(_only_passes_on(p) for p in walk(plan.source)):
        return False
    key, estimator = plan.keys[0][1], lowering.estimator
    limits = tuning.group_layouts
    cached = lowering.profile.cache_bytes // limits.distinct_bytes_a_value  # by a hash table
    if not isinstance(key, Column) or key.nullable or estimator.rows(plan) < cached:
        return False
    bounds = estimator.bounds(key)
    if bounds is None or not bounds.within(INT64):
        return False
    return bounds.width > limits.distinct_slots_a_row * estimator.rows(plan.source)


def _only_passes_on(plan: Plan) -> bool:
    return isinstance(plan, Scan | Filter | Project)
