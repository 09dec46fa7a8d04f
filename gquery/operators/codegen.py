"""Pipeline to kernels: produce/consume.

Each operator writes its lines and calls the next one where a row goes on; nested calls become nested loops and ifs in one
function. A Materialize that counts before it writes has two kernels with the same steps, every other pipeline has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from typing import assert_never, cast

from gquery.expression.expr import Column, Expr
from gquery.expression.facts import LARGE_ROWS
from gquery.expression.frozen import frozen_open
from gquery.expression.slots import SlotValues
from gquery.kernels import ir
from gquery.kernels.bindings import Binding, Constant, ErrorSite, SlotConstant, StatePart
from gquery.kernels.code import Code
from gquery.kernels.kernel import Kernel, Parameter
from gquery.kernels.render import condition, described, render
from gquery.kernels.targets.capabilities import capabilities
from gquery.operators import accumulate, materialize, reduce
from gquery.operators.group_output import GroupOutput, is_probable
from gquery.operators.join_in_order import has_no_kernel
from gquery.operators.loop_forms import in_form
from gquery.operators.read import read
from gquery.operators.selection import needed_by
from gquery.operators.text_scans import begin_step, scannable_texts
from gquery.planner.physical import (
    AggregateSegment,
    Build,
    Compute,
    FilterRows,
    Group,
    Materialize,
    Pipeline,
    Probe,
    Reduce,
    SegmentHeads,
    SegmentRows,
    Sink,
    Source,
    Step,
)
from gquery.planner.segments import closing
from gquery.runtime import collector
from gquery.runtime.records import cached_property, replace


@frozen_open
class Unit:
    """One kernel of a pipeline: its role (see `SinkRun.roles`), what its parameters stand for, what its errors mean, and
    the estimated share of rows for which it looks at each parameter. ``shared_words`` of shared memory are what its text
    counts on, for groups and key filters: the sink may have been told of fewer groups since."""

    role: str
    kernel: Kernel
    bindings: dict[str, Binding]
    sites: tuple[ErrorSite, ...]
    selectivities: dict[str, float] = field(default_factory=dict)
    shared_words: int = 0
    slots: dict[str, SlotConstant] = field(default_factory=dict)  # those of the bindings that depend on slots

    def with_values(self, values: SlotValues) -> Unit:
        """The kernel for other values of slots."""
        if not self.slots:
            return self
        resolved: dict[str, Binding] = {name: s.resolve(values) for name, s in self.slots.items()}
        made = replace(self, bindings=self.bindings | resolved)
        made.open = tuple([(n, p, resolved.get(p.name, b)) for n, p, b in self.open])
        made.constants = self.constants.copy()
        for n, p in self._slot_numbers:
            made.constants[n] = p.number(cast(Constant, resolved[p.name]).value)
        return made

    @cached_property
    def _slot_numbers(self) -> list[tuple[int, Parameter]]:
        """The parameters that are numbers made of slots, as they are for all values, each with its index."""
        return [(n, p) for n, (p, b) in enumerate(self.parameters) if p.name in self.slots and isinstance(b, Constant)]

    @cached_property
    def parameters(self) -> tuple[tuple[Parameter, Binding], ...]:
        """The kernel's parameters, each with what it stands for."""
        return tuple((p, self.bindings[p.name]) for p in self.kernel.parameters)

    @cached_property
    def constants(self) -> list[object]:
        """What a launch takes for each parameter that is a constant, None for the others: those in ``open``."""
        return [p.number(b.value) if isinstance(b, Constant) else None for p, b in self.parameters]

    @cached_property
    def open(self) -> tuple[tuple[int, Parameter, Binding], ...]:
        """The parameters that stand for something else in each launch, by their place."""
        return tuple((n, p, b) for n, (p, b) in enumerate(self.parameters) if not isinstance(b, Constant))


def units(pipeline: Pipeline, target: str, counted: bool = False) -> tuple[Unit, ...]:
    """The kernels of a pipeline on a target, in the order in which they run. With ``counted`` they also count the rows that
    get past each step, for EXPLAIN ANALYZE."""
    if has_no_kernel(pipeline, target):
        return ()
    behind = behind_selection(pipeline)
    made = passes(behind, target)
    with collector.paused():  # kernels stay
        if pipeline.selection_steps:
            return _selection(pipeline, target), *_each(behind, made, target, counted, ir.Name("r"))
        return _each(pipeline, made, target, counted, ir.ROW)


def passes(pipeline: Pipeline, target: str) -> dict[str, Sink]:
    """What is done by each of the kernels that go over the rows one after another, by its role. Where rows are selected first,
    the pipeline is what is left to do behind that."""
    able = capabilities(target)
    match pipeline.sink:
        case Materialize() as sink:
            return dict.fromkeys(
                materialize.roles(materialize.materialize_mode(pipeline.steps, able.has_warps, sink.few)), sink
            )
        case Reduce() as sink:
            several = reduce.passes(sink, pipeline.steps, able)
            return dict(zip(reduce.roles(len(several)), several, strict=True))
        case other:
            return {"main": other}


def _each(pipeline: Pipeline, made: dict[str, Sink], target: str, counted: bool, row: ir.Name) -> tuple[Unit, ...]:
    """The kernels of the passes, of which the first one counts."""
    first = next(iter(made))
    return tuple(
        _unit(replace(pipeline, sink=sink), target, role, counted and role == first, row) for role, sink in made.items()
    )


def kernels(pipeline: Pipeline, target: str) -> Iterator[Kernel]:
    """Those of the loop, and the one that probably makes columns of its groups."""
    yield from (unit.kernel for unit in units(pipeline, target))
    if isinstance(pipeline.sink, Group) and is_probable(pipeline.sink, target):
        yield output_kernel(pipeline.sink, target).unit[0]


def output_kernel(sink: Group, target: str) -> GroupOutput:
    """What makes columns of a sink's groups."""
    from gquery.operators.part_output import PartOutput

    kind = PartOutput if sink.partitioned else GroupOutput
    return kind(sink, capabilities(target).array_target)


def _selection(pipeline: Pipeline, target: str) -> Unit:
    """The kernel that marks the rows which get past the first steps."""
    steps, none = pipeline.steps[: pipeline.selection_steps], Materialize((), ordered=True)
    return replace(_unit(replace(pipeline, steps=steps, sink=none, selection_steps=0), target, "count"), role="select")


def behind_selection(pipeline: Pipeline) -> Pipeline:
    """What is left to do for a row that gets past the first steps: the columns that they give are made again. The pipeline itself
    where no rows are selected."""
    if not pipeline.selection_steps:
        return pipeline
    first, rest = pipeline.steps[: pipeline.selection_steps], pipeline.steps[pipeline.selection_steps :]
    if rest and isinstance(rows := rest[0], SegmentRows) and not any(materialize.drops_rows(s) for s in first[1:]):
        rest = (replace(rows, to_next_head=True), *rest[1:])  # behind the heads themselves
    return replace(pipeline, steps=materialize.steps_again(first, needed_by(rest, pipeline.sink)) + rest)


def _unit(pipeline: Pipeline, target: str, role: str, counted: bool = False, row: ir.Name = ir.ROW) -> Unit:
    """The kernel for a role; ``row`` is the number of the source's row that it is at."""
    code = Code(target, keeps_slots=True)
    code.wide_index = pipeline.rows >= LARGE_ROWS
    few = isinstance(pipeline.sink, Materialize) and pipeline.sink.few
    mode = materialize.materialize_mode(pipeline.steps, capabilities(target).has_warps, few)
    if isinstance(pipeline.sink, Materialize) and mode == "selection_bitmap" and role == "write":  # of rows to be kept
        code.selectivity = min((s.selectivity for s in pipeline.steps if isinstance(s, FilterRows)), default=1.0)
        needed = frozenset(s.column.id for s in pipeline.sink.columns)
        pipeline = replace(pipeline, steps=materialize.steps_again(pipeline.steps, needed))
    if isinstance(pipeline.sink, Group):
        code.shared_words = accumulate.shared_words(pipeline.sink, target)
    _begin(pipeline.sink, mode, role, code)
    if row is not ir.ROW:  # the rows come from a selection vector
        code.selectivity = 0.0
        code.set(row, code.call("i64", ir.Load(code.pointer("u32", StatePart("selection"), "s"), ir.ROW)))
    read(pipeline.source, code, row)
    code.scannable = scannable_texts(pipeline, code, row)

    walk = _Walk(pipeline.steps, pipeline.source, row, counted, code)
    _go_on(walk, 0, len(walk.steps), lambda: _consume(pipeline.sink, pipeline.source, mode, role, code))
    _end(pipeline.sink, mode, role, code)
    kernel = code.kernel()
    if not counted:
        kernel = in_form(kernel, pipeline, target, code.hoisted, is_whole=row is ir.ROW)
    bindings, sites, selectivities = dict(code.bindings), tuple(code.sites), dict(code.selectivities)
    return Unit(role, kernel, bindings, sites, selectivities, code.shared_words, dict(code.slots))


@frozen_open
class _Walk:
    """The steps that are written, over the row ``row`` of a source; ``counted``: rows are counted behind each."""

    steps: tuple[Step, ...]
    source: Source
    row: ir.Name
    counted: bool
    code: Code


def _go_on(walk: _Walk, done: int, last: int, end: Callable[[], None]) -> None:
    """Write the steps behind those that are done, up to step ``last``, and the end."""
    code, steps = walk.code, walk.steps
    if walk.counted:
        _count(done, code)
    begin_step(steps[done] if done < last else None, code)
    if done == last:
        end()
        return
    step = steps[done]
    if not isinstance(step, SegmentRows):
        _step(step, walk.row, code, lambda: _go_on(walk, done + 1, last, end))
        return
    close = closing(steps, done)
    aggregate = steps[close]
    assert isinstance(aggregate, AggregateSegment)
    from gquery.operators.segments import Segment, emit_segment  # most queries have no windows over segments

    segment = Segment(step, aggregate, walk.source, walk.row, all_rows=close == done + 1)
    emit_segment(
        segment, code, lambda take: _go_on(walk, done + 1, close, take), lambda: _go_on(walk, close + 1, last, end)
    )


def _count(step: int, code: Code) -> None:
    """Count a row behind so many steps, in a variable of the thread that is added to the others' when it ends."""
    counter = ir.Name(f"rows{step}")
    start = ir.Let(counter, code.integer(0))
    is_new = start not in code.prologue  # a probe may write what follows it more than once
    if is_new:
        code.prologue.append(start)
    code.set(counter, code.call("add_i64", counter, code.integer(1)))
    if is_new:
        add = "reduce_add_i64" if capabilities(code.target).has_warps else "atomic_add_i64"
        counters = code.pointer("i64", StatePart("counters"), "s")
        code.epilogue.append(ir.Store(code.call(add, counters, ir.Constant(step), counter)))


def _step(step: Step, row: ir.Name, code: Code, consume: Callable[[], None]) -> None:
    """Write the lines of a step; it calls ``consume`` where it passes on the row ``row``, or what was made of it."""
    match step:
        case FilterRows(predicate, selectivity):
            with code.when(condition(predicate, code)):
                _behind(selectivity, code, consume)
        case Compute(exprs):
            _compute(exprs, code)
            consume()
        case Probe(selectivity=selectivity):
            from gquery.operators.join import emit_probe

            emit_probe(step, code, lambda: _behind(selectivity, code, consume))
        case SegmentHeads(selectivity=selectivity):
            from gquery.operators.segments import emit_heads  # as above

            emit_heads(step, row, code, lambda: _behind(selectivity, code, consume))
        case SegmentRows() | AggregateSegment():
            raise AssertionError("a segment is written as a whole")
        case _:
            assert_never(step)


def _behind(selectivity: float, code: Code, consume: Callable[[], None]) -> None:
    """Pass a row on that got past a step, as that share of the source's rows does."""
    before, code.selectivity = code.selectivity, min(code.selectivity, selectivity)
    consume()
    code.selectivity = before


def _compute(exprs: tuple[tuple[Column, Expr], ...], code: Code) -> None:
    """Bind columns to expressions, each computed where it is first used."""
    for column, e in exprs:
        what = described(e, code)
        code.provide(column.id, what, partial(render, e, code))


def _begin(sink: Sink, mode: materialize.Mode, role: str, code: Code) -> None:
    match sink:
        case Materialize():
            materialize.begin(mode, role, capabilities(code.target).has_warps, code)
        case Reduce(accumulators=accumulators):
            reduce.begin(accumulators, code)
        case Group():
            accumulate.begin(sink, code)
        case Build():
            pass
        case _:
            assert_never(sink)


def _consume(sink: Sink, source: Source, mode: materialize.Mode, role: str, code: Code) -> None:
    match sink:
        case Materialize():
            materialize.emit(sink, mode, role, code)
        case Reduce(accumulators=accumulators):
            reduce.emit(accumulators, code)
        case Group():
            from gquery.operators import group  # each with modules that a query without groups or joins does without

            group.emit(sink, source, code)
        case Build(table):
            from gquery.operators.join import emit_build

            emit_build(table, code)
        case _:
            assert_never(sink)


def _end(sink: Sink, mode: materialize.Mode, role: str, code: Code) -> None:
    match sink:
        case Materialize():
            materialize.end(mode, role, capabilities(code.target).has_warps, code)
        case Reduce():
            reduce.end(sink, code)
        case Group():
            accumulate.end(sink, code)
        case Build():
            pass
        case _:
            assert_never(sink)
