"""Streams: pipelines under construction, and what their steps would cost the interpreter."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never

from gquery.dtypes import Register
from gquery.expr import Call, Cast, Column, Expr, In, walk
from gquery.kernels.code import Phys
from gquery.planner.physical import (
    Build,
    Collect,
    Compute,
    Group,
    Probe,
    ReadStage,
    ReadTable,
    Reduce,
    Select,
    Sink,
    Source,
    Step,
    Stored,
)


@dataclass
class Stream:
    """Rows under way: a source, the steps that are fused behind it, and what is known of each column at hand.

    ``rows`` is an estimate of what arrives here, ``limit`` a proved upper bound of it (None: none is known).
    """

    source: Source
    columns: dict[int, Phys]
    source_rows: int
    rows: float
    limit: int | None
    steps: tuple[Step, ...] = ()
    work: float = 0.0
    by_id: dict[int, Column] = field(default_factory=dict)

    def then(self, *steps: Step) -> Stream:
        weight = sum(step_weight(s, self.columns) for s in steps)
        return replace(self, steps=self.steps + steps, work=self.work + self.rows * weight)


def step_weight(step: Step, columns: dict[int, Phys]) -> float:
    """What a step costs the interpreter a row, in steps: one an operation, some more where characters are read."""
    match step:
        case Select(predicate):
            return expr_weight(predicate, columns)
        case Compute(exprs):
            return sum(expr_weight(e, columns) for _, e in exprs)
        case Probe():
            return 2.0
        case _:
            assert_never(step)


def expr_weight(e: Expr, columns: dict[int, Phys]) -> float:
    """What an expression costs the interpreter a row, in steps."""
    weight = 0.5
    for x in walk(e):
        if isinstance(x, Call | In | Cast):
            weight += 0.5
        elif isinstance(x, Column) and x.id in columns and columns[x.id].register is Register.STR:
            weight += 10.0
    return weight


def sink_weight(sink: Sink) -> float:
    """What a sink costs the interpreter a row, in steps."""
    match sink:
        case Group(layout="rows", keys=keys, folds=folds):
            return 10.0 * len(keys) + len(folds)
        case Group(layout="hash", folds=folds):
            return 6.0 + len(folds)
        case Build(table=table) if table.layout == "hash":
            return 10.0 * len(table.keys)
        case Group(folds=folds) | Reduce(folds=folds):
            return 1.0 + len(folds)
        case Collect(columns=columns):
            return sum(3.0 if s.phys.register is Register.STR else 0.5 for s in columns)
        case Build():
            return 1.0
        case _:
            assert_never(sink)


def stored_of(stream: Stream) -> tuple[Stored, ...]:
    """The columns that the stream's source holds."""
    assert isinstance(stream.source, ReadStage | ReadTable)
    return stream.source.columns
