"""The columns of the frame that a stage makes, as later stages take them to be stored."""

from __future__ import annotations

from gquery.columns.opaque import Pending
from gquery.expression.expr import Column
from gquery.expression.types import PhysicalType
from gquery.planner.aggregates import AggregatePlan
from gquery.planner.physical import (
    Group,
    HostRows,
    Materialize,
    OrderedGroups,
    Pipeline,
    PipelineBreaker,
    ReadStage,
    Reduce,
    SliceRows,
    Stored,
    WindowRows,
)


def stage_columns(work: Pipeline | PipelineBreaker) -> tuple[Stored, ...]:
    """The columns of the frame that a stage makes (none for a Build)."""
    match work:
        case Pipeline(sink=Materialize(columns=columns)):
            return tuple(normalized(s) for s in columns)
        case Pipeline(sink=Reduce(aggregates=aggregates)):
            return _results(aggregates)
        case Pipeline(sink=Group(sparse=sparse)) if sparse:
            return tuple(s for s, _ in sparse)
        case Pipeline(source=source, sink=Group(layout=layout, keys=keys, aggregates=aggregates)):
            if layout == "row-id hash":  # keys are gathered from the source frame, in its physical types
                assert isinstance(source, ReadStage)
                at = {s.column.id: s.physical_type for s in source.columns}
                taken = tuple(Stored(c, w, at[e.id]) for c, e, w in keys if isinstance(e, Column))
                return tuple(normalized(s) for s in taken) + _results(aggregates)
            return tuple(Stored(c, w, w.physical_type) for c, _, w in keys) + _results(aggregates)
        case Pipeline():
            return ()
        case SliceRows(columns=columns) | HostRows(columns=columns):
            return columns
        case _:
            return tuple(normalized(s) for s in work.columns)


def _results(aggregates: tuple[tuple[Column, AggregatePlan], ...]) -> tuple[Stored, ...]:
    return tuple(normalized(Stored(c, a.result, a.result.physical_type)) for c, a in aggregates)


def normalized(stored: Stored) -> Stored:
    """How a column is stored once rows were gathered: text has offsets of 64 bits and characters of its own."""
    is_text = stored.physical_type.is_string
    return Stored(stored.column, stored.properties, PhysicalType.STRING64) if is_text else stored


def makes_lists(work: HostRows | OrderedGroups | WindowRows) -> bool:
    """Whether a stage makes lists, whose numbers are of what that very stage has made: ranks and parts do not divide it."""
    made = work.made if isinstance(work, HostRows) else work.calls
    return any(isinstance(s.properties.dictionary, Pending) for s, _ in made)
