"""The tree that EXPLAIN shows: operators of the plan, pipelines of the program, and what a run of them took.

Plain dataclasses, so that text, JSON and the page are three printers of one thing. Estimates are made for nodes of the
logical plan; `match_steps` finds the node that each fused step came from, so that both carry estimated and true rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from gquery.execution import StageReport
from gquery.execution.measure import Meter
from gquery.expression.expr import conjuncts
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
)
from gquery.planner.logical.shared import definitions
from gquery.planner.logical.tree import used_columns, walk
from gquery.planner.physical import (
    Bulk,
    FilterRows,
    Group,
    Pipeline,
    Probe,
    Program,
    ReadTable,
    Reduce,
    SliceRows,
    SortRows,
    Stage,
)
from gquery.profile.explain import Printer
from gquery.profile.explain_program import describe_work, inputs_of, place_of, printer_of


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
    row_groups_read: int | None = None


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
    copy_bandwidth: float | None = None

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


def explained(
    sql: str, query: Query, program: Program, target: str, device: str, limit: int, analysis: Analysis | None
) -> Explained:
    """The tree of a query; ``limit`` is the setting `interpret_limit`."""
    estimator = Estimator()
    true: dict[int, tuple[int, int | None]] = {}  # stage and true rows by id of the plan's node
    stages = [_stage(s, query.plan, program, target, limit, estimator, true, analysis) for s in program.stages]
    plan = _plan(query.plan, Printer(query.plan), estimator, true)
    result = Explained(sql.strip(), device, list(query.names), plan, stages)
    if analysis is not None:
        result.analyzed = True
        result.seconds, result.rows = analysis.seconds, analysis.rows
        result.compile_seconds = sum(r.compile_seconds for r in analysis.reports)
        result.peak_bytes, result.copy_bandwidth = analysis.meter.peak_bytes, analysis.copy_bandwidth
    return result


def _plan(plan: Plan, printer: Printer, estimator: Estimator, true: dict[int, tuple[int, int | None]]) -> Node:
    text = printer.node(plan)
    children = [_plan(s, printer, estimator, true) for s in printer.below(plan)]
    stage, rows = true.get(id(plan), (None, None))
    if isinstance(plan, Project | Shared) and children:  # gives a row a row, and is a part of the loop that makes them
        stage, rows = children[0].stage, children[0].true_rows
    return Node(type(plan).__name__, text, round(estimator.rows(plan)), rows, stage, children)


def _stage(
    stage: Stage,
    plan: Plan,
    program: Program,
    target: str,
    limit: int,
    estimator: Estimator,
    true: dict[int, tuple[int, int | None]],
    analysis: Analysis | None,
) -> StageNode:
    work = stage.work
    report = None if analysis is None else analysis.reports[stage.number]
    texts = list(describe_work(work, target, printer_of(program)))
    nodes = match_steps(work, plan)
    operators = [Node(kind, text) for kind, text in texts]
    rows: float | None = work.rows if isinstance(work, Pipeline) else None
    counts = _counts(stage, analysis)
    for n, operator in enumerate(operators):
        node = nodes.get(n)
        part = work.steps[n - 1] if isinstance(work, Pipeline) and 0 < n <= len(work.steps) else None
        if node is not None:
            rows = estimator.rows(node)
        elif isinstance(work, Pipeline) and isinstance(part, FilterRows):
            rows = work.rows * part.share
        elif isinstance(work, Pipeline) and n == len(operators) - 1:
            rows = work.sink.groups if isinstance(work.sink, Group) else 1 if isinstance(work.sink, Reduce) else rows
        operator.estimated_rows = None if rows is None else round(rows)
        operator.true_rows = counts[n] if n < len(counts) else None
        if node is not None:
            true[id(node)] = stage.number, operator.true_rows
    if not isinstance(work, Pipeline):
        where, reason = (target, "whole tables") if report is None else (report.target, "whole tables")
        kind = "bulk"
    else:
        where, reason = place_of(work, target, limit)
        kind = "pipeline"
        if report is not None and report.target != where:
            where, reason = report.target, f"{report.rows:,} rows to read, or its kernel was there"
    result = StageNode(stage.number, stage.label, kind, where, reason, inputs_of(work), operators, [])
    if report is not None:
        result.seconds, result.attempts = report.seconds - report.compile_seconds, report.attempts
    if isinstance(work, Pipeline):
        result.kernels = list(_kernels(stage.number, work, where, analysis))
        if isinstance(work.source, ReadTable):
            result.row_groups_read = getattr(work.source.source, "row_groups", None)
    return result


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


def _kernels(number: int, work: Pipeline, where: str, analysis: Analysis | None) -> Iterator[KernelNode]:
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
    for unit in units(work, where):
        yield KernelNode(unit.role, get_target(where).source(unit.kernel))


def match_steps(work: Pipeline | Bulk, plan: Plan) -> dict[int, Plan]:
    """For the parts of a stage (source 0, steps, sink last), the node of the plan whose rows they give."""
    plans = (*(d.plan for d in definitions(plan)), plan)
    nodes = [n for p in plans for n in list(walk(p))[::-1]]  # sources come before what reads them
    found: dict[int, Plan] = {}
    if not isinstance(work, Pipeline):
        if isinstance(work, SortRows | SliceRows):
            sorted_ = {s.column.id for s in work.columns}
            for node in nodes:
                if isinstance(node, Sort | Limit) and sorted_ and sorted_ <= _ids(node):
                    found[0] = node
        return found
    if isinstance(work.source, ReadTable):
        own = {s.column.id for s in work.source.columns}
        for node in nodes:
            if isinstance(node, Scan) and node.source is work.source.source and own & _ids(node):
                found[0] = node
    for n, step in enumerate(work.steps, 1):
        node_ = _node_of(step, nodes)
        if node_ is not None:
            found[n] = node_
    if isinstance(work.sink, Group | Reduce):
        made = {c.id for c, _ in work.sink.aggregates}
        if isinstance(work.sink, Group):
            made |= {c.id for c, _, _ in work.sink.keys}
        for node in nodes:
            if isinstance(node, Aggregate) and made and made <= _ids(node):
                found[len(work.steps) + 1] = node
                break
    return found


def _node_of(step: object, nodes: list[Plan]) -> Plan | None:
    match step:
        case FilterRows(predicate=predicate):
            for node in nodes:
                if isinstance(node, Filter) and conjuncts(node.predicate)[-1] == predicate:
                    return node
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
