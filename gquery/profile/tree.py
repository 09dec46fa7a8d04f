"""The tree that EXPLAIN shows: operators of the plan, pipelines of the program, and what a run of them took.

Plain dataclasses, so that text, JSON and the page are three printers of one thing. Estimates are made for nodes of the
logical plan; `match_steps` finds the node that each fused step came from, so that both carry estimated and true rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, field
from typing import Any

from gquery.execution import ExecutionContext, StageReport
from gquery.execution.decision import Specialized
from gquery.execution.feedback import RunFeedback
from gquery.execution.measure import Meter
from gquery.expression.traverse import conjuncts
from gquery.kernels.targets import get_target
from gquery.kernels.targets.capabilities import capabilities
from gquery.operators.codegen import units
from gquery.planner.logical.cardinality import Estimator
from gquery.planner.logical.nodes import (
    Aggregate,
    Filter,
    Join,
    Limit,
    Plan,
    Project,
    Query,
    Scan,
    Shared,
    Sort,
    Window,
)
from gquery.planner.logical.shared import definitions
from gquery.planner.logical.tree import used_columns, walk
from gquery.planner.physical import (
    AggregateSegment,
    FilterRows,
    Group,
    Pipeline,
    PipelineBreaker,
    Probe,
    Program,
    ReadTable,
    Reduce,
    Sink,
    SliceRows,
    SortRows,
    Source,
    Stage,
    WindowRows,
)
from gquery.planner.stage_inputs import stage_inputs
from gquery.profile.explain import Printer
from gquery.profile.explain_program import describe_work, printer_of, specialized
from gquery.profile.ranks import placement_texts, ranks_text
from gquery.runtime.records import dataclass


@dataclass
class Node:
    """An operator of the plan, or one step of a pipeline."""

    operator: str
    text: str
    estimated_rows: int | None = None
    true_rows: int | None = None
    stage: int | None = None  # of the plan's operators, the stage that they are part of
    children: list[Node] = field(default_factory=list)


@dataclass
class KernelNode:
    """One kernel of a pipeline. Measured fields are None unless the query was run."""

    role: str
    source: str
    launches: int | None = None
    seconds: float | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None
    bytes_are_estimated: bool = False
    bandwidth: float | None = None
    share_of_copy: float | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    spilled_bytes: int | None = None
    compile_seconds: float | None = None
    cached: bool | None = None


@dataclass
class StageNode:
    """A stage of the program: a pipeline whose operators are one loop, or an operation on whole tables. ``seconds`` leaves
    out what compiling and loading kernels took."""

    number: int
    label: str
    kind: str
    target: str
    reason: str
    inputs: list[int]
    operators: list[Node]
    kernels: list[KernelNode]
    seconds: float | None = None
    attempts: int | None = None
    blocks: int | None = None  # of rows of the source, where some are not scanned
    skipped_blocks: int | None = None
    row_groups_read: int | None = None  # of Parquet files: those that the scan goes over
    row_groups_skipped: int | None = None  # and those that it leaves out
    parts: int | None = None  # that it was made in, one after another, as it did not fit memory
    spilled_bytes: int | None = None  # of these, in files
    streamed_bytes: int | None = None  # of columns that went through the device in chunks
    ranks: list[str] = field(default_factory=list)  # what each of several ranks runs, and what it took


@dataclass
class Explained:
    """A query as EXPLAIN shows it."""

    sql: str
    device: str
    columns: list[str]
    plan: Node
    stages: list[StageNode]
    analyzed: bool = False
    seconds: float | None = None
    compile_seconds: float | None = None
    rows: int | None = None
    peak_bytes: int | None = None
    spilled_bytes: int | None = None
    copy_bandwidth: float | None = None
    template: str = ""  # whether the plan came of a template, or why not
    fetch: str = ""  # what is read by row number behind the stages

    def as_dict(self) -> dict[str, Any]:
        """The tree as JSON knows it."""
        return asdict(self)


@dataclass
class Analysis:
    """What a run measured."""

    reports: list[StageReport]
    meter: Meter
    steps: dict[int, list[int]]  # rows behind each step, by stage
    seconds: float
    rows: int
    copy_bandwidth: float


@dataclass
class _Known:
    """What the nodes of a tree are made of. ``true``: a stage and true rows, by the id of the plan's node."""

    plan: Plan
    printer: Printer
    runs: dict[int, Specialized]  # by stage
    target: str
    analysis: Analysis | None
    placed: list[str] = field(default_factory=list)  # how several ranks run each stage
    estimator: Estimator = field(default_factory=Estimator)
    true: dict[int, tuple[int, int | None]] = field(default_factory=dict)


def explained(
    sql: str,
    query: Query,
    program: Program,
    context: ExecutionContext,
    feedback: RunFeedback,
    analysis: Analysis | None,
) -> Explained:
    """The tree of a query: what a run measured, or what the next run will be."""
    names_of = ", ".join(d.name for d in context.ranks or (context.device,))
    device = context.target if capabilities(context.target).is_interpreted else names_of
    runs, placed = specialized(program, context, feedback), placement_texts(program, context, feedback)
    known = _Known(query.plan, printer_of(program), runs, context.target, analysis, placed)
    stages = [_stage(s, known) for s in program.stages]
    plan = _plan(query.plan, Printer(query.plan), known)
    fetch = program.fetch
    names = list(query.names) if fetch is None else [o.name for o in fetch.outputs]
    result = Explained(sql.strip(), device, names, plan, stages, fetch="" if fetch is None else fetch.text)
    if analysis is not None:
        result.analyzed = True
        result.seconds, result.rows = analysis.seconds, analysis.rows
        result.compile_seconds = sum(r.compile_seconds for r in analysis.reports)
        result.spilled_bytes = analysis.meter.spilled_bytes
        result.peak_bytes, result.copy_bandwidth = analysis.meter.peak_bytes, analysis.copy_bandwidth
    return result


def _plan(plan: Plan, printer: Printer, known: _Known) -> Node:
    text = printer.node(plan)
    children = [_plan(s, printer, known) for s in printer.below(plan)]
    stage, rows = known.true.get(id(plan), (None, None))
    if isinstance(plan, Project | Shared) and children:  # gives a row a row, and is a part of the loop that makes them
        stage, rows = children[0].stage, children[0].true_rows
    return Node(type(plan).__name__, text, round(known.estimator.rows(plan)), rows, stage, children)


def _stage(stage: Stage, known: _Known) -> StageNode:
    work, analysis, runs = stage.work, known.analysis, known.runs.get(stage.number)
    report = None if analysis is None else analysis.reports[stage.number]
    if runs is None:
        shown, where, reason = work, known.target if report is None else report.target, "whole tables"
    else:
        shown, (where, reason, _) = runs.pipeline, runs.choice
    texts = describe_work(shown, where, known.printer)
    if runs is not None and report is not None and report.target != where:
        where, reason = report.target, f"{report.rows:,} rows to read, or its kernel was there"
    kind = "pipeline breaker" if runs is None else "pipeline"
    operators = [Node(name, text) for name, text in texts]
    _count_rows(stage, operators, known)
    result = StageNode(stage.number, stage.label, kind, where, reason, stage_inputs(work), operators, [])
    result.ranks = known.placed[stage.number : stage.number + 1]
    if report is not None:
        result.ranks += ranks_text(report.of_ranks)
        result.seconds, result.attempts = report.seconds - report.compile_seconds, report.attempts
        if report.parts:
            result.parts, result.spilled_bytes = report.parts, report.spilled_bytes
        if report.streamed_bytes:
            result.streamed_bytes = report.streamed_bytes
        if report.skipped_blocks:
            result.blocks, result.skipped_blocks = report.blocks, report.skipped_blocks
    if runs is not None:
        result.kernels = list(_kernels(stage.number, runs, analysis))
        if isinstance(runs.pipeline.source, ReadTable):
            read, of = getattr(runs.pipeline.source.source, "row_groups", (None, None))
            if read is not None and of is not None:
                result.row_groups_read, result.row_groups_skipped = read, of - read
    return result


def _count_rows(stage: Stage, operators: list[Node], known: _Known) -> None:
    """Fill in the estimated and the true rows of a stage's operators, and the true ones of the plan's nodes."""
    work = stage.work
    nodes, counts = match_steps(work, known.plan), _counts(stage, known.analysis)
    rows: float | None = work.rows if isinstance(work, Pipeline) else None
    for n, operator in enumerate(operators):
        node = nodes.get(n)
        part = work.steps[n - 1] if isinstance(work, Pipeline) and 0 < n <= len(work.steps) else None
        if node is not None:
            rows = known.estimator.rows(node)
        elif isinstance(work, Pipeline) and isinstance(part, FilterRows):
            rows = work.rows * part.selectivity
        elif isinstance(work, Pipeline) and n == len(operators) - 1:
            rows = work.sink.groups if isinstance(work.sink, Group) else 1 if isinstance(work.sink, Reduce) else rows
        operator.estimated_rows = None if rows is None else round(rows)
        operator.true_rows = counts[n] if n < len(counts) else None
        if node is not None:
            known.true[id(node)] = stage.number, operator.true_rows


def _counts(stage: Stage, analysis: Analysis | None) -> list[int | None]:
    """True rows behind the source, each step and the sink."""
    if analysis is None:
        return []
    out = analysis.meter.rows_out.get(stage.number)
    if not isinstance(stage.work, Pipeline):
        return [out]
    counts: list[int | None] = list(analysis.steps.get(stage.number, []))
    if not counts:
        counts = [analysis.reports[stage.number].rows] + [None] * len(stage.work.steps)
    counts[0] = analysis.reports[stage.number].rows
    return [*counts, counts[-1] if out is None else out]


def _kernels(number: int, runs: Specialized, analysis: Analysis | None) -> Iterator[KernelNode]:
    if analysis is not None:
        for k in analysis.meter.kernels.get(number, {}).values():
            share = k.bandwidth / analysis.copy_bandwidth if analysis.copy_bandwidth else None
            on_gpu = capabilities(k.target).has_own_memory
            yield KernelNode(
                k.role,
                k.source,
                k.launches,
                k.seconds,
                k.bytes_read,
                k.bytes_written,
                k.is_estimate,
                k.bandwidth,
                share if not capabilities(k.target).is_interpreted else None,
                k.registers if on_gpu else None,
                k.shared_bytes if on_gpu else None,
                k.local_bytes if on_gpu else None,
                k.compile_seconds,
                k.cached,
            )
        return
    for unit in units(runs.pipeline, runs.target):
        yield KernelNode(unit.role, get_target(runs.target).source(unit.kernel))


def match_steps(work: Pipeline | PipelineBreaker, plan: Plan) -> dict[int, Plan]:
    """For the parts of a stage (source 0, steps, sink last), the node of the plan whose rows they give."""
    plans = (*(d.plan for d in definitions(plan)), plan)
    nodes = [n for p in plans for n in list(walk(p))[::-1]]  # sources come before what reads them
    if isinstance(work, Pipeline):
        found = (_source_node(work.source, nodes), *[_node_of(s, nodes) for s in work.steps], _sink_node(work.sink, nodes))
    else:
        found = (_breaker_node(work, nodes),)
    return {part: node for part, node in enumerate(found) if node is not None}


def _source_node(source: Source, nodes: Sequence[Plan]) -> Plan | None:
    if not isinstance(source, ReadTable):
        return None
    own = {s.column.id for s in source.columns}
    return _last(n for n in nodes if isinstance(n, Scan) and n.source is source.source and own & _ids(n))


def _sink_node(sink: Sink, nodes: Sequence[Plan]) -> Plan | None:
    if not isinstance(sink, Group | Reduce):
        return None
    made = {c.id for c, _ in sink.aggregates}
    if isinstance(sink, Group):
        made |= {c.id for c, _, _ in sink.keys}
    return next((n for n in nodes if isinstance(n, Aggregate) and made and made <= _ids(n)), None)


def _breaker_node(work: PipelineBreaker, nodes: Sequence[Plan]) -> Plan | None:
    if isinstance(work, WindowRows):
        made = {s.column.id for s, _ in work.calls}
        return _last(n for n in nodes if isinstance(n, Window) and made <= {c.id for c, _ in n.calls})
    if isinstance(work, SortRows | SliceRows):
        given = {s.column.id for s in work.columns}
        return _last(n for n in nodes if isinstance(n, Sort | Limit) and given and given <= _ids(n))
    return None


def _last(nodes: Iterable[Plan]) -> Plan | None:
    """The one nearest the root."""
    return next(iter(list(nodes)[::-1]), None)


def _node_of(step: object, nodes: list[Plan]) -> Plan | None:
    match step:
        case FilterRows(predicate=predicate):
            for node in nodes:
                if isinstance(node, Filter) and conjuncts(node.predicate)[-1] == predicate:
                    return node
        case AggregateSegment(aggregates=aggregates):
            made = {c.id for c, _ in aggregates}
            return next((n for n in nodes if isinstance(n, Aggregate) and made and made <= _ids(n)), None)
        case Probe(table=table, keys=keys):
            known = {c.id for node in nodes for c in node.columns}  # lowering makes columns of its own for keys
            build = {s.column.id for s in table.columns} & known
            probe = {i for k in keys for i in used_columns(k)} & known
            for node in nodes:
                if isinstance(node, Join) and probe <= used_columns(node.condition):
                    left, right = _ids(node.left), _ids(node.right)
                    if (build <= right and probe <= left) or (build <= left and probe <= right):
                        return node
    return None


def _ids(plan: Plan) -> frozenset[int]:
    return frozenset(c.id for c in plan.columns)
