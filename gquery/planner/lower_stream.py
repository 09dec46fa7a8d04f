"""Streams: pipelines under construction, and what their steps would cost the interpreter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import assert_never

from gquery import tuning
from gquery.expression.expr import Call, Cast, Column, Expr, In
from gquery.expression.traverse import walk
from gquery.expression.types import Register
from gquery.kernels.code import Code
from gquery.kernels.render import render
from gquery.kernels.values import Value, ValueProperties
from gquery.planner.physical import (
    AggregateSegment,
    Build,
    Compute,
    FilterRows,
    Group,
    Materialize,
    Pipeline,
    Probe,
    ReadStage,
    ReadTable,
    Reduce,
    SegmentHeads,
    SegmentRows,
    Sink,
    Source,
    Step,
    Stored,
)
from gquery.runtime.records import dataclass, replace


@dataclass
class Stream:
    """Rows under way: a source, the steps that are fused behind it, and what is known of each column at hand.

    ``rows`` is an estimate of what arrives here, ``limit`` a proved upper bound of it (None: none is known).
    """

    source: Source
    columns: dict[int, ValueProperties]
    source_rows: int
    rows: float
    limit: int | None
    steps: tuple[Step, ...] = ()
    work: float = 0.0
    by_id: dict[int, Column] = field(default_factory=dict)
    descriptions: dict[Expr, Value] = field(default_factory=dict, init=False, repr=False, compare=False)
    describer: Code | None = field(default=None, init=False, repr=False, compare=False)

    def then(self, *steps: Step) -> Stream:
        weight = sum(step_weight(s, self.columns) for s in steps)
        made = replace(self, steps=self.steps + steps, work=self.work + self.rows * weight)
        made.descriptions, made.describer = self.descriptions, self.describer
        return made

    def with_own_columns(self) -> Stream:
        """The stream with columns of its own, to which more are added."""
        made = replace(self, columns=dict(self.columns))
        made.descriptions = self.descriptions  # they are of the other columns
        return made

    def describe(self, e: Expr) -> ValueProperties:
        """What is known of an expression's value (see `kernels.render.describe`), found out once, in one text for all."""
        if isinstance(e, Column):
            return self.columns[e.id]
        if self.describer is None:
            self.describer = Code("cpu", self.columns, self.descriptions)
        return render(e, self.describer).properties


def step_weight(step: Step, columns: dict[int, ValueProperties]) -> float:
    """What a step costs the interpreter a row, in steps: one an operation, some more where characters are read."""
    costs = tuning.interpreter_costs
    match step:
        case FilterRows(predicate):
            return expr_weight(predicate, columns)
        case Compute(exprs):
            return sum(expr_weight(e, columns) for _, e in exprs)
        case Probe(keys=keys):
            return tuning.interpreter_costs.probe + text_weight(keys, columns)
        case SegmentHeads() | SegmentRows():
            return costs.operation
        case AggregateSegment(accumulators=accumulators):
            return 1.0 + len(accumulators)
        case _:
            assert_never(step)


def is_worth_compiling(pipeline: Pipeline, steps: float, interpret_limit: int) -> bool:
    """Whether so many row-steps are too many for the interpreter. A kernel of many operations takes as much longer to compile,
    and is interpreted for as many more steps."""
    if steps < interpret_limit:
        return False
    most = interpret_limit * tuning.interpreter_costs.most_lengths
    return steps >= most or steps >= interpret_limit * lengths(pipeline)


def lengths(pipeline: Pipeline) -> float:
    """How much longer than usual a pipeline's kernel is; 1 for shorter ones."""
    count = sum(sum(1 for _ in walk(e)) for e in _expressions(pipeline))
    return min(max(1.0, count / tuning.interpreter_costs.usual_length), tuning.interpreter_costs.most_lengths)


def _expressions(pipeline: Pipeline) -> Iterator[Expr]:
    for step in pipeline.steps:
        match step:
            case FilterRows(predicate):
                yield predicate
            case Compute(exprs):
                yield from (e for _, e in exprs)
            case AggregateSegment(accumulators=accumulators):
                yield from (f.arg for f in accumulators if f.arg is not None)
            case _:
                pass  # probing a table is a few operations
    match pipeline.sink:
        case Group(accumulators=accumulators) | Reduce(accumulators=accumulators):
            yield from (f.arg for f in accumulators if f.arg is not None)
        case Materialize(columns=columns):
            yield from (s.column for s in columns)
        case _:
            pass


_OPERATIONS = (Call, In, Cast)


def expr_weight(e: Expr, columns: dict[int, ValueProperties]) -> float:
    """What an expression costs the interpreter a row, in steps."""
    costs, operations, texts = tuning.interpreter_costs, 0, 0
    for x in walk(e):
        if isinstance(x, _OPERATIONS):
            operations += 1
        elif isinstance(x, Column) and (known := columns.get(x.id)) is not None:
            texts += known.register is Register.STR
    return costs.expression + costs.operation * operations + costs.text * texts


def text_weight(exprs: Iterable[Expr], columns: dict[int, ValueProperties]) -> float:
    """What the texts that expressions read cost the interpreter a row, in steps: to hash them or to go through them."""
    texts = [x for e in exprs for x in walk(e) if isinstance(x, Column) and x.id in columns]
    return tuning.interpreter_costs.text * sum(columns[x.id].register is Register.STR for x in texts)


def sink_weight(sink: Sink) -> float:
    """What a sink costs the interpreter a row, in steps."""
    costs = tuning.interpreter_costs
    match sink:
        case Group(layout="row-id hash", keys=keys, accumulators=accumulators):
            texts = sum(what.register is Register.STR for _, _, what in keys)
            return costs.row_id_key * len(keys) + costs.text * texts + len(accumulators)
        case Group(layout="hash", accumulators=accumulators):
            return costs.hashed_group + len(accumulators)
        case Build(table=table) if table.layout == "hash":
            texts = sum(s.properties.register is Register.STR and s.column in table.keys for s in table.columns)
            return costs.hashed_build * len(table.keys) + costs.text * texts
        case Group(accumulators=accumulators) | Reduce(accumulators=accumulators):
            return 1.0 + len(accumulators)
        case Materialize(columns=columns):
            return sum(
                costs.materialized_text if s.properties.register is Register.STR else costs.materialized_value
                for s in columns
            )
        case Build():
            return 1.0
        case _:
            assert_never(sink)


def stored_of(stream: Stream) -> tuple[Stored, ...]:
    """The columns that the stream's source holds."""
    assert isinstance(stream.source, ReadStage | ReadTable)
    return stream.source.columns
